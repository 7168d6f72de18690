//! What a device or the bus gets wrong ends in a typed outcome, and the endpoint works again.

use std::cmp::Ordering;

use rootport::host::{
    Devices, Endpoints, Event, HostError, Outcome, Report, RootPort, RootPorts, Sequence,
};
use rootport::time::Duration;
use rootport::usb::setup::{Direction, SetupPacket};
use rootport_models::controller::ehci::{Faults, Traits, TransferFault};
use rootport_models::device::base::{Answer, Request};
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Link, Script};

use crate::rig::{DiskRig, Ended, Rig, STATUS, Setting, WRAPPER, command_wrapper, with_running};

const READ: u8 = 0x28;

fn script() -> Script {
    Script::new()
        .speed(Link::High)
        .unit(LogicalUnit::stick(65536).content(b"block zero"))
}

/// Runs with an odd disk in port 0, and returns after it has been read well once more.
fn with_disk(
    setting: impl Into<Setting>,
    disk: Disk,
    test: impl FnOnce(&mut Rig<'_>, &mut DiskRig),
) {
    with_running(setting, |rig| {
        rig.machine.plug(0, 0, disk);
        let mut disk = rig.disk(0);
        test(rig, &mut disk);
        assert_eq!(&rig.read_at(&mut disk, 0, 3)[..10], b"block zero");
        assert_eq!(rig.close(disk.device), Ok(()));
        assert_eq!(rig.stop(), Ok(()));
    });
}

#[test]
fn a_stalled_data_phase_is_reported_and_the_endpoint_works_again_at_every_place_of_the_circle() {
    let disk = script()
        .on(opcode(READ).times(40), Action::HaltData)
        .build();
    with_disk(Traits::default(), disk, |rig, disk| {
        for round in 0..40 {
            let (ended, _) = rig.read_blocks(disk, 0, 8, 0);
            assert_eq!(ended, [(2, Outcome::Stall, 0)], "{round}");
            rig.quiesce(disk.input).unwrap();
            assert_eq!(rig.ended_so_far(disk.input), [(3, Outcome::Cancelled, 0)]);
            let clear = SetupPacket::clear_endpoint_halt(disk.address_in());
            assert_eq!(rig.control(disk.device, clear), (Outcome::Complete, 0));
            rig.restart(disk.input, Sequence::Reset).unwrap();
            // The status of the failed command is still to come.
            rig.queue(disk.input, 4, Direction::In, (STATUS, 1024), Report::Always);
            rig.driver.kick(disk.input, 0);
            assert_eq!(rig.ended(disk.input), (4, Outcome::Short, 13));
            rig.driver.retire(disk.output);
        }
    });
}

#[test]
fn transaction_errors_in_the_data_phase_halt_and_are_recovered() {
    let disk = script()
        .on(opcode(READ).times(1), Action::SilentData(3))
        .build();
    with_disk(Traits::default(), disk, |rig, disk| {
        let (ended, _) = rig.read_blocks(disk, 0, 8, 0);
        assert_eq!(ended, [(2, Outcome::TransactionError, 0)]);
        rig.control(disk.device, SetupPacket::bulk_only_reset(0));
        rig.recover(disk);
        let left = rig.ended_so_far(disk.input);
        assert_eq!(left, [(3, Outcome::Cancelled, 0)]);
        assert_eq!(rig.ended_so_far(disk.output), [], "quiet, and sent");
    });
}

#[test]
fn a_device_that_sends_too_much_babbles_and_is_recovered() {
    let disk = script()
        .on(opcode(READ).times(1), Action::LongData(512))
        .build();
    with_disk(Traits::default(), disk, |rig, disk| {
        rig.queue_read(disk, 0, 1, 0);
        let outcome = rig.ended(disk.input);
        assert!(!outcome.1.is_ok() || outcome.2 != 13, "{outcome:?}");
        rig.control(disk.device, SetupPacket::bulk_only_reset(0));
        rig.recover(disk);
    });
}

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

#[test]
fn endpoint_0_works_again_after_a_stall() {
    let disk = script()
        .control_some(Request::GET_MAX_LUN, 0..20, Answer::Stall)
        .build();
    with_disk(Traits::default(), disk, |rig, disk| {
        for _ in 0..20 {
            let setup = SetupPacket::bulk_only_max_lun(0);
            assert_eq!(rig.control(disk.device, setup), (Outcome::Stall, 0));
            let control = rig.driver.endpoint0(disk.device).unwrap();
            let refused = rig.try_control(disk.device, SetupPacket::device_status());
            assert_eq!(refused, Err(HostError::Halted));
            rig.quiesce(control).unwrap();
            rig.restart(control, Sequence::Keep).unwrap();
            let status = rig.control(disk.device, SetupPacket::device_status());
            assert_eq!(status, (Outcome::Complete, 2));
        }
    });
}

#[test]
fn a_request_without_an_answer_is_taken_back() {
    let disk = script()
        .control_some(
            Request::GET_MAX_LUN,
            0..1,
            Answer::After(u64::MAX, Answer::Accept.into()),
        )
        .build();
    with_disk(Traits::default(), disk, |rig, disk| {
        rig.try_control(disk.device, SetupPacket::bulk_only_max_lun(0))
            .unwrap();
        rig.idle(Duration::from_secs(1));
        let control = rig.driver.endpoint0(disk.device).unwrap();
        rig.quiesce(control).unwrap();
        assert_eq!(rig.ended_so_far(control), [(0xc0, Outcome::Cancelled, 0)]);
        rig.restart(control, Sequence::Keep).unwrap();
        let status = rig.control(disk.device, SetupPacket::device_status());
        assert_eq!(status, (Outcome::Complete, 2));
    });
}

#[test]
fn a_device_that_is_pulled_ends_its_transfers_and_leaves_nothing_behind() {
    with_running(Traits::default(), |rig| {
        let before = rig.pool.usage().used;
        for _ in 0..10 {
            rig.machine.plug(
                0,
                0,
                script()
                    .on(opcode(READ), Action::Hang(Until::PowerCycle))
                    .build(),
            );
            let mut disk = rig.disk(0);
            rig.queue_read(&mut disk, 0, 8, 0);
            rig.idle(Duration::from_millis(5));
            rig.machine.unplug(0, 0);
            rig.find(|event| (*event == Event::Port(RootPort(0))).then_some(()));
            let status = rig.driver.read_port(RootPort(0));
            assert!(!status.connected && status.connect_changed);
            rig.driver.acknowledge(RootPort(0), &status);
            assert_eq!(rig.close(disk.device), Ok(()));
            assert_eq!(rig.pool.usage().used, before);
            let tokens: Vec<u32> = rig
                .ended_so_far(disk.input)
                .iter()
                .map(|one| one.0)
                .collect();
            assert_eq!(tokens, [2, 3]);
            assert_eq!(
                rig.driver.endpoint0(disk.device),
                None,
                "the handle is stale"
            );
            rig.left.clear();
        }
    });
}

#[test]
fn a_sequence_is_reset_without_a_halt_when_the_device_was_told_so() {
    with_disk(Traits::default(), script().build(), |rig, disk| {
        for blocks in [1, 2, 3] {
            rig.read_at(disk, 0, blocks);
            rig.recover(disk);
        }
        // And kept, when nobody told the device.
        for blocks in [1, 2, 3] {
            rig.read_at(disk, 0, blocks);
            assert_eq!(rig.driver.missed_doorbells(), 0);
            rig.quiesce(disk.input).unwrap();
            rig.restart(disk.input, Sequence::Keep).unwrap();
        }
    });
}
