//! Disks that are not the usual one: large blocks, and two at once, also on controllers of two kinds.

use rootport_qemu_tests::{Bench, listen};
use xtask::board::ControllerChoice;
use xtask::demo::verdict;
use xtask::disk::{DemoDisk, Table};
use xtask::qemu::{Access, UsbDisk};

const RAW: &str = "rootport.mode=raw rootport.bytes=4194304";
const RAW_LENGTH: usize = 4 << 20;

fn disk_with_large_blocks(disk: &DemoDisk) -> UsbDisk {
    let mut usb_disk = UsbDisk::new("disk0", disk.path(), Access::ReadWrite);
    usb_disk.block_size = 4096;
    usb_disk
}

#[test]
fn a_disk_with_blocks_of_4096_bytes_is_read_right() {
    for controller in ["qemu-xhci", "nec-usb-xhci"] {
        let name = format!("large-blocks-{controller}");
        let disk = DemoDisk::make_with_large_blocks(&name).unwrap();
        let usb_disk = disk_with_large_blocks(&disk);
        let transcript = Bench::virt(controller)
            .unwrap()
            .run(&name, RAW, &[&usb_disk])
            .unwrap();
        let found = transcript.only("disk").unwrap();
        assert_eq!(found.number::<u32>("block").unwrap(), 4096);
        assert_eq!(
            found.number::<u64>("blocks").unwrap(),
            disk.layout().blocks()
        );
        let sum = transcript.only("sum").unwrap();
        assert_eq!(sum.number::<usize>("bytes").unwrap(), RAW_LENGTH);
        assert_eq!(
            sum.checksum().unwrap(),
            disk.checksum_of_start(RAW_LENGTH).unwrap()
        );
    }
}

#[test]
fn a_disk_with_blocks_of_4096_bytes_is_measured_and_written_right() {
    let disk = DemoDisk::make_with_large_blocks("large-blocks-demo").unwrap();
    let usb_disk = disk_with_large_blocks(&disk);
    let bench = Bench::virt("qemu-xhci").unwrap();
    let transcript = bench
        .run("large-blocks-demo", "rootport.mode=demo", &[&usb_disk])
        .unwrap();
    verdict::expect_partitions(&transcript, &disk.layout()).unwrap();
    verdict::expect_throughput(&transcript).unwrap();
    verdict::expect_scratch(&transcript).unwrap();
    disk.check_scratch().unwrap();
    disk.check_file_system().unwrap();
}

#[test]
fn two_disks_at_once_are_told_apart() {
    for controller in ["qemu-xhci", "nec-usb-xhci"] {
        let name = |which: &str| format!("two-disks-{controller}-{which}");
        let images = [
            DemoDisk::make(&name("a"), Table::Mbr).unwrap(),
            DemoDisk::make(&name("b"), Table::Gpt).unwrap(),
        ];
        let disks = [
            UsbDisk::new("disk0", images[0].path(), Access::ReadOnly),
            UsbDisk::new("disk1", images[1].path(), Access::ReadOnly),
        ];
        let bench = Bench::virt(controller).unwrap();
        let words = format!("{RAW} rootport.disks=2");
        let transcript = bench
            .run(&name("run"), &words, &[&disks[0], &disks[1]])
            .unwrap();
        let mut sums: Vec<_> = transcript
            .all("sum")
            .map(|marker| marker.checksum().unwrap())
            .collect();
        let mut expected: Vec<_> = images
            .iter()
            .map(|image| image.checksum_of_start(RAW_LENGTH).unwrap())
            .collect();
        sums.sort_unstable();
        expected.sort_unstable();
        assert_eq!(sums, expected);
        assert_ne!(expected[0], expected[1]);
    }
}

#[test]
fn a_disk_on_an_xhci_and_one_on_an_ehci_are_read_right_in_one_host() {
    let images = [
        DemoDisk::make("mixed-a", Table::Mbr).unwrap(),
        DemoDisk::make("mixed-b", Table::Gpt).unwrap(),
    ];
    let first = UsbDisk::new("disk0", images[0].path(), Access::ReadOnly);
    let second = UsbDisk::new("disk1", images[1].path(), Access::ReadOnly);
    let ehci = ControllerChoice {
        name: "ehci".into(),
        device: None,
        bus: "second.0".into(),
    };
    let bench = Bench::virt("qemu-xhci").unwrap();
    let words = format!("{RAW} rootport.disks=2");
    let setup = bench.setup(&words, &[&first]).unwrap();
    let setup = setup.with(["-device", "usb-ehci,id=second"]);
    let setup = setup.with_bus_of(&ehci).with_disk(&second);
    let transcript = listen(&mut setup.start("mixed").unwrap()).unwrap();
    for (image, port, speed) in [(&images[0], "0:1", "super"), (&images[1], "1:1", "high")] {
        let place = transcript.with("tree", "port", port).next().unwrap();
        assert_eq!(place.value("speed").unwrap(), speed);
        let disk = transcript.with("disk", "port", port).next().unwrap();
        let number = disk.value("number").unwrap();
        let sum = transcript.with("sum", "disk", number).next().unwrap();
        let expected = image.checksum_of_start(RAW_LENGTH).unwrap();
        assert_eq!(sum.checksum().unwrap(), expected, "port {port}");
    }
}
