//! Oddities of the two wrappers.

use rootport::policy::{Policy, Queueing};
use rootport::storage::quirks::Quirks;
use rootport_models::device::base::Request;
use rootport_models::device::bot::{Action, Manners, any, opcode};
use rootport_models::device::field::status::has_a_constant_tag;
use rootport_models::device::{Disk, MICROSECOND};

use super::{honoured, stick, works};
use crate::rig::{HIGH_PORT, Rig, with_disk};

fn resets(device: &Disk) -> usize {
    device.count_requests(Request::BULK_ONLY_RESET)
}

#[test]
fn a_residue_that_means_nothing_is_ignored_where_it_is_known() {
    // Digitech GNX4.
    let device = stick(0x1210, 0x0003, 0x0100)
        .on(any(), Action::Residue(8))
        .build();
    let (mut rig, disk) = with_disk(&device);
    works(&mut rig, disk);
    assert_eq!(resets(&device), 0);
    // Its neighbour is believed: a read that is 8 bytes short twice has failed.
    let neighbour = stick(0x1210, 0x0004, 0x0100)
        .on(opcode(0x28).after(1), Action::Residue(8))
        .build();
    let (mut rig, disk) = with_disk(&neighbour);
    assert!(rig.read(disk, 0, 512).is_err());
}

#[test]
fn that_residues_lie_is_learnt_from_the_first_answer_of_fixed_length() {
    for (question, residue) in [(0x12, 36), (0x25, 8)] {
        let device = stick(0x1209, 0x0001, 0x0100)
            .on(opcode(question), Action::Residue(residue))
            .on(opcode(0x28), Action::Residue(512))
            .build();
        let (mut rig, disk) = with_disk(&device);
        works(&mut rig, disk);
        let unit = rig.units_at(HIGH_PORT)[0];
        assert_eq!(unit.quirks, Quirks::IGNORE_RESIDUE);
        assert_eq!(unit.decision.quirks, Quirks::empty(), "learnt, not decided");
    }
    assert_eq!(
        honoured(&stick(0x1209, 0x0001, 0x0100).build()),
        Quirks::empty()
    );
}

#[test]
fn a_constant_tag_is_taken_where_it_is_known_and_is_a_fault_elsewhere() {
    let device = has_a_constant_tag();
    let (mut rig, disk) = with_disk(&device);
    works(&mut rig, disk);
    assert_eq!(resets(&device), 0);
    let neighbour = stick(0x04ce, 0x0003, 0x0100)
        .on(any(), Action::Tag(0x1122_3344))
        .build();
    let mut rig = Rig::default();
    rig.plug(HIGH_PORT, neighbour.clone());
    rig.settle_port(HIGH_PORT);
    assert!(resets(&neighbour) > 0);
    assert!(rig.host.first_disk().is_err());
}

#[test]
fn wrappers_of_32_bytes_go_to_whom_they_are_for() {
    let odd = Manners {
        wrapper_length: 32,
        ..Manners::default()
    };
    // Grandtech DC2MEGA; the model refuses a wrapper of the wrong length.
    let device = stick(0x084d, 0x0011, 0x0110).manners(odd).build();
    let (mut rig, disk) = with_disk(&device);
    works(&mut rig, disk);
    let neighbour = stick(0x084d, 0x0011, 0x0111).build();
    let (mut rig, disk) = with_disk(&neighbour);
    works(&mut rig, disk);
}

#[test]
fn a_device_that_dies_of_haste_gets_its_pause_and_its_neighbour_none() {
    let hasty = Manners {
        pause: 125 * MICROSECOND,
        ..Manners::default()
    };
    // Genesys USB to IDE.
    let device = stick(0x05e3, 0x0702, 0x0002).manners(hasty).build();
    let (mut rig, disk) = with_disk(&device);
    works(&mut rig, disk);
    assert_eq!(resets(&device), 0);
    let neighbour = stick(0x05e3, 0x0703, 0x0002).build();
    let (mut rig, disk) = with_disk(&neighbour);
    works(&mut rig, disk);
    let reads = |device: &Disk| -> Vec<_> {
        let reads = device.exchanges().into_iter();
        let reads = reads.filter(|exchange| exchange.wrapper.cdb[0] == 0x28);
        reads.map(|it| it.ended.unwrap() - it.at).collect()
    };
    assert!(reads(&device).iter().all(|took| *took >= 125 * MICROSECOND));
    assert!(
        reads(&neighbour)
            .iter()
            .all(|took| *took < 125 * MICROSECOND)
    );
}

#[test]
fn a_device_that_cannot_hold_a_status_read_gets_it_behind_the_data_and_its_neighbour_with_them() {
    let status_last = Manners {
        status_last: true,
        ..Manners::default()
    };
    for queueing in [Queueing::AfterCommand, Queueing::Eager] {
        let written = |product| {
            let device = stick(0x46f4, product, 0).manners(status_last).build();
            let mut rig = Rig::default();
            rig.host.set_policy(Policy {
                queueing,
                ..Policy::DEFAULT
            });
            let disk = rig.disk(HIGH_PORT, device.clone());
            let before = device.count_requests(Request::CLEAR_HALT);
            let outcome = rig.write(disk, 9, &[0x5a; 8192]);
            (outcome, device.count_requests(Request::CLEAR_HALT) - before)
        };
        // QEMU's usb-storage.
        assert_eq!(written(0x0001), (Ok(()), 0), "{queueing:?}");
        assert!(written(0x0002).1 > 0, "{queueing:?}");
    }
}
