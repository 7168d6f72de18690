//! The base device alone, driven with packets. Its function is an endpoint pair that echoes.

use std::collections::VecDeque;

use super::super::descriptor::Descriptors;
use super::super::packet_host::{Fault, PacketHost};
use super::super::setup::Setup;
use super::super::{Link, MILLISECOND, Nanoseconds, Packet, Reply, UsbDevice, Violations};
use super::{Answer, Device, Early, Function, Given, Recovery, Request, Reset, Taken, Wire};

/// Gives back each packet; one that starts with 0xff halts the endpoint.
#[derive(Default)]
struct Echo {
    packets: VecDeque<Vec<u8>>,
}

impl Function for Echo {
    fn reset(&mut self, _now: Nanoseconds, _reset: Reset) {
        self.packets.clear();
    }

    fn control(&mut self, _: &mut Wire<'_>, setup: &Setup, data: &[u8]) -> Option<Answer> {
        match setup.request {
            1 => Some(Answer::Data(vec![0x55; 100])),
            2 => {
                self.packets.push_back(data.to_vec());
                Some(Answer::Accept)
            }
            _ => None,
        }
    }

    fn advance(&mut self, _: &mut Wire<'_>) {}

    fn take(&mut self, _: &mut Wire<'_>, _: u8, _: u16, data: &[u8]) -> Taken {
        if data.first() == Some(&0xff) {
            return Taken::Halt;
        }
        self.packets.push_back(data.to_vec());
        Taken::Yes
    }

    fn give(&mut self, _: &mut Wire<'_>, _: u8, _: u16, _: usize) -> Given {
        match self.packets.pop_front() {
            Some(bytes) => Given::Packet { bytes, last: true },
            None => Given::Busy,
        }
    }

    fn has_room(&mut self, _: &mut Wire<'_>, _: u8) -> Taken {
        Taken::Yes
    }

    fn halt_cleared(&mut self, _: &mut Wire<'_>, _: u8) -> bool {
        true
    }

    fn ready_at(&self, _: u8, _: u16) -> Option<Nanoseconds> {
        None
    }
}

fn echo(link: Link) -> Device<Echo> {
    Device::new(link, Echo::default(), Violations::new(), |link| {
        Descriptors::bulk_only_disk(link, 1, 2).strings("Maker", "Echo", "42")
    })
}

fn configured(link: Link) -> PacketHost<Device<Echo>> {
    let mut host = PacketHost::plug(echo(link));
    host.enumerate().expect("a plain device enumerates");
    host
}

const GET_DEVICE: [u8; 8] = [0x80, 6, 0, 1, 0, 0, 18, 0];

#[test]
fn a_device_descriptor_comes_at_every_speed() {
    for link in [Link::Full, Link::High, Link::Super] {
        let mut host = PacketHost::plug(echo(link));
        let descriptor = host.control(GET_DEVICE, &[]).expect("address 0 answers");
        assert_eq!((descriptor.len(), descriptor[1]), (18, 1));
    }
}

#[test]
fn a_longer_answer_is_cut_to_what_was_asked() {
    let mut host = PacketHost::plug(echo(Link::High));
    assert_eq!(
        host.control([0x80, 6, 0, 1, 0, 0, 8, 0], &[])
            .map(|bytes| bytes.len()),
        Ok(8)
    );
}

#[test]
fn data_of_several_packets_ends_at_the_short_one() {
    let mut host = configured(Link::High);
    let data = host.control([0xc0, 1, 0, 0, 0, 0, 255, 0], &[]);
    assert_eq!(data, Ok(vec![0x55; 100]));
}

#[test]
fn data_from_the_host_reach_the_function() {
    let mut host = configured(Link::High);
    host.control([0x40, 2, 0, 0, 0, 0, 70, 0], &[9; 70])
        .expect("vendor request");
    assert_eq!(host.bulk_in(0x81, 512), Ok(vec![9; 70]));
}

#[test]
fn an_unknown_request_stalls_and_the_next_one_works() {
    let mut host = configured(Link::High);
    assert_eq!(
        host.control([0xc0, 7, 0, 0, 0, 0, 1, 0], &[]),
        Err(Fault::Stall)
    );
    assert!(host.control(GET_DEVICE, &[]).is_ok());
}

#[test]
fn only_its_own_address_is_answered() {
    let mut host = configured(Link::High);
    host.address = 0;
    assert_eq!(host.control(GET_DEVICE, &[]), Err(Fault::Silent));
}

#[test]
fn a_request_within_two_milliseconds_of_the_new_address_breaks_a_rule() {
    let mut host = PacketHost::plug(echo(Link::High));
    host.control([0x00, 5, 5, 0, 0, 0, 0, 0], &[])
        .expect("SET_ADDRESS");
    host.address = 5;
    assert_eq!(host.control(GET_DEVICE, &[]), Err(Fault::Silent));
    host.device.violations.expect_only("USB 2.0 §9.2.6.3");
}

#[test]
fn a_request_within_ten_milliseconds_of_reset_breaks_a_rule_below_super_speed_only() {
    for (link, broken) in [(Link::High, true), (Link::Super, false)] {
        let mut device = echo(link);
        device.power_on(0);
        device.bus_reset(50 * MILLISECOND, link);
        let reply = device.transact(51 * MILLISECOND, 0, 0, Packet::Setup(GET_DEVICE));
        assert_eq!(reply, if broken { Reply::Silent } else { Reply::Ack });
        assert_eq!(!device.violations.take().is_empty(), broken);
    }
}

#[test]
fn a_slow_device_stalls_early_requests_without_blaming_the_host() {
    let mut device = echo(Link::High);
    let (after_reset, early) = (30 * MILLISECOND, Early::Stall);
    device.recovery = Recovery {
        after_reset,
        early,
        ..Recovery::default()
    };
    let mut host = PacketHost::plug(device);
    assert_eq!(host.control(GET_DEVICE, &[]), Err(Fault::Stall));
    host.now += 20 * MILLISECOND;
    assert!(host.control(GET_DEVICE, &[]).is_ok());
}

#[test]
fn packets_alternate_through_many_transfers() {
    for link in [Link::Full, Link::High, Link::Super] {
        let mut host = configured(link);
        for round in 0..70 {
            host.bulk_out(0x02, &[round; 3]).expect("out");
            assert_eq!(host.bulk_in(0x81, 64), Ok(vec![round; 3]));
        }
    }
}

#[test]
fn a_repeated_toggle_is_acknowledged_dropped_and_recorded() {
    let mut host = configured(Link::High);
    let packet = Packet::Out {
        data: &[1],
        sequence: 1,
        stream: 0,
    };
    assert_eq!(host.transact(0x02, packet), Ok(Reply::Ack));
    assert!(host.device.function.packets.is_empty());
    host.device.violations.expect_only("USB 2.0 §8.6");
}

#[test]
fn an_expected_toggle_that_is_not_the_devices_is_recorded() {
    let mut host = configured(Link::High);
    host.bulk_out(0x02, &[1]).expect("out");
    let packet = Packet::In {
        sequence: 1,
        maximum: 512,
        stream: 0,
    };
    let came = Reply::Data {
        bytes: vec![1],
        sequence: 0,
        end_of_burst: true,
    };
    assert_eq!(host.transact(0x81, packet), Ok(came));
    host.device.violations.expect_only("USB 2.0 §8.6");
}

#[test]
fn a_halt_stays_until_cleared_and_clearing_sets_the_toggle_back() {
    let mut host = configured(Link::High);
    host.bulk_out(0x02, &[1]).expect("out");
    assert_eq!(host.bulk_out(0x02, &[0xff]), Err(Fault::Stall));
    assert_eq!(host.bulk_out(0x02, &[2]), Err(Fault::Stall));
    assert_eq!(
        host.control([0x82, 0, 0, 0, 2, 0, 2, 0], &[]),
        Ok(vec![1, 0])
    );
    host.clear_halt(0x02).expect("clear");
    assert_eq!(
        host.control([0x82, 0, 0, 0, 2, 0, 2, 0], &[]),
        Ok(vec![0, 0])
    );
    host.bulk_out(0x02, &[3]).expect("out again, from DATA0");
}

#[test]
fn clearing_an_endpoint_that_is_not_halted_sets_the_toggle_back_too() {
    let mut host = configured(Link::High);
    host.bulk_out(0x02, &[1]).expect("out");
    host.control([0x02, 1, 0, 0, 2, 0, 0, 0], &[])
        .expect("clear at the device only");
    host.bulk_out(0x02, &[2]).expect("acknowledged as a repeat");
    host.device.violations.expect_only("USB 2.0 §8.6");
}

#[test]
fn an_endpoint_of_no_configuration_is_silent() {
    let mut host = PacketHost::plug(echo(Link::High));
    assert_eq!(host.bulk_out(0x02, &[1]), Err(Fault::Silent));
    host.device.violations.expect_only("USB 2.0 §9.2.3");
}

#[test]
fn a_packet_of_more_than_the_maximum_is_not_taken() {
    let mut host = configured(Link::Full);
    let packet = Packet::Out {
        data: &[0; 65],
        sequence: 0,
        stream: 0,
    };
    assert_eq!(host.transact(0x02, packet), Err(Fault::Silent));
    host.device.violations.expect_only("USB 2.0 §8.4.4");
}

#[test]
fn a_host_with_another_packet_size_in_mind_breaks_a_rule() {
    let mut host = configured(Link::High);
    host.bulk_out(0x02, &[1]).expect("out");
    let packet = Packet::In {
        sequence: 0,
        maximum: 64,
        stream: 0,
    };
    assert!(host.transact(0x81, packet).is_ok());
    host.device.violations.expect_only("USB 2.0 §5.8.3");
}

#[test]
fn the_status_stage_may_not_overtake_data_from_the_host() {
    let mut host = configured(Link::High);
    host.transact(0, Packet::Setup([0x40, 2, 0, 0, 0, 0, 70, 0]))
        .expect("SETUP");
    let status = Packet::In {
        sequence: 1,
        maximum: 64,
        stream: 0,
    };
    assert_eq!(host.transact(0x80, status), Err(Fault::Stall));
    host.device.violations.expect_only("USB 2.0 §8.5.3");
}

#[test]
fn scripted_answers_come_before_the_usual_ones() {
    let mut device = echo(Link::High);
    let late = Answer::After(300 * MILLISECOND, Box::new(Answer::Data(vec![7; 18])));
    device
        .controls
        .some(Request::get_descriptor(1), Answer::Stall, 0..1);
    device.controls.some(Request::get_descriptor(1), late, 0..1);
    device
        .controls
        .some(Request::get_descriptor(1), Answer::Silent, 1..2);
    let mut host = PacketHost::plug(device);
    assert_eq!(host.control(GET_DEVICE, &[]), Err(Fault::Stall));
    let before = host.now;
    assert_eq!(host.control(GET_DEVICE, &[]), Ok(vec![7; 18]));
    assert!(host.now - before >= 300 * MILLISECOND);
}

#[test]
fn a_scripted_answer_longer_than_asked_is_babble() {
    let mut device = echo(Link::High);
    device.controls.always(
        Request::get_descriptor(1).length(8),
        Answer::Overlong(vec![1; 18]),
    );
    let mut host = PacketHost::plug(device);
    assert_eq!(
        host.control([0x80, 6, 0, 1, 0, 0, 8, 0], &[]),
        Err(Fault::Babble)
    );
}

#[test]
fn a_pulled_device_falls_silent_and_shows_no_connection() {
    let mut host = configured(Link::High);
    host.device.pulled_after = Some(2);
    host.bulk_out(0x02, &[1]).expect("the first still arrives");
    assert_eq!(host.bulk_out(0x02, &[2]), Err(Fault::Silent));
    host.device.power_on(host.now);
    assert_eq!(host.device.link(host.now), None);
    host.device.pulled_after = None;
    assert_eq!(host.device.link(host.now), Some(Link::High));
}

#[test]
fn a_device_may_come_back_at_another_speed() {
    let mut device = echo(Link::Super);
    device.appearances = vec![
        (0, Some(Link::Super)),
        (200 * MILLISECOND, None),
        (300 * MILLISECOND, Some(Link::High)),
    ];
    device.power_on(0);
    assert_eq!(device.link(0), Some(Link::Super));
    assert_eq!(device.link_changes_at(0), Some(200 * MILLISECOND));
    assert_eq!(device.link(250 * MILLISECOND), None);
    assert_eq!(device.link(300 * MILLISECOND), Some(Link::High));
    assert_eq!(device.link_changes_at(300 * MILLISECOND), None);
}

#[test]
fn set_interface_chooses_among_alternate_settings() {
    use super::super::descriptor::{Configuration, Endpoint, Interface};
    let device = Device::new(Link::High, Echo::default(), Violations::new(), |link| {
        let first = Interface::new(0).endpoint(Endpoint::bulk(0x02, link));
        let second = Interface::new(0)
            .alternate(1)
            .endpoint(Endpoint::bulk(0x03, link));
        let configuration = Configuration::new(1).interface(first).interface(second);
        Descriptors::new(link, 1, 2).configuration(configuration)
    });
    let mut host = PacketHost::plug(device);
    host.enumerate().expect("enumerates");
    host.control([0x01, 11, 1, 0, 0, 0, 0, 0], &[])
        .expect("setting 1 exists");
    assert_eq!(host.control([0x81, 10, 0, 0, 0, 0, 1, 0], &[]), Ok(vec![1]));
    host.bulk_out(0x03, &[1]).expect("its endpoint exists");
    assert_eq!(
        host.control([0x01, 11, 2, 0, 0, 0, 0, 0], &[]),
        Err(Fault::Stall)
    );
}
