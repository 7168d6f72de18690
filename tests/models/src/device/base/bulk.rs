//! Packets of endpoints other than 0: halts, toggles and sizes are checked before the function sees a
//! payload (USB 2.0 §8.6, §5.8.3, §8.4.4; USB 3.2 §8.11).

use super::super::{Link, Nanoseconds, Packet, Reply};
use super::Device;
use super::control::sequence_section;
use super::endpoints::EndpointState;
use super::function::{Function, Given, Taken};

impl<F: Function> Device<F> {
    /// A packet to an endpoint other than 0.
    pub(super) fn bulk(
        &mut self,
        now: Nanoseconds,
        link: Link,
        address: u8,
        packet: Packet<'_>,
    ) -> Reply {
        self.with_wire(now, |function, wire| function.advance(wire));
        let Some(endpoint) = self.state.endpoints.find(address).cloned() else {
            let text = format!("a packet for endpoint {address:#04x}, which does not exist now");
            self.violations.record(now, "USB 2.0 §9.2.3", text);
            return Reply::Silent;
        };
        if endpoint.halted {
            return Reply::Stall;
        }
        match packet {
            Packet::Out {
                data,
                sequence,
                stream,
            } => self.bulk_out(now, link, &endpoint, (data, sequence, stream)),
            Packet::In {
                sequence,
                maximum,
                stream,
            } => self.bulk_in(now, link, &endpoint, (sequence, maximum, stream)),
            Packet::Ping => {
                let taken = self.with_wire(now, |function, wire| function.has_room(wire, address));
                self.reply_to_out(taken, address)
            }
            Packet::Prime => {
                let taken = self.with_wire(now, |function, wire| function.prime(wire, address));
                self.reply_to_out(taken, address)
            }
            Packet::Setup(_) | Packet::Status => {
                self.violations
                    .record(now, "USB 2.0 §8.5.3", "SETUP or STATUS at a data endpoint");
                Reply::Silent
            }
        }
    }

    fn bulk_out(
        &mut self,
        now: Nanoseconds,
        link: Link,
        endpoint: &EndpointState,
        (data, sequence, stream): (&[u8], u8, u16),
    ) -> Reply {
        let address = endpoint.address;
        if data.len() > endpoint.maximum {
            let text = format!(
                "{} bytes in a packet of endpoint {address:#04x}",
                data.len()
            );
            self.violations.record(now, "USB 2.0 §8.4.4", text);
            return Reply::Silent;
        }
        if sequence != endpoint.sequence {
            self.wrong_sequence(now, link, endpoint, sequence);
            // USB 2.0 §8.6.3: taken for a repeat, acknowledged and dropped. SuperSpeed drops it.
            return if link.is_super() {
                Reply::Silent
            } else {
                Reply::Ack
            };
        }
        let taken = self.with_wire(now, |function, wire| {
            function.take(wire, address, stream, data)
        });
        if matches!(taken, Taken::Yes | Taken::Last)
            && let Some(endpoint) = self.state.endpoints.find_mut(address)
        {
            endpoint.advance(link);
        }
        self.reply_to_out(taken, address)
    }

    fn reply_to_out(&mut self, taken: Taken, address: u8) -> Reply {
        match taken {
            Taken::Yes => Reply::Ack,
            Taken::Last if self.state.link == Some(Link::High) => Reply::Nyet,
            Taken::Last => Reply::Ack,
            Taken::Busy => Reply::Nak,
            Taken::Silent => Reply::Silent,
            Taken::Halt => {
                self.state.endpoints.halt(address);
                Reply::Stall
            }
        }
    }

    fn bulk_in(
        &mut self,
        now: Nanoseconds,
        link: Link,
        endpoint: &EndpointState,
        (expected, maximum, stream): (u8, usize, u16),
    ) -> Reply {
        let address = endpoint.address;
        if maximum != endpoint.maximum {
            let text = format!(
                "the host thinks that packets of endpoint {address:#04x} have {maximum} bytes \
                 and not {}",
                endpoint.maximum
            );
            self.violations.record(now, "USB 2.0 §5.8.3", text);
        }
        let given = self.with_wire(now, |function, wire| {
            function.give(wire, address, stream, endpoint.maximum)
        });
        match given {
            Given::Packet { bytes, last } => {
                if expected != endpoint.sequence {
                    self.wrong_sequence(now, link, endpoint, expected);
                }
                if let Some(endpoint) = self.state.endpoints.find_mut(address) {
                    endpoint.advance(link);
                }
                Reply::Data {
                    bytes,
                    sequence: endpoint.sequence,
                    end_of_burst: last,
                }
            }
            Given::Busy => Reply::Nak,
            Given::Silent => Reply::Silent,
            Given::Halt => {
                self.state.endpoints.halt(address);
                Reply::Stall
            }
        }
    }

    fn wrong_sequence(&self, now: Nanoseconds, link: Link, endpoint: &EndpointState, host: u8) {
        let text = format!(
            "sequence {host} on endpoint {:#04x} where the device is at {}",
            endpoint.address, endpoint.sequence
        );
        self.violations.record(now, sequence_section(link), text);
    }
}
