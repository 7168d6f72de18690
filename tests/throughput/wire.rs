//! A machine, a controller, a disk, and how long reads and writes take on it.

use rootport::Host;
use rootport::block::queue::{DiskId, Operation};
use rootport::block::{BlockDevice, Lba};
use rootport::dma::DmaBuffer;
use rootport::host::Controller;
use rootport::host::ehci::{self, Ehci, EhciMemory};
use rootport::host::xhci::{self, Xhci, XhciMemory};
use rootport::platform::Platform;
use rootport::policy::Policy;
use rootport::stack::Tables;
use rootport::time::Duration;
use rootport_models::adapter::{ModelBus, ModelPlatform, owned};
use rootport_models::controller::ehci::Traits as EhciTraits;
use rootport_models::controller::xhci::{Protocol, Traits};
use rootport_models::device::scsi::{LogicalUnit, Timing};
use rootport_models::device::{Link, Script, UsbDevice};
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
    /// A Bulk-Only disk of this pace on a bus.
    pub(crate) fn new(bus: Bus, timing: Timing) -> Self {
        Self::with(
            bus,
            Policy::DEFAULT,
            xhci::Options::default(),
            |link, burst| {
                let unit = LogicalUnit::disk(1 << 20, 512).timing(timing);
                Script::new().speed(link).burst(burst).unit(unit).build()
            },
        )
    }

    /// A disk on a bus, made for its link with bursts of so many packets beyond the first. The options
    /// are those of the xHCI's driver, if it has one.
    pub(crate) fn with<D: UsbDevice + 'static>(
        bus: Bus,
        policy: Policy,
        options: xhci::Options,
        device: impl FnOnce(Link, u8) -> D,
    ) -> Self {
        // Cache maintenance takes no time in the model; without it the runs are quicker.
        let machine = Machine::new(Options {
            coherent: true,
            ..Options::default()
        });
        let (index, port, link, burst) = place(&machine, bus);
        let platform = ModelPlatform::new(&machine);
        let registers = platform.bus(index);
        let driver = if matches!(bus, Bus::Ehci) {
            let memory: &'static mut EhciMemory<4, 16, 64> = Box::leak(Box::new(EhciMemory::new()));
            let options = ehci::Options::default();
            let driver = Ehci::new(registers, 0, memory.slices(), options);
            Controller::Ehci(driver.expect("a plausible controller"))
        } else {
            let memory: &'static mut XhciMemory<4, 16, 128> =
                Box::leak(Box::new(XhciMemory::new()));
            let driver = Xhci::new(registers, 0, memory.slices(), options);
            let driver = driver.expect("a plausible controller");
            if options.interrupts != xhci::Interrupts::Polled {
                let half = driver.interrupt_half();
                machine.on_interrupt(index, move || {
                    half.acknowledge();
                });
            }
            Controller::Xhci(driver)
        };
        let region = platform.coherent_region(1 << 20);
        let tables: &'static mut Tables<_, 1, 8, 4, 16> = Box::leak(Box::new(Tables::new()));
        let mut host = Host::new(platform, region, tables.storage());
        host.add_controller(driver).expect("there is room");
        host.set_policy(policy);
        machine.plug(index, port, device(link, burst));
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

    /// Reads `count` pieces in a row, `depth` of them at a time.
    pub(crate) fn read_at_depth(&mut self, record: usize, depth: u64, count: u64) -> Moved {
        let lba = |index: u64| Operation::Read(Lba(index * record as u64 / 512));
        let begin = self.machine.now();
        for index in 0..depth.min(count) {
            let mut buffer = self.machine.buffer(record, 0);
            self.submit(lba(index), owned(&mut buffer));
        }
        let mut begun = depth.min(count);
        for _ in 0..count {
            let completion = loop {
                let next = self.host.poll();
                if let Some(completion) = self.host.take_completion() {
                    break completion;
                }
                self.host.platform().wait(next);
            };
            completion.result.expect("a good disk");
            self.machine.advance(self.pause);
            if let Some(buffer) = completion.buffer.filter(|_| begun < count) {
                self.submit(lba(begun), buffer);
                begun += 1;
            }
        }
        (record as u64 * count, self.machine.now() - begin)
    }

    fn submit(&mut self, operation: Operation, buffer: DmaBuffer) {
        let submitted = self.host.submit(self.disk, operation, Some(buffer));
        submitted.expect("there is room for as many as the depth");
    }

    /// How often the controller has interrupted.
    pub(crate) fn interrupts(&self) -> u64 {
        self.machine.statistics(0).interrupts
    }

    /// The driver that the disk is used by.
    pub(crate) fn usage(&self) -> String {
        let unit = self.host.disks().next().expect("it is there");
        unit.usage.to_string()
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
        Bus::Ehci => {
            // An endpoint that has nothing to say takes its part of the bus.
            let traits = EhciTraits {
                exact_polls: true,
                ..EhciTraits::default()
            };
            (machine.add_ehci(traits), 0, Link::High, 0)
        }
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
