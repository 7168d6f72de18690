//! A bridge with both transports over one disk: Bulk-Only as alternate setting 0 of its interface, UAS
//! as setting 1, as nearly all bridges with UAS have them.

use super::base::{Answer, ControlTable, Device, Function, Given, Request, Reset, Taken, Wire};
use super::bot::BulkOnly;
use super::descriptor::{Configuration, Descriptors, Endpoint, Interface};
use super::scsi::{LogicalUnit, Target};
use super::setup::Setup;
use super::uas::{Fault, Manners, Uas};
use super::{Link, Nanoseconds, Shared, Violations};

/// Bulk IN and bulk OUT of the Bulk-Only setting; UAS has others.
const BULK_ONLY: (u8, u8) = (0x85, 0x06);

/// The addresses of the UAS setting: command, status, data in, data out.
const UAS: [u8; 4] = [0x01, 0x82, 0x83, 0x04];

/// Both transports. The SCSI side is with UAS, and lent to Bulk-Only while that works.
#[derive(Debug)]
pub struct Both {
    /// The UAS side, with the units.
    pub uas: Uas,
    /// The Bulk-Only side.
    pub bulk_only: BulkOnly,
}

impl Both {
    fn with_bulk_only<R>(&mut self, work: impl FnOnce(&mut BulkOnly) -> R) -> R {
        core::mem::swap(&mut self.uas.target, &mut self.bulk_only.target);
        let result = work(&mut self.bulk_only);
        core::mem::swap(&mut self.uas.target, &mut self.bulk_only.target);
        result
    }
}

fn is_of_uas(endpoint: u8) -> bool {
    UAS.contains(&endpoint)
}

impl Function for Both {
    fn reset(&mut self, now: Nanoseconds, reset: Reset) {
        self.uas.reset(now, reset);
        // The units were reset with UAS: this is the transport's own state.
        self.bulk_only.reset(now, reset);
    }

    fn control(&mut self, wire: &mut Wire<'_>, setup: &Setup, data: &[u8]) -> Option<Answer> {
        self.with_bulk_only(|bulk_only| bulk_only.control(wire, setup, data))
    }

    fn advance(&mut self, wire: &mut Wire<'_>) {
        self.uas.advance(wire);
        self.with_bulk_only(|bulk_only| bulk_only.advance(wire));
    }

    fn take(&mut self, wire: &mut Wire<'_>, endpoint: u8, stream: u16, data: &[u8]) -> Taken {
        if is_of_uas(endpoint) {
            self.uas.take(wire, endpoint, stream, data)
        } else {
            self.with_bulk_only(|bulk_only| bulk_only.take(wire, endpoint, stream, data))
        }
    }

    fn give(&mut self, wire: &mut Wire<'_>, endpoint: u8, stream: u16, maximum: usize) -> Given {
        if is_of_uas(endpoint) {
            self.uas.give(wire, endpoint, stream, maximum)
        } else {
            self.with_bulk_only(|bulk_only| bulk_only.give(wire, endpoint, stream, maximum))
        }
    }

    fn has_room(&mut self, wire: &mut Wire<'_>, endpoint: u8) -> Taken {
        if is_of_uas(endpoint) {
            self.uas.has_room(wire, endpoint)
        } else {
            self.with_bulk_only(|bulk_only| bulk_only.has_room(wire, endpoint))
        }
    }

    fn halt_cleared(&mut self, wire: &mut Wire<'_>, endpoint: u8) -> bool {
        if is_of_uas(endpoint) {
            self.uas.halt_cleared(wire, endpoint)
        } else {
            self.with_bulk_only(|bulk_only| bulk_only.halt_cleared(wire, endpoint))
        }
    }

    fn ready_at(&self, endpoint: u8, stream: u16) -> Option<Nanoseconds> {
        if is_of_uas(endpoint) {
            self.uas.ready_at(endpoint, stream)
        } else {
            self.bulk_only.ready_at(endpoint, stream)
        }
    }

    fn prime(&mut self, wire: &mut Wire<'_>, endpoint: u8) -> Taken {
        self.uas.prime(wire, endpoint)
    }

    fn streams_ready(&self, now: Nanoseconds, endpoint: u8) -> Vec<(Nanoseconds, u16)> {
        self.uas.streams_ready(now, endpoint)
    }
}

/// What such a bridge is like.
#[derive(Debug)]
pub struct BothScript {
    link: Link,
    ids: (u16, u16),
    max_power: u8,
    streams_exponent: u8,
    faults: Vec<Fault>,
    manners: Manners,
    controls: ControlTable,
    unit: LogicalUnit,
}

impl Default for BothScript {
    fn default() -> Self {
        Self::new()
    }
}

