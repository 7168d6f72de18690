//! What the stack leaves behind: memory that no controller writes to any more.

use std::time::Duration;

use rootport_qemu_tests::Bench;
use xtask::disk::{DemoDisk, Table};
use xtask::marker::Marker;
use xtask::qemu::{Access, UsbDisk};

const PATIENCE: Duration = Duration::from_secs(60);
/// Long enough for a disk to be pulled meanwhile.
const WATCH: &str = "rootport.mode=raw rootport.bytes=65536 rootport.watch=12000";
const ATTEMPTS: usize = 3;

/// Runs until the disk was read, pulls it while the next stage watches, and takes what it says. A
/// machine that ends before QEMU has pulled the disk has shown nothing: it is started again.
fn pull_while_the_next_stage_watches(name: &str, controller: &str, words: &str) -> Marker {
    let image = DemoDisk::make(name, Table::Mbr).unwrap();
    let disk = UsbDisk::new("disk0", image.path(), Access::ReadOnly);
    let words = format!("{WATCH} {words}");
    for attempt in 0..ATTEMPTS {
        let bench = Bench::virt(controller).unwrap();
        let name = format!("{name}-{attempt}");
        let setup = bench.setup(&words, &[&disk]).unwrap();
        let mut machine = setup.start(&name).unwrap();
        machine.wait_for_marker("watch", PATIENCE).unwrap();
        if machine.unplug(&disk, PATIENCE).is_ok() {
            return machine.wait_for_marker("payload", PATIENCE).unwrap();
        }
    }
    panic!("the disk was never pulled in time");
}

#[test]
fn a_disk_that_is_pulled_after_the_shutdown_writes_nothing_to_the_next_stage_s_memory() {
    for controller in ["qemu-xhci", "ehci"] {
        let name = format!("next-stage-{controller}");
        let found = pull_while_the_next_stage_watches(&name, controller, "");
        assert!(found.number::<u64>("bytes").unwrap() > 100_000);
        assert_eq!(found.number::<u64>("changed").unwrap(), 0);
    }
}

#[test]
fn the_next_stage_notices_a_controller_that_was_left_running() {
    let words = "rootport.leave=running";
    let found = pull_while_the_next_stage_watches("left-running", "qemu-xhci", words);
    assert_ne!(found.number::<u64>("changed").unwrap(), 0);
}

#[test]
fn a_panic_with_a_read_under_way_stops_the_controllers_without_a_lock() {
    for controller in ["qemu-xhci", "ehci"] {
        let name = format!("panic-{controller}");
        let image = DemoDisk::make(&name, Table::Mbr).unwrap();
        let disk = UsbDisk::new("disk0", image.path(), Access::ReadOnly);
        let bench = Bench::virt(controller).unwrap();
        let setup = bench.setup("rootport.mode=panic", &[&disk]).unwrap();
        let mut machine = setup.start(&name).unwrap();
        let quiet = machine.wait_for_marker("quiet", PATIENCE).unwrap();
        assert_eq!(quiet.number::<u32>("controllers").unwrap(), 1);
        assert_eq!(quiet.number::<u32>("stopped").unwrap(), 1);
        machine.wait_for_marker("fail", PATIENCE).unwrap();
        machine.wait_for_end(PATIENCE).unwrap();
        let console = machine.console.text();
        assert!(console.contains("with a read under way: true"), "{console}");
    }
}
