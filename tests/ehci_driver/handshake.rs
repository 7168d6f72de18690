//! Taking a queue head back when the doorbell does not do what it should.

use rootport::host::ehci::{Interrupts, Options};
use rootport::host::{Endpoints, Event, Outcome, Report, Sequence};
use rootport::usb::setup::Direction;
use rootport_models::controller::ehci::{Faults, Traits};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Link, Script};

use crate::rig::{Rig, STATUS, Setting, with_running};

fn stick() -> Disk {
    Script::new()
        .speed(Link::High)
        .unit(LogicalUnit::stick(65536).content(b"block zero"))
        .build()
}

/// Takes a transfer back while another endpoint of the device stays in the schedule.
fn take_one_back(rig: &mut Rig<'_>) {
    rig.machine.plug(0, 0, stick());
    let mut disk = rig.disk(0);
    rig.queue(disk.input, 7, Direction::In, (STATUS, 1024), Report::Always);
    rig.driver.kick(disk.input, 0);
    rig.quiesce(disk.input).unwrap();
    assert_eq!(rig.ended_so_far(disk.input), [(7, Outcome::Cancelled, 0)]);
    rig.restart(disk.input, Sequence::Keep).unwrap();
    assert_eq!(&rig.read_at(&mut disk, 0, 8)[..10], b"block zero");
    assert_eq!(rig.close(disk.device), Ok(()));
}

#[test]
fn answers_that_get_lost_are_found_in_the_command_register() {
    let faults = Faults {
        lost_advances: 100,
        ..Faults::none()
    };
    with_running(faults, |rig| {
        take_one_back(rig);
        assert_eq!(rig.driver.missed_doorbells(), 0);
        assert_eq!(rig.stop(), Ok(()));
    });
}

#[test]
fn a_doorbell_that_hangs_is_replaced_by_a_pause_of_the_schedule() {
    for follow_time in [10_000, 200_000, 2_000_000] {
        let setting = Setting {
            traits: Traits {
                follow_time,
                ..Traits::default()
            },
            faults: Faults {
                doorbell_hangs: true,
                ..Faults::none()
            },
            ..Setting::default()
        };
        with_running(setting, |rig| {
            take_one_back(rig);
            assert!(rig.driver.missed_doorbells() >= 3);
            assert_eq!(rig.stop(), Ok(()));
        });
    }
}

#[test]
fn the_handshake_works_by_interrupt_too() {
    let setting = Setting {
        options: Options {
            interrupts: Interrupts::Wired,
            ..Options::default()
        },
        ..Setting::default()
    };
    with_running(setting, |rig| {
        let half = rig.driver.interrupt_half();
        rig.handler = Some(Box::new(move || {
            half.acknowledge();
        }));
        take_one_back(rig);
        rig.machine.unplug(0, 0);
        rig.find(|event| matches!(event, Event::Port(_)).then_some(()));
    });
}
