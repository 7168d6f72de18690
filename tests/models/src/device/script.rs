//! [`Script`]: a faulty device in about twenty lines.
//!
//! A field report says what a device does; a script says it again in the same words, and the device
//! is there to be plugged in. Everything that is not said is as in a good memory stick at high speed:
//!
//! | part | setter | what it changes |
//! |---|---|---|
//! | descriptors | [`Script::descriptors`], [`Script::raw_configuration`] | any bytes |
//! | control requests | [`Script::control`], [`Script::control_some`] | data, stall, silence, delay by setup bytes |
//! | commands | [`Script::on`] | [`Action`]s by operation code, block, number of times |
//! | the SCSI side | [`Script::unit`] | capacity, readiness, cache, bad blocks of a [`LogicalUnit`] |
//! | transport habits | [`Script::manners`] | the end of short data, survival of resets |
//! | the bus | [`Script::speed`], [`Script::recovery`], [`Script::appears`] | speed, deafness, reconnects |
//!
//! A stick that dies on MODE SENSE(10) and has no GET MAX LUN:
//!
//! ```
//! use rootport_models::device::base::{Answer, Request};
//! use rootport_models::device::bot::{Action, Until, opcode};
//! use rootport_models::device::packet_host::{Data, Fault, PacketHost};
//! use rootport_models::device::scsi::LogicalUnit;
//! use rootport_models::device::{Link, Script};
//!
//! let stick = Script::new()
//!     .speed(Link::High)
//!     .ids(0x0951, 0x1666)
//!     .unit(LogicalUnit::stick(65536).content(b"block zero"))
//!     .control(Request::GET_MAX_LUN, Answer::Stall)
//!     .on(opcode(0x5a), Action::Hang(Until::PowerCycle))
//!     .build();
//!
//! // Any host may drive it: a controller model with a driver on it, or this tiny one.
//! let mut host = PacketHost::plug(stick.clone());
//! host.enumerate()?;
//! let (block, status) = host.command(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0], Data::In(512))?;
//! assert_eq!((&block[..10], status.status), (&b"block zero"[..], 0));
//! let sense = host.command(&[0x5a, 0, 0x3f, 0, 0, 0, 0, 0, 192, 0], Data::In(192));
//! assert_eq!(sense, Err(Fault::Timeout));
//!
//! // The clone that stayed here knows what happened.
//! assert_eq!(stick.opcodes(), [0x28, 0x5a]);
//! assert_eq!(stick.count_requests(Request::GET_MAX_LUN), 0);
//! # Ok::<(), Fault>(())
//! ```

use core::ops::Range;

#[cfg(doc)]
use super::UsbDevice;
use super::base::{Answer, ControlTable, Device, Recovery, Request};
use super::bot::{Action, BulkOnly, Hook, Manners, When};
use super::descriptor::Descriptors;
use super::disk::Disk;
use super::scsi::{LogicalUnit, Target};
use super::{Link, Nanoseconds, Violations};

type Describe = Box<dyn Fn(Link, Descriptors) -> Descriptors + Send>;

/// A device under construction.
pub struct Script {
    link: Link,
    ids: (u16, u16, u16),
    strings: [String; 3],
    pipes: (u8, u8, u8),
    burst: u8,
    packets_at_once: Option<u32>,
    describe: Option<Describe>,
    units: Vec<LogicalUnit>,
    controls: ControlTable,
    hooks: Vec<Hook>,
    manners: Manners,
    recovery: Recovery,
    appearances: Vec<(Nanoseconds, Option<Link>)>,
}

impl Default for Script {
    fn default() -> Self {
        Self::new()
    }
}

