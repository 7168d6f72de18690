//! The machine's USB host: a driver for each controller, in memory of the image.

use core::ptr::NonNull;

use board_common::aarch64::{Start, timer};
use board_common::attention::{Attention, Half};
use board_common::console;
use board_common::demo::buffers::Buffers;
use board_common::demo::options::Options;
use board_common::demo::session::{self, Tools};
use board_common::gic::Gic;
use board_common::machine::Machine;
use board_common::pcie::config::Ecam;
use board_common::pcie::function::Function;
use board_common::pcie::handoff;
use board_common::pcie::usb::{Kind, UsbController};
use board_common::power::Reason;
use board_common::println;
use heapless::Vec;
use rootport::Host;
use rootport::dma::{BusAddress, CoherentRegion};
use rootport::host::ehci::quirks::{PciSubsystem, Quirks};
use rootport::host::ehci::{self, Ehci, EhciMemory};
use rootport::host::xhci::{self, Silicon, Xhci, XhciMemory};
use rootport::host::{Controller, ControllerFault};
use rootport::mmio::MmioWindow;
use rootport::policy::{Policy, Queueing};
use rootport::stack::Tables;
use static_cell::ConstStaticCell;

use crate::pci::{self, MOST_CONTROLLERS};

/// Policy: room for a hub full of disks on each controller.
const PORTS: usize = 64;
const DEVICES: usize = 16;
const REQUESTS: usize = 16;
/// Endpoint 0 and two bulk endpoints for each device, and transfers for a command of each.
const ENDPOINTS: usize = 3 * DEVICES;
const TRANSFERS: usize = 8 * DEVICES;

type Driver = Controller<'static, MmioWindow>;

static TABLES: ConstStaticCell<Tables<Driver, MOST_CONTROLLERS, PORTS, DEVICES, REQUESTS>> =
    ConstStaticCell::new(Tables::new());
static XHCI: [ConstStaticCell<XhciMemory<DEVICES, ENDPOINTS, TRANSFERS>>; MOST_CONTROLLERS] =
    [const { ConstStaticCell::new(XhciMemory::new()) }; MOST_CONTROLLERS];
static EHCI: [ConstStaticCell<EhciMemory<DEVICES, ENDPOINTS, TRANSFERS>>; MOST_CONTROLLERS] =
    [const { ConstStaticCell::new(EhciMemory::new()) }; MOST_CONTROLLERS];

/// Whom an interrupt is for.
pub(crate) static ATTENTION: Attention<MmioWindow, MOST_CONTROLLERS> = Attention::new();

/// Runs the demo on all controllers of the machine.
pub(crate) fn run(mut start: Start, options: &Options, gic: Gic) -> Result<(), Reason> {
    let found = pci::find(&mut start)?;
    let mut drivers: Vec<Driver, MOST_CONTROLLERS> = Vec::new();
    let mut functions: Vec<Function<Ecam>, MOST_CONTROLLERS> = Vec::new();
    for controller in &found {
        if let Some(driver) = make_driver(controller, drivers.len(), gic) {
            // As many places as were found.
            let _ = drivers.push(driver);
            let _ = functions.push(controller.function);
        }
    }
    let pool = start.dma_pool;
    let first = NonNull::new(pool.start as *mut u8).ok_or("no DMA pool")?;
    // SAFETY: entry mapped the pool uncached after its lines were cleaned out of the caches, gives
    // it to nobody else, and devices of this machine use the processor's addresses.
    let region =
        unsafe { CoherentRegion::new(first, BusAddress::new(pool.start as u64), pool.length) };
    let machine = Machine::new(options.coherency, start.device_tree.memory(), functions);
    let tables = TABLES.try_take().ok_or("the host is made once")?;
    let mut host = Host::new(machine, region, tables.storage());
    // The machine's disks are QEMU's, whatever its version.
    host.set_policy(Policy {
        queueing: Queueing::AfterData,
        ..Policy::DEFAULT
    });
    for driver in drivers {
        host.add_controller(driver)
            .map_err(|error| Reason::new(format_args!("adding a controller: {error:?}")))?;
    }
    let buffers = Buffers::take().ok_or("the buffers are taken once")?;
    let mut tools = Tools {
        buffers,
        clock: timer::microseconds,
        key: || console::read_byte().is_some(),
    };
    session::run(&mut host, options, &mut tools)
}

/// The driver of a controller, with its interrupt attached and its DMA allowed. `None`, and a line
/// on the console, for one that cannot be used.
fn make_driver(controller: &UsbController<Ecam>, index: usize, gic: Gic) -> Option<Driver> {
    let registers = controller.registers;
    let base = NonNull::new(registers.start as *mut u8)?;
    // SAFETY: `pci::find` has placed and mapped this controller's registers here, aligned to their
    // size, and nothing else reaches them.
    let window = unsafe { MmioWindow::new(base, registers.length) };
    let interrupt = pci::interrupt(controller);
    let made = match controller.kind {
        Kind::Xhci => make_xhci(&controller.function, window, index, interrupt.is_some()),
        Kind::Ehci => make_ehci(&controller.function, window, index, interrupt.is_some()),
    };
    let address = controller.function.address();
    let (driver, half) = made?
        .inspect_err(|fault| println!("PCI {address}: not used: {fault:?}"))
        .ok()?;
    if let Some(id) = interrupt
        && ATTENTION.attach(index, id, half)
    {
        gic.enable(id);
    }
    controller.function.enable_dma();
    Some(driver)
}

/// A driver and its interrupt half; `None` where its memory is taken.
type Made = Option<Result<(Driver, Half<MmioWindow>), ControllerFault>>;

fn make_xhci(function: &Function<Ecam>, window: MmioWindow, index: usize, wired: bool) -> Made {
    let storage = XHCI.get(index)?.try_take()?.slices();
    let interrupts = if wired {
        xhci::Interrupts::Wired
    } else {
        xhci::Interrupts::Polled
    };
    let (vendor, device) = function.id();
    let options = xhci::Options {
        interrupts,
        silicon: Silicon::Pci { vendor, device },
        ..xhci::Options::default()
    };
    let driver = Xhci::new(window, index as u8, storage, options);
    Some(driver.map(|driver| {
        let half = Half::Xhci(driver.interrupt_half());
        (Controller::Xhci(driver), half)
    }))
}

fn make_ehci(function: &Function<Ecam>, window: MmioWindow, index: usize, wired: bool) -> Made {
    let handoff = handoff::take(function, &window, timer::microseconds);
    println!("PCI {}: EHCI, {handoff:?}", function.address());
    let storage = EHCI.get(index)?.try_take()?.slices();
    let interrupts = if wired {
        ehci::Interrupts::Wired
    } else {
        ehci::Interrupts::Polled
    };
    let (vendor, device) = function.subsystem();
    let quirks = Quirks::of_pci(PciSubsystem { vendor, device });
    let options = ehci::Options { interrupts, quirks };
    let driver = Ehci::new(window, index as u8, storage, options);
    Some(driver.map(|driver| {
        let half = Half::Ehci(driver.interrupt_half());
        (Controller::Ehci(driver), half)
    }))
}
