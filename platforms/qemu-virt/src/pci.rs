//! USB controllers behind the machine's PCIe host bridge.

use board_common::aarch64::Start;
use board_common::aarch64::tables::Memory;
use board_common::gic::InterruptId;
use board_common::pcie::config::{Address, BUS_BYTES, Ecam};
use board_common::pcie::function::InterruptPin;
use board_common::pcie::usb;
use board_common::pcie::window::Windows;
use board_common::println;
use board_common::region::Region;

/// SPI of pin A of device 0 (`hw/arm/virt.c`, VIRT_PCIE).
const FIRST_INTERRUPT: u32 = 3;

/// Lists the controllers with their windows.
pub(crate) fn list(start: &mut Start) -> Result<(), &'static str> {
    let host = start
        .device_tree
        .pcie()
        .ok_or("no PCIe host bridge in the device tree")?;
    let configuration = host
        .configuration
        .ok_or("the PCIe host bridge has no registers")?;
    let root_bus = Region::new(configuration.start, BUS_BYTES);
    start
        .memory
        .map(root_bus, Memory::Configuration)
        .map_err(|_| "PCIe: mapping failed")?;
    // SAFETY: the device tree says that this is configuration space, and it has just been mapped.
    let ecam = unsafe { Ecam::new(configuration) }.ok_or("PCIe: less than a bus")?;
    let mut windows = Windows::new(host.window_32, host.window_64);
    usb::find(ecam, &mut windows, |address, controller| match controller {
        Ok(controller) => {
            let (vendor, device) = controller.function.id();
            println!(
                "PCI {address} {vendor:04x}:{device:04x} {:?} registers {:#x}..{:#x} interrupt {:?}",
                controller.kind,
                controller.registers.start,
                controller.registers.end(),
                controller.pin.map(|pin| interrupt(address, pin)),
            );
        }
        Err(refusal) => println!("PCI {address}: not used: {refusal:?}"),
    });
    Ok(())
}

/// Pins rotate over four interrupts by device number (`hw/arm/virt.c`, create_pcie_irq_map).
fn interrupt(address: Address, pin: InterruptPin) -> InterruptId {
    InterruptId::shared(FIRST_INTERRUPT + (u32::from(address.device) + pin as u32) % 4)
}
