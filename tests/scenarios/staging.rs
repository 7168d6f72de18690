//! A platform that cannot cut a controller's DMA: blocking calls go through memory of the stack's own.

use crate::controller::{self, Faults, NEVER_ENDS};
use crate::rig::{CALL_LIMIT, HIGH_PORT, Rig};
use rootport::block::{BlockDevice, BlockError, Lba};
use rootport_models::adapter::owned;
use rootport_models::device::Script;
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::field::good_stick;
use rootport_models::machine::{Buffer, Options};

fn rig(faults: Faults) -> Rig {
    let options = Options {
        can_cut_dma: false,
        ..Options::default()
    };
    Rig::faulty(options, controller::usual(), faults)
}

/// Gives the host staging memory of so many bytes. It must outlive the rig.
fn stage(rig: &mut Rig, bytes: usize) -> Buffer {
    let mut memory = rig.machine.buffer(bytes, 0);
    rig.host.set_staging(owned(&mut memory));
    memory
}

#[test]
fn without_staging_memory_a_blocking_call_says_what_is_missing() {
    let mut rig = rig(Faults::none());
    let disk = rig.disk(HIGH_PORT, good_stick());
    assert_eq!(rig.read(disk, 0, 512), Err(BlockError::NoStaging));
    assert_eq!(rig.write(disk, 0, &[0; 512]), Err(BlockError::NoStaging));
    let _memory = stage(&mut rig, 256);
    assert_eq!(
        rig.read(disk, 0, 512),
        Err(BlockError::NoStaging),
        "less than a block"
    );
}

#[test]
fn data_of_any_length_and_place_go_through_staging_memory_of_any_size() {
    for staging in [512, 1024, 4096, 65536] {
        let mut rig = rig(Faults::none());
        let stick = good_stick();
        let disk = rig.disk(HIGH_PORT, stick.clone());
        let _memory = stage(&mut rig, staging);
        for offset in [0, 1, 63, 100] {
            rig.check(disk, 7, 1 + offset as u64);
            let data: Vec<u8> = (0..5 * 512)
                .map(|index| (index / 5 + offset) as u8)
                .collect();
            rig.write_at(disk, 300, &data, offset).unwrap();
            assert!(rig.read_at(disk, 300, data.len(), offset).unwrap() == data);
        }
        rig.flush(disk).unwrap();
        // Not the caller's memory: any will do, also what no device could reach.
        let mut plain = vec![0; 1024];
        rig.host.disk(disk).read(Lba(300), &mut plain).unwrap();
        assert_eq!(plain, [stick.block(300), stick.block(301)].concat());
    }
}

#[test]
fn a_device_that_hangs_leaves_the_staging_memory_usable() {
    for until in [Until::ClassReset, Until::BusReset] {
        let mut rig = rig(Faults::none());
        let device = Script::new()
            .on(opcode(0x28).after(2).once(), Action::Hang(until))
            .build();
        let disk = rig.disk(HIGH_PORT, device);
        let _memory = stage(&mut rig, 4096);
        for lba in 0..6 {
            rig.within(CALL_LIMIT, |rig| rig.check(disk, lba, 3));
        }
    }
}

#[test]
fn any_transfer_that_never_ends_leaves_the_staging_memory_usable() {
    for count in 4..10 {
        let mut faults = Faults::none();
        faults.transfers.insert((0x81, count), NEVER_ENDS);
        let mut rig = rig(faults);
        let disk = rig.disk(HIGH_PORT, good_stick());
        let _memory = stage(&mut rig, 4096);
        for lba in 0..4 {
            rig.within(CALL_LIMIT, |rig| rig.check(disk, lba, 3));
        }
    }
}
