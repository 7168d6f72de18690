//! The demo and its reading part, on every controller and both kinds of partition table; and the smallest things
//! that a request can get wrong, at every place of a buffer.

use rootport_qemu_tests::{Bench, listen};
use xtask::demo::verdict::Verdict;
use xtask::disk::{DemoDisk, Table};
use xtask::qemu::{Access, UsbDisk};

use crate::odd_disks::sparse;

#[test]
fn the_whole_demo_is_true_on_qemu_xhci() {
    whole_demo("demo-qemu-xhci", "qemu-xhci", Table::Mbr);
}

#[test]
fn the_whole_demo_is_true_on_nec_usb_xhci() {
    whole_demo("demo-nec-usb-xhci", "nec-usb-xhci", Table::Mbr);
}

#[test]
fn the_whole_demo_is_true_on_usb_ehci() {
    whole_demo("demo-ehci", "ehci", Table::Mbr);
}

#[test]
fn the_whole_demo_is_true_on_a_disk_with_a_guid_partition_table() {
    whole_demo("demo-gpt", "qemu-xhci", Table::Gpt);
}

fn whole_demo(name: &str, controller: &str, table: Table) {
    let disk = DemoDisk::make(name, table).unwrap();
    let usb_disk = UsbDisk::new("disk0", disk.path(), Access::ReadWrite);
    let bench = Bench::virt(controller).unwrap();
    let transcript = bench.run(name, "rootport.mode=demo", &[&usb_disk]).unwrap();
    Verdict::of_demo(&transcript, &disk.layout()).unwrap();
    disk.check_file_system().unwrap();
    disk.check_copied_file().unwrap();
    disk.check_scratch().unwrap();
}

#[test]
fn the_reading_part_writes_nothing_even_where_it_could() {
    let disk = DemoDisk::make("demo-read", Table::Mbr).unwrap();
    let usb_disk = UsbDisk::new("disk0", disk.path(), Access::ReadWrite);
    let before = disk.checksum().unwrap();
    let bench = Bench::virt("qemu-xhci").unwrap();
    let transcript = bench
        .run("demo-read", "rootport.mode=read", &[&usb_disk])
        .unwrap();
    Verdict::of_reading(&transcript, &disk.layout()).unwrap();
    assert_eq!(disk.checksum().unwrap(), before);
}

#[test]
fn a_write_protected_disk_is_read_and_known_as_such() {
    let disk = DemoDisk::make("demo-protected", Table::Mbr).unwrap();
    let usb_disk = UsbDisk::new("disk0", disk.path(), Access::ReadOnly);
    let bench = Bench::virt("qemu-xhci").unwrap();
    let transcript = bench
        .run("demo-protected", "rootport.mode=read", &[&usb_disk])
        .unwrap();
    Verdict::of_reading(&transcript, &disk.layout()).unwrap();
    assert_eq!(
        transcript.only("disk").unwrap().value("writable").unwrap(),
        "no"
    );
}

#[test]
fn without_a_disk_the_demo_ends_in_words() {
    let bench = Bench::virt("qemu-xhci").unwrap();
    let error = bench
        .run("demo-no-disk", "rootport.mode=demo", &[])
        .unwrap_err();
    assert!(
        error.to_string().starts_with("the board failed: "),
        "{error}"
    );
}

/// Reads and writes with buffers at every offset, caches on and maintained: the image compares each piece and what
/// lies beside it, and the whole pattern is on the disk.
fn every_offset(board: &str, controller: &str) {
    const FIRST: u64 = 64;
    let image = sparse(16 << 20);
    let disk = UsbDisk::new("disk0", image.path(), Access::ReadWrite);
    let bench = Bench::of(board, controller).unwrap();
    let words = format!("rootport.mode=offsets rootport.first={FIRST}");
    let log = format!("offsets-{controller}");
    let mut machine = bench.setup(&words, &[&disk]).unwrap().start(&log).unwrap();
    let transcript = listen(&mut machine).unwrap();
    let told = transcript.only("offsets").unwrap();
    assert_eq!(told.value("offsets").unwrap(), "64");
    let bytes: usize = told.value("bytes").unwrap().parse().unwrap();
    assert_eq!(bytes, 64 * 15 * 512);
    let all = std::fs::read(image.path()).unwrap();
    let (before, rest) = all.split_at(FIRST as usize * 512);
    let (pattern, after) = rest.split_at(bytes);
    assert!(before.iter().chain(after).all(|byte| *byte == 0));
    for (word, place) in pattern.chunks_exact(8).zip(1_u64..) {
        let wanted = place.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
        assert_eq!(word, wanted, "word {place}");
    }
}

#[test]
fn buffers_at_every_offset_are_moved_to_the_byte_on_qemu_xhci() {
    every_offset("qemu-virt", "qemu-xhci");
}

#[test]
fn buffers_at_every_offset_are_moved_to_the_byte_on_usb_ehci() {
    every_offset("qemu-virt", "ehci");
}

#[test]
fn buffers_at_every_offset_are_moved_to_the_byte_on_the_pc() {
    every_offset("orangepi-pc", "ehci1");
}
