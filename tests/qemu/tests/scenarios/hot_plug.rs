//! Disks that are pulled and plugged while they are read.

use std::time::Duration;

use rootport_qemu_tests::{Bench, listen};
use xtask::disk::{DemoDisk, Table};
use xtask::marker::Marker;
use xtask::qemu::{Access, Machine, UsbDisk};

const PASS_LENGTH: usize = 1 << 20;
/// Policy: one pass takes well under a second, a busy CI machine many times that.
const PASS_DEADLINE: Duration = Duration::from_secs(30);
/// The stack's own deadline for a command is 10 s and its recovery 20 s (`Policy`); then it gives up.
const GONE_DEADLINE: Duration = Duration::from_secs(60);

/// A disk image with what a full pass over it sums up to.
struct Plugged {
    usb_disk: UsbDisk,
    checksum: u32,
}

impl Plugged {
    fn make(name: &str, id: &str, table: Table) -> Self {
        let image = DemoDisk::make(name, table).unwrap();
        let checksum = image.checksum_of_start(PASS_LENGTH).unwrap();
        Self {
            usb_disk: UsbDisk::new(id, image.path(), Access::ReadOnly),
            checksum,
        }
    }

    /// Waits for the next full pass over this disk, and gives back the board's number for it.
    fn wait_for_pass(&self, machine: &mut Machine) -> u32 {
        for _ in 0..100 {
            let pass = machine.wait_for_marker("io", PASS_DEADLINE).unwrap();
            assert_eq!(pass.number::<usize>("bytes").unwrap(), PASS_LENGTH);
            if pass.checksum().unwrap() == self.checksum {
                return number(&pass, "disk");
            }
        }
        panic!("a hundred passes, and none over {}", self.usb_disk.id);
    }
}

fn number(marker: &Marker, key: &str) -> u32 {
    marker.number(key).unwrap()
}

fn command_line(disks: u32) -> String {
    format!(
        "rootport.mode=io rootport.seconds=8 rootport.bytes={PASS_LENGTH} rootport.disks={disks}"
    )
}

#[test]
fn a_disk_pulled_while_it_is_read_is_gone_and_comes_back_as_a_new_one() {
    for controller in ["qemu-xhci", "nec-usb-xhci"] {
        let bench = Bench::virt(controller).unwrap();
        pull_and_plug(&bench, &format!("replug-{controller}"), &command_line(1));
    }
}

#[test]
fn a_disk_on_a_boards_ehci_is_pulled_and_plugged_while_it_is_read() {
    let bench = Bench::of("orangepi-zero", "ehci1").unwrap();
    // The clock of this board runs fast in QEMU (`docs/boards.md`).
    let words = format!("{} rootport.seconds=30", command_line(1));
    pull_and_plug(&bench, "replug-ehci", &words);
}

fn pull_and_plug(bench: &Bench, name: &str, command_line: &str) {
    let disk = Plugged::make(name, "disk0", Table::Mbr);
    let setup = bench.setup(command_line, &[&disk.usb_disk]).unwrap();
    let mut machine = setup.start(name).unwrap();
    // A board's own boot loader takes its time.
    machine.wait_for_marker("boot", GONE_DEADLINE).unwrap();
    let old = disk.wait_for_pass(&mut machine);

    machine.unplug(&disk.usb_disk, PASS_DEADLINE).unwrap();
    let gone = machine.wait_for_marker("gone", GONE_DEADLINE).unwrap();
    assert_eq!(number(&gone, "disk"), old);

    machine.plug(&disk.usb_disk).unwrap();
    let back = machine.wait_for_marker("disk", GONE_DEADLINE).unwrap();
    assert_ne!(number(&back, "number"), old);
    assert_eq!(disk.wait_for_pass(&mut machine), number(&back, "number"));
    listen(&mut machine).unwrap();
}

#[test]
fn a_disk_goes_on_while_its_neighbour_is_pulled_and_plugged() {
    let pulled = Plugged::make("neighbour-pulled", "disk0", Table::Mbr);
    let staying = Plugged::make("neighbour-staying", "disk1", Table::Gpt);
    let disks = [&pulled.usb_disk, &staying.usb_disk];
    let setup = Bench::virt("qemu-xhci")
        .unwrap()
        .setup(&command_line(2), &disks);
    let mut machine = setup.unwrap().start("neighbour").unwrap();
    let old = pulled.wait_for_pass(&mut machine);
    let neighbour = staying.wait_for_pass(&mut machine);

    machine.unplug(&pulled.usb_disk, PASS_DEADLINE).unwrap();
    let gone = machine.wait_for_marker("gone", GONE_DEADLINE).unwrap();
    assert_eq!(number(&gone, "disk"), old);
    assert_eq!(staying.wait_for_pass(&mut machine), neighbour);

    machine.plug(&pulled.usb_disk).unwrap();
    machine.wait_for_marker("disk", GONE_DEADLINE).unwrap();
    assert_ne!(pulled.wait_for_pass(&mut machine), old);
    assert_eq!(staying.wait_for_pass(&mut machine), neighbour);
    let transcript = listen(&mut machine).unwrap();
    assert_eq!(transcript.all("gone").count(), 0, "another disk left");
}
