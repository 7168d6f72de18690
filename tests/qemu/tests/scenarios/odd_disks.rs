//! Disks beyond 2 TiB, disks with blocks that cannot be read, several units in one device, and a
//! controller without streams.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use rootport_qemu_tests::{Bench, listen};
use tempfile::NamedTempFile;
use xtask::disk::{DemoDisk, Table};
use xtask::qemu::{Access, Device, UsbDisk};

const BLOCK: u64 = 512;
/// 3 TiB: the last block's number has more than 32 bits.
const LARGE: u64 = 3 << 40;
/// The first block whose number has.
const BEYOND: u64 = 1 << 32;
/// The scratch pattern's second word (`docs/demo-protocol.md`).
const SECOND_WORD: u64 = 0x3c6e_f372_fe94_f82a;

/// A sparse file of so many bytes.
pub(crate) fn sparse(length: u64) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    file.as_file().set_len(length).unwrap();
    file
}

pub(crate) fn content(blocks: u64) -> Vec<u8> {
    (0..blocks * BLOCK)
        .map(|index| (index / BLOCK * 13 + index % 241) as u8)
        .collect()
}

pub(crate) fn put(file: &NamedTempFile, block: u64, bytes: &[u8]) {
    let mut file = file.as_file();
    file.seek(SeekFrom::Start(block * BLOCK)).unwrap();
    file.write_all(bytes).unwrap();
}

fn second_word_at(path: &Path, block: u64) -> u64 {
    let mut file = File::open(path).unwrap();
    file.seek(SeekFrom::Start(block * BLOCK + 8)).unwrap();
    let mut word = [0; 8];
    file.read_exact(&mut word).unwrap();
    u64::from_le_bytes(word)
}

#[test]
fn a_disk_of_3_tib_is_read_around_2_tib_and_at_its_end() {
    let image = sparse(LARGE);
    let last = LARGE / BLOCK - 64;
    let content = content(64);
    let disk = UsbDisk::new("disk0", image.path(), Access::ReadOnly);
    // From below the limit to above it, and to the very last block.
    for first in [BEYOND - 32, last] {
        put(&image, first, &content);
        let bench = Bench::virt("qemu-xhci").unwrap();
        let bytes = content.len();
        let words = format!("rootport.mode=raw rootport.first={first} rootport.bytes={bytes}");
        let log = format!("large-read-{first}");
        let transcript = bench.run(&log, &words, &[&disk]).unwrap();
        let found = transcript.only("disk").unwrap();
        assert_eq!(found.number::<u64>("blocks").unwrap(), LARGE / BLOCK);
        let sum = transcript.only("sum").unwrap();
        assert_eq!(sum.number::<usize>("bytes").unwrap(), bytes);
        assert_eq!(sum.checksum().unwrap(), crc32fast::hash(&content));
    }
}

#[test]
fn a_disk_of_3_tib_is_written_beyond_2_tib_and_nowhere_else() {
    for controller in ["qemu-xhci", "ehci"] {
        let image = sparse(LARGE);
        let disk = UsbDisk::new("disk0", image.path(), Access::ReadWrite);
        let bench = Bench::virt(controller).unwrap();
        let first = BEYOND + 5;
        let words = format!("rootport.mode=pattern rootport.first={first} rootport.bytes=65536");
        let log = format!("large-write-{controller}");
        let transcript = bench.run(&log, &words, &[&disk]).unwrap();
        let scratch = transcript.only("scratch").unwrap();
        assert_eq!(scratch.number::<usize>("bytes").unwrap(), 65536);
        assert_eq!(second_word_at(image.path(), first), SECOND_WORD);
        // A number cut to 32 bits would have ended here.
        assert_eq!(second_word_at(image.path(), 5), 0);
    }
}

#[test]
fn a_block_that_cannot_be_read_is_named_and_its_neighbours_are_read() {
    for controller in ["qemu-xhci", "ehci"] {
        let image = sparse(1 << 20);
        let content = content(256);
        put(&image, 0, &content);
        let mut disk = UsbDisk::new("disk0", image.path(), Access::ReadOnly);
        disk.bad_sectors = vec![100, 103];
        let bench = Bench::virt(controller).unwrap();
        let words = "rootport.mode=scan rootport.bytes=131072";
        let log = format!("bad-blocks-{controller}");
        let transcript = bench.run(&log, words, &[&disk]).unwrap();
        let bad: Vec<_> = transcript.all("bad").collect();
        let blocks: Vec<u64> = bad.iter().map(|bad| bad.number("block").unwrap()).collect();
        assert_eq!(blocks, disk.bad_sectors);
        for bad in &bad {
            let reason = bad.reason();
            assert!(reason.contains("medium is bad"), "{reason}");
            assert!(reason.contains("3/11/00"), "{reason}");
        }
        let good: Vec<u8> = content
            .chunks(BLOCK as usize)
            .enumerate()
            .filter(|(index, _)| !disk.bad_sectors.contains(&(*index as u64)))
            .flat_map(|(_, block)| block.to_vec())
            .collect();
        let sum = transcript.only("sum").unwrap();
        assert_eq!(sum.number::<usize>("bytes").unwrap(), good.len());
        assert_eq!(sum.checksum().unwrap(), crc32fast::hash(&good));
    }
}

