//! The doorbell: software asks when the controller has forgotten the queue heads that it unlinked
//! (EHCI 1.0 §4.8.2).

use super::interrupts::ASYNC_ADVANCE;
use super::{Due, Ehci, List};
use crate::broken::require;
use crate::controller::Surroundings;

impl Ehci {
    /// Software wrote a one to IAAD.
    pub(super) fn ring_doorbell(&mut self, around: &mut Surroundings<'_>) {
        if self.doorbell.is_some() {
            // Written back with the rest of USBCMD while it still reads as one.
            return;
        }
        require!(
            self.operational.is_on(List::Asynchronous),
            "EHCI 1.0 §2.3.1",
            "the doorbell was rung while the asynchronous schedule is off"
        );
        require!(
            self.interrupts.status & ASYNC_ADVANCE == 0,
            "Policy: acknowledge the last advance first",
            "the doorbell was rung while Interrupt on Async Advance is still set: its answer could \
             not be told from the last one"
        );
        self.check_memory_released(around, "the doorbell");
        let life = self.next_life();
        self.doorbell = Some(life);
        self.held.mark_for_doorbell();
        if !self.faults.doorbell_hangs {
            let delay = around.random.below(self.traits.advance_time) + 1;
            self.agenda.add(around.now + delay, Due::Advance(life));
        }
    }

    /// The controller holds no unlinked queue head any more.
    pub(super) fn answer_doorbell(&mut self, around: &mut Surroundings<'_>, life: u64) {
        if self.doorbell != Some(life) || !self.is_running() {
            return;
        }
        self.doorbell = None;
        self.leave_unlinked();
        self.held.evict_marked();
        if self.faults.lost_advances == 0 {
            self.raise(around, ASYNC_ADVANCE);
        } else {
            self.faults.lost_advances -= 1;
        }
    }
}
