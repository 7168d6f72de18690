//! Babble and transaction errors halt an endpoint as a stall does: the same recovery, on endpoint 0,
//! IN and OUT, and the next transfer succeeds.

use crate::controller::{self, Faults, HALTING, LINKS};
use crate::rig::{CALL_LIMIT, Rig, disk_at, port_for, with_disk};
use rootport::time::Duration;
use rootport_models::device::base::Request;
use rootport_models::device::field::halts::{
    babbles_in_the_third_read, babbles_on_endpoint_zero, falls_silent_in_the_third_read,
    falls_silent_in_the_third_write, falls_silent_on_endpoint_zero,
};
use rootport_models::device::{Disk, Link};
use rootport_models::machine::Options;

fn reads_ten_times(device: &Disk) {
    let (mut rig, disk) = with_disk(device);
    for lba in 0..10 {
        rig.within(Duration::from_secs(3), |rig| rig.check(disk, lba, 3));
    }
}

#[test]
fn a_read_that_babbles_is_repeated_after_reset_recovery() {
    let device = babbles_in_the_third_read();
    reads_ten_times(&device);
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 1);
    // Ten, the one that is repeated, and the one of bring-up.
    assert_eq!(device.count(0x28), 12);
}

#[test]
fn a_read_without_an_answer_is_repeated_after_reset_recovery() {
    let device = falls_silent_in_the_third_read();
    reads_ten_times(&device);
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 1);
}

#[test]
fn a_write_without_an_answer_is_repeated_after_reset_recovery() {
    let device = falls_silent_in_the_third_write();
    let (mut rig, disk) = with_disk(&device);
    for lba in 0..10 {
        let data = [lba as u8 + 1; 1536];
        rig.within(Duration::from_secs(3), |rig| {
            rig.write(disk, 3 * lba, &data)
        })
        .unwrap();
    }
    rig.flush(disk).unwrap();
    for lba in 0..30 {
        assert_eq!(
            device.block(lba),
            vec![(lba / 3) as u8 + 1; 512],
            "block {lba}"
        );
    }
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 1);
}

#[test]
fn babble_and_silence_on_endpoint_zero_leave_it_usable() {
    for device in [babbles_on_endpoint_zero(), falls_silent_on_endpoint_zero()] {
        let (mut rig, disk) = with_disk(&device);
        rig.check(disk, 0, 4);
        // Endpoint 0 is needed to clear a halt.
        device.change(|device| {
            use rootport_models::device::bot::{Action, Hook, opcode};
            let when = opcode(0x28).once();
            device.function.hooks.push(Hook {
                when,
                action: Action::HaltData,
            });
        });
        assert!(rig.read(disk, 0, 512).is_err());
        rig.check(disk, 0, 4);
    }
}

#[test]
fn every_halting_error_at_every_transfer_of_bulk_in_and_out_is_survived() {
    for &link in LINKS {
        for &fault in HALTING {
            for endpoint in [0x81, 0x02] {
                for count in 0..16 {
                    let mut faults = Faults::none();
                    faults.transfers.insert((endpoint, count), fault);
                    let what = format!("{fault:?} at {count} of {endpoint:#x}");
                    survives(faults, link, &what);
                }
            }
        }
    }
}

#[test]
fn every_halting_error_at_every_stage_of_endpoint_zero_is_survived() {
    for &fault in HALTING {
        for count in 0..24 {
            let mut faults = Faults::none();
            faults.transfers.insert((0, count), fault);
            let what = format!("{fault:?} at {count} of endpoint 0");
            survives(faults, Link::High, &what);
        }
    }
}

/// One fault somewhere: the disk is found all the same, and then everything works.
fn survives(faults: Faults, link: Link, what: &str) {
    let mut rig = Rig::faulty(Options::default(), controller::usual(), faults);
    let device = disk_at(link).build();
    let disk = rig.disk(port_for(link), device.clone());
    for lba in 0..4 {
        // The one that was hit may be reported; all others work.
        let result = rig.within(CALL_LIMIT, |rig| rig.read(disk, lba, 1024));
        assert!(result.is_ok(), "{what}: {result:?}");
        rig.check(disk, lba, 2);
        let result = rig.within(CALL_LIMIT, |rig| rig.write(disk, 100 + lba, &[7; 512]));
        assert!(result.is_ok(), "{what}: {result:?}");
        assert_eq!(device.block(100 + lba), [7; 512], "{what}");
    }
}
