//! PL2, which switches VBUS of the OTG socket, and PG12, its id pin (H3 Datasheet 1.2 §4.22, §4.23).

use super::{Plug, Power};
use crate::broken::{broken, require};
use crate::device::{MICROSECOND, Nanoseconds};

/// Bank G of PIO starts at 6 * 0x24.
const G: u32 = 6 * 0x24;
/// Functions are four bits a pin: PL2 in the first register, PG12 in the second.
const PL2_FUNCTION: u32 = 0xf << 8;
const PL2_OUTPUT: u32 = 0x1 << 8;
const PL2: u32 = 1 << 2;
const PG12_FUNCTION: u32 = 0xf << 16;
const PG12: u32 = 1 << 12;
/// Pulls are two bits a pin; 1 pulls up.
const PG12_PULL: u32 = 0x3 << 24;
const PG12_PULL_UP: u32 = 0x1 << 24;
/// A weak pull-up (H3 Datasheet 1.2 §5.3: 50 kOhm) and the capacitance of a socket with its plug, 1 nF: twice RC.
const PULL_SETTLES: Nanoseconds = 100 * MICROSECOND;

#[derive(Debug)]
pub(super) struct Pins {
    l_function: u32,
    l_level: u32,
    g_function: u32,
    g_pull: u32,
    /// Since when PG12 has been an input that is pulled up.
    id_since: Option<Nanoseconds>,
    vbus_since: Option<Nanoseconds>,
}

impl Pins {
    /// Both pins off (function 7), others in use.
    pub(super) fn new() -> Self {
        Self {
            l_function: 0x7777_7722,
            l_level: 1 << 10,
            g_function: 0x7777_7777,
            g_pull: 0,
            id_since: None,
            vbus_since: None,
        }
    }

    /// Since when VBUS has been on.
    pub(super) fn vbus_since(&self) -> Option<Nanoseconds> {
        self.vbus_since
    }

    /// The step that keeps VBUS off.
    pub(super) fn missing_for_vbus(&self) -> &'static str {
        if self.l_level & PL2 == 0 {
            "VBUS level"
        } else {
            "VBUS direction"
        }
    }

    /// PIO.
    pub(super) fn access(
        &mut self,
        offset: u32,
        write: Option<u32>,
        power: Power,
        now: Nanoseconds,
    ) -> u32 {
        require!(
            power != Power::Wired,
            "board",
            "PIO {offset:#x}: no pin of this board switches power"
        );
        let result = match offset {
            // Second function register, and second pull register would be pins 16 on.
            offset if offset == G + 0x04 => change(&mut self.g_function, PG12_FUNCTION, write),
            offset if offset == G + 0x1c => change(&mut self.g_pull, PG12_PULL, write),
            offset if offset == G + 0x10 => {
                require!(write.is_none(), "board", "the id pin is not written");
                self.id_level(power, now)
            }
            _ => broken!("H3 §4.22", "PIO {offset:#x} is not USB's"),
        };
        if self.missing_for_id().is_some() {
            self.id_since = None;
        } else {
            self.id_since.get_or_insert(now);
        }
        result
    }

    /// The step without which nothing holds the id pin.
    fn missing_for_id(&self) -> Option<&'static str> {
        if self.g_function & PG12_FUNCTION != 0 {
            Some("input direction")
        } else if self.g_pull & PG12_PULL != PG12_PULL_UP {
            Some("input pull")
        } else {
            None
        }
    }

    /// What the id pin reads as, when it is held.
    fn id_level(&self, power: Power, now: Nanoseconds) -> u32 {
        let is_settled = |since| since + PULL_SETTLES <= now;
        let early = (!self.id_since.is_some_and(is_settled)).then_some("input settling");
        if let Some(step) = self.missing_for_id().or(early) {
            broken!("bring-up", "the id pin was read before the step \"{step}\"");
        }
        if power == Power::Switched(Plug::Open) {
            PG12
        } else {
            0
        }
    }

    /// R_PIO.
    pub(super) fn access_always_on(
        &mut self,
        offset: u32,
        write: Option<u32>,
        power: Power,
        now: Nanoseconds,
    ) -> u32 {
        require!(
            power != Power::Wired,
            "board",
            "R_PIO {offset:#x}: no pin of this board switches power"
        );
        let was_low = self.drives_low();
        let result = match offset {
            0x00 => change(&mut self.l_function, PL2_FUNCTION, write),
            0x10 => change(&mut self.l_level, PL2, write),
            _ => broken!("H3 §4.23", "R_PIO {offset:#x} is not USB's"),
        };
        require!(
            was_low || !self.drives_low(),
            "bring-up",
            "PL2 drives VBUS off before the step \"VBUS level\""
        );
        self.drive(power, now);
        result
    }

    fn is_output(&self) -> bool {
        self.l_function & PL2_FUNCTION == PL2_OUTPUT
    }

    fn drives_low(&self) -> bool {
        self.is_output() && self.l_level & PL2 == 0
    }

    fn drive(&mut self, power: Power, now: Nanoseconds) {
        if self.is_output() && self.l_level & PL2 != 0 {
            require!(
                power == Power::Switched(Plug::Host),
                "USB OTG 2.0 §4.4",
                "VBUS goes on without a host's plug in the socket"
            );
            self.vbus_since.get_or_insert(now);
        } else {
            self.vbus_since = None;
        }
    }
}

/// A read, or a write that may change the `own` bits only.
fn change(register: &mut u32, own: u32, write: Option<u32>) -> u32 {
    if let Some(value) = write {
        require!(
            (value ^ *register) & !own == 0,
            "board",
            "{value:#010x} over {register:#010x} changes other pins"
        );
        *register = value;
    }
    *register
}
