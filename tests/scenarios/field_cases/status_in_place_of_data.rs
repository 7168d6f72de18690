//! An unknown command is answered by its status wrapper where the data should be: taken as the
//! status, with no data, and no reset.

use crate::rig::{HIGH_PORT, Rig, with_disk};
use rootport::block::BlockError;
use rootport::time::Duration;
use rootport_models::device::base::Request;
use rootport_models::device::bot::{Action, Hook, opcode};
use rootport_models::device::field::commands::sends_the_status_in_place_of_data_of;
use rootport_models::device::field::good_stick;
use rootport_models::device::scsi::Sense;

#[test]
fn mode_sense_refused_in_this_way_leaves_a_good_disk_at_once() {
    let device = sends_the_status_in_place_of_data_of(0x1a);
    let (mut rig, disk) = with_disk(&device);
    assert!(rig.now() < Duration::from_secs(1));
    assert!(rig.geometry(disk).writable);
    rig.check(disk, 3, 5);
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 0);
    assert_eq!(device.bus_resets().len(), 1);
}

#[test]
fn a_read_refused_in_this_way_fails_with_its_sense_and_the_next_one_works() {
    let device = good_stick();
    let (mut rig, disk) = with_disk(&device);
    device.change(|device| {
        let action = Action::StatusAsData(Sense::UNKNOWN_COMMAND);
        let when = opcode(0x28).once();
        device.function.hooks.push(Hook { when, action });
    });
    // 13 bytes at the start of a buffer that is bounced, and of one that is not.
    for offset in [0, 4, 60] {
        let refused = rig.within(Duration::from_secs(1), |rig| {
            rig.read_at(disk, 9, 4096, offset)
        });
        match refused {
            Err(BlockError::Device(sense)) => {
                assert_eq!((sense.key, sense.asc), (5, 0x20), "{sense}");
            }
            other => panic!("{other:?}"),
        }
        rig.check(disk, 9, 8);
        device.change(|device| {
            let action = Action::StatusAsData(Sense::UNKNOWN_COMMAND);
            let when = opcode(0x28).once();
            device.function.hooks.push(Hook { when, action });
        });
    }
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 0);
}

#[test]
fn a_data_phase_of_thirteen_bytes_is_told_from_a_status_by_signature_and_tag() {
    // Data of exactly 13 bytes that are no wrapper are data: an INQUIRY of 36 that gets 13.
    let device = good_stick();
    device.change(|device| {
        let bytes = b"\0\x80\x02\x02\x20\0\0\0USBSx".to_vec();
        assert_eq!(bytes.len(), 13);
        let when = opcode(0x12).once();
        device.function.hooks.push(Hook {
            when,
            action: Action::Data(bytes),
        });
    });
    let mut rig = Rig::default();
    let disk = rig.disk(HIGH_PORT, device.clone());
    rig.check(disk, 0, 1);
    assert_eq!(device.count(0x12), 1);
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 0);
}
