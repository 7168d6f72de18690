//! The USB controllers on the root bus.

use super::bar::{self, Bar};
use super::config::{Address, ConfigSpace};
use super::function::{Function, InterruptPin};
use super::window::Windows;
use crate::region::Region;

/// Class codes (PCI Code and ID Assignment §1.13; xHCI 1.2 §5.2.1, EHCI 1.0 §2.1.2).
const CLASS_XHCI: u32 = 0x0c_0330;
const CLASS_EHCI: u32 = 0x0c_0320;
/// The upper byte of every bridge's class.
const BASE_CLASS_BRIDGE: u32 = 0x06;

/// What kind of controller it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// xHCI.
    Xhci,
    /// EHCI.
    Ehci,
}

/// A USB controller with its register window in place, memory decoding on, DMA not yet.
#[derive(Clone, Copy, Debug)]
pub struct UsbController<C> {
    /// Its configuration space; lets it do DMA, and cuts that.
    pub function: Function<C>,
    /// What it is.
    pub kind: Kind,
    /// Its registers as the processor sees them: to be mapped as device memory.
    pub registers: Region,
    /// The interrupt pin that it pulls.
    pub pin: Option<InterruptPin>,
}

/// Why a controller on the bus is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No window had room for this base address.
    NoRoom(Bar),
    /// Its first base address is not memory.
    NoRegisters,
}

/// Switches off whatever a boot loader left running on the bus, then gives each USB controller its
/// windows and reports it, in the order of addresses. Bridges are left alone.
pub fn find<C: ConfigSpace + Clone>(
    config: C,
    windows: &mut Windows,
    mut report: impl FnMut(Address, Result<UsbController<C>, Refusal>),
) {
    functions(&config)
        .filter(is_leaf)
        .for_each(|function| function.switch_off());
    for function in functions(&config) {
        if let Some(kind) = kind(&function) {
            let address = function.address();
            report(address, place(function, kind, windows));
        }
    }
}

fn place<C: ConfigSpace>(
    function: Function<C>,
    kind: Kind,
    windows: &mut Windows,
) -> Result<UsbController<C>, Refusal> {
    let registers = bar::place(&function, windows)
        .map_err(Refusal::NoRoom)?
        .ok_or(Refusal::NoRegisters)?;
    function.enable_memory();
    let pin = function.interrupt_pin();
    Ok(UsbController {
        function,
        kind,
        registers,
        pin,
    })
}

/// The functions that answer. A device whose first function does not say that there are more is
/// not asked for them: some answer for every number (PCI 3.0 §6.1).
fn functions<C: ConfigSpace + Clone>(config: &C) -> impl Iterator<Item = Function<C>> {
    Address::all().filter_map(|address| {
        let first = Address {
            function: 0,
            ..address
        };
        let asked = address.function == 0
            || Function::probe(config.clone(), first).is_some_and(|f| f.is_multifunction());
        asked
            .then(|| Function::probe(config.clone(), address))
            .flatten()
    })
}

fn is_leaf<C: ConfigSpace>(function: &Function<C>) -> bool {
    function.is_ordinary() && function.class() >> 16 != BASE_CLASS_BRIDGE
}

fn kind<C: ConfigSpace>(function: &Function<C>) -> Option<Kind> {
    match function.class() {
        CLASS_XHCI => Some(Kind::Xhci),
        CLASS_EHCI => Some(Kind::Ehci),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::{Kind, find};
    use crate::device_tree::PcieWindow;
    use crate::pcie::config::Address;
    use crate::pcie::fake::FakeBus;
    use crate::pcie::function::InterruptPin;
    use crate::pcie::window::Windows;
    use crate::region::Region;

    const COMMAND: u16 = 4;
    const XHCI: Address = Address {
        device: 1,
        function: 0,
    };
    const NETWORK: Address = Address {
        device: 2,
        function: 0,
    };
    const BRIDGE: Address = Address {
        device: 0,
        function: 0,
    };
    const EHCI: Address = Address {
        device: 3,
        function: 7,
    };

    fn windows() -> Windows {
        let memory = Region::new(0x1000_0000, 0x100_0000);
        Windows::new(
            Some(PcieWindow {
                bus: 0x1000_0000,
                memory,
            }),
            None,
        )
    }

    fn bus() -> FakeBus {
        FakeBus::new()
            .with(BRIDGE, 0x06_0000)
            .with(XHCI, 0x0c_0330)
            .bar64(XHCI, 0, 0x4000)
            .pin(XHCI, 1)
            .with(NETWORK, 0x02_0000)
            .bar32(NETWORK, 0, 0x1000)
    }

    fn found(bus: &FakeBus) -> Vec<(Address, Kind, Region)> {
        let mut list = Vec::new();
        find(bus, &mut windows(), |address, controller| {
            let controller = controller.unwrap();
            list.push((address, controller.kind, controller.registers));
        });
        list
    }

    #[test]
    fn both_kinds_are_found_and_get_windows_of_their_own() {
        let bus = bus()
            .with(
                Address {
                    device: 3,
                    function: 0,
                },
                0x0c_0300,
            )
            .multifunction(3)
            .with(EHCI, 0x0c_0320)
            .bar32(EHCI, 0, 0x1000);
        let list = found(&bus);
        assert_eq!(
            list[0],
            (XHCI, Kind::Xhci, Region::new(0x1000_0000, 0x4000))
        );
        assert_eq!(
            list[1],
            (EHCI, Kind::Ehci, Region::new(0x1000_4000, 0x1000))
        );
        assert_eq!(list.len(), 2);
    }

    #[test]
    fn functions_of_a_single_function_device_are_not_asked_for() {
        let bus = bus()
            .with(
                Address {
                    device: 3,
                    function: 0,
                },
                0x0c_0300,
            )
            .with(EHCI, 0x0c_0320)
            .bar32(EHCI, 0, 0x1000);
        assert_eq!(found(&bus).len(), 1);
    }

    #[test]
    fn what_the_boot_loader_left_running_loses_dma_and_memory_but_bridges_do_not() {
        let bus = bus();
        for address in [NETWORK, BRIDGE] {
            bus.set(address, COMMAND, 0x6);
        }
        found(&bus);
        assert_eq!(bus.word(NETWORK, COMMAND) & 0x6, 0);
        assert_eq!(bus.word(BRIDGE, COMMAND) & 0x6, 0x6);
    }

    #[test]
    fn a_controller_gets_memory_but_no_dma_until_it_is_let() {
        let bus = bus();
        find(&bus, &mut windows(), |_, controller| {
            let controller = controller.unwrap();
            assert_eq!(controller.pin, Some(InterruptPin::A));
            assert_eq!(bus.word(XHCI, COMMAND) & 0x6, 0x2);
            controller.function.enable_dma();
            assert_eq!(bus.word(XHCI, COMMAND) & 0x6, 0x6);
            assert!(controller.function.cut_dma());
            assert_eq!(bus.word(XHCI, COMMAND) & 0x6, 0x2);
        });
    }

    #[test]
    fn a_function_that_keeps_bus_mastering_is_told() {
        let bus = bus().stubborn();
        find(&bus, &mut windows(), |_, controller| {
            let controller = controller.unwrap();
            controller.function.enable_dma();
            assert!(!controller.function.cut_dma());
        });
    }
}
