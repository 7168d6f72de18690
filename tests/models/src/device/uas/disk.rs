//! [`UasDisk`]: how a test makes a UAS disk, and what it may ask it.

#[cfg(doc)]
use super::super::UsbDevice;
use super::super::base::Device;
use super::super::descriptor::{Configuration, Descriptors, Endpoint, Interface};
use super::super::scsi::{LogicalUnit, Target};
use super::super::{Link, Shared, Violations};
use super::fault::{Fault, Manners};
use super::machine::{Exchange, PIPES, Task, Uas};

/// What the configuration offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Offer {
    /// UAS as the only setting, as QEMU does.
    #[default]
    UasAlone,
    /// UAS as alternate setting 1 of an interface whose setting 0 is Bulk-Only, as bridges do. Over
    /// Bulk-Only this model is not there.
    UasBehindBulkOnly,
    /// UAS as setting 0, and Bulk-Only as alternate setting 1. Over Bulk-Only this model is not there.
    UasBeforeBulkOnly,
}

/// What its descriptors are like.
#[derive(Clone, Copy, Debug)]
struct Shape {
    offer: Offer,
    burst: u8,
    streams_exponent: u8,
    /// Places of the pipes in the order in which their endpoints are described.
    order: [usize; 4],
    /// The pipe without a pipe usage descriptor.
    unnamed: Option<usize>,
}

/// What a UAS disk is like.
#[derive(Debug)]
pub struct UasScript {
    link: Link,
    ids: (u16, u16),
    shape: Shape,
    packets_at_once: Option<u32>,
    units: Vec<LogicalUnit>,
    faults: Vec<Fault>,
    manners: Manners,
}

impl Default for UasScript {
    fn default() -> Self {
        Self::new()
    }
}

impl UasScript {
    /// A good high-speed disk of 8 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self {
            link: Link::High,
            ids: (0x1234, 0x0a5d),
            shape: Shape {
                offer: Offer::UasAlone,
                burst: 15,
                streams_exponent: 4,
                order: [0, 1, 2, 3],
                unnamed: None,
            },
            packets_at_once: None,
            units: Vec::new(),
            faults: Vec::new(),
            manners: Manners::default(),
        }
    }

    /// At this speed.
    #[must_use]
    pub fn speed(mut self, link: Link) -> Self {
        self.link = link;
        self
    }

    /// Vendor and product id.
    #[must_use]
    pub fn ids(mut self, vendor: u16, product: u16) -> Self {
        self.ids = (vendor, product);
        self
    }

    /// With these settings.
    #[must_use]
    pub fn offer(mut self, offer: Offer) -> Self {
        self.shape.offer = offer;
        self
    }

    /// With bursts of so many packets beyond the first on the pipes with streams, at SuperSpeed.
    #[must_use]
    pub fn burst(mut self, burst: u8) -> Self {
        self.shape.burst = burst;
        self
    }

    /// Moves so many packets at once, whatever it announces ([`UsbDevice::packets_at_once`]).
    #[must_use]
    pub fn packets_at_once(mut self, packets: u32) -> Self {
        self.packets_at_once = Some(packets);
        self
    }

    /// With 2 to this power streams at SuperSpeed; 0 for none.
    #[must_use]
    pub fn streams(mut self, exponent: u8) -> Self {
        self.shape.streams_exponent = exponent;
        self
    }

    /// With its endpoints described in this order: 0 command, 1 status, 2 data in, 3 data out.
    #[must_use]
    pub fn order(mut self, order: [usize; 4]) -> Self {
        self.shape.order = order;
        self
    }

    /// Without the descriptor that says what this pipe is for.
    #[must_use]
    pub fn unnamed(mut self, pipe: usize) -> Self {
        self.shape.unnamed = Some(pipe);
        self
    }

    /// With this unit, in the order of the calls.
    #[must_use]
    pub fn unit(mut self, unit: LogicalUnit) -> Self {
        self.units.push(unit);
        self
    }

    /// With this fault.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// With these manners.
    #[must_use]
    pub fn manners(mut self, manners: Manners) -> Self {
        self.manners = manners;
        self
    }

    /// The disk.
    #[must_use]
    pub fn build(mut self) -> UasDisk {
        if self.units.is_empty() {
            self.units.push(LogicalUnit::disk(16_384, 512));
        }
        let violations = Violations::new();
        let streams = match self.shape.streams_exponent {
            0 => 0,
            // The two highest numbers are the bus's own.
            exponent => (1_u32 << exponent).min(0xfffd) as u16,
        };
        let mut function = Uas::new(Target::new(self.units, violations.clone()), streams);
        function.faults = self.faults;
        function.manners = self.manners;
        let (ids, shape) = (self.ids, self.shape);
        let describe = move |link| descriptors(link, ids, shape);
        let mut device = Device::new(self.link, function, violations, describe);
        device.packets_at_once = self.packets_at_once;
        Shared::new(device)
    }
}

