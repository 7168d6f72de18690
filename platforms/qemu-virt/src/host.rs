//! The machine's USB host: a driver for each controller, in memory of the image.

use core::ptr::NonNull;

use board_common::aarch64::{Start, timer};
use board_common::attention::Attention;
use board_common::brakes::Brakes;
use board_common::cells;
use board_common::demo::buffers::{Buffers, high_place};
use board_common::demo::options::{Mode, Options, Placement, Waiting, quirks};
use board_common::device_tree::DeviceTree;
use board_common::gic::{Gic, InterruptId, Messages};
use board_common::machine::Machine;
use board_common::pcie::config::Ecam;
use board_common::pcie::function::Function;
use board_common::pcie::handoff;
use board_common::pcie::message;
use board_common::pcie::usb::{Kind, UsbController};
use board_common::power::Reason;
use board_common::println;
use board_common::work::{self, Driver, Parts};
use heapless::Vec;
use rootport::host::ehci::quirks::{PciSubsystem, Quirks};
use rootport::host::ehci::{self, Ehci, EhciMemory};
use rootport::host::xhci::{self, Silicon, Xhci, XhciMemory};
use rootport::host::{Controller, ControllerFault};
use rootport::mmio::{Bus, MmioWindow};
use rootport::stack::Tables;
use static_cell::ConstStaticCell;

use crate::pci::{self, MOST_CONTROLLERS};

/// What an empty command line means.
pub(crate) const OPTIONS: Options = if cfg!(feature = "bench") {
    // As the other stacks in the comparison: they poll, and they keep the caches in step.
    Options {
        mode: Mode::Bench,
        waiting: Waiting::Polling,
        ..Options::DEFAULT
    }
} else {
    Options::DEFAULT
};

const PORTS: usize = 64;
/// Policy: room for a hub full of disks on each controller; measurements are made with one, or four. The pool's
/// ledger has its length from them: that of two devices holds the pieces of eight controllers and one device.
const DEVICES: usize = match (cfg!(feature = "bench"), cfg!(feature = "bench-disks")) {
    (_, true) => 4,
    (true, false) => 2,
    (false, false) => 16,
};
/// As many as the measurements want.
const REQUESTS: usize = if cfg!(feature = "bench-disks") {
    64
} else {
    32
};
/// Endpoint 0 and the four pipes of UAS for each device, and transfers for the commands of one that
/// has them all.
const ENDPOINTS: usize = 5 * DEVICES;
const TRANSFERS: usize = if cfg!(feature = "bench") {
    96 * DEVICES
} else {
    8 * DEVICES
};

static TABLES: ConstStaticCell<Tables<Driver, MOST_CONTROLLERS, PORTS, DEVICES, REQUESTS>> =
    ConstStaticCell::new(Tables::new());
static XHCI: [ConstStaticCell<XhciMemory<DEVICES, ENDPOINTS, TRANSFERS>>; MOST_CONTROLLERS] =
    [const { ConstStaticCell::new(XhciMemory::new()) }; MOST_CONTROLLERS];
static EHCI: [ConstStaticCell<EhciMemory<DEVICES, ENDPOINTS, TRANSFERS>>; MOST_CONTROLLERS] =
    [const { ConstStaticCell::new(EhciMemory::new()) }; MOST_CONTROLLERS];

/// Whom an interrupt is for.
pub(crate) static ATTENTION: Attention<MmioWindow, MOST_CONTROLLERS> = Attention::new();
/// What a panic pulls.
pub(crate) static BRAKES: Brakes<MmioWindow, Function<Ecam>, MOST_CONTROLLERS> = Brakes::new();

/// Runs the demo on all controllers of the machine.
pub(crate) fn run(
    mut start: Start,
    options: &Options,
    gic: Gic,
    messages: Messages,
) -> Result<(), Reason> {
    let found = pci::find(&mut start)?;
    let mut drivers: Vec<Driver, MOST_CONTROLLERS> = Vec::new();
    let mut functions: Vec<Function<Ecam>, MOST_CONTROLLERS> = Vec::new();
    for controller in &found {
        if let Some(driver) = make_driver(controller, drivers.len(), options, gic, messages) {
            // As many places as were found.
            let _ = drivers.push(driver);
            let _ = functions.push(controller.function);
        }
    }
    let parts = Parts {
        drivers,
        machine: Machine::new(options.coherency, start.device_tree.memory(), functions),
        storage: TABLES.try_take().ok_or("the host is made once")?.storage(),
        quirks: quirks(start.device_tree.command_line()),
    };
    let buffers = || take_buffers(options, start.device_tree);
    // SAFETY: entry has done so, and it gives the pool to nobody else; devices of this machine use
    // the processor's addresses.
    unsafe { work::run(parts, start.dma_pool, options, buffers) }
}

