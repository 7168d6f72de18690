//! What a device or the bus gets wrong on an xHCI, beyond what every kind has to stand
//! (`driver_rig::recovery`).

use rootport::host::{Endpoints, Outcome};
use rootport::usb::setup::SetupPacket;
use rootport_models::controller::xhci::{AfterShort, CompletionFault, Faults, IdleStop, Traits};
use rootport_models::device::bot::{Action, opcode};
use rootport_models::device::{MICROSECOND, MILLISECOND};

use crate::driver_rig::recovery::quiesce_a_silent_device;
use crate::rig::{DiskRig, READ, Rig, Setting, script, shapes, with_disk};

#[test]
fn short_data_are_reported_with_their_length_whatever_events_follow() {
    for after_short in [
        AfterShort::ShortAgain,
        AfterShort::Success,
        AfterShort::Nothing,
    ] {
        let disk = script()
            .on(opcode(READ).times(1), Action::ShortData(700))
            .build();
        let traits = Traits {
            after_short,
            ..Traits::default()
        };
        with_disk(traits, disk, |rig, disk| {
            // Over a 64 KiB boundary: two blocks, of which the first ends short.
            let (ended, status) = rig.read_blocks(disk, 0, 8, 0xfc00);
            assert_eq!(ended, [(2, Outcome::Short, 700), (3, Outcome::Short, 13)]);
            assert_eq!(status, 0);
        });
    }
}

/// Some controllers tell of it by an event, and some do not.
#[test]
fn a_silent_device_is_quiesced_whether_a_stop_has_an_event_or_not() {
    for idle_stop in [IdleStop::Silent, IdleStop::Event] {
        quiesce_a_silent_device(Traits {
            idle_stop,
            ..Traits::default()
        });
    }
}

/// Its doorbell would start the endpoint behind the back of whoever stops it.
#[test]
fn a_status_that_is_held_back_is_not_let_go_by_data_that_end_while_the_endpoint_is_being_stopped() {
    const DELAY: u64 = MILLISECOND;
    let mut ended_late = 0;
    for early in 0..60 {
        let disk = script()
            .on(opcode(READ).times(1), Action::Delay(DELAY))
            .build();
        with_disk(Traits::default(), disk, |rig, disk| {
            rig.queue_read_held(disk, 0, 8);
            // A block takes some 80 us; the endpoint is at rest within 25.
            rig.machine.advance(DELAY + (100 - early) * MICROSECOND);
            let now = rig.now();
            rig.driver.quiesce(disk.input, now).unwrap();
            rig.machine.advance(50 * MICROSECOND);
            assert_eq!(rig.endpoint_result(disk.input), Ok(()));
            let ended = rig.ended_so_far(disk.input);
            ended_late += usize::from(ended[0] == (2, Outcome::Complete, 4096));
            rig.control(disk.device, SetupPacket::bulk_only_reset(0));
            rig.recover(disk);
        });
    }
    assert!((2..58).contains(&ended_late), "{ended_late} of 60");
}

/// Codes that halt an endpoint (xHCI 1.2 §4.10.2), and what they are to the host.
const HALTING: [(u8, Outcome); 4] = [
    (6, Outcome::Stall),
    (3, Outcome::Babble),
    (4, Outcome::TransactionError),
    (36, Outcome::SplitError),
];

/// More TDs than two laps of a pipe's ring have places.
const TWO_LAPS: u64 = 140;

/// Each TD of an endpoint from the second on ends with this code.
fn all_end_with(endpoint: u8, code: u8) -> Faults {
    let mut faults = Faults::none();
    for count in 2..2 + TWO_LAPS {
        let fault = CompletionFault::Code(code);
        faults.transfers.insert((endpoint, count), fault);
    }
    faults
}

fn with_code(endpoint: u8, code: u8, test: impl Fn(&mut Rig<'_>, &mut DiskRig)) {
    for shape in shapes() {
        let faults = all_end_with(endpoint, code);
        with_disk(
            Setting { faults, ..shape },
            script().build(),
            |rig, disk| {
                test(rig, disk);
                rig.left.clear();
            },
        );
    }
}

#[test]
fn every_code_that_halts_leads_back_to_work_at_every_place_of_the_ring_of_data_in() {
    for (code, outcome) in HALTING {
        with_code(0x81, code, |rig, disk| {
            rig.read_at(disk, 0, 1);
            for round in 0..TWO_LAPS {
                let (ended, _) = rig.read_blocks(disk, 0, 1, 0);
                assert_eq!(ended[0].1, outcome, "{code}, {round}");
                rig.control(disk.device, SetupPacket::bulk_only_reset(0));
                rig.recover(disk);
                rig.left.clear();
            }
        });
    }
}

#[test]
fn every_code_that_halts_leads_back_to_work_at_every_place_of_the_ring_of_commands_out() {
    for (code, outcome) in HALTING {
        with_code(0x02, code, |rig, disk| {
            rig.read_at(disk, 0, 1);
            rig.read_at(disk, 0, 1);
            for round in 0..TWO_LAPS {
                rig.queue_read(disk, 0, 1, 0);
                assert_eq!(rig.ended(disk.output).1, outcome, "{code}, {round}");
                rig.control(disk.device, SetupPacket::bulk_only_reset(0));
                rig.recover(disk);
                rig.left.clear();
            }
        });
    }
}
