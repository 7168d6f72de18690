//! A driver that does everything right meets no objection, whatever shape the controller has.

use rootport_models::controller::ehci::{Faults, Traits};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Link, MILLISECOND, Script};
use rootport_models::machine::{Machine, Options};

use crate::raw::{IN, OUT, Raw, STOPPED, bulk, control};

fn stick() -> Disk {
    Script::new()
        .speed(Link::High)
        .unit(LogicalUnit::stick(65536).content(b"block zero"))
        .build()
}

/// Enumerates a disk in port 0 and reads block 0.
fn reads_a_block(raw: &Raw, port: usize) {
    let disk = stick();
    raw.machine.plug(raw.controller, port, disk.clone());
    raw.enable_port(port);
    let mut first = raw.linked(control(0));
    let device = raw.control(&mut first, [0x80, 6, 0, 1, 0, 0, 18, 0]);
    assert_eq!(device[..2], [18, 1]);
    raw.control(&mut first, [0, 5, 9, 0, 0, 0, 0, 0]);
    raw.unlink(first);
    raw.handshake();
    raw.machine.advance(3 * MILLISECOND);
    let mut default_pipe = raw.linked(control(9));
    raw.control(&mut default_pipe, [0, 9, 1, 0, 0, 0, 0, 0]);
    let (mut input, mut output) = (raw.linked(bulk(9, 1)), raw.linked(bulk(9, 2)));
    let wrapper = raw.machine.coherent(64);
    let mut bytes = b"USBC\x01\0\0\0\0\x02\0\0\x80\0\x0a\x28\0\0\0\0\0\0\0\x01".to_vec();
    bytes.resize(31, 0);
    raw.fill(wrapper, &bytes);
    let (data, status) = (raw.machine.coherent(4096), raw.machine.coherent(64));
    let sent = raw.submit(&mut output, OUT, wrapper, 31);
    let came = raw.submit(&mut input, IN, data, 512);
    let ended = raw.submit(&mut input, IN, status, 13);
    for descriptor in [sent, came, ended] {
        assert_eq!(raw.wait(descriptor) & (STOPPED | 0x7fff_0000), 0);
    }
    assert_eq!(raw.bytes(data, 10), b"block zero");
    assert_eq!(raw.bytes(status, 4), b"USBS");
    assert_eq!(disk.opcodes(), [0x28]);
}

#[test]
fn a_disk_is_read_on_the_default_controller() {
    reads_a_block(&Raw::running(Traits::default()), 0);
}

#[test]
fn a_disk_is_read_on_the_allwinner_shape() {
    reads_a_block(&Raw::running(Traits::allwinner()), 0);
}

#[test]
fn a_disk_is_read_on_a_controller_that_is_odd_in_every_way() {
    let raw = Raw::running(Traits::odd());
    raw.change_port(1, 0, 1 << 12);
    reads_a_block(&raw, 1);
}

#[test]
fn all_memory_above_4_gib_is_no_trouble_for_64_bit_addresses() {
    let machine = Machine::new(Options::above_4_gib());
    let controller = machine.add_ehci(Traits::addresses_64());
    let raw = Raw::probe(&machine, controller);
    raw.bring_up();
    reads_a_block(&raw, 0);
}

#[test]
fn a_disk_is_read_with_every_seed() {
    for seed in 0..20 {
        let machine = Machine::new(Options {
            seed,
            ..Options::default()
        });
        let controller = machine.add_ehci(Traits::default());
        let raw = Raw::probe(&machine, controller);
        raw.bring_up();
        reads_a_block(&raw, 0);
    }
}

#[test]
fn a_controller_that_a_boot_loader_left_running_is_taken_over() {
    let machine = Machine::default();
    let (controller, foreign) = machine.add_ehci_left_running(Traits::default(), Faults::none());
    let raw = Raw::probe(&machine, controller);
    machine.advance(20 * MILLISECOND);
    raw.bring_up();
    machine.store(foreign, &[0; 2048]);
    machine.release();
    reads_a_block(&raw, 0);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §3.6.3")]
fn the_boot_loaders_memory_is_not_touched_while_the_controller_runs() {
    let machine = Machine::default();
    let (_, foreign) = machine.add_ehci_left_running(Traits::default(), Faults::none());
    machine.advance(20 * MILLISECOND);
    machine.store(foreign + 4096 + 16, &[0]);
}
