use std::cell::RefCell;
use std::rc::Rc;

use super::*;

/// A window of registers that only holds values.
#[derive(Clone)]
struct Window(Rc<RefCell<Vec<u32>>>);

impl Window {
    /// What an ordinary controller with 8 slots and 4 ports shows, and two protocols.
    fn ordinary() -> Self {
        let window = Self(Rc::new(RefCell::new(vec![0; 0x4000 / 4])));
        for (offset, value) in [
            (0x00, 0x0110_0040),
            (0x04, 0x0400_0108),
            (0x08, 0x0800_00f0),
            (0x10, 0x0200_0005),
            (0x14, 0x3000),
            (0x18, 0x2000),
            (0x48, 0x0001),
            // USB 3 on ports 1 and 2, then USB 2 on ports 3 and 4.
            (0x800, 0x0300_0402),
            (0x804, 0x2042_5355),
            (0x808, 0x0000_0201),
            (0x80c, 0x0000_0001),
            (0x810, 0x0200_0802),
            (0x814, 0x2042_5355),
            (0x818, 0x0000_0203),
            (0x830, 0x0000_0001),
        ] {
            window.set(offset, value);
        }
        window
    }

    fn set(&self, offset: usize, value: u32) {
        self.0.borrow_mut()[offset / 4] = value;
    }

    fn with(offset: usize, value: u32) -> Self {
        let window = Self::ordinary();
        window.set(offset, value);
        window
    }
}

impl Bus for Window {
    fn length(&self) -> usize {
        self.0.borrow().len() * 4
    }
    fn read8(&self, _offset: usize) -> u8 {
        panic!("registers are read whole")
    }
    fn read16(&self, _offset: usize) -> u16 {
        panic!("registers are read whole")
    }
    fn read32(&self, offset: usize) -> u32 {
        *self.0.borrow().get(offset / 4).unwrap_or(&u32::MAX)
    }
    fn write8(&self, _offset: usize, _value: u8) {
        panic!("a probe writes nothing")
    }
    fn write16(&self, _offset: usize, _value: u16) {
        panic!("a probe writes nothing")
    }
    fn write32(&self, _offset: usize, _value: u32) {
        panic!("a probe writes nothing")
    }
}

impl Parameters {
    /// A chip of version 1.1 with 4 KiB pages and 32-byte contexts.
    pub(in super::super) fn for_tests() -> Self {
        let mut parameters = probe(&Window::ordinary()).unwrap().1;
        parameters.context = 32;
        parameters
    }
}

fn fault(window: &Window) -> ControllerFault {
    probe(window).map(|_| ()).unwrap_err()
}

#[test]
fn an_ordinary_chip_is_understood() {
    let (blocks, parameters) = probe(&Window::ordinary()).unwrap();
    assert_eq!(blocks.operational.base(), 0x40);
    assert_eq!(blocks.runtime.base(), 0x2000);
    assert_eq!(blocks.doorbell.base(), 0x3000);
    assert_eq!((parameters.slots, parameters.ports), (8, 4));
    assert_eq!(parameters.version, 0x110);
    assert_eq!(parameters.context, 64);
    assert_eq!(parameters.address_mask, u64::MAX);
    assert_eq!(parameters.scratchpads, 1);
    assert_eq!(parameters.page, 4096);
    assert_eq!(parameters.legacy, Some(0x830));
}

#[test]
fn ports_follow_their_protocol_in_either_order() {
    let parameters = probe(&Window::ordinary()).unwrap().1;
    let protocols: Vec<_> = (0..5)
        .map(|port| parameters.port_protocol(RootPort(port)))
        .collect();
    use PortProtocol::{Usb2, Usb3};
    assert_eq!(
        protocols,
        [Usb3, Usb3, Usb2, Usb2, Usb2],
        "unnamed ports are USB 2"
    );
    assert_eq!(parameters.slot_type(RootPort(0)), 1);
    assert_eq!(parameters.slot_type(RootPort(2)), 0);
}

#[test]
fn the_high_bits_of_the_scratchpad_count_are_used() {
    let parameters = probe(&Window::with(0x08, 0x0820_00f0)).unwrap().1;
    assert_eq!(parameters.scratchpads, 33);
}

/// A product that wraps would lead the controller out of the pool.
#[test]
fn scratchpads_that_no_pool_holds_are_refused() {
    for (page, scratchpads) in [(0x8000, 0x0000_00f0 | 1 << 21), (0x0200, 0xffff_ffff)] {
        let window = Window::with(0x48, page);
        window.set(0x08, scratchpads);
        let refused = ControllerFault::Implausible(CapabilityField::PageSize);
        assert_eq!(fault(&window), refused, "{page:#x}");
    }
    let window = Window::with(0x48, 0x0010);
    window.set(0x08, 0xffff_ffff);
    assert!(probe(&window).is_ok(), "1023 of 64 KiB");
}

#[test]
fn nobody_on_the_bus_is_absent() {
    assert_eq!(fault(&Window::with(0, u32::MAX)), ControllerFault::Absent);
}

#[test]
fn what_no_chip_can_say_is_named() {
    for (offset, value, what) in [
        (0x04, 0x0400_0100, CapabilityField::Ports),
        (0x04, 0x0000_0108, CapabilityField::Ports),
        (0x04, 0x0400_0008, CapabilityField::Interrupters),
        (0x00, 0x0000_0040, CapabilityField::Version),
        (0x00, 0x0110_0004, CapabilityField::Length),
        (0x14, 0x0000_0000, CapabilityField::Doorbells),
        (0x14, 0x0000_3fe0, CapabilityField::Doorbells),
        (0x14, 0xffff_fffc, CapabilityField::Doorbells),
        (0x18, 0x0000_3fe0, CapabilityField::Runtime),
        (0x48, 0x0000_0000, CapabilityField::PageSize),
        (0x48, 0xffff_ffff, CapabilityField::PageSize),
    ] {
        assert_eq!(
            fault(&Window::with(offset, value)),
            ControllerFault::Implausible(what),
            "{value:#x} at {offset:#x}"
        );
    }
}

#[test]
fn a_window_too_short_for_its_ports_is_refused() {
    let window = Window::with(0x04, 0xff00_0108);
    window.0.borrow_mut().truncate(0x1000 / 4);
    assert_eq!(
        fault(&window),
        ControllerFault::Implausible(CapabilityField::Length)
    );
}

#[test]
fn protocols_of_ports_that_do_not_exist_are_cut() {
    let parameters = probe(&Window::with(0x808, 0x0000_ff01)).unwrap().1;
    assert_eq!(parameters.port_protocol(RootPort(3)), PortProtocol::Usb3);
    assert_eq!(parameters.port_protocol(RootPort(4)), PortProtocol::Usb2);
    let parameters = probe(&Window::with(0x808, 0x0000_0200)).unwrap().1;
    assert_eq!(
        parameters.port_protocol(RootPort(0)),
        PortProtocol::Usb2,
        "ports count from 1"
    );
}

#[test]
fn a_capability_list_that_leaves_the_window_ends() {
    for head in [0xffff_ffff, 0x0000_ff01, 0x0200_ff02] {
        let window = Window::with(0x800, head);
        assert!(probe(&window).is_ok());
    }
    let parameters = probe(&Window::with(0x10, 0xfff0_0005)).unwrap().1;
    assert_eq!(parameters.legacy, None);
}