/// The demo's buffers, where the host wants them.
fn take_buffers(options: &Options, device_tree: DeviceTree) -> Result<Buffers<'static>, Reason> {
    match options.buffers {
        Placement::Image => Buffers::take().ok_or("the buffers are taken once".into()),
        Placement::High => {
            let place = high_place(device_tree.memory()).ok_or("no RAM above 4 GiB")?;
            println!("buffers at {place:#x}");
            // SAFETY: RAM by the device tree, which entry has mapped as data; the image lies below
            // 4 GiB and nothing else of it uses memory outside of it. Called once.
            Ok(unsafe { Buffers::at(place) })
        }
    }
}

/// How a controller calls.
#[derive(Clone, Copy)]
enum Call {
    /// It does not.
    Never,
    /// By a pin.
    Pin(InterruptId),
    /// By a message.
    Message(InterruptId),
}

impl Call {
    /// By a message where the controller can and the driver knows how, else by its pin.
    fn arrange(
        controller: &UsbController<Ecam>,
        window: &MmioWindow,
        index: usize,
        options: &Options,
        messages: Messages,
    ) -> Self {
        if !options.waiting.interrupts() {
            return Self::Never;
        }
        let write = |offset, value| window.write32(offset, value);
        if controller.kind == Kind::Xhci
            && let Some((id, message)) = messages.message(index)
            && message::arrange(&controller.function, controller.registers, message, write)
        {
            return Self::Message(id);
        }
        pci::interrupt(controller).map_or(Self::Never, Self::Pin)
    }
}

/// The driver of a controller, with its interrupt attached and its DMA allowed. `None`, and a line
/// on the console, for one that cannot be used.
fn make_driver(
    controller: &UsbController<Ecam>,
    index: usize,
    options: &Options,
    gic: Gic,
    messages: Messages,
) -> Option<Driver> {
    let registers = controller.registers;
    let base = NonNull::new(registers.start as *mut u8)?;
    // SAFETY: `pci::find` has placed and mapped this controller's registers here, aligned to their
    // size, and nothing else reaches them.
    let window = unsafe { MmioWindow::new(base, registers.length) };
    let call = Call::arrange(controller, &window, index, options, messages);
    let made = match controller.kind {
        Kind::Xhci => make_xhci(&controller.function, window, index, call, options.reach),
        Kind::Ehci => make_ehci(&controller.function, window, index, call),
    };
    let address = controller.function.address();
    let Some(made) = made else {
        println!("PCI {address}: not used: no memory is left for its driver");
        return None;
    };
    let driver = made
        .inspect_err(|fault| println!("PCI {address}: not used: {fault}"))
        .ok()?;
    BRAKES.attach(index, driver.emergency_stop(), controller.function);
    let half = driver.interrupt_half();
    match call {
        Call::Never => {}
        Call::Pin(id) => {
            if ATTENTION.attach(id, half) {
                gic.enable(id);
            }
        }
        Call::Message(id) => {
            if ATTENTION.attach(id, half) {
                gic.enable_edge(id);
            }
        }
    }
    controller.function.enable_dma();
    Some(driver)
}

/// A driver; `None` where its memory is taken.
type Made = Option<Result<Driver, ControllerFault>>;

fn make_xhci(
    function: &Function<Ecam>,
    window: MmioWindow,
    index: usize,
    call: Call,
    reach: u64,
) -> Made {
    let storage = cells::take(&XHCI)?.slices();
    let interrupts = match call {
        Call::Never => xhci::Interrupts::Polled,
        Call::Pin(_) => xhci::Interrupts::Wired,
        Call::Message(_) => xhci::Interrupts::Message,
    };
    let (vendor, device) = function.id();
    let options = xhci::Options {
        interrupts,
        silicon: Silicon::Pci { vendor, device },
        reach,
        ..xhci::Options::default()
    };
    let driver = Xhci::new(window, index as u8, storage, options);
    Some(driver.map(Controller::Xhci))
}

fn make_ehci(function: &Function<Ecam>, window: MmioWindow, index: usize, call: Call) -> Made {
    let handoff = handoff::take(function, &window, timer::microseconds);
    println!("PCI {}: EHCI, {handoff:?}", function.address());
    let storage = cells::take(&EHCI)?.slices();
    let interrupts = match call {
        Call::Never | Call::Message(_) => ehci::Interrupts::Polled,
        Call::Pin(_) => ehci::Interrupts::Wired,
    };
    let (vendor, device) = function.subsystem();
    let quirks = Quirks::of_pci(PciSubsystem { vendor, device });
    let options = ehci::Options { interrupts, quirks };
    let driver = Ehci::new(window, index as u8, storage, options);
    Some(driver.map(Controller::Ehci))
}
