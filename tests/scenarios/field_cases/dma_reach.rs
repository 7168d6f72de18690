//! What a controller cannot reach: an error of one request, never lost data, and the disk goes on.

use crate::controller;
use crate::rig::{HIGH_PORT, Rig};
use rootport::block::{BlockDevice, BlockError, Lba};
use rootport::dma::MapError;
use rootport_models::device::field::good_stick;
use rootport_models::machine::Options;

#[test]
fn memory_above_4_gib_is_refused_by_a_controller_of_32_bits_and_nothing_else_is() {
    let mut rig = Rig::new(Options::default(), controller::addresses_32());
    let stick = good_stick();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    let sent = stick.commands().len();
    let mut high = rig.machine.buffer_at(0x1_2345_6000, 4096, 0);
    let refused = Err(BlockError::Memory(MapError::Unreachable));
    assert_eq!(rig.host.disk(disk).read(Lba(0), &mut high), refused);
    assert_eq!(rig.host.disk(disk).write(Lba(0), &high), refused);
    assert_eq!(stick.commands().len(), sent);
    rig.check(disk, 0, 8);
}

#[test]
fn memory_above_4_gib_is_reached_by_a_controller_of_64_bits() {
    let mut rig = Rig::new(Options::above_4_gib(), controller::addresses_64());
    let disk = rig.disk(HIGH_PORT, good_stick());
    for offset in [0, 1, 63, 100] {
        let data = rig.read_at(disk, 5, 16 * 1024, offset).unwrap();
        assert!(data == rig.read(disk, 5, 16 * 1024).unwrap());
    }
}
