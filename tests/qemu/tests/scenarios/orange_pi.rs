//! The Orange Pi boards, started from their cards by their own U-Boot: SPL, `usb start`, the script,
//! then us. After `go` its EHCI is live and its schedules lie in RAM when we begin; `bootm` stops it.

use std::time::Duration;

use rootport_qemu_tests::{Bench, listen};
use xtask::demo::verdict::Verdict;
use xtask::disk::card::{Card, Handoff};
use xtask::disk::{DemoDisk, Table};
use xtask::qemu::{Access, Machine, UsbDisk};
use xtask::{board, image};

/// The socket of every one of the boards, and the first port that U-Boot scans.
const SOCKET: &str = "ehci1";

/// Starts a board's card.
fn start(
    board: &str,
    log: &str,
    command_line: &str,
    handoff: Handoff,
    disks: &[&UsbDisk],
) -> Machine {
    let bench = Bench::of(board, SOCKET).unwrap();
    let card = Card::with_words(bench.image(), command_line, handoff).unwrap();
    let setup = bench.machine(disks).unwrap().with_card(card);
    setup.start(log).unwrap()
}

fn says_hello(board: &str, log: &str, handoff: Handoff, level: &str, caches: &str) {
    let mut machine = start(board, log, "rootport.mode=hello", handoff, &[]);
    let transcript = listen(&mut machine).unwrap();
    let boot = transcript.only("boot").unwrap();
    assert_eq!(boot.value("board").unwrap(), board);
    assert_eq!(boot.value("level").unwrap(), level);
    assert_eq!(boot.value("caches").unwrap(), caches);
}

#[test]
fn bootm_hands_over_in_hyp_mode_with_caches_off() {
    says_hello("orangepi-pc", "pi-bootm", Handoff::Bootm, "hyp", "off");
}

#[test]
fn go_hands_over_in_supervisor_mode_with_caches_on() {
    says_hello("orangepi-pc", "pi-go", Handoff::Go, "svc", "on");
}

fn whole_demo(board: &str, log: &str, handoff: Handoff) {
    let disk = DemoDisk::make(log, Table::Mbr).unwrap();
    let usb_disk = UsbDisk::new("disk0", disk.path(), Access::ReadWrite);
    let words = "rootport.mode=demo";
    let mut machine = start(board, log, words, handoff, &[&usb_disk]);
    let transcript = listen(&mut machine).unwrap();
    let console = machine.console.text();
    assert!(
        console.contains("1 Storage Device(s) found"),
        "U-Boot has used the disk before us:\n{console}"
    );
    let is_live = console.contains("EHCI 1: left running by the boot loader");
    assert_eq!(is_live, handoff == Handoff::Go, "{console}");
    Verdict::of_demo(&transcript, &disk.layout()).unwrap();
    disk.check_file_system().unwrap();
    disk.check_copied_file().unwrap();
    disk.check_scratch().unwrap();
}

#[test]
fn the_whole_demo_is_true_on_the_zero_after_go() {
    whole_demo("orangepi-zero", "pi-demo-go", Handoff::Go);
}

#[test]
fn the_whole_demo_is_true_on_the_plus_2e_after_bootm() {
    whole_demo("orangepi-plus2e", "pi-demo-bootm", Handoff::Bootm);
}

/// QEMU as the boot loader: no `usb start`, no words, so the default: the demo.
#[test]
fn the_whole_demo_is_true_where_nobody_started_usb_before() {
    let bench = Bench::of("orangepi-plus2e", SOCKET).unwrap();
    let program = image::program(&board::named("orangepi-plus2e").unwrap());
    let disk = DemoDisk::make("pi-demo-elf", Table::Mbr).unwrap();
    let usb_disk = UsbDisk::new("disk0", disk.path(), Access::ReadWrite);
    let setup = bench.machine(&[&usb_disk]).unwrap();
    let setup = setup.with(["-kernel", &program.to_string_lossy()]);
    let transcript = listen(&mut setup.start("pi-demo-elf").unwrap()).unwrap();
    let boot = transcript.only("boot").unwrap();
    assert_eq!(boot.value("level").unwrap(), "svc");
    assert_eq!(boot.value("caches").unwrap(), "off");
    Verdict::of_demo(&transcript, &disk.layout()).unwrap();
    disk.check_file_system().unwrap();
    disk.check_scratch().unwrap();
}

#[test]
fn disks_on_all_four_controllers_are_read_right() {
    const LENGTH: usize = 1 << 20;
    let board = board::named("orangepi-pc").unwrap();
    let controllers = &board.emulation().unwrap().controllers;
    let bench = Bench::of("orangepi-pc", SOCKET).unwrap();
    let words = format!("rootport.mode=raw rootport.disks=4 rootport.bytes={LENGTH}");
    let mut setup = bench.setup(&words, &[]).unwrap();
    let disk = DemoDisk::make("pi-four", Table::Mbr).unwrap();
    for (controller, port) in controllers.iter().zip(1..) {
        let id = format!("on-{}", controller.name);
        let mut usb_disk = UsbDisk::new(&id, disk.path(), Access::ReadOnly);
        usb_disk.port = Some(port);
        setup = setup.with_bus_of(controller).with_disk(&usb_disk);
    }
    let transcript = listen(&mut setup.start("pi-four").unwrap()).unwrap();
    let mut places: Vec<_> = transcript
        .all("disk")
        .map(|found| found.value("port").unwrap().to_owned())
        .collect();
    places.sort();
    assert_eq!(places, ["0:4", "1:1", "2:2", "3:3"]);
    let expected = disk.checksum_of_start(LENGTH).unwrap();
    let sums: Vec<_> = transcript
        .all("sum")
        .map(|sum| sum.checksum().unwrap())
        .collect();
    assert_eq!(sums, [expected; 4]);
}

#[test]
fn a_fault_is_reported_in_words() {
    let words = "rootport.mode=fault";
    let mut machine = start("orangepi-pc", "pi-fault", words, Handoff::Bootm, &[]);
    let fail = machine.wait_for_marker("fail", Duration::from_secs(60));
    assert_eq!(fail.unwrap().reason(), "exception");
    let console = machine.console.text();
    for word in [
        "data abort on a read",
        "nothing is mapped there",
        "FAR 0x00001000",
    ] {
        assert!(console.contains(word), "no {word} in:\n{console}");
    }
}
