//! The only place that knows the driver library: a [`Machine`] as its [`Platform`], [`Dma`] and
//! [`Bus`].
//!
//! ```
//! use rootport::Platform;
//! use rootport_models::adapter::ModelPlatform;
//! use rootport_models::machine::Machine;
//!
//! let machine = Machine::default();
//! let platform = ModelPlatform::new(&machine);
//! let before = platform.now();
//! machine.advance(3_000_000);
//! assert_eq!((platform.now() - before).as_millis(), 3);
//! ```

use std::fmt;
use std::ptr::NonNull;

use rootport::dma::{BusAddress, CoherentRegion, Dma};
use rootport::mmio::Bus;
use rootport::platform::{ControllerId, Platform};
use rootport::time::Instant;

use crate::machine::Machine;

/// A machine as the library's platform.
#[derive(Clone, Debug)]
pub struct ModelPlatform {
    machine: Machine,
}

impl ModelPlatform {
    /// The platform of `machine`.
    #[must_use]
    pub fn new(machine: &Machine) -> Self {
        Self {
            machine: machine.clone(),
        }
    }

    /// The machine behind it.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The registers of a controller.
    #[must_use]
    pub fn bus(&self, controller: usize) -> ModelBus {
        ModelBus {
            machine: self.machine.clone(),
            controller,
        }
    }

    /// Coherent memory for the library's pool, in bytes. It is never freed.
    #[must_use]
    pub fn coherent_region(&self, bytes: usize) -> CoherentRegion {
        let (cpu, bus) = self.machine.world().memory.add_region(bytes);
        // SAFETY: the model made the memory for this region alone, never frees it, lets devices
        // reach it at `bus`, and touches it only as a device would; both sides are page-aligned.
        unsafe { CoherentRegion::new(cpu, BusAddress::new(bus), bytes) }
    }
}

// SAFETY: the model gives every buffer the bus address under which its controllers, and nothing
// else, reach it; maintenance moves data between the two copies as it must.
unsafe impl Dma for ModelPlatform {
    fn coherent(&self) -> bool {
        self.machine.options().coherent
    }

    fn cache_line(&self) -> usize {
        self.machine.options().cache_line
    }

    fn bus_address(&self, start: NonNull<u8>, length: usize) -> Option<BusAddress> {
        let bus = self.machine.world().memory.map(start, length);
        Some(BusAddress::new(bus))
    }

    fn clean(&self, start: NonNull<u8>, length: usize) {
        self.machine.world().memory.clean(start, length);
    }

    unsafe fn invalidate(&self, start: NonNull<u8>, length: usize) {
        self.machine.world().memory.invalidate(start, length);
    }

    fn returned(&self, start: NonNull<u8>, length: usize) {
        self.machine.world().memory.unmap(start, length);
    }
}

impl Platform for ModelPlatform {
    type Bus = ModelBus;

    fn now(&self) -> Instant {
        Instant::from_micros(self.machine.read_clock() / 1_000)
    }

    fn wait(&self, until: Instant) {
        self.machine.wait(until.as_micros().saturating_mul(1_000));
    }

    fn cut_dma(&self, controller: ControllerId) -> bool {
        self.machine.cut_dma(usize::from(controller.0))
    }

    fn can_cut_dma(&self, _controller: ControllerId) -> bool {
        self.machine.options().can_cut_dma
    }

    fn log(&self, line: fmt::Arguments<'_>) {
        self.machine.add_log(line.to_string());
    }
}

/// The registers of one controller of a machine.
#[derive(Clone, Debug)]
pub struct ModelBus {
    machine: Machine,
    controller: usize,
}

impl Bus for ModelBus {
    fn length(&self) -> usize {
        self.machine.window(self.controller)
    }

    fn read8(&self, offset: usize) -> u8 {
        self.machine.read(self.controller, offset, 1) as u8
    }

    fn read16(&self, offset: usize) -> u16 {
        self.machine.read(self.controller, offset, 2) as u16
    }

    fn read32(&self, offset: usize) -> u32 {
        self.machine.read(self.controller, offset, 4)
    }

    fn write8(&self, offset: usize, value: u8) {
        self.machine
            .write(self.controller, offset, 1, u32::from(value));
    }

    fn write16(&self, offset: usize, value: u16) {
        self.machine
            .write(self.controller, offset, 2, u32::from(value));
    }

    fn write32(&self, offset: usize, value: u32) {
        self.machine.write(self.controller, offset, 4, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rootport::dma::{Class, Owner, Pool, PoolRecord, Rules, release};

    #[test]
    fn stores_of_the_library_are_watched_until_their_release() {
        let machine = Machine::default();
        let platform = ModelPlatform::new(&machine);
        let mut records = [PoolRecord::EMPTY; 2];
        let mut pool = Pool::new(platform.coherent_region(4096), &mut records);
        let piece = pool
            .allocate(Owner::Host, Class::Ring, 64, Rules::aligned(64))
            .expect("the pool is empty");
        release();
        piece.write32(4, 7);
        let bus = piece.bus().get();
        assert_eq!(machine.world().memory.visible_words(bus)[1], 0);
        assert!(machine.world().memory.has_unreleased_stores());
        release();
        assert_eq!(machine.world().memory.visible_words(bus)[1], 7);
        assert!(!machine.world().memory.has_unreleased_stores());
    }

    #[test]
    fn a_machine_on_another_thread_is_not_disturbed() {
        let machine = Machine::default();
        let bus = machine.coherent(64);
        machine.store(bus, &[1]);
        std::thread::spawn(release)
            .join()
            .expect("a release does not panic");
        assert!(machine.world().memory.has_unreleased_stores());
    }

    #[test]
    fn the_bus_counts_its_accesses() {
        let machine = Machine::default();
        let controller = machine.add_xhci(crate::controller::xhci::Traits::default());
        let bus = ModelPlatform::new(&machine).bus(controller);
        assert_eq!((bus.read8(0), bus.read16(2)), (0x40, 0x0110));
        assert_eq!(bus.read32(0), 0x0110_0040);
        assert_eq!(machine.statistics(controller).reads, 3);
    }

    #[test]
    fn cut_dma_works_where_the_platform_can() {
        let machine = Machine::default();
        machine.add_xhci(crate::controller::xhci::Traits::default());
        let platform = ModelPlatform::new(&machine);
        assert!(platform.can_cut_dma(ControllerId(0)) && platform.cut_dma(ControllerId(0)));
    }
}
