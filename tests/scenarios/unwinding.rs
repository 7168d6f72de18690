//! A blocking call that is left by a panic of the platform's: its buffer is the caller's again, whoever goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rootport::block::{BlockDevice, BlockError, Lba};
use rootport::stack::Parting;
use rootport::time::Duration;
use rootport_models::device::{Link, UasScript, UsbDevice};

use crate::controller::LINKS;
use crate::rig::{CALL_LIMIT, Rig, disk_at, port_for};

const BLOCKS: usize = 64;

/// Neither device nor host touch the memory that was borrowed: no late packet, no bounced end, no second pass of
/// cache maintenance, and no second try of the command.
fn is_let_go_of<D: UsbDevice + 'static>(link: Link, make: impl Fn() -> D) {
    for offset in [0, 3] {
        let mut rig = Rig::default();
        let disk = rig.disk(port_for(link), make());
        let mut buffer = rig.machine.buffer(BLOCKS * 512, offset);
        rig.machine.panic_in_next_wait();
        let left = catch_unwind(AssertUnwindSafe(|| {
            rig.host.disk(disk).read(Lba(8), &mut buffer)
        }));
        assert!(left.is_err(), "the panic came through");
        // The caller has used its memory for something else.
        buffer.fill(0xa5);
        let moved = rig.machine.statistics(0).moved;
        rig.machine.advance(1_000_000_000);
        assert_eq!(rig.machine.statistics(0).moved, moved, "its DMA is cut off");
        rig.run(CALL_LIMIT);
        assert!(buffer.iter().all(|byte| *byte == 0xa5), "byte {offset}");
        assert_eq!(rig.host.geometry(disk), Err(BlockError::Disconnected));
        rig.host.shutdown(Parting::Flush, Duration::from_secs(2));
        assert!(buffer.iter().all(|byte| *byte == 0xa5), "byte {offset}");
    }
}

#[test]
fn a_read_that_a_panic_leaves_reaches_its_buffer_no_more_over_bulk_only() {
    for &link in LINKS {
        is_let_go_of(link, || disk_at(link).build());
    }
}

#[test]
fn a_read_that_a_panic_leaves_reaches_its_buffer_no_more_over_uas() {
    for &link in LINKS {
        is_let_go_of(link, || UasScript::new().speed(link).build());
    }
}
