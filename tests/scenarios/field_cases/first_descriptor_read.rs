//! Devices that answer the first descriptor read in their own way, and packet sizes of endpoint 0.

use crate::controller::LINKS;
use crate::rig::{HIGH_PORT, Rig, with_disk};
use rootport::time::Duration;
use rootport::usb::descriptor::DescriptorFault;
use rootport::usb::{PortState, UsbError};
use rootport_models::device::base::{Answer, Request};
use rootport_models::device::field::enumeration::{
    answers_the_eight_byte_request_with, gives_only_eight_bytes_at_first, has_control_packets_of,
    ignores_the_first_descriptor_requests,
};
use rootport_models::device::{Link, Script};

/// At full speed, which an EHCI leaves to its companion, and at high speed.
#[test]
fn an_illegal_packet_size_is_refused_in_time() {
    let companion = !LINKS.contains(&Link::Super);
    for (link, size) in [Link::Full, Link::High]
        .into_iter()
        .flat_map(|link| [0, 7, 9, 63, 65, 255].map(|size| (link, size)))
    {
        let device = has_control_packets_of(link, size);
        let mut rig = Rig::default();
        rig.plug(HIGH_PORT, device.clone());
        let state = rig.within(Duration::from_secs(10), |rig| rig.settle_port(HIGH_PORT));
        let why = match link {
            Link::Full if companion => UsbError::NeedsCompanion,
            _ => UsbError::Descriptor(DescriptorFault::ControlPacketSize(size)),
        };
        assert_eq!(state, PortState::Failed(why), "{link:?}, {size}");
        assert!(device.bus_resets().len() <= 3, "{link:?}, {size}");
        // Its own sizes are wrong: what it complains of is its own fault.
        let _provoked = device.faults().take();
        rig.unplug(HIGH_PORT);
    }
}

#[test]
fn answers_longer_and_shorter_than_asked_are_survived() {
    for length in [7, 8, 18, 64] {
        let device = answers_the_eight_byte_request_with(length);
        let (mut rig, disk) = with_disk(&device);
        rig.check(disk, 0, 8);
    }
    let (mut rig, disk) = with_disk(&gives_only_eight_bytes_at_first());
    rig.check(disk, 0, 8);
}

#[test]
fn a_device_that_ignores_its_first_requests_is_found_by_a_later_attempt() {
    // The controller repeats a packet twice by itself.
    for (count, resets) in [(1, 1), (2, 1), (3, 2), (6, 3)] {
        let device = ignores_the_first_descriptor_requests(count);
        let (mut rig, disk) = with_disk(&device);
        assert_eq!(device.bus_resets().len(), resets, "{count} ignored");
        rig.check(disk, 0, 8);
    }
}

#[test]
fn a_device_that_takes_no_address_at_first_is_asked_for_its_descriptor_before_the_next() {
    let device = Script::new()
        .control_some(Request::SET_ADDRESS, 0..1, Answer::Stall)
        .build();
    let (mut rig, disk) = with_disk(&device);
    rig.check(disk, 0, 8);
    let second = *device
        .bus_resets()
        .get(1)
        .expect("there was another attempt");
    let asked: Vec<u8> = device
        .requests()
        .iter()
        .filter(|(time, _)| *time > second)
        .map(|(_, setup)| setup.request)
        .collect();
    const SET_ADDRESS: u8 = 5;
    const GET_DESCRIPTOR: u8 = 6;
    assert_eq!(asked[..3], [GET_DESCRIPTOR, SET_ADDRESS, GET_DESCRIPTOR]);
}
