//! A reader with four slots and a card in one of them: each slot is asked on its own, the empty ones
//! are there without a medium, and the card is a disk.

use crate::rig::{HIGH_PORT, Rig};
use rootport::block::BlockError;
use rootport::stack::{DiskState, Parting};
use rootport::time::Duration;
use rootport_models::device::field::readiness::has_four_slots_and_a_card_in;

#[test]
fn the_card_is_found_in_any_slot_and_the_others_are_listed_as_empty() {
    for slot in 0..4 {
        let device = has_four_slots_and_a_card_in(slot);
        let mut rig = Rig::default();
        let (units, took) = rig.timed(|rig| {
            rig.settle(HIGH_PORT, device.clone());
            rig.run(Duration::from_secs(3));
            rig.units_at(HIGH_PORT)
        });
        assert!(took < Duration::from_secs(8), "{took:?}");
        assert_eq!(units.len(), 4);
        for (number, unit) in units.iter().enumerate() {
            assert_eq!(usize::from(unit.unit), number);
            if number == slot {
                assert!(
                    matches!(unit.state, DiskState::Ready(_)),
                    "{:?}",
                    unit.state
                );
                rig.check(unit.id, 3, 4);
            } else {
                assert_eq!(unit.state, DiskState::Empty);
                assert_eq!(rig.read(unit.id, 0, 512), Err(BlockError::NoMedium));
            }
        }
    }
}

#[test]
fn an_empty_reader_is_not_asked_for_ever() {
    let device = has_four_slots_and_a_card_in(9);
    let mut rig = Rig::default();
    let units = rig.settle(HIGH_PORT, device.clone());
    assert!(units.iter().all(|unit| unit.state == DiskState::Empty));
    rig.run(Duration::from_secs(5));
    let asked = device.commands().len();
    rig.run(Duration::from_secs(600));
    assert!(
        device.commands().len() <= asked + 4 * 4 * 60,
        "a cheap poll at most"
    );
}

#[test]
fn nothing_is_read_written_or_flushed_where_there_is_no_medium() {
    let device = has_four_slots_and_a_card_in(9);
    let mut rig = Rig::default();
    let units = rig.settle(HIGH_PORT, device.clone());
    for unit in units {
        assert_eq!(rig.read(unit.id, 0, 512), Err(BlockError::NoMedium));
        assert_eq!(rig.write(unit.id, 0, &[1; 512]), Err(BlockError::NoMedium));
        assert_eq!(rig.flush(unit.id), Err(BlockError::NoMedium));
    }
    rig.run(Duration::from_secs(60));
    let _leaving = rig
        .host
        .shutdown(Parting::FlushAndStop, Duration::from_secs(10));
    for opcode in [0x28, 0x2a, 0x35] {
        assert_eq!(device.count(opcode), 0, "{opcode:#x}");
    }
}