impl Script {
    /// A good stick at high speed, with one unit of 65536 blocks of 512 bytes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            link: Link::High,
            ids: (0x1209, 0x0001, 0x0100),
            strings: ["rootport", "Model disk", "RP0001"].map(String::from),
            pipes: (0, 0x81, 0x02),
            burst: 15,
            packets_at_once: None,
            describe: None,
            units: Vec::new(),
            controls: ControlTable::default(),
            hooks: Vec::new(),
            manners: Manners::default(),
            recovery: Recovery::default(),
            appearances: Vec::new(),
        }
    }

    /// The fastest link of the device.
    #[must_use]
    pub fn speed(self, link: Link) -> Self {
        Self { link, ..self }
    }

    /// Vendor and product id.
    #[must_use]
    pub fn ids(mut self, vendor: u16, product: u16) -> Self {
        (self.ids.0, self.ids.1) = (vendor, product);
        self
    }

    /// The release (bcdDevice).
    #[must_use]
    pub fn release(mut self, release: u16) -> Self {
        self.ids.2 = release;
        self
    }

    /// Manufacturer, product and serial number.
    #[must_use]
    pub fn strings(mut self, manufacturer: &str, product: &str, serial: &str) -> Self {
        self.strings = [manufacturer, product, serial].map(String::from);
        self
    }

    /// Interface number, bulk IN and bulk OUT endpoint of the disk, else 0, 81h and 02h.
    #[must_use]
    pub fn pipes(self, interface: u8, bulk_in: u8, bulk_out: u8) -> Self {
        Self {
            pipes: (interface, bulk_in, bulk_out),
            ..self
        }
    }

    /// Packets in a burst beyond the first at SuperSpeed, else 15.
    #[must_use]
    pub fn burst(self, burst: u8) -> Self {
        Self { burst, ..self }
    }

    /// Moves so many packets at once, whatever it announces ([`UsbDevice::packets_at_once`]).
    #[must_use]
    pub fn packets_at_once(self, packets: u32) -> Self {
        let packets_at_once = Some(packets);
        Self {
            packets_at_once,
            ..self
        }
    }

    /// Changes the descriptors of a Bulk-Only disk, given for the speed that the link settled on.
    #[must_use]
    pub fn descriptors(
        self,
        change: impl Fn(Link, Descriptors) -> Descriptors + Send + 'static,
    ) -> Self {
        Self {
            describe: Some(Box::new(change)),
            ..self
        }
    }

    /// Any bytes in place of the configuration descriptor and what follows it. The device works with
    /// the endpoints that can be made out in them.
    #[must_use]
    pub fn raw_configuration(self, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        self.descriptors(move |_, descriptors| descriptors.raw_configuration(bytes.clone()))
    }

    /// Adds a logical unit. The first call gives unit 0, which else is a plain stick.
    #[must_use]
    pub fn unit(mut self, unit: LogicalUnit) -> Self {
        self.units.push(unit);
        self
    }

    /// Answers each such control request so.
    #[must_use]
    pub fn control(mut self, request: Request, answer: Answer) -> Self {
        self.controls.always(request, answer);
        self
    }

    /// Answers the control requests with these numbers so, counted from 0 among those that match.
    #[must_use]
    pub fn control_some(mut self, request: Request, which: Range<u32>, answer: Answer) -> Self {
        self.controls.some(request, answer, which);
        self
    }

    /// Does this at these commands. Several hooks may act on one command.
    #[must_use]
    pub fn on(mut self, when: When, action: Action) -> Self {
        self.hooks.push(Hook { when, action });
        self
    }

    /// How the device behaves in the transport.
    #[must_use]
    pub fn manners(self, manners: Manners) -> Self {
        Self { manners, ..self }
    }

    /// How long the device is deaf after power, reset and a new address.
    #[must_use]
    pub fn recovery(self, recovery: Recovery) -> Self {
        Self { recovery, ..self }
    }

    /// From this time after power-on the device shows this link, or none.
    #[must_use]
    pub fn appears(mut self, after_power: Nanoseconds, link: Option<Link>) -> Self {
        self.appearances.push((after_power, link));
        self
    }

    /// The device, unplugged.
    #[must_use]
    pub fn build(mut self) -> Disk {
        if self.units.is_empty() {
            self.units.push(LogicalUnit::stick(65536));
        }
        let violations = Violations::new();
        let (interface, bulk_in, bulk_out) = self.pipes;
        let target = Target::new(self.units, violations.clone());
        let mut function = BulkOnly::new(target).at(interface, bulk_in, bulk_out);
        (function.hooks, function.manners) = (self.hooks, self.manners);
        let (fastest, ids, strings) = (self.link, self.ids, self.strings);
        let (pipes, burst, change) = (self.pipes, self.burst, self.describe);
        let describe = move |link: Link| {
            let [manufacturer, product, serial] = &strings;
            let plain = Descriptors::bulk_only_disk_at(link, (ids.0, ids.1), pipes, burst)
                .release(ids.2)
                .strings(manufacturer, product, serial);
            let plain = match (fastest, link.is_super()) {
                (_, true) | (Link::Low | Link::Full, _) => plain,
                (Link::High, _) => plain.with_qualifier(),
                (Link::Super | Link::SuperPlus, _) => {
                    plain.with_qualifier().with_hidden_super_speed()
                }
            };
            match &change {
                Some(change) => change(link, plain),
                None => plain,
            }
        };
        let mut device = Device::new(self.link, function, violations, describe);
        (device.controls, device.recovery) = (self.controls, self.recovery);
        device.packets_at_once = self.packets_at_once;
        device.appearances.extend(self.appearances);
        device.appearances.sort_by_key(|(from, _)| *from);
        Disk::new(device)
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet_host::{Data, PacketHost};
    use super::*;

    #[test]
    fn pipes_move_in_the_descriptors_and_in_the_device() {
        let disk = Script::new().pipes(1, 0x83, 0x04).build();
        let mut host = PacketHost::plug(disk);
        host.pipes = (0x83, 0x04);
        host.enumerate().expect("enumerates");
        let (bytes, status) = host
            .command(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0], Data::In(512))
            .expect("reads");
        assert_eq!((bytes.len(), status.status), (512, 0));
        host.control([0xa1, 0xfe, 0, 0, 1, 0, 1, 0], &[])
            .expect("asks interface 1");
    }

    #[test]
    fn a_super_speed_disk_in_a_slower_port_tells_what_it_could_do() {
        let mut host = PacketHost::plug_into(Script::new().speed(Link::Super).build(), Link::High);
        let device = host
            .control([0x80, 6, 0, 1, 0, 0, 18, 0], &[])
            .expect("device descriptor");
        assert_eq!((device[2..4].to_vec(), device[7]), (vec![0x10, 0x02], 64));
        assert!(host.control([0x80, 6, 0, 15, 0, 0, 22, 0], &[]).is_ok());
        assert!(host.control([0x80, 6, 0, 6, 0, 0, 10, 0], &[]).is_ok());
    }
}