#[test]
fn a_write_that_fails_for_good_is_told_with_the_disk_s_own_reason() {
    for device in [Device::Bot, Device::Uas] {
        let image = sparse(1 << 20);
        let mut disk = UsbDisk::new("disk0", image.path(), Access::ReadWrite).speaking(device);
        disk.unwritable_sectors = vec![200];
        let bench = Bench::virt("qemu-xhci").unwrap();
        let words = "rootport.mode=pattern rootport.bytes=131072";
        let log = format!("unwritable-{device:?}");
        let error = bench.run(&log, words, &[&disk]).unwrap_err().to_string();
        assert!(error.starts_with("the board failed: "), "{error}");
        assert!(error.contains("b/00/06"), "{error}");
    }
}

#[test]
fn a_controller_that_interrupts_by_its_pin_is_served() {
    let disk = DemoDisk::make("wired", Table::Mbr).unwrap();
    let usb_disk = UsbDisk::new("disk0", disk.path(), Access::ReadOnly);
    let bench = Bench::virt("nec-usb-xhci").unwrap();
    let words = "rootport.mode=raw rootport.bytes=4194304 rootport.wait=asleep";
    let setup = bench.setup(words, &[&usb_disk]).unwrap();
    let off = ["nec-usb-xhci.msi=off", "nec-usb-xhci.msix=off"];
    let setup = setup.with(off.iter().flat_map(|off| ["-global", off]));
    let transcript = listen(&mut setup.start("wired").unwrap()).unwrap();
    let sum = transcript.only("sum").unwrap().checksum().unwrap();
    assert_eq!(sum, disk.checksum_of_start(4 << 20).unwrap());
}

#[test]
fn units_behind_an_empty_one_are_found_and_told_apart() {
    let images = [sparse(1 << 20), sparse(2 << 20)];
    let contents = [content(64), content(64).into_iter().rev().collect()];
    let mut words = vec![
        "-device".to_owned(),
        "usb-bot,id=reader,bus=usb.0".to_owned(),
        "-device".to_owned(),
        "scsi-cd,bus=reader.0,scsi-id=0,lun=0".to_owned(),
    ];
    for (index, (image, content)) in images.iter().zip(&contents).enumerate() {
        put(image, 0, content);
        let lun = index + 1;
        let file = image.path().display();
        words.extend([
            "-blockdev".to_owned(),
            format!("driver=raw,node-name=card{lun},file.driver=file,file.filename={file}"),
            "-device".to_owned(),
            format!("scsi-hd,bus=reader.0,scsi-id=0,lun={lun},drive=card{lun}"),
        ]);
    }
    let bench = Bench::virt("qemu-xhci").unwrap();
    let setup = bench.setup(
        "rootport.mode=raw rootport.bytes=32768 rootport.disks=2",
        &[],
    );
    let mut machine = setup.unwrap().with(words).start("several-units").unwrap();
    let transcript = listen(&mut machine).unwrap();
    let sizes: Vec<u64> = transcript
        .all("disk")
        .map(|disk| disk.number("blocks").unwrap())
        .collect();
    assert_eq!(sizes, [2048, 4096]);
    assert_eq!(
        transcript.all("empty").count(),
        1,
        "the drive without a medium"
    );
    let sums: Vec<u32> = transcript
        .all("sum")
        .map(|sum| sum.checksum().unwrap())
        .collect();
    assert_eq!(
        sums,
        contents.each_ref().map(|content| crc32fast::hash(content))
    );
}

#[test]
fn a_controller_without_streams_reads_a_bulk_only_disk() {
    let disk = DemoDisk::make("streams-off", Table::Mbr).unwrap();
    let usb_disk = UsbDisk::new("disk0", disk.path(), Access::ReadOnly);
    let bench = Bench::virt("qemu-xhci").unwrap();
    let words = "rootport.mode=raw rootport.bytes=1048576";
    let setup = bench.setup(words, &[&usb_disk]).unwrap();
    let setup = setup.with(["-global", "qemu-xhci.streams=off"]);
    let transcript = listen(&mut setup.start("streams-off").unwrap()).unwrap();
    let sum = transcript.only("sum").unwrap().checksum().unwrap();
    assert_eq!(sum, disk.checksum_of_start(1 << 20).unwrap());
}
