//! Starting and stopping, before any USB: both exception levels, both ways in, and a fault.

use std::time::Duration;

use rootport_qemu_tests::{Bench, boot_by_u_boot, listen};
use xtask::demo::verdict::Verdict;
use xtask::disk::{DemoDisk, Table};
use xtask::qemu::{Access, UsbDisk};

const WITH_EL2: [&str; 2] = ["-machine", "virtualization=on"];

#[test]
fn the_image_starts_at_el1_and_powers_off() {
    let bench = Bench::virt("qemu-xhci").unwrap();
    let transcript = bench.run("start-el1", "rootport.mode=hello", &[]).unwrap();
    let boot = transcript.only("boot").unwrap();
    assert_eq!(boot.number::<u32>("protocol").unwrap(), 1);
    assert_eq!(boot.value("board").unwrap(), "qemu-virt");
    assert_eq!(boot.value("level").unwrap(), "1");
}

#[test]
fn the_image_starts_at_el2_and_powers_off() {
    let bench = Bench::virt("qemu-xhci").unwrap();
    let setup = bench
        .setup("rootport.mode=hello", &[])
        .unwrap()
        .with(WITH_EL2);
    let transcript = listen(&mut setup.start("start-el2").unwrap()).unwrap();
    assert_eq!(
        transcript.only("boot").unwrap().value("level").unwrap(),
        "2"
    );
}

#[test]
fn u_boot_hands_over_at_el1() {
    u_boot_hands_over("u-boot-el1", &[], "1");
}

#[test]
fn u_boot_hands_over_at_el2() {
    u_boot_hands_over("u-boot-el2", &WITH_EL2, "2");
}

fn u_boot_hands_over(log: &str, machine_words: &[&str], level: &str) {
    let bench = Bench::virt("qemu-xhci").unwrap();
    let machine = bench.machine(&[]).unwrap().with(machine_words);
    let mut machine = boot_by_u_boot(&bench, machine, log, &[], "rootport.mode=hello").unwrap();
    let transcript = listen(&mut machine).unwrap();
    assert_eq!(
        transcript.only("boot").unwrap().value("level").unwrap(),
        level
    );
}

#[test]
fn a_fault_is_reported_in_words_and_ends_the_machine() {
    let bench = Bench::virt("qemu-xhci").unwrap();
    let setup = bench.setup("rootport.mode=fault", &[]).unwrap();
    let mut machine = setup.start("start-fault").unwrap();
    let fail = machine
        .wait_for_marker("fail", Duration::from_secs(30))
        .unwrap();
    assert_ne!(fail.reason(), "no reason given");
    machine.wait_for_end(Duration::from_secs(10)).unwrap();
    let console = machine.console.text();
    for word in ["Data Abort", "ELR", "FAR"] {
        assert!(
            console.to_lowercase().contains(&word.to_lowercase()),
            "no {word} in:\n{console}"
        );
    }
}

#[test]
fn an_unknown_word_on_the_command_line_is_refused() {
    let bench = Bench::virt("qemu-xhci").unwrap();
    let error = bench
        .run("start-unknown", "rootport.mode=dance", &[])
        .unwrap_err();
    assert!(
        error.to_string().starts_with("the board failed: "),
        "{error}"
    );
}

#[test]
fn a_disk_is_read_after_u_boots_hand_off_at_both_levels() {
    for (name, words) in [
        ("u-boot-disk-el1", &[][..]),
        ("u-boot-disk-el2", &WITH_EL2[..]),
    ] {
        let disk = DemoDisk::make(name, Table::Mbr).unwrap();
        let usb_disk = UsbDisk::new("disk0", disk.path(), Access::ReadOnly);
        let bench = Bench::virt("qemu-xhci").unwrap();
        let machine = bench.machine(&[&usb_disk]).unwrap().with(words);
        // Its own look at the bus: windows and command registers are not as after a reset.
        let commands = ["pci enum"];
        let mut machine =
            boot_by_u_boot(&bench, machine, name, &commands, "rootport.mode=read").unwrap();
        let transcript = listen(&mut machine).unwrap();
        Verdict::of_reading(&transcript, &disk.layout()).unwrap();
    }
}
