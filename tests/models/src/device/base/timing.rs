//! The times after a reset and a new address in which a device need not answer, and how long this
//! one really needs.
//!
//! The specification's minimum is checked always: a host that comes earlier breaks a rule, whatever
//! the device would have done. A slow device needs longer, which is no fault of the host.

use super::super::{Link, MILLISECOND, Nanoseconds, Violations};

/// USB 2.0 §7.1.7.5: tRSTRCY, 10 ms from the end of reset to the first request.
const RESET_RECOVERY: Nanoseconds = 10 * MILLISECOND;
/// USB 2.0 §9.2.6.3: 2 ms from the status stage of SET_ADDRESS to the first use of the address.
const ADDRESS_RECOVERY: Nanoseconds = 2 * MILLISECOND;

/// What a device does to a host that comes too early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Early {
    /// No answer at all.
    Silent,
    /// SETUP is taken, then STALL.
    Stall,
}

/// How long a device needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// Deaf for this long after power came, in spite of resets.
    pub after_power: Nanoseconds,
    /// Deaf for this long after the end of each bus reset.
    pub after_reset: Nanoseconds,
    /// Deaf for this long after a new address.
    pub after_address: Nanoseconds,
    /// What happens meanwhile.
    pub early: Early,
}

impl Default for Recovery {
    /// Just what the specification gives.
    fn default() -> Self {
        Self {
            after_power: 0,
            after_reset: RESET_RECOVERY,
            after_address: ADDRESS_RECOVERY,
            early: Early::Silent,
        }
    }
}

/// The times of the last events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Since {
    pub(super) power: Nanoseconds,
    pub(super) reset: Nanoseconds,
    pub(super) address: Option<Nanoseconds>,
}

impl Recovery {
    /// Whether the device is deaf now; records a host that came before the specified time.
    pub(super) fn deaf(
        &self,
        now: Nanoseconds,
        since: Since,
        link: Link,
        violations: &Violations,
    ) -> Option<Early> {
        let after_reset = now.saturating_sub(since.reset);
        let after_address = since.address.map(|address| now.saturating_sub(address));
        // A SuperSpeed link is ready as soon as it is trained: tRSTRCY is a time of USB 2.0.
        if !link.is_super() && after_reset < RESET_RECOVERY {
            let text = format!("a request {after_reset} ns after the end of reset");
            violations.record(now, "USB 2.0 §7.1.7.5", text);
        }
        if let Some(after) = after_address
            && after < ADDRESS_RECOVERY
        {
            let text = format!("a request {after} ns after the status stage of SET_ADDRESS");
            violations.record(now, "USB 2.0 §9.2.6.3", text);
        }
        let specified = self.after_reset == RESET_RECOVERY;
        let reset_need = if link.is_super() && specified {
            0
        } else {
            self.after_reset
        };
        let deaf = now.saturating_sub(since.power) < self.after_power
            || after_reset < reset_need
            || after_address.is_some_and(|after| after < self.after_address);
        deaf.then_some(self.early)
    }
}
