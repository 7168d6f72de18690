//! Status wrappers of the wrong length, tag or signature, and residues that lie: one wrong wrapper
//! costs a reset recovery, and a device that is always wrong is refused in time.

use crate::rig::{HIGH_PORT, Rig, with_disk};
use rootport::scsi::bring_up::BringUpError;
use rootport::scsi::transport::{Fault, TransportError};
use rootport::stack::DiskState;
use rootport::time::Duration;
use rootport_models::device::base::Request;
use rootport_models::device::bot::{Action, Hook, any};
use rootport_models::device::field::status::{
    comes_after_an_empty_packet, has_a_reserved_status_once, has_a_wrong_tag_once,
    has_an_impossible_residue_once, has_another_signature, has_sixteen_bytes,
    has_twelve_bytes_once, reports_a_phase_error_once,
};
use rootport_models::device::{Disk, Script};

#[test]
fn one_wrong_wrapper_costs_one_reset_recovery_and_nothing_else() {
    let once: [fn() -> Disk; 4] = [
        has_twelve_bytes_once,
        has_a_wrong_tag_once,
        has_a_reserved_status_once,
        reports_a_phase_error_once,
    ];
    for device in once.map(|make| make()) {
        let (mut rig, disk) = with_disk(&device);
        assert!(rig.age() < Duration::from_secs(2));
        rig.check(disk, 0, 16);
        assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 1);
        assert_eq!(device.bus_resets().len(), 1);
    }
}

#[test]
fn a_residue_beyond_what_was_announced_is_not_believed() {
    let device = has_an_impossible_residue_once();
    let (mut rig, disk) = with_disk(&device);
    rig.check(disk, 0, 16);
    rig.check(disk, 9, 16);
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 1);
}

#[test]
fn an_empty_packet_before_the_status_is_passed_over() {
    let device = comes_after_an_empty_packet();
    let (mut rig, disk) = with_disk(&device);
    rig.check(disk, 0, 300);
    rig.write(disk, 5, &[1; 512]).unwrap();
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 0);
}

#[test]
fn a_device_whose_wrappers_are_always_wrong_is_no_disk_and_holds_nobody_up() {
    // One that is known for its constant tag is used: see `quirks::wrappers`.
    let constant_tag = Script::new().on(any(), Action::Tag(0x1122_3344));
    for device in [
        has_sixteen_bytes(),
        constant_tag.build(),
        has_another_signature(),
    ] {
        let mut rig = Rig::default();
        let units = rig.within(Duration::from_secs(2), |rig| {
            rig.settle(HIGH_PORT, device.clone())
        });
        let [unit] = units[..] else {
            panic!("{units:?}");
        };
        let why = TransportError::Protocol(Fault::BadStatus);
        assert_eq!(unit.state, DiskState::Failed(BringUpError::Transport(why)));
        let asked = device.exchanges().len();
        rig.run(Duration::from_secs(120));
        assert_eq!(device.exchanges().len(), asked, "it is left alone");
        assert!(asked <= 40, "{asked} commands");
    }
}

#[test]
fn a_status_that_was_sent_before_is_not_taken_for_the_present_command_s() {
    let device = Script::new().build();
    let (mut rig, disk) = with_disk(&device);
    rig.check(disk, 0, 1);
    let before = device
        .exchanges()
        .last()
        .expect("there was one")
        .wrapper
        .tag;
    let stale = Hook {
        when: any().once(),
        action: Action::Tag(before),
    };
    device.change(|device| device.function.hooks.push(stale));
    rig.check(disk, 5, 16);
    assert_eq!(device.count_requests(Request::BULK_ONLY_RESET), 1);
}
