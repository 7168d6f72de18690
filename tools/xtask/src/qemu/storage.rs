//! Disks on the emulated USB bus.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// QEMU's name for an image file that is the disk itself.
const RAW: &str = "raw";

/// The host's error that QEMU's SCSI disk turns into MEDIUM ERROR, 3/11/00: ENODATA on Linux.
const NO_DATA: u32 = 61;
/// The one that it turns into ABORTED COMMAND, B/00/06: EIO.
const INPUT_OUTPUT: u32 = 5;

/// What the board may do to the image file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// QEMU opens the file for reading only: nothing that the board does can change it.
    ReadOnly,
    /// The board's writes go to the file.
    ReadWrite,
}

/// What a USB disk speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// Bulk-Only: QEMU's `usb-storage`.
    Bot,
    /// USB Attached SCSI: QEMU's `usb-uas`, which speaks nothing else.
    Uas,
}

/// A USB disk of QEMU's over an image file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsbDisk {
    /// Names the block node and, with a prefix, the device.
    pub id: String,
    /// The image file.
    pub image: PathBuf,
    /// What may be done to it.
    pub access: Access,
    /// Bytes in a block: 512 or 4096.
    pub block_size: u32,
    /// What it speaks.
    pub speaks: Device,
    /// The port of the bus; the first free one where there is none. QEMU 7.2 wants different ports
    /// for disks on different controllers that are not on PCI.
    pub port: Option<u8>,
    /// Sectors of 512 bytes that cannot be read: the disk says that its medium is bad there.
    pub bad_sectors: Vec<u64>,
    /// Sectors that cannot be written: the disk aborts the command.
    pub unwritable_sectors: Vec<u64>,
    /// How fast the image is, in bytes a second; as fast as it is where this says nothing.
    pub bytes_per_second: Option<u64>,
    /// What is unmapped leaves holes in the image, and so do zeros that are written.
    pub discards: bool,
}

impl UsbDisk {
    /// A disk with 512-byte blocks.
    pub fn new(id: &str, image: &Path, access: Access) -> Self {
        Self {
            id: id.to_owned(),
            image: image.to_owned(),
            access,
            block_size: 512,
            speaks: Device::Bot,
            port: None,
            bad_sectors: Vec::new(),
            unwritable_sectors: Vec::new(),
            bytes_per_second: None,
            discards: false,
        }
    }

    /// The same disk behind another bridge.
    #[must_use]
    pub fn speaking(self, speaks: Device) -> Self {
        Self { speaks, ..self }
    }

    /// The device's identifier in QEMU.
    pub fn device_id(&self) -> String {
        format!("device-{}", self.id)
    }

    /// The disk's length in bytes, where the image file is the disk itself, in whole blocks.
    pub fn length(&self) -> Option<u64> {
        let length = self.image.metadata().ok()?.len();
        let is_plain = image_format(&self.image).is_ok_and(|format| format == RAW);
        (is_plain && length > 0 && length.is_multiple_of(self.block_size.into())).then_some(length)
    }

    /// QEMU's words for the image and the device on `bus`.
    pub(super) fn arguments(&self, bus: &str) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(bytes) = self.bytes_per_second {
            let group = json!({
                "qom-type": "throttle-group", "id": self.throttle(), "limits": { "bps-total": bytes },
            });
            words.extend(["-object".to_owned(), group.to_string()]);
        }
        words.extend(["-blockdev".to_owned(), self.block_node().to_string()]);
        words.extend(["-device".to_owned(), self.device(bus).to_string()]);
        if self.is_bridge() {
            words.extend(["-device".to_owned(), self.scsi_disk().to_string()]);
        }
        words
    }

    /// Whether the bridge and its SCSI disk are devices apart: `usb-storage` has no block size of its
    /// own, and `usb-uas` no disk.
    pub(super) fn is_bridge(&self) -> bool {
        self.block_size != 512 || self.speaks == Device::Uas
    }

    /// The device, as `device_add` takes it; of a bridge, without its disk.
    pub(super) fn device(&self, bus: &str) -> Value {
        let driver = match self.speaks {
            _ if !self.is_bridge() => "usb-storage",
            Device::Bot => "usb-bot",
            Device::Uas => "usb-uas",
        };
        let mut device = json!({ "driver": driver, "id": self.device_id(), "bus": bus });
        self.place(&mut device);
        if !self.is_bridge() {
            device["drive"] = self.id.clone().into();
        }
        device
    }

    /// The disk behind a bridge.
    fn scsi_disk(&self) -> Value {
        json!({
            "driver": "scsi-hd",
            "bus": format!("{}.0", self.device_id()),
            "drive": self.id,
            "logical_block_size": self.block_size,
            "physical_block_size": self.block_size,
        })
    }

    /// The identifier of what slows the image down.
    pub(super) fn throttle(&self) -> String {
        format!("throttle-{}", self.id)
    }

    fn place(&self, device: &mut Value) {
        if let Some(port) = self.port {
            device["port"] = port.to_string().into();
        }
    }

    fn block_node(&self) -> Value {
        let read_only = self.access == Access::ReadOnly;
        let mut file = json!({ "driver": "file", "filename": self.image, "read-only": read_only });
        if self.discards {
            file["discard"] = "unmap".into();
        }
        let mut node = json!({
            "driver": image_format(&self.image).unwrap_or(RAW),
            "read-only": read_only,
            "file": self.with_faults(file),
        });
        if self.bytes_per_second.is_some() {
            node = json!({
                "driver": "throttle", "throttle-group": self.throttle(), "read-only": read_only,
                "file": node,
            });
        }
        node["node-name"] = self.id.clone().into();
        if self.discards {
            node["discard"] = "unmap".into();
            node["detect-zeroes"] = "unmap".into();
        }
        node
    }

    /// The file behind QEMU's fault injection, where there are faults.
    fn with_faults(&self, file: Value) -> Value {
        let faults = |kind: &str, error: u32, sectors: &[u64]| -> Vec<Value> {
            let fault = |sector| json!({ "event": "none", "iotype": kind, "errno": error, "sector": sector });
            sectors.iter().map(fault).collect()
        };
        let reads = faults("read", NO_DATA, &self.bad_sectors);
        let writes = faults("write", INPUT_OUTPUT, &self.unwritable_sectors);
        let all = [reads, writes].concat();
        if all.is_empty() {
            return file;
        }
        json!({ "driver": "blkdebug", "image": file, "inject-error": all })
    }
}

