//! The smallest image that reads a disk: linked to be weighed, never run.
//!
//! Who calls it: nobody; `cargo xtask bench` links it and sums up its sections. It has all that
//! the library needs and nothing of a board: what is in its text is the library with the controller
//! drivers of its features, as a boot loader would carry it, and what is in its data are the tables
//! for one controller of each kind and one disk.
#![no_std]
#![no_main]

use core::panic::PanicInfo;
use core::ptr::NonNull;

use rootport::block::{BlockDevice, Lba};
use rootport::dma::{BusAddress, CoherentRegion, Dma};
use rootport::host::Controller;
#[cfg(feature = "ehci")]
use rootport::host::ehci::{self, Ehci, EhciMemory};
#[cfg(feature = "xhci")]
use rootport::host::xhci::{self, Xhci, XhciMemory};
use rootport::mmio::MmioWindow;
use rootport::platform::ControllerId;
use rootport::stack::Tables;
use rootport::time::{Duration, Instant};
use rootport::{Host, Platform, arch};
use static_cell::ConstStaticCell;

/// Controllers, root ports of them all, requests in flight.
const CONTROLLERS: usize = cfg!(feature = "xhci") as usize + cfg!(feature = "ehci") as usize;
const PORTS: usize = 8;
const REQUESTS: usize = 4;
/// One disk: endpoint 0 and two bulk endpoints, and the transfers of its command.
const DEVICES: usize = 1;
const ENDPOINTS: usize = 3;
const TRANSFERS: usize = 8;

/// Where a board of no kind has things.
const REGISTERS: usize = 0x1000_0000;
const REGISTERS_LENGTH: usize = 0x1_0000;
const CLOCK: usize = 0x2000_0000;
const POOL: usize = 0x3000_0000;
const POOL_LENGTH: usize = 0x1_0000;

type Driver = Controller<'static, MmioWindow>;

static TABLES: ConstStaticCell<Tables<Driver, CONTROLLERS, PORTS, DEVICES, REQUESTS>> =
    ConstStaticCell::new(Tables::new());
#[cfg(feature = "xhci")]
static XHCI: ConstStaticCell<XhciMemory<DEVICES, ENDPOINTS, TRANSFERS>> =
    ConstStaticCell::new(XhciMemory::new());
#[cfg(feature = "ehci")]
static EHCI: ConstStaticCell<EhciMemory<DEVICES, ENDPOINTS, TRANSFERS>> =
    ConstStaticCell::new(EhciMemory::new());

struct Nowhere;

// SAFETY: bus addresses are the processor's, as on most boards; the image is not run.
unsafe impl Dma for Nowhere {
    fn coherent(&self) -> bool {
        false
    }

    fn cache_line(&self) -> usize {
        arch::cache::line_size()
    }

    fn bus_address(&self, start: NonNull<u8>, _length: usize) -> Option<BusAddress> {
        Some(BusAddress::new(start.addr().get() as u64))
    }

    fn clean(&self, start: NonNull<u8>, length: usize) {
        arch::cache::clean(start, length);
    }

    unsafe fn invalidate(&self, start: NonNull<u8>, length: usize) {
        // SAFETY: the caller owns the lines, as promised.
        unsafe { arch::cache::invalidate(start, length) }
    }
}

impl Platform for Nowhere {
    type Bus = MmioWindow;

    fn now(&self) -> Instant {
        // SAFETY: the image is not run.
        Instant::from_micros(unsafe { (CLOCK as *const u64).read_volatile() })
    }

    fn wait(&self, _until: Instant) {
        arch::spin_hint();
    }

    fn cut_dma(&self, _controller: ControllerId) -> bool {
        // SAFETY: as above.
        unsafe { (CLOCK as *mut u64).write_volatile(0) }
        true
    }

    fn can_cut_dma(&self, _controller: ControllerId) -> bool {
        true
    }
}

/// Starts the host, and reads, writes and flushes its first disk.
#[unsafe(no_mangle)]
extern "C" fn _start(buffer: &mut [u8; 4096]) -> bool {
    run(buffer).is_some()
}

type Machine = Host<'static, Nowhere, Driver>;

fn run(buffer: &mut [u8; 4096]) -> Option<()> {
    let pool = NonNull::new(POOL as *mut u8)?;
    // SAFETY: as above.
    let region = unsafe { CoherentRegion::new(pool, BusAddress::new(POOL as u64), POOL_LENGTH) };
    let mut host = Host::new(Nowhere, region, TABLES.try_take()?.storage());
    #[cfg(feature = "xhci")]
    add_xhci(&mut host)?;
    #[cfg(feature = "ehci")]
    add_ehci(&mut host)?;
    host.start();
    host.poll_until(Duration::from_secs(10), |host| host.first_disk().is_ok());
    let disk = host.first_disk().ok()?;
    let mut disk = host.disk(disk);
    disk.read(Lba(0), buffer).ok()?;
    disk.write(Lba(0), buffer).ok()?;
    disk.flush().ok()?;
    host.stop(Duration::from_secs(1)).then_some(())
}

fn window() -> Option<MmioWindow> {
    let registers = NonNull::new(REGISTERS as *mut u8)?;
    // SAFETY: as above.
    Some(unsafe { MmioWindow::new(registers, REGISTERS_LENGTH) })
}

#[cfg(feature = "xhci")]
fn add_xhci(host: &mut Machine) -> Option<()> {
    let storage = XHCI.try_take()?.slices();
    let driver = Xhci::new(window()?, 0, storage, xhci::Options::default()).ok()?;
    host.add_controller(Controller::Xhci(driver)).ok()?;
    Some(())
}

#[cfg(feature = "ehci")]
fn add_ehci(host: &mut Machine) -> Option<()> {
    let index = cfg!(feature = "xhci") as u8;
    let storage = EHCI.try_take()?.slices();
    let driver = Ehci::new(window()?, index, storage, ehci::Options::default()).ok()?;
    host.add_controller(Controller::Ehci(driver)).ok()?;
    Some(())
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        arch::spin_hint();
    }
}
