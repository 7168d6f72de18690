//! [`Machine`]: memory, time, controllers and devices put together.
//!
//! A test makes one, adds controllers, plugs devices in, and hands the driver what
//! [`adapter`](crate::adapter) makes of it. The machine advances virtual time: a little with each
//! register access and each look at the clock, and by leaps when the driver waits.
//!
//! ```
//! use rootport_models::controller::xhci::Traits;
//! use rootport_models::machine::{Machine, Options};
//!
//! let machine = Machine::new(Options { seed: 7, ..Options::default() });
//! let controller = machine.add_xhci(Traits::default());
//! // What a driver sees: CAPLENGTH in its own width.
//! assert_eq!(machine.read(controller, 0, 1), 0x40);
//! ```

mod buffer;
mod handmade;
mod interrupts;
mod observer;
#[cfg(test)]
mod tests;
mod world;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

pub use buffer::Buffer;

use crate::controller::Controller;
use crate::controller::ehci::{self, Ehci};
use crate::controller::xhci::{Faults, Traits, Xhci};
use crate::device::{Nanoseconds, UsbDevice};
use crate::memory::Moved;

use interrupts::Interrupts;
use world::{LostRegisters, Panic, Seat, World, WorldGuard};

/// What a wait says that panics by plan.
const PLANNED_PANIC: &str = "a wait panics, as the test has asked for";

/// What ends a wait of the driver before its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sleep {
    /// Anything that a polling driver would notice.
    UntilAnything,
    /// Only an interrupt, as a CPU in WFI. Give the driver's interrupt half a chance after each
    /// wait.
    UntilInterrupt,
}

/// How the power of root ports is switched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Power {
    /// Not at all.
    AlwaysOn,
    /// By the controllers, each port alone.
    Port,
    /// By the board: it has so many rails, and port `n` of every controller is on rail `n` modulo that.
    Rails(u8),
}

/// What a machine is like, beyond its controllers.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// Bytes of a cache line: 16, 32, 64 or 128.
    pub cache_line: usize,
    /// Whether hardware keeps caches and DMA coherent.
    pub coherent: bool,
    /// Where bus addresses begin. A controller of 32 bits wants everything below 4 GiB.
    pub bus_base: u64,
    /// What ends a wait.
    pub sleep: Sleep,
    /// Time that a register access takes.
    pub access_time: Nanoseconds,
    /// Whether the platform can cut a controller's DMA.
    pub can_cut_dma: bool,
    /// How often that fails first, although it can.
    pub failed_cuts: u32,
    /// How the platform can switch the power of ports.
    pub power: Power,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            cache_line: 64,
            coherent: false,
            bus_base: 0x4800_0000,
            sleep: Sleep::UntilAnything,
            access_time: 200,
            can_cut_dma: true,
            failed_cuts: 0,
            power: Power::AlwaysOn,
        }
    }
}

impl Options {
    /// All memory above 4 GiB, for controllers with 64-bit addresses.
    #[must_use]
    pub fn above_4_gib() -> Self {
        Self {
            bus_base: 0x3_4800_0000,
            ..Self::default()
        }
    }
}

impl Options {
    /// Memory that begins half a megabyte below 4 GiB: the pool lies on both sides.
    #[must_use]
    pub fn around_4_gib() -> Self {
        Self {
            bus_base: 0xfff8_0000,
            ..Self::default()
        }
    }
}

/// What a controller's driver has cost so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Register reads.
    pub reads: u64,
    /// Register writes.
    pub writes: u64,
    /// Interrupts: rising edges of the line, or messages.
    pub interrupts: u64,
    /// Bytes moved by DMA, of all controllers together.
    pub moved: Moved,
}

/// A modelled machine. Clones are the same machine.
#[derive(Clone)]
pub struct Machine {
    world: Arc<Mutex<World>>,
    interrupts: Arc<Interrupts>,
}

