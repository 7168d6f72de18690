//! A controller as a boot loader leaves it, its schedules in memory that is not the driver's.
//!
//! The rule that follows is no special one: whoever stores to that memory before the controller has
//! been stopped changes structures that the controller holds.

use super::interrupts::{PORT_CHANGE, ROLLOVER, SOURCES};
use super::{Due, Ehci, Faults, Traits};
use crate::controller::Surroundings;
use crate::device::{MILLISECOND, Nanoseconds};
use crate::memory::Memory;

/// Bytes of the boot loader's memory: a frame list, then its queue heads.
pub const FOREIGN_BYTES: usize = 8192;

/// Its asynchronous list: the head and one queue head more; then one of a keyboard.
const HEAD: u32 = 4096;
const QUEUE: u32 = 4096 + 128;
const KEYBOARD: u32 = 4096 + 256;

/// In what state a boot loader leaves a controller. Its schedules lie in memory in all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// Both schedules run.
    Running,
    /// Only the periodic one does.
    PeriodicOnly,
    /// Both run, and its doorbell was rung and is not answered.
    DoorbellRung,
    /// Both run, and a port is held in reset.
    PortInReset,
    /// Both run, and interrupts are enabled and asserted.
    Interrupting,
    /// It stopped at an error of the system's bus, which nobody has acknowledged.
    Failed,
    /// It is in its reset for so long after power-on.
    Resetting(Nanoseconds),
}

impl Left {
    /// All of them; the reset ends some time after half a second.
    pub const ALL: [Self; 7] = [
        Self::Running,
        Self::PeriodicOnly,
        Self::DoorbellRung,
        Self::PortInReset,
        Self::Interrupting,
        Self::Failed,
        Self::Resetting(510 * MILLISECOND),
    ];
}

impl Ehci {
    /// A controller that runs as the driver finds it. Its schedules lie in [`FOREIGN_BYTES`] of
    /// coherent memory at `bus`, which this fills.
    #[must_use]
    pub fn left(traits: Traits, faults: Faults, left: Left, memory: &mut Memory, bus: u64) -> Self {
        let mut new = Self::new(traits, faults);
        let low = bus as u32;
        memory.write_words(bus, &[(low + KEYBOARD) | 2; 1024]);
        let head = [(low + QUEUE) | 2, 1 << 15 | 2 << 12, 1 << 30, 0, 1, 1, 0x40];
        memory.write_words(bus + u64::from(HEAD), &head);
        let queue = [
            (low + HEAD) | 2,
            512 << 16 | 2 << 12 | 0x101,
            1 << 30,
            0,
            1,
            1,
        ];
        memory.write_words(bus + u64::from(QUEUE), &queue);
        let keyboard = [1, 8 << 16 | 2 << 12 | 0x102, 1 << 30 | 1, 0, 1, 1];
        memory.write_words(bus + u64::from(KEYBOARD), &keyboard);
        new.operational.segment = (bus >> 32) as u32;
        new.operational.leave_running(low + HEAD, low);
        new.agenda.add(0, Due::Adopt(left));
        new
    }

    /// Finds what the boot loader linked, and goes on with it.
    pub(super) fn adopt(&mut self, around: &mut Surroundings<'_>, left: Left) {
        self.route_ports(around);
        if left == Left::PeriodicOnly {
            self.operational.leave_asynchronous_off();
        } else {
            self.begin_asynchronous(around);
        }
        self.begin_periodic(around);
        match left {
            Left::Running | Left::PeriodicOnly => {}
            Left::DoorbellRung => self.doorbell = Some(self.next_life()),
            Left::PortInReset => self.leave_in_reset(around.now, 0),
            Left::Interrupting => {
                self.interrupts.enabled = SOURCES & !ROLLOVER;
                self.raise(around, PORT_CHANGE);
            }
            Left::Failed => self.host_system_error(around),
            Left::Resetting(time) => self.leave_resetting(around, time),
        }
    }
}
