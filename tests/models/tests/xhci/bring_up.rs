//! A driver that does everything right meets no objection, whatever shape the controller has.

use rootport_models::controller::xhci::{Firmware, Traits};
use rootport_models::device::Link;

use crate::raw::{Raw, disk, machine};

/// Reads block 0 of a disk in `port`.
fn reads_a_block(traits: Traits, port: usize, link: Link) {
    let machine = machine();
    let controller = machine.add_xhci(traits);
    let stick = disk(link);
    machine.plug(controller, port, stick.clone());
    let mut raw = Raw::probe(&machine, controller);
    raw.bring_up();
    let slot = raw.address(port);
    let (events, data) = raw.control_in(slot, [0x80, 6, 0, 1, 0, 0, 18, 0]);
    assert_eq!(events[0].code(), 1);
    assert_eq!(raw.bytes(data, 2), [18, 1]);
    raw.configure_bulk(slot, 0);
    assert_eq!(&raw.read_blocks(slot, 0, 2)[..10], b"block zero");
    assert_eq!(stick.opcodes(), [0x28]);
}

#[test]
fn a_high_speed_disk_is_read_on_the_default_controller() {
    reads_a_block(Traits::default(), 0, Link::High);
}

#[test]
fn a_superspeed_disk_is_read_on_the_default_controller() {
    reads_a_block(Traits::default(), 2, Link::Super);
}

#[test]
fn a_disk_is_read_on_the_rk3328() {
    reads_a_block(Traits::rk3328(), 0, Link::High);
    reads_a_block(Traits::rk3328(), 1, Link::Super);
}

#[test]
fn a_disk_is_read_with_32_bit_addresses() {
    reads_a_block(Traits::addresses_32(), 0, Link::High);
}

#[test]
fn a_disk_is_read_on_a_controller_that_is_odd_in_every_way() {
    let machine = machine();
    let traits = Traits::odd();
    assert_ne!(traits.firmware, Firmware::Absent);
    let controller = machine.add_xhci(traits);
    machine.plug(controller, 1, disk(Link::High));
    let mut raw = Raw::probe(&machine, controller);
    raw.take_from_firmware();
    raw.bring_up();
    raw.write(raw.port(1), 1 << 9);
    let slot = raw.address(1);
    raw.configure_bulk(slot, 0);
    assert_eq!(&raw.read_blocks(slot, 0, 2)[..10], b"block zero");
}

#[test]
fn all_memory_above_4_gib_is_no_trouble_for_64_bit_addresses() {
    use rootport_models::machine::{Machine, Options};
    let machine = Machine::new(Options::above_4_gib());
    let controller = machine.add_xhci(Traits::default());
    machine.plug(controller, 0, disk(Link::High));
    let mut raw = Raw::probe(&machine, controller);
    raw.bring_up();
    let slot = raw.address(0);
    raw.configure_bulk(slot, 0);
    assert_eq!(&raw.read_blocks(slot, 0, 2)[..10], b"block zero");
}
