//! What a device or the bus gets wrong on an EHCI, beyond what every kind has to stand
//! (`driver_rig::recovery`).

use std::cmp::Ordering;

use rootport::host::{Endpoints, Outcome, Report};
use rootport::time::Duration;
use rootport::usb::setup::{Direction, SetupPacket};
use rootport_models::controller::ehci::{Faults, Traits, TransferFault};
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Link, Script};

use crate::rig::{
    DiskRig, Ended, READ, Rig, STATUS, WRAPPER, command_wrapper, script, with_disk, with_running,
};

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
fn a_silent_device_is_quiesced_and_its_transfers_come_back() {
    let disk = script()
        .on(opcode(READ).times(1), Action::Hang(Until::ClassReset))
        .build();
    with_disk(Traits::default(), disk, |rig, disk| {
        rig.queue_read(disk, 0, 8, 0);
        rig.idle(Duration::from_secs(1));
        assert_eq!(rig.ended_so_far(disk.input), []);
        rig.quiesce(disk.input).unwrap();
        assert_eq!(
            rig.ended_so_far(disk.input),
            [(2, Outcome::Cancelled, 0), (3, Outcome::Cancelled, 0)]
        );
        rig.quiesce(disk.output).unwrap();
        assert_eq!(rig.ended_so_far(disk.output), [], "quiet, and sent");
        rig.control(disk.device, SetupPacket::bulk_only_reset(0));
        rig.recover(disk);
    });
}

#[test]
fn a_stop_in_the_middle_of_data_tells_how_much_came() {
    let content: Vec<u8> = (0..0x2_0000_u32).map(|n| (n % 251) as u8 + 1).collect();
    let unit = LogicalUnit::stick(65536).content(&content);
    for span in [300, 700, 1_000, 1_500, 2_000] {
        let disk = Script::new().speed(Link::High).unit(unit.clone()).build();
        with_running(Traits::default(), |rig| {
            rig.machine.plug(0, 0, disk);
            let mut disk = rig.disk(0);
            rig.data.write_bytes(0, &[0; 0x2_0000]);
            // 120 KiB take 2.3 ms at high speed, in six qTDs.
            rig.queue_read(&mut disk, 0, 240, 0);
            rig.idle(Duration::from_micros(span));
            rig.quiesce(disk.input).unwrap();
            let ended = rig.ended_so_far(disk.input);
            let [(2, Outcome::Cancelled, actual), (3, Outcome::Cancelled, 0)] = ended[..] else {
                panic!("{ended:?}");
            };
            let mut bytes = vec![0; 0x2_0000];
            rig.data.read_bytes(0, &mut bytes);
            let arrived = bytes.iter().take_while(|byte| **byte != 0).count();
            assert_eq!(actual as usize, arrived, "after {span} us");
            assert!(actual as u64 > span * 40, "{actual} after {span} us");
        });
    }
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
