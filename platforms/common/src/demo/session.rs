//! The demo on a host: wait for disks, show the tree, do what the mode says, stop the host.
//!
//! Who calls it: a board's `main`, with a host that has its controllers added but not started.

use core::fmt;
use core::ptr::NonNull;

use heapless::Vec;
use rootport::block::queue::{DiskId, Operation};
use rootport::block::{Geometry, Lba};
use rootport::dma::DmaBuffer;
use rootport::stack::{DiskInfo, DiskState, Leaving, Parting};
use rootport::storage::usage::Usage;
use rootport::time::Duration;
use rootport::usb::speed::Speed;
use rootport::usb::{ControllerState, DeviceInfo, Driver, PortState};
use rootport::{Host, Platform};

use super::buffers::Buffers;
use super::discard;
use super::disk::{Access, Disk};
use super::examine;
use super::offsets;
use super::options::{Exit, Mode, Options};
use super::payload;
use super::places::{self, Span};
use crate::power::Reason;
use crate::println;

/// How long disks may take to come (`docs/demo-protocol.md`, `rootport.disks`).
const ARRIVAL: Duration = Duration::from_secs(10);
/// How long units that are not ready yet are waited for once enough disks are: card readers say three times
/// that they are empty. Policy.
const SETTLING: Duration = Duration::from_secs(3);
/// Policy: between two looks for new disks where none is left to read.
const IDLE: Duration = Duration::from_millis(100);
/// Policy: a controller halts within milliseconds; a device on its way out may need a port reset.
const STOP: Duration = Duration::from_secs(5);
/// Bytes that are being read when the image panics on purpose: a whole number of any disk's blocks.
const PANIC_READ: usize = 64 << 10;
/// Policy: disks that are told apart in one run; later ones are not used.
const MOST_DISKS: usize = 32;

/// What a session works with, beside the host.
#[derive(Debug)]
pub struct Tools<'b> {
    /// Memory for transfers.
    pub buffers: Buffers<'b>,
    /// Microseconds since some moment.
    pub clock: fn() -> u64,
    /// Whether somebody pressed a key, to end [`Mode::Endure`] early.
    pub key: fn() -> bool,
}

/// Starts the host, does what the mode says, leaves the host, and starts the next stage in its memory.
///
/// # Errors
///
/// The first thing that failed. The host is left in any case.
pub fn run<P: Platform, C: Driver>(
    mut host: Host<'_, P, C>,
    options: &Options,
    tools: &mut Tools<'_>,
) -> Result<(), Reason> {
    host.start();
    let mut session = Session {
        host: &mut host,
        options,
        tools,
        known: Vec::new(),
    };
    let result = session.go();
    let usage = host.pool_usage();
    println!(
        "coherent pool: {} of {} bytes at most",
        usage.high_water, usage.capacity
    );
    let left = leave(&mut host, options);
    result?;
    left?;
    let (_, pool) = host.into_parts();
    payload::run(pool, tools.clock, options.watch)
}

/// Leaves the host as the host on the other side of the console wants it.
fn leave<P: Platform, C: Driver>(
    host: &mut Host<'_, P, C>,
    options: &Options,
) -> Result<(), Reason> {
    if options.leave == Exit::Running {
        return Ok(());
    }
    let Leaving { unflushed, quiet } = host.shutdown(Parting::Flush, STOP);
    match (unflushed, quiet) {
        (None, true) => Ok(()),
        (None, false) => Err("a controller did not stop".into()),
        (Some((_, error)), true) => Err(Reason::new(format_args!(
            "flushing on the way out: {error}"
        ))),
        (Some((_, error)), false) => Err(Reason::new(format_args!(
            "flushing on the way out: {error}; and a controller did not stop"
        ))),
    }
}

/// A disk that was announced. Its number is its place in the list.
#[derive(Clone, Copy)]
struct Known {
    id: DiskId,
    passes: u64,
    gone: bool,
}

struct Session<'a, 'b, 's, P: Platform, C> {
    host: &'a mut Host<'s, P, C>,
    options: &'a Options,
    tools: &'a mut Tools<'b>,
    known: Vec<Known, MOST_DISKS>,
}