fn descriptors(link: Link, ids: (u16, u16), shape: Shape) -> Descriptors {
    let pipe = |number: usize| {
        let address = PIPES[number];
        let endpoint = Endpoint::bulk(address, link);
        let endpoint = match (link.is_super(), number) {
            (true, 0) => endpoint.burst_and_streams(0, 0),
            (true, _) => endpoint.burst_and_streams(shape.burst, shape.streams_exponent),
            (false, _) => endpoint,
        };
        // The pipe usage descriptor (UAS §5.2.3.5).
        match shape.unnamed == Some(number) {
            true => endpoint,
            false => endpoint.raw(&[4, 0x24, number as u8 + 1, 0]),
        }
    };
    let mut uas = Interface::new(0).class(0x08, 0x06, 0x62);
    for number in shape.order {
        uas = uas.endpoint(pipe(number));
    }
    let bulk_only = Interface::new(0)
        .class(0x08, 0x06, 0x50)
        .endpoint(Endpoint::bulk(0x81, link))
        .endpoint(Endpoint::bulk(0x02, link));
    let configuration = Configuration::new(1);
    let configuration = match shape.offer {
        Offer::UasAlone => configuration.interface(uas),
        Offer::UasBehindBulkOnly => configuration
            .interface(bulk_only)
            .interface(uas.alternate(1)),
        Offer::UasBeforeBulkOnly => configuration
            .interface(uas)
            .interface(bulk_only.alternate(1)),
    };
    Descriptors::new(link, ids.0, ids.1).configuration(configuration)
}

/// A UAS disk. Clones are the same disk: one goes into the machine, the other stays with the test.
pub type UasDisk = Shared<Uas>;

impl UasDisk {
    /// Every command as it travelled, oldest first.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.lock().function.exchanges.clone()
    }

    /// Every task management function that came, oldest first.
    #[must_use]
    pub fn tasks(&self) -> Vec<Task> {
        self.lock().function.tasks.clone()
    }

    /// The tags of statuses that were fetched although their commands had been given up, oldest first.
    #[must_use]
    pub fn leftovers(&self) -> Vec<u16> {
        self.lock().function.leftovers.clone()
    }

    /// The most commands that the device had at the same time.
    #[must_use]
    pub fn deepest(&self) -> usize {
        let exchanges = self.exchanges();
        let depths = exchanges.iter().map(|exchange| exchange.beside + 1);
        depths.max().unwrap_or(0)
    }

    /// A block of unit 0 as the host would read it.
    #[must_use]
    pub fn block(&self, lba: u64) -> Vec<u8> {
        let device = self.lock();
        device.function.target.units[0].image.block(lba)
    }

    /// A block of unit 0 as it would be after a power cut.
    #[must_use]
    pub fn durable_block(&self, lba: u64) -> Vec<u8> {
        let device = self.lock();
        device.function.target.units[0].image.durable(lba)
    }
}
