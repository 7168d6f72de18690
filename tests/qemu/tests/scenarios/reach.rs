//! Memory that a controller reaches, and memory that it does not: a machine with 6 GiB of RAM, and
//! buffers above 4 GiB.

use rootport_qemu_tests::{Bench, listen};
use xtask::disk::{DemoDisk, Table};
use xtask::qemu::{Access, UsbDisk};
use xtask::transcript::Transcript;

const LENGTH: usize = 4 << 20;
/// QEMU takes the last of several `-m`.
const LARGE_MEMORY: [&str; 2] = ["-m", "6G"];
const SCRATCH_BYTES: u64 = 1 << 20;

fn run(name: &str, controller: &str, words: &str, disk: &UsbDisk) -> Transcript {
    let bench = Bench::virt(controller).unwrap();
    let words = format!("{words} rootport.bytes={LENGTH} rootport.buffers=high");
    let setup = bench.setup(&words, &[disk]).unwrap().with(LARGE_MEMORY);
    listen(&mut setup.start(name).unwrap()).unwrap()
}

/// Reads and writes with buffers above 4 GiB, and returns how many bytes were copied for each.
fn copied(name: &str, controller: &str, words: &str) -> (u64, u64) {
    let disk = DemoDisk::make(name, Table::Mbr).unwrap();
    let usb_disk = UsbDisk::new("disk0", disk.path(), Access::ReadWrite);
    let bytes = |transcript: &Transcript| {
        let copies = transcript.only("copies").unwrap();
        copies.number::<u64>("bytes").unwrap()
    };

    let reading = format!("rootport.mode=raw {words}");
    let read = run(&format!("{name}-read"), controller, &reading, &usb_disk);
    let sum = read.only("sum").unwrap().checksum().unwrap();
    assert_eq!(sum, disk.checksum_of_start(LENGTH).unwrap());

    let first = disk.layout().partitions()[1].first;
    let writing = format!("rootport.mode=pattern rootport.first={first} {words}");
    let written = run(&format!("{name}-write"), controller, &writing, &usb_disk);
    disk.check_scratch().unwrap();
    (bytes(&read), bytes(&written))
}

#[test]
fn buffers_above_4_gib_are_reached_by_a_controller_of_64_bits_without_a_copy() {
    for controller in ["qemu-xhci", "nec-usb-xhci"] {
        let name = format!("reach-64-{controller}");
        assert_eq!(copied(&name, controller, ""), (0, 0));
    }
}

#[test]
fn buffers_above_4_gib_are_carried_through_the_pool_where_the_bus_has_32_bits() {
    let copied = copied("reach-32", "qemu-xhci", "rootport.reach=32");
    assert_eq!(copied, (LENGTH as u64, 2 * SCRATCH_BYTES));
}

#[test]
fn an_ehci_of_32_bits_has_them_carried_too() {
    let copied = copied("reach-ehci", "ehci", "");
    assert_eq!(copied, (LENGTH as u64, 2 * SCRATCH_BYTES));
}