impl<P: Platform, C: Driver> Session<'_, '_, '_, P, C> {
    fn go(&mut self) -> Result<(), Reason> {
        let wanted = self.options.disks;
        let came = self
            .host
            .poll_until(ARRIVAL, |host| ready(host).count() >= wanted);
        self.host.poll_until(SETTLING, |host| {
            host.disks().all(|disk| disk.state != DiskState::NotReady)
        });
        self.show_troubles();
        self.show_tree();
        self.announce();
        if !came {
            let found = self.known.len();
            return Err(Reason::new(format_args!(
                "{found} of {wanted} disks came in time"
            )));
        }
        match self.options.mode {
            Mode::Endure => self.endure(),
            Mode::Panic => self.panic(),
            _ => (0..self.known.len()).try_for_each(|number| self.use_disk(number)),
        }
    }

    /// Does with one disk what the mode says.
    fn use_disk(&mut self, number: usize) -> Result<(), Reason> {
        let options = self.options;
        let access = if options.mode.writes() {
            Access::ReadWrite
        } else {
            Access::ReadOnly
        };
        if options.mode == Mode::Discard {
            let id = self.known[number].id;
            let buffer = &mut *self.tools.buffers.transfer;
            return discard::run(self.host, id, number, options, buffer);
        }
        let told = |error| Reason::new(format_args!("disk {number}: {error}"));
        let mut device = self.host.disk(self.known[number].id);
        let mut disk = Disk::new(&mut device, access).map_err(told)?;
        let buffers = &mut self.tools.buffers;
        match options.mode {
            Mode::Raw => places::sum(&mut disk, number, options, buffers),
            Mode::Scan => places::scan(&mut disk, number, options, buffers),
            Mode::Offsets => offsets::run(&mut disk, number, options, buffers),
            Mode::Pattern => places::write_pattern(&mut disk, number, options, buffers),
            _ => examine(&mut disk, number, options, buffers, self.tools.clock),
        }?;
        self.show_copies(number);
        self.show_uas(number);
        Ok(())
    }

    /// Says how much of a disk's data the controller did not reach itself.
    fn show_copies(&self, number: usize) {
        if let Some(copies) = self.host.copies(self.known[number].id) {
            let (commands, bytes) = (copies.copied, copies.bounced);
            println!("@copies disk={number} commands={commands} bytes={bytes}");
        }
    }

    /// Says how a disk is used over UAS, and what was odd.
    fn show_uas(&self, number: usize) {
        let Some(uas) = self.host.uas(self.known[number].id) else {
            return;
        };
        let (streams, depth) = (if uas.streams { "yes" } else { "no" }, uas.depth);
        let odd = uas.counters;
        println!(
            "@uas disk={number} streams={streams} depth={depth} strays={} bad={} aborts={} resets={}",
            odd.strays, odd.bad_units, odd.aborts, odd.unit_resets,
        );
    }

    /// Reads every disk again and again, whatever comes and goes.
    fn endure(&mut self) -> Result<(), Reason> {
        let end = self.host.platform().now() + Duration::from_secs(self.options.seconds);
        while self.host.platform().now() < end && !(self.tools.key)() {
            self.announce();
            let mut read = false;
            for number in 0..self.known.len() {
                read |= self.read_once(number);
            }
            if !read {
                self.host.poll_until(IDLE, |_| false);
            }
        }
        Ok(())
    }

    /// Panics while the first disk is read.
    fn panic(&mut self) -> ! {
        let disk = self.known[0].id;
        let buffer = &mut self.tools.buffers.transfer[..PANIC_READ];
        let (start, length) = (NonNull::from(&mut *buffer).cast(), buffer.len());
        // SAFETY: nobody uses the buffer again: this is the end.
        let buffer = unsafe { DmaBuffer::from_raw(start, length) };
        let submitted = self
            .host
            .submit(disk, Operation::Read(Lba(0)), Some(buffer));
        self.host.poll();
        panic!("on purpose, with a read under way: {}", submitted.is_ok());
    }

    /// Reads one disk through, unless it has gone; a disk that fails has gone for good.
    fn read_once(&mut self, number: usize) -> bool {
        let known = &mut self.known[number];
        if known.gone {
            return false;
        }
        let mut device = self.host.disk(known.id);
        let bytes = self.options.bytes;
        let result = Disk::new(&mut device, Access::ReadOnly).and_then(|mut disk| {
            let span = Span::of(&disk, 0, bytes);
            places::read_through(&mut disk, span, &mut self.tools.buffers)
        });
        match result {
            Ok((bytes, sum)) => {
                known.passes += 1;
                let pass = known.passes;
                println!("@io disk={number} pass={pass} bytes={bytes} crc32={sum:08x}");
            }
            Err(error) => {
                known.gone = true;
                println!("@gone disk={number} reason={error}");
            }
        }
        true
    }

    /// Announces disks that are ready and were not announced yet.
    fn announce(&mut self) {
        for (info, geometry) in ready(self.host) {
            let number = self.known.len();
            let new = self.known.iter().all(|known| known.id != info.id);
            let known = Known {
                id: info.id,
                passes: 0,
                gone: false,
            };
            if new && self.known.push(known).is_ok() {
                self.show_disk(number, &info, &geometry);
            }
        }
    }

    fn show_disk(&self, number: usize, info: &DiskInfo, geometry: &Geometry) {
        let Geometry {
            blocks,
            block_bytes,
            ..
        } = *geometry;
        let mebibytes = geometry.bytes() >> 20;
        println!("disk {number}: {blocks} blocks of {block_bytes} bytes, {mebibytes} MiB");
        let name = Name(info);
        println!(
            "@disk number={number} port={} driver={} block={block_bytes} blocks={blocks} \
             writable={} name={name}",
            self.place(&info.device),
            driver(&info.device),
            if geometry.writable { "yes" } else { "no" },
        );
    }

    fn show_tree(&self) {
        println!("devices:");
        for device in self.host.bus().devices() {
            let (vendor, product) = device
                .descriptor
                .map_or((0, 0), |found| (found.vendor, found.product));
            println!(
                "@tree port={} speed={} id={vendor:04x}:{product:04x} driver={}{}",
                self.place(&device),
                speed(device.speed()),
                driver(&device),
                Instead(&device, self.host.usage(device.id)),
            );
        }
    }

    /// Says what does not work: controllers, ports, disks.
    fn show_troubles(&mut self) {
        let pool = self.host.pool_usage();
        if pool.refused != 0 {
            println!(
                "the pool had no {} bytes in one piece: make the board's DMA_POOL_SIZE larger, now {}",
                pool.refused, pool.capacity
            );
        }
        let bus = self.host.bus();
        for (id, state, _) in bus.controllers() {
            if let ControllerState::Failed(fault) | ControllerState::Recovering(fault) = state {
                println!("controller {}: {fault}", id.0);
            }
        }
        for entry in bus.ports() {
            if let PortState::Failed(error) = entry.state() {
                println!(
                    "port {}:{}: {error}",
                    entry.controller().0,
                    entry.port().0 + 1
                );
            }
        }
        for disk in self.host.disks() {
            match disk.state {
                DiskState::Failed(error) => {
                    println!("disk at port {}: {error}", self.place(&disk.device));
                }
                DiskState::Empty => println!("@empty port={}", self.place(&disk.device)),
                DiskState::Ready(_) | DiskState::NotReady => {}
            }
        }
    }

    fn place(&self, device: &DeviceInfo) -> Place {
        let several = self.host.bus().controllers().nth(1).is_some();
        Place {
            controller: several.then_some(device.controller.0),
            port: device.attachment.root_port.0,
            route: device.attachment.route,
        }
    }
}

