//! The n-th transfer of each endpoint ends with an error of the wire, an odd code, or never; the n-th
//! command of the controller too.

use super::{Course, Speed};
use rootport_models::controller::xhci::{CompletionFault, Faults};

/// Codes that a transfer may end with (xHCI 1.2 table 6-90): data buffer error, babble, transaction
/// error, TRB error, stall, split error, and a vendor's own.
const TRANSFER_CODES: [u8; 7] = [2, 3, 4, 5, 6, 36, 200];

/// Codes that a command may end with: transaction error, TRB error, stall, resource error, bandwidth
/// error, no slots, parameter error, context state error, a vendor's own.
const COMMAND_CODES: [u8; 9] = [4, 5, 6, 7, 8, 9, 17, 19, 200];

/// A fault of the controller, and the disk that works on all the same.
fn survives(speed: Speed, step: u64, faults: Faults, what: &str) {
    let mut course = Course::new(speed, step, faults);
    let results = course.run(&speed.script().build());
    let good = results.is_some_and(|results| results.all_good());
    assert!(good, "{what}: {results:?}; {}", course.rig.describe());
    course.end();
}

fn transfer(endpoint: u8, count: u64, fault: CompletionFault) -> Faults {
    let mut faults = Faults::none();
    faults.transfers.insert((endpoint, count), fault);
    faults
}

#[test]
fn any_transfer_of_a_bulk_pipe_may_end_with_any_error() {
    for speed in Speed::BOTH {
        for endpoint in [0x81, 0x02] {
            for count in 0..12 {
                let code = TRANSFER_CODES[count as usize % TRANSFER_CODES.len()];
                let fault = CompletionFault::Code(code);
                let what = format!("code {code} at transfer {count} of {endpoint:#x}");
                survives(speed, count, transfer(endpoint, count, fault), &what);
            }
        }
    }
}

#[test]
fn any_transfer_of_a_bulk_pipe_may_never_end() {
    for speed in Speed::BOTH {
        for endpoint in [0x81, 0x02] {
            for count in 0..12 {
                let faults = transfer(endpoint, count, CompletionFault::Never);
                let what = format!("no end of transfer {count} of {endpoint:#x}");
                survives(speed, count, faults, &what);
            }
        }
    }
}

#[test]
fn any_stage_on_endpoint_zero_may_end_with_any_error_or_never() {
    for speed in Speed::BOTH {
        for count in 0..50 {
            let code = TRANSFER_CODES[count as usize % TRANSFER_CODES.len()];
            let fault = match count % 2 {
                0 => CompletionFault::Code(code),
                _ => CompletionFault::Never,
            };
            let what = format!("{fault:?} at stage {count} of endpoint 0");
            survives(speed, count, transfer(0, count, fault), &what);
        }
    }
}

#[test]
fn any_command_may_end_with_any_error_or_never() {
    for speed in Speed::BOTH {
        for count in 0..8 {
            for fault in COMMAND_CODES
                .map(CompletionFault::Code)
                .into_iter()
                .chain([CompletionFault::Never])
            {
                let mut faults = Faults::none();
                faults.commands.insert(count, fault);
                let what = format!("{fault:?} at command {count}");
                survives(speed, count, faults, &what);
            }
        }
    }
}
