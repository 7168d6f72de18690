//! The board's USB host: an EHCI driver for each port, in memory of the image.
//!
//! Full- and low-speed devices go to the OHCI beside each EHCI, which has no driver yet: they are
//! shown in the tree as such.

use core::ptr::NonNull;

use embedded_hal::delay::DelayNs;
use heapless::Vec;
use rootport::host::Controller;
use rootport::host::ehci::{self, Ehci, EhciMemory};
use rootport::mmio::{Bus, MmioWindow};
use rootport::soc::allwinner::{self, Block, Port, PortFacts};
use rootport::stack::Tables;
use static_cell::ConstStaticCell;

use crate::attention::Attention;
use crate::brakes::{Brakes, CutDma};
use crate::cells;
use crate::cpu::{Start, timer};
use crate::demo::buffers::Buffers;
use crate::demo::options::{Options, quirks};
use crate::gic::{Gic, InterruptId};
use crate::machine::Machine;
use crate::power::Reason;
use crate::println;
use crate::work::{self, Driver, Parts};

const CHIP: allwinner::Chip = allwinner::H3;

/// Ports of the chip.
const MOST_CONTROLLERS: usize = CHIP.ports.len();
/// Policy: room for a hub full of disks on each port.
const PORTS: usize = 64;
/// Measurements are made with one disk.
const DEVICES: usize = if cfg!(feature = "bench") { 1 } else { 16 };
const REQUESTS: usize = 32;
/// Endpoint 0 and two bulk endpoints for each device, and transfers for a command of each.
const ENDPOINTS: usize = 3 * DEVICES;
const TRANSFERS: usize = 8 * DEVICES;
/// Bytes of an EHCI's registers: the OHCI's follow.
const EHCI_WINDOW: usize = 0x400;

static TABLES: ConstStaticCell<Tables<Driver, MOST_CONTROLLERS, PORTS, DEVICES, REQUESTS>> =
    ConstStaticCell::new(Tables::new());
static EHCI: [ConstStaticCell<EhciMemory<DEVICES, ENDPOINTS, TRANSFERS>>; MOST_CONTROLLERS] =
    [const { ConstStaticCell::new(EhciMemory::new()) }; MOST_CONTROLLERS];

/// Whom an interrupt is for.
pub(super) static ATTENTION: Attention<MmioWindow, MOST_CONTROLLERS> = Attention::new();
/// What a panic pulls.
pub(super) static BRAKES: Brakes<MmioWindow, PortReset, MOST_CONTROLLERS> = Brakes::new();

/// Runs the demo on these ports of the chip.
pub(super) fn run(
    start: &Start,
    ports: &[Port],
    options: &Options,
    gic: Gic,
) -> Result<(), Reason> {
    allwinner::bring_up(&CHIP, ports, &window, &mut Spin);
    let mut drivers: Vec<Driver, MOST_CONTROLLERS> = Vec::new();
    let mut resets: Vec<PortReset, MOST_CONTROLLERS> = Vec::new();
    for port in ports {
        if let Some(driver) = make_driver(port.number, drivers.len(), options, gic) {
            // As many places as the chip has ports.
            let _ = drivers.push(driver);
            let _ = resets.push(PortReset(port.number));
        }
    }
    let parts = Parts {
        drivers,
        machine: Machine::new(options.coherency, start.ram.iter().copied(), resets),
        storage: TABLES.try_take().ok_or("the host is made once")?.storage(),
        quirks: quirks(start.command_line()),
    };
    let buffers = || Buffers::take().ok_or("the buffers are taken once".into());
    // SAFETY: entry has done so, and it gives the pool to nobody else; devices of this chip use the
    // processor's addresses.
    unsafe { work::run(parts, start.dma_pool, options, buffers) }
}

/// The driver of a port's EHCI, with its interrupt attached. `None`, and a line on the console, for
/// one that cannot be used.
fn make_driver(port: u8, index: usize, options: &Options, gic: Gic) -> Option<Driver> {
    let &PortFacts {
        ehci, interrupt, ..
    } = CHIP.port(port)?;
    let base = NonNull::new(ehci as usize as *mut u8)?;
    // SAFETY: the chip has the EHCI there, entry has mapped it, and nothing else reaches it.
    let window = unsafe { MmioWindow::new(base, EHCI_WINDOW) };
    if is_running(&window) {
        println!("EHCI {port}: left running by the boot loader");
    }
    let Some(memory) = cells::take(&EHCI) else {
        println!("EHCI {port}: not used: no memory is left for its driver");
        return None;
    };
    let interrupts = match options.waiting.interrupts() {
        true => ehci::Interrupts::Wired,
        false => ehci::Interrupts::Polled,
    };
    let driver_options = ehci::Options {
        interrupts,
        ..ehci::Options::default()
    };
    let driver = Ehci::new(window, index as u8, memory.slices(), driver_options)
        .inspect_err(|fault| println!("EHCI {port}: not used: {fault}"))
        .ok()?;
    let driver = Controller::Ehci(driver);
    BRAKES.attach(index, driver.emergency_stop(), PortReset(port));
    let id = InterruptId::shared(interrupt);
    if options.waiting.interrupts() && ATTENTION.attach(id, driver.interrupt_half()) {
        gic.enable(id);
    }
    Some(driver)
}

/// Whether an EHCI runs: USBCMD.RS, behind the capability registers (EHCI 1.0 §2.2.1, §2.3.1).
fn is_running(window: &MmioWindow) -> bool {
    let operational = usize::from(window.read8(0));
    window.read32(operational) & 1 != 0
}

/// How a block of the chip's registers is reached.
fn window(block: Block) -> Option<MmioWindow> {
    let (address, length) = CHIP.address(block)?;
    let base = NonNull::new(address as usize as *mut u8)?;
    // SAFETY: the chip has the block there, entry has mapped it, and only the bring-up reaches it.
    Some(unsafe { MmioWindow::new(base, length) })
}

/// Takes a port's controllers off the bus: in reset they are no masters of it any more.
#[derive(Debug)]
pub(super) struct PortReset(u8);

impl CutDma for PortReset {
    fn cut_dma(&self) -> bool {
        allwinner::cut_dma(&CHIP, self.0, &window)
    }

    fn is_cut(&self) -> bool {
        allwinner::is_cut(&CHIP, self.0, &window)
    }
}

/// Waits without interrupts.
struct Spin;

impl DelayNs for Spin {
    fn delay_ns(&mut self, nanoseconds: u32) {
        // One microsecond more than asked: the clock may be about to tick.
        timer::spin(u64::from(nanoseconds.div_ceil(1_000)) + 1);
    }
}
