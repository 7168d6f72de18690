//! A machine, a controller, a disk, and how long reads and writes take on it.

use rootport::Host;
use rootport::block::queue::DiskId;
use rootport::block::{BlockDevice, Lba};
use rootport::host::Controller;
use rootport::host::ehci::{self, Ehci, EhciMemory};
use rootport::host::xhci::{self, Xhci, XhciMemory};
use rootport::platform::Platform;
use rootport::stack::Tables;
use rootport::time::Duration;
use rootport_models::adapter::{ModelBus, ModelPlatform};
use rootport_models::controller::ehci::Traits as EhciTraits;
use rootport_models::controller::xhci::{Protocol, Traits};
use rootport_models::device::scsi::{LogicalUnit, Timing};
use rootport_models::device::{Link, Script};
use rootport_models::machine::{Machine, Options};

/// What a disk is plugged into.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bus {
    /// An xHCI's USB 2 port.
    XhciHigh,
    /// An EHCI's.
    Ehci,
    /// An RK3328's SuperSpeed port, with bursts of so many packets beyond the first.
    Super {
        /// `bMaxBurst`.
        burst: u8,
    },
}

/// A disk that answers in 20 µs and is as fast as the wire.
pub(crate) fn quick() -> Timing {
    Timing::default()
}

type ModelHost = Host<'static, ModelPlatform, Controller<'static, ModelBus>>;

/// A disk in its place, ready.
pub(crate) struct Bench {
    machine: Machine,
    host: ModelHost,
    disk: DiskId,
    /// Nanoseconds that pass between two commands, for what a host's own work takes.
    pub(crate) pause: u64,
}

/// How many bytes were moved, in how many nanoseconds.
pub(crate) type Moved = (u64, u64);

/// Of 10^6 bytes.
pub(crate) fn megabytes_a_second((bytes, nanoseconds): Moved) -> f64 {
    bytes as f64 * 1e3 / nanoseconds as f64
}

impl Bench {
    /// A disk of this pace on a bus.
    pub(crate) fn new(bus: Bus, timing: Timing) -> Self {
        // Cache maintenance takes no time in the model; without it the runs are quicker.
        let machine = Machine::new(Options {
            coherent: true,
            ..Options::default()
        });
        let (index, port, link, burst) = place(&machine, bus);
        let platform = ModelPlatform::new(&machine);
        let registers = platform.bus(index);
        let driver = if matches!(bus, Bus::Ehci) {
            let memory: &'static mut EhciMemory<4, 16, 32> = Box::leak(Box::new(EhciMemory::new()));
            let options = ehci::Options::default();
            let driver = Ehci::new(registers, 0, memory.slices(), options);
            Controller::Ehci(driver.expect("a plausible controller"))
        } else {
            let memory: &'static mut XhciMemory<4, 16, 32> = Box::leak(Box::new(XhciMemory::new()));
            let options = xhci::Options::default();
            let driver = Xhci::new(registers, 0, memory.slices(), options);
            Controller::Xhci(driver.expect("a plausible controller"))
        };
        let region = platform.coherent_region(1 << 20);
        let tables: &'static mut Tables<_, 1, 8, 4, 4> = Box::leak(Box::new(Tables::new()));
        let mut host = Host::new(platform, region, tables.storage());
        host.add_controller(driver).expect("there is room");
        let unit = LogicalUnit::disk(1 << 20, 512).timing(timing);
        let device = Script::new().speed(link).burst(burst).unit(unit);
        machine.plug(index, port, device.build());
        host.start();
        assert!(host.poll_until(Duration::from_secs(10), |host| host.first_disk().is_ok()));
        let disk = host.first_disk().expect("it was there a moment ago");
        Self {
            machine,
            host,
            disk,
            pause: 0,
        }
    }

    /// Reads `count` records one after the other.
    pub(crate) fn read(&mut self, record: usize, count: u64) -> Moved {
        let mut buffer = self.machine.buffer(record, 0);
        self.time(record, count, |host, disk, lba| {
            host.disk(disk).read(lba, &mut buffer).expect("a good disk");
        })
    }

    /// Writes `count` records one after the other.
    pub(crate) fn write(&mut self, record: usize, count: u64) -> Moved {
        let buffer = self.machine.buffer(record, 0);
        self.time(record, count, |host, disk, lba| {
            host.disk(disk).write(lba, &buffer).expect("a good disk");
        })
    }

    fn time(
        &mut self,
        record: usize,
        count: u64,
        mut each: impl FnMut(&mut ModelHost, DiskId, Lba),
    ) -> Moved {
        let begin = self.machine.now();
        for index in 0..count {
            let lba = Lba(index * record as u64 / 512);
            each(&mut self.host, self.disk, lba);
            self.machine.advance(self.pause);
        }
        // The clock that the host reads is the machine's.
        assert!(self.host.platform().now().as_micros() <= self.machine.now() / 1_000 + 1);
        (record as u64 * count, self.machine.now() - begin)
    }
}

/// Adds the bus's controller: its index, a port, the link, and the disk's bursts.
fn place(machine: &Machine, bus: Bus) -> (usize, usize, Link, u8) {
    match bus {
        Bus::Ehci => (machine.add_ehci(EhciTraits::default()), 0, Link::High, 0),
        Bus::XhciHigh => {
            let traits = Traits::rk3328();
            let port = port_of(&traits, Protocol::Usb2);
            (machine.add_xhci(traits), port, Link::High, 0)
        }
        Bus::Super { burst } => {
            let traits = Traits::rk3328();
            let port = port_of(&traits, Protocol::Usb3);
            (machine.add_xhci(traits), port, Link::Super, burst)
        }
    }
}

fn port_of(traits: &Traits, protocol: Protocol) -> usize {
    let mut ports = traits.ports.iter();
    let port = ports.position(|port| *port == protocol);
    port.expect("the controller has one")
}
