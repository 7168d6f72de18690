//! A medium that is changed while requests wait.

use crate::rig::{HIGH_PORT, Rig};
use rootport::block::queue::Operation;
use rootport::block::{BlockError, Lba};
use rootport::dma::DmaBuffer;
use rootport::time::Duration;
use rootport_models::device::Script;
use rootport_models::device::scsi::{Image, LogicalUnit};

/// What was meant for one medium must never be written to another.
#[test]
fn writes_that_wait_for_the_old_medium_end_and_the_new_one_stays_as_it_was() {
    let mut rig = Rig::default();
    let stick = Script::new().unit(LogicalUnit::stick(4096)).build();
    let disk = rig.disk(HIGH_PORT, stick.clone());
    stick.unit(0, |unit| unit.insert(Image::new(512), 2048));
    for lba in [10, 20, 30] {
        let buffer = DmaBuffer::from_static(vec![0xee; 512].leak());
        let operation = Operation::Write(Lba(lba));
        rig.host.submit(disk, operation, Some(buffer)).unwrap();
    }
    rig.run(Duration::from_secs(5));
    for _ in 0..3 {
        let completion = rig.host.take_completion().unwrap();
        assert_eq!(completion.result, Err(BlockError::MediumChanged));
        assert!(completion.buffer.is_some());
    }
    for lba in [10, 20, 30] {
        assert_eq!(stick.block(lba), [0; 512]);
    }
    assert_eq!(rig.host.geometry(disk).unwrap().blocks, 2048);
}
