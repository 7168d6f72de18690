//! What a device or the bus gets wrong on an EHCI, beyond what every kind has to stand
//! (`driver_rig::recovery`).

use std::cmp::Ordering;

use rootport::host::{Endpoints, Outcome, Report};
use rootport::usb::setup::{Direction, SetupPacket};
use rootport_models::controller::ehci::{Faults, Traits, TransferFault};
use rootport_models::device::bot::{Action, opcode};

use crate::rig::{DiskRig, Ended, READ, Rig, STATUS, WRAPPER, command_wrapper, script, with_disk};

#[test]
fn short_data_lead_to_the_status_at_every_place_of_the_circle() {
    let disk = script()
        .on(opcode(READ).times(40), Action::ShortData(20_700))
        .build();
    with_disk(Traits::default(), disk, |rig, disk| {
        for round in 0..40 {
            // Three qTDs, of which the second ends short.
            let (ended, status) = rig.read_blocks(disk, 0, 120, 0x200);
            let short = [(2, Outcome::Short, 20_700), (3, Outcome::Short, 13)];
            assert_eq!(ended, short, "{round}");
            assert_eq!(status, 0);
        }
    });
}

#[test]
fn every_reason_of_a_halt_leads_back_to_work() {
    for (fault, outcome) in [
        (TransferFault::Stall, Outcome::Stall),
        (TransferFault::Babble, Outcome::Babble),
        (TransferFault::Transaction, Outcome::TransactionError),
        // It neither halts nor counts by itself (§3.5.3, CErr): what halted was a stall behind it.
        (TransferFault::DataBuffer, Outcome::Stall),
    ] {
        let mut faults = Faults::none();
        faults.transfers.insert((0x81, 2), fault);
        with_disk(faults, script().build(), |rig, disk| {
            rig.read_at(disk, 0, 1);
            let (ended, _) = rig.read_blocks(disk, 0, 1, 0);
            assert_eq!(ended[0].1, outcome, "{fault:?}");
            rig.control(disk.device, SetupPacket::bulk_only_reset(0));
            rig.recover(disk);
            rig.left.clear();
        });
    }
}

/// Data in two transfers and the status are appended one by one while the queue is at work, or has
/// halted already without anybody's notice. What halted is told, what went before it has ended well,
/// and what is behind it comes back.
#[test]
fn a_queue_that_halts_amid_appended_work_gives_the_rest_back() {
    for (fault, outcome) in [
        (TransferFault::Stall, Outcome::Stall),
        (TransferFault::Babble, Outcome::Babble),
        (TransferFault::Transaction, Outcome::TransactionError),
    ] {
        for at in 0..3 {
            for pause in [0, 5_000, 30_000, 70_000, 500_000] {
                let mut faults = Faults::none();
                faults.transfers.insert((0x81, at), fault);
                with_disk(faults, script().build(), |rig, disk| {
                    append_a_read(rig, disk, pause);
                    let mut ended = Vec::new();
                    while ended.last().is_none_or(|last: &Ended| last.1.is_ok()) {
                        ended.push(rig.ended(disk.input));
                    }
                    rig.quiesce(disk.input).unwrap();
                    ended.extend(rig.ended_so_far(disk.input));
                    let tokens: Vec<u64> = ended.iter().map(|one| one.0.into()).collect();
                    assert_eq!(tokens, [0, 1, 2], "{fault:?} at {at}, {pause} ns");
                    for (token, result, _) in ended {
                        let wanted = match u64::from(token).cmp(&at) {
                            Ordering::Less => Outcome::Complete,
                            Ordering::Equal => outcome,
                            Ordering::Greater => Outcome::Cancelled,
                        };
                        assert_eq!(result, wanted, "{fault:?} at {at}, {pause} ns: {token}");
                    }
                    rig.control(disk.device, SetupPacket::bulk_only_reset(0));
                    rig.recover(disk);
                    rig.left.clear();
                });
            }
        }
    }
}

/// A read of four blocks: its data as tokens 0 and 1, its status as token 2.
fn append_a_read(rig: &mut Rig<'_>, disk: &mut DiskRig, pause: u64) {
    let wrapper = command_wrapper(77, 2048, READ, 0, 4);
    rig.data.write_bytes(WRAPPER, &wrapper);
    let pieces = [(0, 1024), (1024, 1024), (STATUS, 1024)];
    rig.queue(
        disk.output,
        9,
        Direction::Out,
        (WRAPPER, 31),
        Report::Unexpected,
    );
    rig.driver.kick(disk.output, 0);
    for (token, piece) in (0..).zip(pieces) {
        rig.queue(disk.input, token, Direction::In, piece, Report::Always);
        rig.driver.kick(disk.input, 0);
        rig.machine.advance(pause);
    }
}
