//! USB controllers behind the machine's PCIe host bridge.

use board_common::aarch64::Start;
use board_common::gic::InterruptId;
use board_common::pcie::config::{Address, BUS_BYTES, Ecam};
use board_common::pcie::function::InterruptPin;
use board_common::pcie::usb::{self, UsbController};
use board_common::pcie::window::Windows;
use board_common::power::Reason;
use board_common::println;
use board_common::region::Region;
use board_common::tables::Memory;
use heapless::Vec;

/// Policy: controllers that are used; the machine has room for more on its bus.
pub(crate) const MOST_CONTROLLERS: usize = 8;

/// SPI of pin A of device 0 (`hw/arm/virt.c`, VIRT_PCIE).
const FIRST_INTERRUPT: u32 = 3;

/// The controllers, in the order of their addresses, with their registers mapped.
pub(crate) type Controllers = Vec<UsbController<Ecam>, MOST_CONTROLLERS>;

/// Finds the controllers and lists them.
pub(crate) fn find(start: &mut Start) -> Result<Controllers, Reason> {
    let host = start
        .device_tree
        .pcie()
        .ok_or("no PCIe host bridge in the device tree")?;
    let configuration = host
        .configuration
        .ok_or("the PCIe host bridge has no registers")?;
    let root_bus = Region::new(configuration.start, BUS_BYTES);
    map(start, root_bus, Memory::Configuration)?;
    // SAFETY: the device tree says that this is configuration space, and it has just been mapped.
    let ecam = unsafe { Ecam::new(configuration) }.ok_or("PCIe: less than a bus")?;
    let mut windows = Windows::new(host.window_32, host.window_64);
    let mut found = Controllers::new();
    usb::find(ecam, &mut windows, |address, controller| match controller {
        Ok(controller) => {
            show(&controller);
            if found.push(controller).is_err() {
                println!("PCI {address}: not used: more than {MOST_CONTROLLERS} controllers");
            }
        }
        Err(refusal) => println!("PCI {address}: not used: {refusal:?}"),
    });
    for controller in &found {
        map(start, controller.registers, Memory::Device)?;
    }
    Ok(found)
}

/// The interrupt of a controller, if it uses one: pins rotate over four by device number
/// (`hw/arm/virt.c`, create_pcie_irq_map).
pub(crate) fn interrupt(controller: &UsbController<Ecam>) -> Option<InterruptId> {
    let Address { device, .. } = controller.function.address();
    let pin = match controller.pin? {
        InterruptPin::A => 0,
        InterruptPin::B => 1,
        InterruptPin::C => 2,
        InterruptPin::D => 3,
    };
    Some(InterruptId::shared(
        FIRST_INTERRUPT + (u32::from(device) + pin) % 4,
    ))
}

fn map(start: &mut Start, region: Region, memory: Memory) -> Result<(), Reason> {
    start
        .memory
        .map(region, memory)
        .map_err(|error| Reason::new(format_args!("PCIe: {error:?}")))
}

fn show(controller: &UsbController<Ecam>) {
    let (vendor, device) = controller.function.id();
    println!(
        "PCI {} {vendor:04x}:{device:04x} {:?}, registers at {:#x}, {} bytes",
        controller.function.address(),
        controller.kind,
        controller.registers.start,
        controller.registers.length,
    );
}
