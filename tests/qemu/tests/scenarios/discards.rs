//! UNMAP and WRITE SAME on QEMU's SCSI disk, behind a UAS bridge and behind Bulk-Only ones.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rootport_qemu_tests::{Bench, listen};
use tempfile::NamedTempFile;
use xtask::qemu::{Access, Device, UsbDisk};

use crate::odd_disks::sparse;

const LENGTH: u64 = 8 << 20;
/// Where blocks are unmapped, and, behind those, filled: half of the bytes each. Whole clusters of any
/// file system.
const FIRST: u64 = 1 << 20;
const BYTES: u64 = 4 << 20;
const HALF: u64 = BYTES / 2;

/// An image without a hole.
fn full() -> NamedTempFile {
    let image = sparse(LENGTH);
    std::fs::write(image.path(), vec![0x11; LENGTH as usize]).unwrap();
    image.as_file().sync_all().unwrap();
    image
}

fn bytes_at(path: &Path, at: u64, length: u64) -> Vec<u8> {
    let mut file = File::open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    let mut bytes = vec![0; length as usize];
    file.read_exact(&mut bytes).unwrap();
    bytes
}

/// Bytes that the file takes on the host's disk.
fn taken(path: &Path) -> u64 {
    path.metadata().unwrap().blocks() * 512
}

/// What became of each way.
fn results(controller: &str, disk: &UsbDisk, log: &str) -> [String; 2] {
    let bench = Bench::virt(controller).unwrap();
    let first = FIRST / u64::from(disk.block_size);
    let words = format!("rootport.mode=discard rootport.first={first} rootport.bytes={BYTES}");
    let setup = bench.setup(&words, &[disk]).unwrap();
    let transcript = listen(&mut setup.start(log).unwrap()).unwrap();
    ["unmap", "write-same"].map(|way| {
        let told = transcript.with("discard", "way", way).next().unwrap();
        told.value("result").unwrap().to_owned()
    })
}

#[test]
fn blocks_are_unmapped_and_filled_on_a_uas_disk_and_nothing_beside_them_changes() {
    for (controller, log) in [("qemu-xhci", "discard-xhci"), ("ehci", "discard-ehci")] {
        for block_size in [512, 4096] {
            let image = full();
            let mut disk = UsbDisk::new("disk0", image.path(), Access::ReadWrite);
            disk.discards = true;
            disk.block_size = block_size;
            let disk = disk.speaking(Device::Uas);
            let before = taken(image.path());
            assert_eq!(results(controller, &disk, log), ["ok", "ok"]);
            let after = taken(image.path());
            assert!(after <= before - HALF * 9 / 10, "{before}, then {after}");
            let filled = bytes_at(image.path(), FIRST + HALF, HALF);
            assert!(filled.iter().all(|byte| *byte == 0xa5));
            for (at, length) in [(0, FIRST), (FIRST + BYTES, LENGTH - FIRST - BYTES)] {
                let bytes = bytes_at(image.path(), at, length);
                assert!(bytes.iter().all(|byte| *byte == 0x11), "from {at} on");
            }
        }
    }
}

/// QEMU's Bulk-Only disk announces UNMAP as any other of its SCSI disks; WRITE SAME is for those that are
/// trusted with it (`Policy::trust`).
#[test]
fn blocks_are_unmapped_on_a_bulk_only_disk_that_announces_it_and_write_same_is_not_tried() {
    let image = full();
    let mut disk = UsbDisk::new("disk0", image.path(), Access::ReadWrite);
    disk.discards = true;
    let before = taken(image.path());
    let results = results("qemu-xhci", &disk, "discard-bot");
    assert_eq!(results, ["ok", "unsupported"]);
    assert!(taken(image.path()) <= before - HALF * 9 / 10);
    let unfilled = bytes_at(image.path(), FIRST + HALF, HALF);
    assert!(unfilled.iter().all(|byte| *byte == 0x11));
}
