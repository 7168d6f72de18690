//! Disks with malformed configuration descriptors. Each is a good disk behind the bytes: a host may
//! use it or refuse it, but the port and its neighbours live on.
//!
//! TinyUSB pull request 2852 and issue 2177, libusb issue 767, iPXE commit 6215a886d, CherryUSB
//! commit 5bfaf7e3, cotton pull request 9, Redox commit 674b8c6.

use super::super::descriptor::{Configuration, Endpoint, Interface};
use super::super::{Disk, Link, Script};

/// A disk with a malformed configuration.
pub struct Malformed {
    /// What is wrong, in a few words.
    pub fault: &'static str,
    /// Whether the bytes still name a Bulk-Only interface with both endpoints, so that a lenient host
    /// can use the disk.
    pub usable: bool,
    /// The disk.
    pub disk: Disk,
}

/// All malformed configurations.
#[must_use]
pub fn all() -> Vec<Malformed> {
    let malformed = |fault, usable, bytes: Vec<u8>| Malformed {
        fault,
        usable,
        disk: Script::new().raw_configuration(bytes).build(),
    };
    vec![
        malformed(
            "a descriptor of length zero after the endpoints",
            true,
            with_zero_length(),
        ),
        malformed(
            "a descriptor of length zero before the interface",
            false,
            zero_length_first(),
        ),
        malformed("a descriptor of length one", true, with_length_one()),
        malformed("a total length beyond the data", true, total_length(600)),
        malformed("67 bytes announced and 60 there", true, sixty_of_67()),
        malformed(
            "a total length shorter than its header",
            false,
            total_length(4),
        ),
        malformed("a last descriptor that is cut off", true, cut_off()),
        malformed("more endpoints than announced", true, endpoint_count(1)),
        malformed("fewer endpoints than announced", true, endpoint_count(16)),
        malformed(
            "two interfaces where one is announced",
            true,
            more_interfaces(),
        ),
        malformed("255 interfaces announced", true, interface_count(255)),
        malformed(
            "an endpoint descriptor for endpoint 0",
            true,
            endpoint_zero(),
        ),
        malformed("one endpoint twice", true, endpoint_twice()),
        malformed(
            "bulk packets of 1024 bytes at high speed",
            true,
            large_packets(),
        ),
        malformed("companions at high speed", true, companions()),
        malformed(
            "600 bytes of unknown descriptors",
            true,
            six_hundred_bytes(),
        ),
        malformed("a configuration labelled 7", true, labelled(7)),
        malformed("an endpoint before any interface", false, endpoint_first()),
        malformed("a configuration of two bytes", false, vec![2, 2]),
        malformed("no configuration at all", false, Vec::new()),
    ]
}

fn bulk(address: u8) -> Endpoint {
    Endpoint::bulk(address, Link::High)
}

fn interface() -> Interface {
    Interface::new(0)
        .class(0x08, 0x06, 0x50)
        .endpoint(bulk(0x81))
        .endpoint(bulk(0x02))
}

fn good() -> Vec<u8> {
    Configuration::new(1).interface(interface()).bytes()
}

/// `bytes` with one byte changed.
fn with(mut bytes: Vec<u8>, at: usize, value: u8) -> Vec<u8> {
    bytes[at] = value;
    bytes
}

fn with_zero_length() -> Vec<u8> {
    Configuration::new(1)
        .interface(interface())
        .raw(&[0, 0, 0, 0])
        .bytes()
}

fn zero_length_first() -> Vec<u8> {
    Configuration::new(1)
        .raw(&[0, 0])
        .interface(interface())
        .bytes()
}

fn with_length_one() -> Vec<u8> {
    Configuration::new(1)
        .interface(interface())
        .raw(&[1, 1, 1])
        .bytes()
}

fn total_length(length: u16) -> Vec<u8> {
    let [low, high] = length.to_le_bytes();
    with(with(good(), 2, low), 3, high)
}

