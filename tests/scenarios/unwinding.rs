//! A blocking call that is left by a panic of the platform's: its buffer is the caller's again, whoever goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rootport::block::queue::Operation;
use rootport::block::{BlockDevice, BlockError, Lba};
use rootport::stack::Parting;
use rootport::time::Duration;
use rootport_models::adapter::owned;
use rootport_models::device::bot::{Action, opcode};
use rootport_models::device::{Link, SECOND, UasScript, UsbDevice};
use rootport_models::machine::Options;

use crate::controller::{self, Faults, LINKS};
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

/// Its clock may be off: whoever touches a register then may never come back.
#[test]
fn a_controller_that_a_panic_has_cost_its_memory_is_not_touched_again() {
    for &link in LINKS {
        let mut rig = Rig::default();
        let disk = rig.disk(port_for(link), disk_at(link).build());
        rig.machine.panic_in_next_wait();
        let mut buffer = rig.machine.buffer(512, 0);
        let left = catch_unwind(AssertUnwindSafe(|| {
            rig.host.disk(disk).read(Lba(8), &mut buffer)
        }));
        assert!(left.is_err(), "the panic came through");
        let before = rig.machine.statistics(0);
        rig.run(CALL_LIMIT);
        let leaving = rig.host.shutdown(Parting::Flush, Duration::from_secs(2));
        let after = rig.machine.statistics(0);
        assert_eq!((after.reads, after.writes), (before.reads, before.writes));
        assert!(leaving.quiet, "it reaches no memory");
    }
}

/// The call itself has borrowed memory of the stack's own only; a request of the queue face has its own buffer with
/// the controller.
#[test]
fn where_dma_cannot_be_cut_off_no_buffer_comes_back_after_a_panic() {
    let options = Options {
        can_cut_dma: false,
        ..Options::default()
    };
    let link = LINKS[0];
    let mut rig = Rig::faulty(options, controller::usual(), Faults::none());
    let late = opcode(0x28).touching(100..101);
    let device = disk_at(link).on(late, Action::Delay(3600 * SECOND));
    let disk = rig.disk(port_for(link), device.build());
    let mut staging = rig.machine.buffer(4096, 0);
    rig.host.set_staging(owned(&mut staging));
    let mut queued = rig.machine.buffer(512, 0);
    let read = Operation::Read(Lba(100));
    let id = rig.host.submit(disk, read, Some(owned(&mut queued)));
    let id = id.map_err(|(error, _)| error).expect("there is room");
    rig.run(Duration::from_millis(1));
    rig.machine.panic_in_next_wait();
    let mut buffer = rig.machine.buffer(512, 0);
    let left = catch_unwind(AssertUnwindSafe(|| {
        rig.host.disk(disk).read(Lba(8), &mut buffer)
    }));
    assert!(left.is_err(), "the panic came through");
    let completion = rig.host.take_completion().expect("its disk is gone");
    assert_eq!(completion.id, id);
    assert_eq!(completion.result, Err(BlockError::Quarantined));
    assert!(
        completion.buffer.is_none(),
        "the controller may still reach it"
    );
    rig.run(CALL_LIMIT);
    assert!(rig.host.take_completion().is_none());
    let leaving = rig.host.shutdown(Parting::Flush, Duration::from_secs(2));
    assert!(leaving.quiet, "it could be stopped");
}
