//! The demo and its reading part, on both xHCI controllers and both kinds of partition table.

use rootport_qemu_tests::Bench;
use xtask::demo::verdict::Verdict;
use xtask::disk::{DemoDisk, Table};
use xtask::qemu::{Access, UsbDisk};

#[test]
fn the_whole_demo_is_true_on_qemu_xhci() {
    whole_demo("demo-qemu-xhci", "qemu-xhci", Table::Mbr);
}

#[test]
fn the_whole_demo_is_true_on_nec_usb_xhci() {
    whole_demo("demo-nec-usb-xhci", "nec-usb-xhci", Table::Mbr);
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
