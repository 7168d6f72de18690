//! The handshake that takes a queue head back, and schedules that do not follow: nothing is freed
//! early, nobody waits for ever, and the neighbour works on.

use rootport::host::ControllerFault;
use rootport::time::Duration;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::{MILLISECOND, Script};
use rootport_models::machine::Options;

use super::{BAD_ENDS, Faults, NEVER_ENDS, Traits, usual};
use crate::rig::{CALL_LIMIT, HIGH_PORT, OTHER_PORT, Rig};
use crate::scenarios::hangs::cannot_be_started;
use crate::scenarios::letting_go::live;

/// What may become of the doorbell (EHCI 1.0 §4.8.2).
fn plans() -> [(&'static str, Faults); 3] {
    let lost = |lost_advances| Faults {
        lost_advances,
        ..Faults::none()
    };
    let hangs = Faults {
        doorbell_hangs: true,
        ..Faults::none()
    };
    [
        ("hangs", hangs),
        ("one lost", lost(1)),
        ("all lost", lost(u64::MAX)),
    ]
}

#[test]
fn a_doorbell_that_does_not_answer_costs_time_and_nothing_else() {
    for (what, faults) in plans() {
        let mut rig = Rig::faulty(Options::default(), usual(), faults);
        let neighbour = rig.disk(OTHER_PORT, Script::new().build());
        rig.run(Duration::from_millis(1));
        let before = rig.pool_used();
        let hangs = Action::Hang(Until::ClassReset);
        for _ in 0..3 {
            let device = Script::new().on(opcode(0x28).after(2).once(), hangs.clone());
            let disk = rig.disk(HIGH_PORT, device.build());
            for lba in 0..5 {
                rig.within(CALL_LIMIT, |rig| rig.check(disk, lba, 3));
                rig.within(Duration::from_secs(1), |rig| {
                    rig.check(neighbour, lba, 3);
                });
            }
            rig.unplug(HIGH_PORT);
            assert_eq!(rig.pool_used(), before, "{what}");
        }
    }
}

#[test]
fn any_transfer_may_never_end_while_the_doorbell_does_not_answer() {
    for (_, plan) in plans() {
        for address in [0x81, 0x02, 0x00] {
            for count in [0, 4, 5, 6, 7] {
                let mut faults = plan.clone();
                faults.transfers.insert((address, count), NEVER_ENDS);
                live(faults);
            }
        }
    }
}

#[test]
fn any_transfer_may_end_badly_while_the_doorbell_does_not_answer() {
    for (_, plan) in plans() {
        for address in [0x81, 0x02] {
            for count in [4, 5, 6, 7] {
                for &fault in BAD_ENDS {
                    let mut faults = plan.clone();
                    faults.transfers.insert((address, count), fault);
                    assert_eq!(live(faults).good, 6, "{fault:?}");
                }
            }
        }
    }
}

#[test]
fn a_schedule_that_does_not_follow_its_enable_bit_fails_the_start_with_the_reason() {
    let mut faults = Faults::none();
    faults.schedules_stuck = true;
    cannot_be_started(faults, ControllerFault::RunTimeout);
}

#[test]
fn a_schedule_that_follows_late_is_waited_for() {
    for follow_time in [3, 30, 200] {
        let traits = Traits {
            follow_time: follow_time * MILLISECOND,
            ..usual()
        };
        let mut faults = Faults::none();
        faults.doorbell_hangs = true;
        let mut rig = Rig::faulty(Options::default(), traits, faults);
        let disk = rig.disk(HIGH_PORT, Script::new().build());
        rig.check(disk, 0, 8);
        rig.unplug(HIGH_PORT);
    }
}
