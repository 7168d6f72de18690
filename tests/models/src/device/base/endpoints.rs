//! The endpoints of the present configuration: packet size, halt, toggle.
//!
//! Found by walking the configuration bytes as leniently as a device with broken descriptors
//! behaves: it works by its firmware, whatever the bytes say.

use super::super::Link;

/// One endpoint other than 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndpointState {
    /// Number, and direction in bit 7.
    pub address: u8,
    /// The interface that it belongs to.
    pub interface: u8,
    /// The packet size in bytes that the device works with.
    pub maximum: usize,
    /// Whether it answers STALL.
    pub halted: bool,
    /// Toggle, or sequence number at SuperSpeed, of the next packet.
    pub sequence: u8,
}

/// All endpoints other than 0 that exist now.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    list: Vec<EndpointState>,
}

impl Endpoints {
    /// The endpoints of `configuration` where `alternates` lists the settings other than 0 as
    /// (interface, setting).
    pub(super) fn of_configuration(
        configuration: &[u8],
        alternates: &[(u8, u8)],
        link: Link,
    ) -> Self {
        let mut list: Vec<EndpointState> = Vec::new();
        let mut interface = None;
        let mut rest = configuration;
        while let [length, kind, ..] = *rest {
            let length = usize::from(length);
            if length < 2 || length > rest.len() {
                break;
            }
            let (descriptor, next) = rest.split_at(length);
            rest = next;
            match (kind, interface) {
                (4, _) if length >= 4 => {
                    let chosen = alternates
                        .iter()
                        .find(|(number, _)| *number == descriptor[2]);
                    let setting = chosen.map_or(0, |(_, setting)| *setting);
                    interface = (setting == descriptor[3]).then_some(descriptor[2]);
                }
                (5, Some(interface)) if length >= 7 => {
                    let address = descriptor[2];
                    if !list.iter().any(|known| known.address == address) {
                        list.push(EndpointState::new(descriptor, interface, link));
                    }
                }
                _ => {}
            }
        }
        Self { list }
    }

    /// The endpoint at `address`, if the configuration has it.
    #[must_use]
    pub fn find(&self, address: u8) -> Option<&EndpointState> {
        self.list
            .iter()
            .find(|endpoint| endpoint.address == address)
    }

    /// The endpoint at `address` to change.
    pub fn find_mut(&mut self, address: u8) -> Option<&mut EndpointState> {
        self.list
            .iter_mut()
            .find(|endpoint| endpoint.address == address)
    }

    /// Halts the endpoint at `address`: STALL until the host clears it.
    pub fn halt(&mut self, address: u8) {
        if let Some(endpoint) = self.find_mut(address) {
            endpoint.halted = true;
        }
    }

    /// All endpoints.
    pub fn iter(&self) -> impl Iterator<Item = &EndpointState> {
        self.list.iter()
    }
}

impl EndpointState {
    fn new(descriptor: &[u8], interface: u8, link: Link) -> Self {
        let field = u16::from_le_bytes([descriptor[4], descriptor[5]]) & 0x07ff;
        let bulk = descriptor[3] & 3 == 2;
        // A bulk endpoint works with the one size of its speed (USB 2.0 §5.8.3, USB 3.2 §9.6.6),
        // even when its descriptor lies.
        let maximum = match link {
            Link::Super | Link::SuperPlus if bulk => 1024,
            Link::High if bulk => 512,
            Link::Full if bulk && !matches!(field, 8 | 16 | 32 | 64) => 64,
            _ => usize::from(field),
        };
        Self {
            address: descriptor[2],
            interface,
            maximum,
            halted: false,
            sequence: 0,
        }
    }

    /// The number after `sequence` on `link`: the other toggle, or the next of 32.
    pub(super) fn advance(&mut self, link: Link) {
        self.sequence = next_sequence(self.sequence, link);
    }
}

/// The toggle or sequence number after `sequence`.
pub(super) const fn next_sequence(sequence: u8, link: Link) -> u8 {
    let mask = if link.is_super() { 31 } else { 1 };
    (sequence + 1) & mask
}

#[cfg(test)]
mod tests {
    use super::super::super::descriptor::{Configuration, Endpoint, Interface};
    use super::*;

    fn two_settings() -> Vec<u8> {
        let first = Interface::new(0).endpoint(Endpoint::bulk(0x81, Link::High));
        let second = Interface::new(0)
            .alternate(1)
            .endpoint(Endpoint::bulk(0x83, Link::High));
        Configuration::new(1)
            .interface(first)
            .interface(second)
            .bytes()
    }

    #[test]
    fn the_chosen_alternate_setting_decides_which_endpoints_exist() {
        let addresses = |alternates: &[(u8, u8)]| -> Vec<u8> {
            let endpoints = Endpoints::of_configuration(&two_settings(), alternates, Link::High);
            endpoints.iter().map(|endpoint| endpoint.address).collect()
        };
        assert_eq!(addresses(&[]), [0x81]);
        assert_eq!(addresses(&[(0, 1)]), [0x83]);
    }

    #[test]
    fn a_descriptor_of_length_zero_ends_the_walk() {
        let mut bytes = two_settings();
        bytes.truncate(25);
        bytes.extend([0, 0, 7, 5, 0x02, 2, 0, 2, 0]);
        let endpoints = Endpoints::of_configuration(&bytes, &[], Link::High);
        assert_eq!(endpoints.iter().count(), 1);
    }

    #[test]
    fn a_bulk_endpoint_works_with_the_size_of_its_speed_whatever_it_says() {
        let lying = Endpoint::bulk(0x81, Link::High).packet_size(1024);
        let bytes = Configuration::new(1)
            .interface(Interface::new(0).endpoint(lying))
            .bytes();
        let endpoints = Endpoints::of_configuration(&bytes, &[], Link::High);
        assert_eq!(
            endpoints.find(0x81).map(|endpoint| endpoint.maximum),
            Some(512)
        );
    }
}
