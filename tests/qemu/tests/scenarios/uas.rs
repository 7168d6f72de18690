//! UAS disks: with streams at SuperSpeed, without them at high speed, on both kinds of controllers.

use std::time::Duration;

use rootport_qemu_tests::{Bench, listen};
use tempfile::NamedTempFile;
use xtask::demo::verdict::Verdict;
use xtask::disk::{DemoDisk, Table};
use xtask::qemu::{Access, Device, Setup, UsbDisk};

use crate::odd_disks::{content, put, sparse};

const RAW_LENGTH: usize = 4 << 20;
/// Policy: what takes the board a second takes a busy CI machine many times that.
const PATIENCE: Duration = Duration::from_secs(60);
/// A command's deadline of 10 s and what the ladder may take behind it (`Policy`).
const RECOVERY: Duration = Duration::from_secs(60);

/// Where UAS runs: a controller, what is said of it to QEMU, and the speed that comes of it.
type Place = (&'static str, &'static [&'static str], &'static str);

const PLACES: [Place; 3] = [
    ("qemu-xhci", &[], "super"),
    // Without a USB 3 port the same controller has the disk at high speed, without streams.
    ("qemu-xhci", &["-global", "qemu-xhci.p3=0"], "high"),
    ("ehci", &[], "high"),
];

/// Controllers with SuperSpeed and without streams.
const WITHOUT_STREAMS: [Place; 2] = [
    ("qemu-xhci", &["-global", "qemu-xhci.streams=off"], "super"),
    ("nec-usb-xhci", &[], "super"),
];

fn uas_disk(id: &str, image: &std::path::Path, access: Access) -> UsbDisk {
    UsbDisk::new(id, image, access).speaking(Device::Uas)
}

/// A machine with these disks in one of the places.
fn setup(place: Place, words: &str, disks: &[&UsbDisk]) -> Setup {
    let (controller, options, _) = place;
    let bench = Bench::virt(controller).unwrap();
    bench.setup(words, disks).unwrap().with(options)
}

fn log_name(name: &str, (controller, _, speed): Place) -> String {
    format!("uas-{name}-{controller}-{speed}")
}

#[test]
fn the_whole_demo_is_true_over_uas_with_streams_and_without() {
    for place in PLACES {
        let name = log_name("demo", place);
        let disk = DemoDisk::make(&name, Table::Mbr).unwrap();
        let usb_disk = uas_disk("disk0", disk.path(), Access::ReadWrite);
        let setup = setup(place, "rootport.mode=demo", &[&usb_disk]);
        let transcript = listen(&mut setup.start(&name).unwrap()).unwrap();
        let tree = transcript.with("tree", "driver", "uas").next().unwrap();
        assert_eq!(tree.value("speed").unwrap(), place.2, "{name}");
        Verdict::of_demo(&transcript, &disk.layout()).unwrap();
        disk.check_file_system().unwrap();
        disk.check_copied_file().unwrap();
        disk.check_scratch().unwrap();
    }
}

#[test]
fn a_super_speed_disk_that_speaks_only_uas_is_left_alone_where_the_controller_has_no_streams() {
    for place in WITHOUT_STREAMS {
        let name = log_name("streams-off", place);
        let disk = DemoDisk::make(&name, Table::Mbr).unwrap();
        // The first one in is the first one that is described.
        let uas = uas_disk("disk0", disk.path(), Access::ReadOnly);
        let bulk_only = UsbDisk::new("disk1", disk.path(), Access::ReadOnly);
        let words = format!("rootport.mode=raw rootport.bytes={RAW_LENGTH}");
        let setup = setup(place, &words, &[&uas, &bulk_only]);
        let transcript = listen(&mut setup.start(&name).unwrap()).unwrap();
        let unused = transcript.with("tree", "driver", "none").next().unwrap();
        assert_eq!(unused.reason(), "uas only, controller without streams");
        let found = transcript.only("disk").unwrap();
        assert_eq!(found.value("driver").unwrap(), "bot");
        let sum = transcript.only("sum").unwrap().checksum().unwrap();
        assert_eq!(sum, disk.checksum_of_start(RAW_LENGTH).unwrap());
    }
}

#[test]
fn a_disk_that_the_command_line_names_is_not_used_over_uas_and_its_neighbour_is() {
    let disk = DemoDisk::make("uas-quirk", Table::Mbr).unwrap();
    // QEMU gives both bridges an id of their own.
    let uas = uas_disk("disk0", disk.path(), Access::ReadOnly);
    let bulk_only = UsbDisk::new("disk1", disk.path(), Access::ReadOnly);
    for (quirks, expected) in [("46f4:0003:u", "none"), ("46f4:0001:u", "uas")] {
        let words = format!("rootport.mode=raw usb-storage.quirks={quirks}");
        let setup = setup(PLACES[0], &words, &[&uas, &bulk_only]);
        let transcript = listen(&mut setup.start("uas-quirk").unwrap()).unwrap();
        let tree = transcript.with("tree", "id", "46f4:0003").next().unwrap();
        assert_eq!(tree.value("driver").unwrap(), expected, "{quirks}");
        if expected == "none" {
            assert_eq!(tree.reason(), "uas only, quirk u");
        }
    }
}

/// Words for a bridge with these disks by unit number, of which the last has blocks of 4 KiB.
fn units(images: &[(u8, NamedTempFile)]) -> Vec<String> {
    let mut words = vec!["-device".to_owned(), "usb-uas,id=box,bus=usb.0".to_owned()];
    for (index, (lun, image)) in images.iter().enumerate() {
        let block = if index + 1 == images.len() { 4096 } else { 512 };
        let file = image.path().display();
        words.extend([
            "-blockdev".to_owned(),
            format!("driver=raw,node-name=unit{lun},file.driver=file,file.filename={file}"),
            "-device".to_owned(),
            format!(
                "scsi-hd,bus=box.0,scsi-id=0,lun={lun},drive=unit{lun},\
                 logical_block_size={block},physical_block_size={block}"
            ),
        ]);
    }
    words
}

#[test]
fn all_units_of_a_bridge_are_found_and_told_apart_whatever_their_blocks() {
    const LENGTH: usize = 32_768;
    for place in PLACES {
        let images = [0_u8, 1, 5].map(|lun| (lun, sparse((1 + u64::from(lun)) << 20)));
        for (lun, image) in &images {
            let shifted: Vec<u8> = content(64).iter().map(|byte| byte ^ lun).collect();
            put(image, 0, &shifted);
        }
        let words = format!("rootport.mode=raw rootport.bytes={LENGTH} rootport.disks=3");
        let setup = setup(place, &words, &[]).with(units(&images));
        let name = log_name("units", place);
        let transcript = listen(&mut setup.start(&name).unwrap()).unwrap();
        let sizes: Vec<(u64, u64)> = transcript
            .all("disk")
            .map(|disk| {
                (
                    disk.number("block").unwrap(),
                    disk.number("blocks").unwrap(),
                )
            })
            .collect();
        assert_eq!(sizes, [(512, 2048), (512, 4096), (4096, 1536)], "{name}");
        let sums: Vec<u32> = transcript
            .all("sum")
            .map(|sum| sum.checksum().unwrap())
            .collect();
        let wanted = [0, 1, 5].map(|lun: u8| {
            let shifted: Vec<u8> = content(64).iter().map(|byte| byte ^ lun).collect();
            crc32fast::hash(&shifted)
        });
        assert_eq!(sums, wanted, "{name}");
    }
}

#[test]
fn a_disk_with_blocks_of_4096_bytes_is_read_right_over_uas() {
    for place in PLACES {
        let name = log_name("large-blocks", place);
        let disk = DemoDisk::make_with_large_blocks(&name).unwrap();
        let mut usb_disk = uas_disk("disk0", disk.path(), Access::ReadOnly);
        usb_disk.block_size = 4096;
        let words = format!("rootport.mode=raw rootport.bytes={RAW_LENGTH}");
        let setup = setup(place, &words, &[&usb_disk]);
        let transcript = listen(&mut setup.start(&name).unwrap()).unwrap();
        let found = transcript.only("disk").unwrap();
        assert_eq!(found.number::<u32>("block").unwrap(), 4096);
        let sum = transcript.only("sum").unwrap().checksum().unwrap();
        assert_eq!(sum, disk.checksum_of_start(RAW_LENGTH).unwrap());
    }
}

#[test]
fn a_block_that_cannot_be_read_over_uas_is_named_and_its_neighbours_are_read() {
    for place in PLACES {
        let image = sparse(1 << 20);
        let content = content(256);
        put(&image, 0, &content);
        let mut disk = uas_disk("disk0", image.path(), Access::ReadOnly);
        disk.bad_sectors = vec![100, 103];
        let words = "rootport.mode=scan rootport.bytes=131072";
        let name = log_name("bad-blocks", place);
        let transcript = listen(&mut setup(place, words, &[&disk]).start(&name).unwrap()).unwrap();
        let bad: Vec<_> = transcript.all("bad").collect();
        let blocks: Vec<u64> = bad.iter().map(|bad| bad.number("block").unwrap()).collect();
        assert_eq!(blocks, disk.bad_sectors);
        for bad in &bad {
            assert!(bad.reason().contains("3/11/00"), "{}", bad.reason());
        }
        let sum = transcript.only("sum").unwrap();
        assert_eq!(
            sum.number::<usize>("bytes").unwrap(),
            content.len() - 2 * 512
        );
    }
}

#[test]
fn a_disk_that_is_slower_than_a_command_may_be_is_aborted_and_read_in_the_end() {
    for place in PLACES {
        let name = log_name("slow", place);
        let image = sparse(8 << 20);
        put(&image, 0, &content(2048));
        let mut slow = uas_disk("disk0", image.path(), Access::ReadOnly);
        // A MiB takes 13 s, be it in one command or in several at once; but QEMU, which stands still
        // until a block that it has begun to read is there, answers an abort within its 2 s.
        slow.bytes_per_second = Some(80_000);
        let words = "rootport.mode=raw rootport.bytes=1048576";
        let setup = setup(place, words, &[&slow]);
        let mut machine = setup.start(&name).unwrap();
        machine.wait_for_words("then Retry", RECOVERY).unwrap();
        machine.hurry(&slow).unwrap();
        let transcript = listen(&mut machine).unwrap();
        let sum = transcript.only("sum").unwrap().checksum().unwrap();
        assert_eq!(sum, crc32fast::hash(&content(2048)), "{name}");
    }
}

#[test]
fn a_uas_disk_pulled_while_it_is_read_is_gone_and_comes_back_as_a_new_one() {
    for place in PLACES {
        let name = log_name("replug", place);
        let image = DemoDisk::make(&name, Table::Mbr).unwrap();
        let disk = uas_disk("disk0", image.path(), Access::ReadOnly);
        let words = "rootport.mode=io rootport.seconds=8 rootport.bytes=4194304";
        let mut machine = setup(place, words, &[&disk]).start(&name).unwrap();
        let old = machine.wait_for_marker("io", PATIENCE).unwrap();
        machine.unplug(&disk, PATIENCE).unwrap();
        let gone = machine.wait_for_marker("gone", RECOVERY).unwrap();
        assert_eq!(gone.value("disk").unwrap(), old.value("disk").unwrap());
        machine.plug(&disk).unwrap();
        let back = machine.wait_for_marker("disk", PATIENCE).unwrap();
        assert_ne!(back.value("number").unwrap(), old.value("disk").unwrap());
        let pass = machine.wait_for_marker("io", PATIENCE).unwrap();
        let wanted = image.checksum_of_start(4 << 20).unwrap();
        assert_eq!(pass.checksum().unwrap(), wanted, "{name}");
        listen(&mut machine).unwrap();
    }
}

/// `cargo xtask demo --device both`.
#[test]
fn the_whole_demo_is_true_on_a_bulk_only_disk_and_a_uas_disk_at_once() {
    let images = ["a", "b"].map(|which| DemoDisk::make(&format!("demo-both-{which}"), Table::Mbr));
    let images = images.map(Result::unwrap);
    let bulk_only = UsbDisk::new("disk0", images[0].path(), Access::ReadWrite);
    let uas = uas_disk("disk1", images[1].path(), Access::ReadWrite);
    let bench = Bench::virt("qemu-xhci").unwrap();
    let words = "rootport.mode=demo rootport.disks=2";
    let transcript = bench.run("demo-both", words, &[&bulk_only, &uas]).unwrap();
    for (driver, image) in ["bot", "uas"].into_iter().zip(&images) {
        let disk = transcript.with("disk", "driver", driver).next().unwrap();
        let number = disk.number("number").unwrap();
        Verdict::of_demo(&transcript.of_disk(number), &image.layout()).unwrap();
        image.check_file_system().unwrap();
        image.check_copied_file().unwrap();
        image.check_scratch().unwrap();
    }
}

#[test]
fn a_bulk_only_disk_and_a_uas_disk_are_read_in_turns() {
    for controller in ["qemu-xhci", "ehci"] {
        let name = format!("uas-both-{controller}");
        let images = ["a", "b"].map(|which| DemoDisk::make(&format!("{name}-{which}"), Table::Mbr));
        let images = images.map(Result::unwrap);
        let bulk_only = UsbDisk::new("disk0", images[0].path(), Access::ReadOnly);
        let uas = uas_disk("disk1", images[1].path(), Access::ReadOnly);
        let bench = Bench::virt(controller).unwrap();
        let words = "rootport.mode=io rootport.seconds=3 rootport.disks=2 rootport.bytes=1048576";
        let transcript = bench.run(&name, words, &[&bulk_only, &uas]).unwrap();
        assert_eq!(transcript.all("gone").count(), 0);
        for (driver, image) in ["bot", "uas"].into_iter().zip(&images) {
            let disk = transcript.with("disk", "driver", driver).next().unwrap();
            let number = disk.value("number").unwrap();
            let passes: Vec<u32> = transcript
                .with("io", "disk", number)
                .map(|pass| pass.checksum().unwrap())
                .collect();
            assert!(passes.len() > 1, "{driver}");
            let wanted = image.checksum_of_start(1 << 20).unwrap();
            assert!(passes.iter().all(|sum| *sum == wanted), "{driver}");
        }
    }
}
