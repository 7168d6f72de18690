//! A command of the controller that ends with any error, or never, at every place.

use rootport_models::controller::xhci::CompletionFault;
use rootport_models::device::SECOND;
use rootport_models::device::bot::{Action, opcode};

use super::{Faults, LINKS};
use crate::scenarios::every_step::survives;
use crate::scenarios::letting_go::{live, live_with, stick};

/// Codes that a command may end with: transaction error, TRB error, stall, resource error, bandwidth
/// error, no slots, parameter error, context state error, a vendor's own.
const COMMAND_CODES: [u8; 9] = [4, 5, 6, 7, 8, 9, 17, 19, 200];

#[test]
fn any_command_may_end_with_any_error_or_never() {
    for &link in LINKS {
        for count in 0..8 {
            for fault in COMMAND_CODES
                .map(CompletionFault::Code)
                .into_iter()
                .chain([CompletionFault::Never])
            {
                let mut faults = Faults::none();
                faults.commands.insert(count, fault);
                let what = format!("{fault:?} at command {count}");
                survives(link, count, faults, &what);
            }
        }
    }
}

#[test]
fn any_command_of_the_controller_may_never_end() {
    for command in 0..12 {
        let mut faults = Faults::none();
        faults.commands.insert(command, CompletionFault::Never);
        live(faults);
    }
}

/// Recovery that cannot stop an endpoint must not end the command.
#[test]
fn any_transfer_may_end_badly_and_any_command_of_its_recovery_never() {
    for transfer in [0, 4, 5, 6, 7] {
        for address in [0x81, 0x02] {
            for command in 3..7 {
                let mut faults = Faults::none();
                let broken = CompletionFault::Code(4);
                faults.transfers.insert((address, transfer), broken);
                faults.commands.insert(command, CompletionFault::Never);
                live(faults);
            }
        }
    }
}

/// A transfer that never ends is recalled, and the command that recalls it may never end either.
#[test]
fn any_transfer_may_never_end_nor_any_command_of_its_recall() {
    for transfer in [4, 5, 6, 7] {
        for address in [0x81, 0x02] {
            for command in 3..7 {
                let mut faults = Faults::none();
                let lost = CompletionFault::Never;
                faults.transfers.insert((address, transfer), lost);
                faults.commands.insert(command, CompletionFault::Never);
                live(faults);
            }
        }
    }
}

/// The device answers when its command was given up long ago, and the pipe could not be stopped.
#[test]
fn an_answer_may_come_while_recovery_is_stuck() {
    for seconds in [11, 16, 19, 24] {
        for command in 3..7 {
            let mut faults = Faults::none();
            faults.commands.insert(command, CompletionFault::Never);
            let late = Action::Delay(seconds * SECOND);
            let script = stick().on(opcode(0x28).once(), late);
            live_with(faults, script);
        }
    }
}
