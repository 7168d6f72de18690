//! The only place that knows the driver library: a [`Machine`] as its [`Platform`], [`Dma`] and
//! [`Bus`].
//!
//! A test of the whole stack in twenty lines:
//!
//! ```
//! use rootport::Host;
//! use rootport::block::{BlockDevice, Lba};
//! use rootport::host::Controller;
//! use rootport::host::xhci::{Options, Xhci, XhciMemory};
//! use rootport::stack::Tables;
//! use rootport::time::Duration;
//! use rootport_models::adapter::ModelPlatform;
//! use rootport_models::controller::xhci::Traits;
//! use rootport_models::device::{Link, Script, scsi::LogicalUnit};
//! use rootport_models::machine::Machine;
//!
//! // A board with an RK3328's controller, and a SuperSpeed disk in its second port.
//! let machine = Machine::default();
//! let controller = machine.add_xhci(Traits::rk3328());
//! let unit = LogicalUnit::disk(65536, 512).content(b"hello");
//! let disk = Script::new().speed(Link::Super).unit(unit).build();
//! machine.plug(controller, 1, disk.clone());
//!
//! // The library on it.
//! let platform = ModelPlatform::new(&machine);
//! let bus = platform.bus(controller);
//! let region = platform.coherent_region(1 << 20);
//! let mut tables = Tables::<_, 1, 8, 8, 8>::new();
//! let mut memory = XhciMemory::<8, 32, 64>::new();
//! let mut host = Host::new(platform, region, tables.storage());
//! let xhci = Xhci::new(bus, 0, memory.slices(), Options::default()).unwrap();
//! host.add_controller(Controller::Xhci(xhci)).unwrap();
//! host.start();
//!
//! // Ten seconds of waiting take no time here.
//! assert!(host.poll_until(Duration::from_secs(10), |host| host.first_disk().is_ok()));
//! let id = host.first_disk().unwrap();
//! let mut block = machine.buffer(512, 0);
//! host.disk(id).read(Lba(0), &mut block).unwrap();
//! assert_eq!(&block[..5], b"hello");
//! assert_eq!(disk.opcodes().last(), Some(&0x28), "it came by READ(10)");
//! ```

use std::fmt;
use std::ptr::NonNull;

use rootport::dma::{BusAddress, CoherentRegion, Dma, DmaBuffer};
use rootport::mmio::Bus;
use rootport::platform::{ControllerId, Platform, PortPower};
use rootport::time::Instant;

use crate::machine::{Buffer, Machine, Power};

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

    fn port_power(&self, _controller: ControllerId, port: u8) -> PortPower {
        match self.machine.options().power {
            Power::AlwaysOn => PortPower::AlwaysOn,
            Power::Port => PortPower::Port,
            Power::Rails(rails) => PortPower::Rail(port % rails),
        }
    }

    fn switch_rail(&self, rail: u8, on: bool) {
        self.machine.switch_rail(rail, on);
    }

    fn log(&self, line: fmt::Arguments<'_>) {
        self.machine.add_log(line.to_string());
    }
}

/// A buffer of the machine's as one that a request owns. Look at it only when it has come back, and
/// keep it until then.
#[must_use]
pub fn owned(buffer: &mut Buffer) -> DmaBuffer {
    let start = NonNull::from(&mut buffer[..]).cast();
    // SAFETY: the test that made the buffer keeps it, and leaves it alone until the request has ended:
    // the models would tell of a device that reaches it later.
    unsafe { DmaBuffer::from_raw(start, buffer.len()) }
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
    use rootport::Host;
    use rootport::block::{BlockDevice, Lba};
    use rootport::host::Controller;
    use rootport::host::xhci::{Interrupts, Options, Xhci, XhciMemory};
    use rootport::stack::Tables;
    use rootport::time::Duration;

    use super::*;
    use crate::controller::xhci::{Signal, Traits};
    use crate::device::Script;
    use crate::machine::{Options as MachineOptions, Sleep};
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
        let controller = machine.add_xhci(Traits::default());
        let bus = ModelPlatform::new(&machine).bus(controller);
        assert_eq!((bus.read8(0), bus.read16(2)), (0x40, 0x0110));
        assert_eq!(bus.read32(0), 0x0110_0040);
        assert_eq!(machine.statistics(controller).reads, 3);
    }

    /// Reads a block by a host that sleeps for interrupts: how many the handler took.
    fn reads_by_interrupts(interrupts: Interrupts, signal: Signal) -> u64 {
        let machine = Machine::new(MachineOptions {
            sleep: Sleep::UntilInterrupt,
            ..MachineOptions::default()
        });
        let controller = machine.add_xhci(Traits {
            signal,
            ..Traits::default()
        });
        machine.plug(controller, 0, Script::new().build());
        let platform = ModelPlatform::new(&machine);
        let bus = platform.bus(controller);
        let mut tables = Tables::<_, 1, 8, 8, 8>::new();
        let mut memory = XhciMemory::<8, 32, 64>::new();
        let region = platform.coherent_region(1 << 20);
        let mut host = Host::new(platform, region, tables.storage());
        let options = Options {
            interrupts,
            ..Options::default()
        };
        let xhci = Xhci::new(bus, 0, memory.slices(), options).expect("a plausible controller");
        let half = xhci.interrupt_half();
        machine.on_interrupt(controller, move || assert!(half.acknowledge()));
        host.add_controller(Controller::Xhci(xhci))
            .expect("room for a controller");
        host.start();
        assert!(host.poll_until(Duration::from_secs(10), |host| host.first_disk().is_ok()));
        let disk = host.first_disk().expect("it was there a moment ago");
        let mut block = machine.buffer(512, 0);
        let begin = machine.now();
        let read = host.disk(disk).read(Lba(3), &mut block);
        read.expect("a good disk");
        assert!(machine.now() - begin < 50_000_000, "no wait ran to its end");
        machine.statistics(controller).interrupts
    }

    #[test]
    fn a_host_that_sleeps_for_interrupts_reads_a_block() {
        assert!(reads_by_interrupts(Interrupts::Wired, Signal::Wired) > 10);
        assert!(reads_by_interrupts(Interrupts::Message, Signal::Message) > 10);
    }

    #[test]
    fn cut_dma_works_where_the_platform_can() {
        let machine = Machine::default();
        machine.add_xhci(Traits::default());
        let platform = ModelPlatform::new(&machine);
        assert!(platform.can_cut_dma(ControllerId(0)) && platform.cut_dma(ControllerId(0)));
    }
}