fn sixty_of_67() -> Vec<u8> {
    let padding = [28, 0x24]
        .iter()
        .chain([0; 26].iter())
        .copied()
        .collect::<Vec<u8>>();
    let bytes = Configuration::new(1)
        .interface(interface().raw(&padding))
        .bytes();
    with(bytes, 2, 67)
}

fn cut_off() -> Vec<u8> {
    Configuration::new(1)
        .interface(interface())
        .raw(&[9, 4, 1, 0])
        .bytes()
}

fn endpoint_count(count: u8) -> Vec<u8> {
    with(good(), 9 + 4, count)
}

fn more_interfaces() -> Vec<u8> {
    let bytes = Configuration::new(1)
        .interface(interface())
        .interface(Interface::new(1))
        .bytes();
    with(bytes, 4, 1)
}

fn interface_count(count: u8) -> Vec<u8> {
    with(good(), 4, count)
}

fn endpoint_zero() -> Vec<u8> {
    Configuration::new(1)
        .interface(interface().endpoint(bulk(0x00)).endpoint(bulk(0x80)))
        .bytes()
}

fn endpoint_twice() -> Vec<u8> {
    Configuration::new(1)
        .interface(interface().endpoint(bulk(0x81)))
        .bytes()
}

fn large_packets() -> Vec<u8> {
    let interface = Interface::new(0)
        .class(0x08, 0x06, 0x50)
        .endpoint(bulk(0x81).packet_size(1024))
        .endpoint(bulk(0x02).packet_size(1024));
    Configuration::new(1).interface(interface).bytes()
}

fn companions() -> Vec<u8> {
    let companion = [6, 0x30, 15, 0, 0, 0];
    let interface = Interface::new(0)
        .class(0x08, 0x06, 0x50)
        .endpoint(bulk(0x81).raw(&companion))
        .endpoint(bulk(0x02).raw(&companion));
    Configuration::new(1).interface(interface).bytes()
}

fn six_hundred_bytes() -> Vec<u8> {
    let unknown = [100, 0xfe]
        .iter()
        .chain([0xff; 98].iter())
        .copied()
        .collect::<Vec<u8>>();
    let configuration = Configuration::new(1)
        .raw(&unknown.repeat(5))
        .interface(interface());
    configuration.raw(&unknown).bytes()
}

fn labelled(value: u8) -> Vec<u8> {
    Configuration::new(value).interface(interface()).bytes()
}

fn endpoint_first() -> Vec<u8> {
    Configuration::new(1)
        .raw(&[7, 5, 0x81, 2, 0, 2, 0])
        .interface(Interface::new(0))
        .bytes()
}

#[cfg(test)]
mod tests {
    use super::super::super::packet_host::PacketHost;
    use super::super::testing::TEST;
    use super::*;

    #[test]
    fn every_malformed_configuration_differs_from_the_good_one_and_is_told_apart() {
        let mut faults: Vec<&str> = Vec::new();
        for Malformed { fault, disk, .. } in all() {
            let mut host = PacketHost::plug(disk);
            let bytes = host
                .control([0x80, 6, 0, 2, 0, 0, 0xff, 0x0f], &[])
                .expect("some bytes");
            assert_ne!(bytes, good(), "{fault}");
            assert!(!faults.contains(&fault));
            faults.push(fault);
        }
    }

    #[test]
    fn a_usable_one_is_a_working_disk() {
        for Malformed { fault, disk, .. } in all().into_iter().filter(|malformed| malformed.usable)
        {
            let mut host = PacketHost::plug(disk);
            host.control([0, 5, 5, 0, 0, 0, 0, 0], &[])
                .expect("SET_ADDRESS");
            host.address = 5;
            host.now += 2_000_000;
            let label = if fault.ends_with('7') { 7 } else { 1 };
            host.control([0, 9, label, 0, 0, 0, 0, 0], &[])
                .expect(fault);
            assert_eq!(host.simple(&TEST), Ok(0), "{fault}");
        }
    }
}