/// The disks that can be used.
fn ready<P: Platform, C: Driver>(
    host: &Host<'_, P, C>,
) -> impl Iterator<Item = (DiskInfo, Geometry)> {
    host.disks().filter_map(|info| match info.state {
        DiskState::Ready(geometry) => Some((info, geometry)),
        _ => None,
    })
}

/// Where a device is: controller if there are several, root port, hub ports, counted from 1.
struct Place {
    controller: Option<u8>,
    port: u8,
    route: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(controller) = self.controller {
            write!(formatter, "{controller}:")?;
        }
        write!(formatter, "{}", u16::from(self.port) + 1)?;
        let mut route = self.route;
        while route != 0 {
            write!(formatter, ".{}", route & 0xf)?;
            route >>= 4;
        }
        Ok(())
    }
}

/// Vendor and product, as the disk says.
struct Name<'i>(&'i DiskInfo);

impl fmt::Display for Name<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.inquiry {
            Some(inquiry) => write!(formatter, "{} {}", inquiry.vendor, inquiry.product),
            None => formatter.write_str("unknown"),
        }
    }
}

/// The first word of what the tree says.
fn driver(device: &DeviceInfo) -> &'static str {
    match device.driver.split_once(' ') {
        Some((word, _)) => word,
        None if device.driver.is_empty() => "none",
        None => device.driver,
    }
}

/// Why a device is used so, or not at all, as a marker's last value; nothing where there is no reason.
struct Instead<'a>(&'a DeviceInfo, Option<Usage>);

impl fmt::Display for Instead<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unused = self.0.driver.split_once(" (");
        match (self.1.and_then(|usage| usage.reason()), unused) {
            (Some(reason), _) => write!(formatter, " reason={reason}"),
            (None, Some((_, reason))) => {
                write!(formatter, " reason={}", reason.trim_end_matches(')'))
            }
            (None, None) => Ok(()),
        }
    }
}

fn speed(speed: Speed) -> &'static str {
    match speed {
        Speed::Low => "low",
        Speed::Full => "full",
        Speed::High => "high",
        Speed::Super => "super",
        Speed::SuperPlus => "super-plus",
    }
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::Place;

    #[test]
    fn a_place_counts_ports_from_one_and_follows_the_route() {
        let place = Place {
            controller: None,
            port: 0,
            route: 0x32,
        };
        assert_eq!(format!("{place}"), "1.2.3");
        let place = Place {
            controller: Some(1),
            port: 4,
            route: 0,
        };
        assert_eq!(format!("{place}"), "1:5");
    }
}
