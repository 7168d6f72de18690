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
