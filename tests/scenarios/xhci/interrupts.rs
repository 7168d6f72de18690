//! Messages that get lost: a deadline is the net.

use rootport_models::controller::xhci::Signal;
use rootport_models::device::Script;

use super::{Faults, Interrupts, interrupting_by};
use crate::rig::{CALL_LIMIT, HIGH_PORT};
use crate::scenarios::interrupts::sleeping;

/// A wire holds its level until it is answered: only messages get lost.
#[test]
fn a_lost_message_costs_time_and_nothing_else() {
    for lost in 1..=5 {
        let mut faults = Faults::none();
        faults.lost_interrupts = lost;
        let kind = interrupting_by((Interrupts::Message, Signal::Message));
        let mut rig = sleeping(kind, lost, faults);
        let device = Script::new().build();
        let disk = rig.disk(HIGH_PORT, device.clone());
        for lba in 0..10 {
            rig.within(CALL_LIMIT, |rig| rig.check(disk, lba, 3));
        }
        // What had ended when its deadline came has not timed out.
        assert_eq!(device.bus_resets().len(), 1, "{lost} lost");
    }
}
