//! Sticks and card readers that die in a read of several blocks which touches the last one: Linux reads that alone
//! on every Bulk-Only disk (`last_sector_bug`), unless the quirk `o` says that all is well.

use crate::controller::LINKS;
use crate::rig::{HIGH_PORT, Rig, port_for, with_disk};
use rootport_models::device::base::Request;
use rootport_models::device::field::capacity::dies_in_a_long_read_of_its_last_block;
use rootport_models::device::scsi::{Extent, LogicalUnit};
use rootport_models::device::{Disk, Script, UasScript};

const BLOCKS: u64 = 4096;
const READ: u8 = 0x28;
const WRITE: u8 = 0x2a;

/// First block and length of every command with this operation code behind bring-up's.
fn extents(device: &Disk, operation: u8) -> Vec<(u64, u32)> {
    let commands = device.commands();
    let moving = commands.iter().filter(|it| it.opcode() == operation);
    let extents = moving.filter_map(|it| it.extent());
    extents
        .map(|Extent { lba, blocks }| (lba, blocks))
        .filter(|extent| *extent != (0, 1))
        .collect()
}

#[test]
fn the_last_block_of_a_stick_that_dies_of_it_is_read_alone() {
    let device = dies_in_a_long_read_of_its_last_block(BLOCKS);
    let (mut rig, disk) = with_disk(&device);
    rig.check(disk, BLOCKS - 8, 8);
    rig.check(disk, BLOCKS - 1, 1);
    rig.check(disk, BLOCKS - 480, 480);
    rig.check(disk, BLOCKS - 9, 8);
    let expected = [
        (BLOCKS - 8, 7),
        (BLOCKS - 1, 1),
        (BLOCKS - 1, 1),
        (BLOCKS - 480, 240),
        (BLOCKS - 240, 239),
        (BLOCKS - 1, 1),
        (BLOCKS - 9, 8),
    ];
    assert_eq!(extents(&device, READ), expected);
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 0);
}

#[test]
fn a_write_is_not_cut_for_that_nor_a_read_where_a_quirk_says_that_all_is_well() {
    let unit = || LogicalUnit::disk(BLOCKS, 512);
    let device = Script::new().unit(unit()).build();
    let mut rig = Rig::default();
    rig.host.set_quirks("1209:0001:o");
    let disk = rig.disk(HIGH_PORT, device.clone());
    rig.check(disk, BLOCKS - 8, 8);
    assert_eq!(extents(&device, READ), [(BLOCKS - 8, 8)]);

    let device = Script::new().unit(unit()).build();
    let (mut rig, disk) = with_disk(&device);
    rig.write(disk, BLOCKS - 8, &[7; 8 * 512]).unwrap();
    assert_eq!(extents(&device, WRITE), [(BLOCKS - 8, 8)]);
}

#[test]
fn a_disk_that_speaks_uas_reads_its_last_block_with_the_others() {
    for &link in LINKS {
        let mut rig = Rig::default();
        let device = UasScript::new().speed(link).build();
        let disk = rig.disk(port_for(link), device.clone());
        let blocks = rig.geometry(disk).blocks;
        let before = device.exchanges().len();
        rig.check(disk, blocks - 8, 8);
        assert_eq!(device.exchanges().len(), before + 1);
    }
}