impl BothScript {
    /// A good high-speed bridge with a disk of 8 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self {
            link: Link::High,
            ids: (0x1209, 0x0002),
            max_power: 50,
            streams_exponent: 4,
            faults: Vec::new(),
            manners: Manners::default(),
            controls: ControlTable::default(),
            unit: LogicalUnit::disk(16_384, 512),
        }
    }

    /// At this speed.
    #[must_use]
    pub fn speed(self, link: Link) -> Self {
        Self { link, ..self }
    }

    /// Vendor and product id.
    #[must_use]
    pub fn ids(self, vendor: u16, product: u16) -> Self {
        let ids = (vendor, product);
        Self { ids, ..self }
    }

    /// `bMaxPower`, in its own units.
    #[must_use]
    pub fn max_power(self, max_power: u8) -> Self {
        Self { max_power, ..self }
    }

    /// With 2 to this power streams at SuperSpeed; 0 for none.
    #[must_use]
    pub fn streams(self, streams_exponent: u8) -> Self {
        Self {
            streams_exponent,
            ..self
        }
    }

    /// With this fault over UAS.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// With these manners over UAS.
    #[must_use]
    pub fn manners(self, manners: Manners) -> Self {
        Self { manners, ..self }
    }

    /// With this disk behind it.
    #[must_use]
    pub fn unit(self, unit: LogicalUnit) -> Self {
        Self { unit, ..self }
    }

    /// It stalls SET_INTERFACE.
    #[must_use]
    pub fn refuses_uas(self) -> Self {
        self.control(Request::SET_INTERFACE, Answer::Stall)
    }

    /// It answers each such control request so.
    #[must_use]
    pub fn control(mut self, request: Request, answer: Answer) -> Self {
        self.controls.always(request, answer);
        self
    }

    /// The bridge.
    #[must_use]
    pub fn build(self) -> BothDisk {
        let violations = Violations::new();
        let streams = match self.streams_exponent {
            0 => 0,
            // The two highest numbers are the bus's own.
            exponent => (1_u32 << exponent).min(0xfffd) as u16,
        };
        let target = Target::new(vec![self.unit], violations.clone());
        let mut uas = Uas::new(target, streams);
        (uas.faults, uas.manners) = (self.faults, self.manners);
        // Takes the place of the units while Bulk-Only does not work.
        let nothing = Target::new(vec![LogicalUnit::disk(1, 512)], violations.clone());
        let bulk_only = BulkOnly::new(nothing).at(0, BULK_ONLY.0, BULK_ONLY.1);
        let (ids, max_power, exponent) = (self.ids, self.max_power, self.streams_exponent);
        let describe = move |link| descriptors(link, ids, max_power, exponent);
        let function = Both { uas, bulk_only };
        let mut device = Device::new(self.link, function, violations, describe);
        device.controls = self.controls;
        Shared::new(device)
    }
}

fn descriptors(link: Link, ids: (u16, u16), max_power: u8, exponent: u8) -> Descriptors {
    let bulk_only = Interface::new(0)
        .class(0x08, 0x06, 0x50)
        .endpoint(Endpoint::bulk(BULK_ONLY.0, link))
        .endpoint(Endpoint::bulk(BULK_ONLY.1, link));
    let mut uas = Interface::new(0).class(0x08, 0x06, 0x62).alternate(1);
    for (address, number) in UAS.into_iter().zip(1..) {
        let endpoint = Endpoint::bulk(address, link);
        let endpoint = match (link.is_super(), number) {
            (true, 1) => endpoint.burst_and_streams(0, 0),
            (true, _) => endpoint.burst_and_streams(15, exponent),
            (false, _) => endpoint,
        };
        // The pipe usage descriptor (UAS §5.2.3.5).
        uas = uas.endpoint(endpoint.raw(&[4, 0x24, number, 0]));
    }
    let configuration = Configuration::new(1)
        .power(max_power)
        .interface(bulk_only)
        .interface(uas);
    Descriptors::new(link, ids.0, ids.1).configuration(configuration)
}

/// A disk behind such a bridge. Clones are the same disk: one goes into the machine, the other stays
/// with the test.
pub type BothDisk = Shared<Both>;

impl BothDisk {
    /// How many commands came over UAS, and how many over Bulk-Only.
    #[must_use]
    pub fn commands(&self) -> (usize, usize) {
        let device = self.lock();
        let Both { uas, bulk_only } = &device.function;
        (uas.exchanges.len(), bulk_only.exchanges.len())
    }

    /// The alternate settings that the host has chosen, oldest first.
    #[must_use]
    pub fn settings(&self) -> Vec<u16> {
        let device = self.lock();
        let requests = device.trace.requests.iter();
        let chosen = requests.filter(|(_, setup)| Request::SET_INTERFACE.matches(setup));
        chosen.map(|(_, setup)| setup.value).collect()
    }

    /// A block of unit 0 as the host would read it.
    #[must_use]
    pub fn block(&self, lba: u64) -> Vec<u8> {
        let device = self.lock();
        device.function.uas.target.units[0].image.block(lba)
    }

    /// A block of unit 0 as it would be after a power cut.
    #[must_use]
    pub fn durable_block(&self, lba: u64) -> Vec<u8> {
        let device = self.lock();
        device.function.uas.target.units[0].image.durable(lba)
    }
}
