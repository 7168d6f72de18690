//! Devices that need their time, or read the first requests in their own way.

use super::super::base::{Answer, Early, Recovery, Request};
use super::super::{Disk, Link, MILLISECOND, Nanoseconds, Script};

/// Stalls what comes within 2 ms of its new address. TinyUSB issue 2673.
#[must_use]
pub fn stalls_before_its_address_has_settled() -> Disk {
    Script::new()
        .recovery(Recovery {
            early: Early::Stall,
            ..Recovery::default()
        })
        .build()
}

/// Deaf for `time` after each bus reset: 1, 10 and more than 10 ms were reported. TinyUSB issues 1732
/// and 3876, Zephyr issue 113758, edk2 issue 6742.
#[must_use]
pub fn is_deaf_after_each_reset_for(time: Nanoseconds) -> Disk {
    Script::new()
        .recovery(Recovery {
            after_reset: time,
            ..Recovery::default()
        })
        .build()
}

/// Deaf for `time` after power came, whatever resets it gets: only a later attempt finds it.
#[must_use]
pub fn is_deaf_after_power_on_for(time: Nanoseconds) -> Disk {
    Script::new()
        .recovery(Recovery {
            after_power: time,
            ..Recovery::default()
        })
        .build()
}

/// Deaf for 10 ms after a new address, as some devices are for whom Linux waits that long.
#[must_use]
pub fn is_deaf_after_its_address_for_ten_milliseconds() -> Disk {
    let after_address = 10 * MILLISECOND;
    Script::new()
        .recovery(Recovery {
            after_address,
            ..Recovery::default()
        })
        .build()
}

/// A disk at this speed that says that its endpoint 0 takes packets of `size` bytes. At full speed 8, 16,
/// 32 and 64 are legal. Zephyr pull request 106802 and issue 107543, felis UHS30 issue 46.
#[must_use]
pub fn has_control_packets_of(link: Link, size: u8) -> Disk {
    Script::new()
        .speed(link)
        .descriptors(move |_, descriptors| descriptors.control_packet_size(size))
        .build()
}

/// A request for the first 8 bytes of the device descriptor is answered with `length` bytes. Zephyr
/// pull request 106802.
#[must_use]
pub fn answers_the_eight_byte_request_with(length: usize) -> Disk {
    let mut bytes = device_descriptor();
    bytes.resize(length, 0);
    let answer = if length > 8 {
        Answer::Overlong(bytes)
    } else {
        Answer::Data(bytes)
    };
    Script::new()
        .control(Request::get_descriptor(1).length(8), answer)
        .build()
}

/// Before it has an address, only 8 bytes of the device descriptor come, however many are asked for.
/// Espressif esp-idf issue 17832.
#[must_use]
pub fn gives_only_eight_bytes_at_first() -> Disk {
    let bytes = device_descriptor()[..8].to_vec();
    Script::new()
        .control_some(Request::get_descriptor(1), 0..1, Answer::Data(bytes))
        .build()
}

/// The first `count` requests for a descriptor are not answered.
#[must_use]
pub fn ignores_the_first_descriptor_requests(count: u32) -> Disk {
    Script::new()
        .control_some(Request::get_descriptor(1), 0..count, Answer::Silent)
        .build()
}

/// Never answers a control request.
#[must_use]
pub fn never_answers_endpoint_zero() -> Disk {
    Script::new().control(Request::ANY, Answer::Silent).build()
}

/// The device descriptor that a plain script has.
fn device_descriptor() -> Vec<u8> {
    super::super::descriptor::Descriptors::bulk_only_disk(Link::High, 0x1209, 1).device
}

#[cfg(test)]
mod tests {
    use super::super::super::UsbDevice;
    use super::super::super::packet_host::{Fault, PacketHost};
    use super::*;

    const FIRST: [u8; 8] = [0x80, 6, 0, 1, 0, 0, 8, 0];
    const WHOLE: [u8; 8] = [0x80, 6, 0, 1, 0, 0, 18, 0];

    #[test]
    fn an_early_host_meets_a_stall_or_silence() {
        let mut host = PacketHost::plug(stalls_before_its_address_has_settled());
        host.control([0, 5, 5, 0, 0, 0, 0, 0], &[])
            .expect("SET_ADDRESS");
        host.address = 5;
        assert_eq!(host.control(WHOLE, &[]), Err(Fault::Stall));
        host.device.faults().expect_only("USB 2.0 §9.2.6.3");
        let mut host = PacketHost::plug(is_deaf_after_its_address_for_ten_milliseconds());
        host.control([0, 5, 5, 0, 0, 0, 0, 0], &[])
            .expect("SET_ADDRESS");
        host.address = 5;
        host.now += 5 * MILLISECOND;
        assert_eq!(host.control(WHOLE, &[]), Err(Fault::Silent));
    }

    #[test]
    fn a_deaf_device_hears_when_its_time_has_come() {
        let mut host = PacketHost::plug(is_deaf_after_each_reset_for(30 * MILLISECOND));
        assert_eq!(host.control(WHOLE, &[]), Err(Fault::Silent));
        host.now += 20 * MILLISECOND;
        assert!(host.control(WHOLE, &[]).is_ok());
        let mut host = PacketHost::plug(is_deaf_after_power_on_for(200 * MILLISECOND));
        assert_eq!(host.control(WHOLE, &[]), Err(Fault::Silent));
        host.reset();
        assert!(host.control(WHOLE, &[]).is_ok());
    }

    #[test]
    fn small_control_packets_carry_the_whole_descriptor() {
        for size in [8, 16, 32, 64] {
            let mut host = PacketHost::plug(has_control_packets_of(Link::Full, size));
            host.control_size = usize::from(size);
            let descriptor = host.control(WHOLE, &[]).expect("descriptor");
            assert_eq!((descriptor.len(), descriptor[7]), (18, size));
        }
    }

    #[test]
    fn the_eight_byte_request_is_answered_in_its_own_way() {
        for (length, came) in [
            (7, Ok(7)),
            (8, Ok(8)),
            (18, Err(Fault::Babble)),
            (64, Err(Fault::Babble)),
        ] {
            let mut host = PacketHost::plug(answers_the_eight_byte_request_with(length));
            assert_eq!(host.control(FIRST, &[]).map(|bytes| bytes.len()), came);
        }
    }

    #[test]
    fn the_first_requests_are_short_or_lost_and_the_next_ones_good() {
        let mut host = PacketHost::plug(gives_only_eight_bytes_at_first());
        assert_eq!(host.control(WHOLE, &[]).map(|bytes| bytes.len()), Ok(8));
        assert_eq!(host.control(WHOLE, &[]).map(|bytes| bytes.len()), Ok(18));
        let mut host = PacketHost::plug(ignores_the_first_descriptor_requests(2));
        assert_eq!(host.control(WHOLE, &[]), Err(Fault::Silent));
        assert_eq!(host.control(WHOLE, &[]), Err(Fault::Silent));
        assert!(host.control(WHOLE, &[]).is_ok());
    }

    #[test]
    fn a_dead_endpoint_zero_shows_a_connection_all_the_same() {
        let mut host = PacketHost::plug(never_answers_endpoint_zero());
        assert_eq!(host.control(WHOLE, &[]), Err(Fault::Silent));
        assert_eq!(host.device.link(host.now), Some(Link::High));
    }
}