impl fmt::Debug for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.world();
        formatter
            .debug_struct("Machine")
            .field("now", &world.now)
            .field("options", &world.options)
            .finish_non_exhaustive()
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Machine {
    /// A machine without controllers.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let world = Arc::new(Mutex::new(World::new(options)));
        observer::watch(&world);
        Self {
            world,
            interrupts: Arc::default(),
        }
    }

    /// What it was made with.
    #[must_use]
    pub fn options(&self) -> Options {
        self.world().options
    }

    /// Adds a controller without faults: its index.
    pub fn add_xhci(&self, traits: Traits) -> usize {
        self.add_faulty_xhci(traits, Faults::none())
    }

    /// Adds a controller with a plan of what goes wrong: its index.
    pub fn add_faulty_xhci(&self, traits: Traits, faults: Faults) -> usize {
        self.add(Box::new(Xhci::new(traits, faults)))
    }

    /// Adds an EHCI controller without faults: its index.
    pub fn add_ehci(&self, traits: ehci::Traits) -> usize {
        self.add_faulty_ehci(traits, ehci::Faults::none())
    }

    /// Adds an EHCI controller with a plan of what goes wrong: its index.
    pub fn add_faulty_ehci(&self, traits: ehci::Traits, faults: ehci::Faults) -> usize {
        self.add(Box::new(Ehci::new(traits, faults)))
    }

    /// Adds an EHCI controller that a boot loader has left running: its index, and the bus address
    /// of the [`ehci::FOREIGN_BYTES`] in which its schedules lie.
    pub fn add_ehci_left_running(
        &self,
        traits: ehci::Traits,
        faults: ehci::Faults,
    ) -> (usize, u64) {
        self.add_ehci_left(traits, faults, ehci::Left::Running)
    }

    /// The same with an EHCI that was left in any state.
    pub fn add_ehci_left(
        &self,
        traits: ehci::Traits,
        faults: ehci::Faults,
        left: ehci::Left,
    ) -> (usize, u64) {
        let bus = self.coherent(ehci::FOREIGN_BYTES);
        let controller = Ehci::left(traits, faults, left, &mut self.world().memory, bus);
        (self.add(Box::new(controller)), bus)
    }

    /// Adds any controller: its index.
    pub fn add(&self, controller: Box<dyn Controller>) -> usize {
        let mut world = self.world();
        world.seats.push(Seat {
            controller,
            statistics: Statistics::default(),
            lost: None,
        });
        world.seats.len() - 1
    }

    /// The way to a controller's registers breaks behind so many reads: all later ones give `reads_as`, and
    /// writes reach nothing. The controller itself works on, which its driver cannot know.
    pub fn lose_registers(&self, controller: usize, after_reads: u64, reads_as: u32) {
        self.world().seats[controller].lost = Some(LostRegisters {
            after_reads,
            reads_as,
        });
    }

    /// Plugs a device into a root port, counted from 0. Where its rail has no power, nobody sees it until
    /// that is back.
    pub fn plug(&self, controller: usize, port: usize, device: impl UsbDevice + 'static) {
        self.plug_boxed(controller, port, Box::new(device));
    }

    /// The same with a device of any kind.
    pub fn plug_boxed(&self, controller: usize, port: usize, device: Box<dyn UsbDevice>) {
        self.world().plug(controller, port, device);
    }

    /// Pulls the device out of a root port.
    pub fn unplug(&self, controller: usize, port: usize) -> Option<Box<dyn UsbDevice>> {
        self.world().unplug(controller, port)
    }

    /// Virtual time since the machine was made.
    #[must_use]
    pub fn now(&self) -> Nanoseconds {
        self.world().now
    }

    /// Lets time pass.
    pub fn advance(&self, span: Nanoseconds) {
        let mut world = self.world();
        let until = world.now + span;
        world.advance(until);
        drop(world);
        self.take_interrupts();
    }

    /// Lets time pass until something happens that the driver may see, at the latest until the clock shows
    /// `until`.
    ///
    /// # Panics
    /// If `until` is the end of time, and nothing will ever happen.
    pub fn wait(&self, until: Nanoseconds) {
        let panics = self.world().panics_now();
        assert!(!panics, "{PLANNED_PANIC}");
        let mut world = self.world();
        let until = match until {
            Nanoseconds::MAX => until,
            _ => until.saturating_sub(world.clock_ahead()),
        };
        world.wait(until);
        drop(world);
        self.take_interrupts();
    }

    /// The next wait panics, as a platform's own code may. The machine goes on under it.
    pub fn panic_in_next_wait(&self) {
        self.world().panic = Panic::Planned;
    }

    /// Whether a controller's wired interrupt is asserted.
    #[must_use]
    pub fn interrupt_line(&self, controller: usize) -> bool {
        self.world().seats[controller].controller.interrupt_line()
    }

    /// What a controller's driver has cost so far.
    #[must_use]
    pub fn statistics(&self, controller: usize) -> Statistics {
        let world = self.world();
        let seat = &world.seats[controller];
        Statistics {
            interrupts: seat.controller.interrupts(),
            moved: world.memory.moved(),
            ..seat.statistics
        }
    }

    /// Bytes of a controller's register window.
    #[must_use]
    pub fn window(&self, controller: usize) -> usize {
        self.world().seats[controller].controller.length()
    }

    /// The driver reads a register of 1, 2 or 4 bytes.
    pub fn read(&self, controller: usize, offset: usize, bytes: usize) -> u32 {
        let mut world = self.world();
        world.seats[controller].statistics.reads += 1;
        let value = world.access(controller, offset, bytes, None);
        drop(world);
        self.take_interrupts();
        value
    }

    /// The driver writes a register of 1, 2 or 4 bytes.
    pub fn write(&self, controller: usize, offset: usize, bytes: usize, value: u32) {
        let mut world = self.world();
        world.seats[controller].statistics.writes += 1;
        let _ = world.access(controller, offset, bytes, Some(value));
        drop(world);
        self.take_interrupts();
    }

    /// The driver looks at the clock, which takes a little of it.
    #[must_use]
    pub fn read_clock(&self) -> Nanoseconds {
        let mut world = self.world();
        let until = world.now + 50;
        world.advance(until);
        world.clock_looks += 1;
        drop(world);
        self.take_interrupts();
        let world = self.world();
        world.now + world.clock_ahead()
    }

    /// After so many looks at it the clock shows so much more than has passed.
    pub fn jump_clock(&self, after_looks: u64, ahead: Nanoseconds) {
        self.world().clock_jump = Some((after_looks, ahead));
    }

    /// How often the driver has looked at the clock.
    #[must_use]
    pub fn clock_looks(&self) -> u64 {
        self.world().clock_looks
    }

    /// Takes all DMA away from a controller: whether the platform could.
    pub fn cut_dma(&self, controller: usize) -> bool {
        let mut world = self.world();
        let fails = world.options.failed_cuts != 0;
        world.options.failed_cuts = world.options.failed_cuts.saturating_sub(1);
        let can = world.options.can_cut_dma && !fails;
        if can && let Some(seat) = world.seats.get_mut(controller) {
            seat.controller.cut_dma();
        }
        can
    }

    /// Switches the power of a rail: what is on its ports loses it, or gets it back.
    pub fn switch_rail(&self, rail: u8, on: bool) {
        self.world().switch_rail(rail, on);
    }

    /// Whether every rail has its power.
    #[must_use]
    pub fn all_rails_are_on(&self) -> bool {
        self.world().dark.is_empty()
    }

    /// A buffer of cached memory, zeroed, whose first byte is `offset` bytes behind a page.
    #[must_use]
    pub fn buffer(&self, length: usize, offset: usize) -> Buffer {
        let start = self.world().memory.add_block(length, offset, None);
        Buffer::new(self.clone(), start, length)
    }

    /// The same at a bus address of one's choice (of its page), for a test of what a controller can
    /// reach.
    #[must_use]
    pub fn buffer_at(&self, bus: u64, length: usize, offset: usize) -> Buffer {
        let start = self.world().memory.add_block(length, offset, Some(bus));
        Buffer::new(self.clone(), start, length)
    }

    /// What the driver logged, oldest first.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.world().log.clone()
    }

    pub(crate) fn add_log(&self, line: String) {
        self.world().log.push(line);
    }

    pub(crate) fn world(&self) -> WorldGuard<'_> {
        let guard = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        WorldGuard { guard }
    }
}
