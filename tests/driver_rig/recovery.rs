//! What a device or the bus gets wrong, on every kind of controller: it ends in a typed outcome, and the
//! endpoint works again. What is about one kind alone is in its own `recovery`.

use rootport::dma::{Class, Owner, Rules};
use rootport::host::{
    ControllerFault, Devices, Endpoints, Event, HostError, Outcome, Report, RootPort, RootPorts,
    Sequence,
};
use rootport::time::Duration;
use rootport::usb::setup::{Direction, SetupPacket};
use rootport_models::device::base::{Answer, Request};
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Link, Script};

use super::{DiskRig, STATUS};
use crate::rig::{Rig, Setting, assert_nothing_was_missed, shapes, with_rig, with_running};

pub(crate) const READ: u8 = 0x28;

pub(crate) fn script() -> Script {
    Script::new()
        .speed(Link::High)
        .unit(LogicalUnit::stick(65536).content(b"block zero"))
}

/// Runs with an odd disk in port 0, and returns after it has been read well once more.
pub(crate) fn with_disk(
    setting: impl Into<Setting>,
    disk: Disk,
    test: impl FnOnce(&mut Rig<'_>, &mut DiskRig),
) {
    with_running(setting, |rig| {
        rig.machine.plug(0, 0, disk);
        let mut disk = rig.disk(0);
        test(rig, &mut disk);
        assert_eq!(&rig.read_at(&mut disk, 0, 3)[..10], b"block zero");
        assert_nothing_was_missed(rig);
        assert_eq!(rig.close(disk.device), Ok(()));
        assert_eq!(rig.stop(), Ok(()));
    });
}

/// The same on a controller of each shape.
fn with_each(disk: impl Fn() -> Disk, test: impl Fn(&mut Rig<'_>, &mut DiskRig)) {
    for setting in shapes() {
        with_disk(setting, disk(), &test);
    }
}

/// Reads from a device that answers nothing, takes the transfers back and brings it to work again.
pub(crate) fn quiesce_a_silent_device(setting: impl Into<Setting>) {
    let disk = script()
        .on(opcode(READ).times(1), Action::Hang(Until::ClassReset))
        .build();
    with_disk(setting, disk, |rig, disk| {
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
fn a_silent_device_is_quiesced_and_its_transfers_come_back() {
    for setting in shapes() {
        quiesce_a_silent_device(setting);
    }
}

#[test]
fn a_stop_in_the_middle_of_data_tells_how_much_came() {
    let content: Vec<u8> = (0..0x2_0000_u32).map(|n| (n % 251) as u8 + 1).collect();
    let unit = LogicalUnit::stick(65536).content(&content);
    let spans = [300, 700, 1_000, 1_500, 2_000];
    for (span, setting) in spans
        .into_iter()
        .flat_map(|span| shapes().map(|it| (span, it)))
    {
        let disk = Script::new().speed(Link::High).unit(unit.clone()).build();
        with_running(setting, |rig| {
            rig.machine.plug(0, 0, disk);
            let mut disk = rig.disk(0);
            rig.data.write_bytes(0, &[0; 0x2_0000]);
            // 120 KiB take 2.3 ms at high speed: several qTDs of an EHCI, two blocks of an xHCI.
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
fn a_controller_that_finds_no_room_for_itself_keeps_none_of_it_and_starts_when_there_is_some() {
    with_rig(Setting::default(), |rig| {
        let mut held = Vec::new();
        // Small pieces last, which come back first.
        for (bytes, spare) in [(1 << 16, 1), (1 << 12, 2), (1 << 9, 0)] {
            let rules = Rules::aligned(128);
            let mut piece = || {
                rig.pool
                    .allocate(Owner::Host, Class::Bounce, bytes, rules)
                    .ok()
            };
            held.extend(std::iter::from_fn(&mut piece));
            for spared in held.split_off(held.len() - spare) {
                rig.pool.free(spared);
            }
        }
        let mut failed = 0;
        loop {
            let used = rig.pool.usage().used;
            match rig.start() {
                Ok(()) => break,
                Err(fault) => assert_eq!(fault, ControllerFault::PoolExhausted),
            }
            assert_eq!(rig.pool.usage().used, used, "attempt {failed}");
            rig.pool.free(held.pop().expect("it fits without them"));
            failed += 1;
        }
        assert!(failed > 1, "{failed}");
        assert_eq!(rig.stop(), Ok(()));
    });
}

#[test]
fn a_stalled_data_phase_is_reported_and_the_endpoint_works_again_at_every_place_of_its_queue() {
    let disk = || {
        script()
            .on(opcode(READ).times(40), Action::HaltData)
            .build()
    };
    with_each(disk, |rig, disk| {
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
    let disk = || {
        script()
            .on(opcode(READ).times(1), Action::SilentData(3))
            .build()
    };
    with_each(disk, |rig, disk| {
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
    let disk = || {
        script()
            .on(opcode(READ).times(1), Action::LongData(512))
            .build()
    };
    with_each(disk, |rig, disk| {
        rig.queue_read(disk, 0, 1, 0);
        let outcome = rig.ended(disk.input);
        assert!(!outcome.1.is_ok() || outcome.2 != 13, "{outcome:?}");
        rig.control(disk.device, SetupPacket::bulk_only_reset(0));
        rig.recover(disk);
    });
}

#[test]
fn endpoint_0_works_again_after_a_stall() {
    let disk = || {
        script()
            .control_some(Request::GET_MAX_LUN, 0..20, Answer::Stall)
            .build()
    };
    with_each(disk, |rig, disk| {
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
    let disk = || {
        script()
            .control_some(
                Request::GET_MAX_LUN,
                0..1,
                Answer::After(u64::MAX, Answer::Accept.into()),
            )
            .build()
    };
    with_each(disk, |rig, disk| {
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
    with_running(Setting::default(), |rig| {
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
        assert_nothing_was_missed(rig);
    });
}

#[test]
fn a_sequence_is_reset_without_a_halt_when_the_device_was_told_so() {
    with_each(
        || script().build(),
        |rig, disk| {
            for blocks in [1, 2, 3] {
                rig.read_at(disk, 0, blocks);
                rig.recover(disk);
            }
            // And kept, when nobody told the device.
            for blocks in [1, 2, 3] {
                rig.read_at(disk, 0, blocks);
                rig.quiesce(disk.input).unwrap();
                rig.restart(disk.input, Sequence::Keep).unwrap();
            }
        },
    );
}