/// QEMU's name for the image file's format, told by its first bytes; a file that is none of the
/// known containers is the disk itself.
fn image_format(path: &Path) -> Result<&'static str> {
    let mut start = [0; 68];
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let length = file.take(start.len() as u64).read(&mut start)?;
    Ok(format_by_magic(start.get(..length).unwrap_or_default()))
}

fn format_by_magic(start: &[u8]) -> &'static str {
    /// Offset, magic number, QEMU's driver.
    const CONTAINERS: [(usize, &[u8], &str); 4] = [
        (0, b"QFI\xfb", "qcow2"),
        (0, b"KDMV", "vmdk"),
        (0, b"vhdxfile", "vhdx"),
        (64, &[0x7f, 0x10, 0xda, 0xbe], "vdi"),
    ];
    let found = CONTAINERS.iter().find(|(offset, magic, _)| {
        start
            .get(*offset..)
            .is_some_and(|rest| rest.starts_with(magic))
    });
    found.map_or(RAW, |&(_, _, driver)| driver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_opened_read_only_at_both_levels_when_it_must_not_change() {
        let disk = UsbDisk::new("disk0", Path::new("/no/such, file"), Access::ReadOnly);
        let node = disk.block_node();
        assert_eq!(node["read-only"], true);
        assert_eq!(node["file"]["read-only"], true);
        assert_eq!(node["file"]["filename"], "/no/such, file");
    }

    #[test]
    fn a_disk_with_large_blocks_is_a_bridge_with_a_scsi_disk() {
        let mut disk = UsbDisk::new("disk0", Path::new("x"), Access::ReadWrite);
        disk.block_size = 4096;
        let words = disk.arguments("usb.0").join(" ");
        assert!(words.contains("usb-bot") && words.contains("\"logical_block_size\":4096"));
        assert!(!words.contains("usb-storage"));
    }

    #[test]
    fn bad_sectors_are_put_between_the_image_and_its_file() {
        let mut disk = UsbDisk::new("disk0", Path::new("x"), Access::ReadWrite);
        assert_eq!(disk.block_node()["file"]["driver"], "file");
        disk.bad_sectors = vec![9];
        disk.unwritable_sectors = vec![11];
        let node = disk.block_node();
        assert_eq!(node["file"]["driver"], "blkdebug");
        assert_eq!(node["file"]["inject-error"][0]["sector"], 9);
        assert_eq!(node["file"]["inject-error"][1]["iotype"], "write");
        assert_eq!(node["file"]["image"]["filename"], "x");
    }

    #[test]
    fn a_slow_image_is_behind_a_throttle_of_its_own() {
        let mut disk = UsbDisk::new("disk0", Path::new("x"), Access::ReadOnly);
        disk.bytes_per_second = Some(40_000);
        let words = disk.arguments("usb.0").join(" ");
        assert!(words.starts_with("-object"), "{words}");
        assert!(words.contains("\"bps-total\":40000") && words.contains("throttle-disk0"));
        let node = disk.block_node();
        assert_eq!(node["node-name"], "disk0");
        assert_eq!(node["file"]["driver"], "raw");
    }

    #[test]
    fn a_uas_disk_is_a_uas_bridge_with_a_scsi_disk() {
        let disk = UsbDisk::new("disk0", Path::new("x"), Access::ReadWrite).speaking(Device::Uas);
        let words = disk.arguments("usb.0").join(" ");
        assert!(words.contains("usb-uas") && words.contains("\"logical_block_size\":512"));
        assert!(!words.contains("usb-storage") && !words.contains("usb-bot"));
    }

    #[test]
    fn only_a_plain_image_tells_the_length_of_its_disk() {
        let image = tempfile::NamedTempFile::new().unwrap();
        let disk = UsbDisk::new("disk0", image.path(), Access::ReadOnly);
        image.as_file().set_len(1024).unwrap();
        assert_eq!(disk.length(), Some(1024));
        image.as_file().set_len(1025).unwrap();
        assert_eq!(disk.length(), None);
        std::fs::write(image.path(), [&b"QFI\xfb"[..], &[0; 508]].concat()).unwrap();
        assert_eq!(disk.length(), None);
    }

    #[test]
    fn containers_are_told_from_plain_disks_by_their_magic() {
        assert_eq!(format_by_magic(b"QFI\xfb\0\0\0\x03"), "qcow2");
        let mut vdi = [0; 68];
        vdi[64..].copy_from_slice(&[0x7f, 0x10, 0xda, 0xbe]);
        assert_eq!(format_by_magic(&vdi), "vdi");
        assert_eq!(format_by_magic(b""), "raw");
        assert_eq!(format_by_magic(&[0; 68]), "raw");
    }
}
