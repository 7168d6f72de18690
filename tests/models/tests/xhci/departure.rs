//! Disks that let go of the bus by themselves, seen by the port.

use rootport_models::controller::xhci::Traits;
use rootport_models::device::bot::{Action, opcode};
use rootport_models::device::{Disk, MILLISECOND, Script};

use crate::raw::{Raw, machine};

/// A configured disk in port 0, and its slot.
fn configured(disk: &Disk) -> (Raw, u32) {
    let machine = machine();
    let controller = machine.add_xhci(Traits::default());
    machine.plug(controller, 0, disk.clone());
    let mut raw = Raw::probe(&machine, controller);
    raw.bring_up();
    let slot = raw.address(0);
    raw.configure_bulk(slot, 0);
    (raw, slot)
}

/// Sends the wrapper of a TEST UNIT READY, to whatever end.
fn test_unit(raw: &mut Raw, slot: u32) {
    let wrapper = raw.machine.coherent(32);
    let words = [0x4342_5355, 1, 0, 0x0006_0000, 0, 0, 0, 0];
    raw.machine.store(wrapper, &words);
    raw.machine.release();
    raw.push_normal(slot, 4, wrapper, 31, 1 << 5);
    raw.kick(slot, 4);
}

#[test]
fn the_port_shows_that_the_plug_was_pulled() {
    let disk = Script::new().build();
    let (mut raw, slot) = configured(&disk);
    disk.pull_at(1);
    test_unit(&mut raw, slot);
    let status = raw.until(raw.port(0), |status| status & 1 == 0);
    assert_eq!(status & 1 << 17, 1 << 17, "the connect change");
}

#[test]
fn the_port_shows_a_disk_that_leaves_and_comes_back() {
    let leave = Action::Leave(300 * MILLISECOND);
    let disk = Script::new().on(opcode(0x00).once(), leave).build();
    let (mut raw, slot) = configured(&disk);
    test_unit(&mut raw, slot);
    raw.until(raw.port(0), |status| status & 1 == 0);
    raw.until(raw.port(0), |status| status & 1 != 0);
    assert_eq!(disk.opcodes(), [0x00]);
}
