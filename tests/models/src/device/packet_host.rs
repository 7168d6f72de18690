//! A tiny host that drives a device directly with packets, for tests of device models.
//!
//! It is as simple as a correct host can be: no controller, no queues, one packet at a time. Time
//! passes by 10 µs a transaction and jumps to the device's hint when it answers NAK. It recovers from
//! nothing by itself: a fault is the caller's to see.

use std::collections::BTreeMap;

use super::{Link, MILLISECOND, Nanoseconds, Packet, Reply, SECOND, UsbDevice};

mod bulk_only;

pub use bulk_only::{Data, Status};

/// How a transfer failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// STALL.
    Stall,
    /// No answer.
    Silent,
    /// NAK until the host's patience ended.
    Timeout,
    /// More bytes in a packet than there was room for.
    Babble,
}

/// The host with the device that it drives.
pub struct PacketHost<D> {
    /// The device.
    pub device: D,
    /// The present time.
    pub now: Nanoseconds,
    /// How long it waits for anything.
    pub patience: Nanoseconds,
    /// The address that it sends to.
    pub address: u8,
    /// Packet size of endpoint 0 in bytes: 64 until the caller knows better, at SuperSpeed 512.
    pub control_size: usize,
    /// Bulk IN and bulk OUT endpoint of Bulk-Only commands.
    pub pipes: (u8, u8),
    port: Link,
    link: Link,
    sequences: BTreeMap<u8, u8>,
}

impl<D: UsbDevice> PacketHost<D> {
    /// Powers and resets the device and waits the specified times.
    ///
    /// # Panics
    /// If the device never shows itself.
    #[must_use]
    pub fn plug(device: D) -> Self {
        Self::plug_into(device, Link::SuperPlus)
    }

    /// As [`Self::plug`], into a port that is no faster than `port`.
    ///
    /// # Panics
    /// If the device never shows itself.
    #[must_use]
    pub fn plug_into(device: D, port: Link) -> Self {
        let mut host = Self {
            device,
            now: 0,
            patience: 5 * SECOND,
            address: 0,
            control_size: 64,
            pipes: (0x81, 0x02),
            port,
            link: port,
            sequences: BTreeMap::new(),
        };
        host.device.power_on(0);
        host.now = 100 * MILLISECOND;
        host.reset();
        host
    }

    /// Resets the bus, as soon as the device shows itself, and waits 10 ms.
    ///
    /// # Panics
    /// If the device never shows itself.
    pub fn reset(&mut self) {
        while self.device.link(self.now).is_none() {
            self.now = self
                .device
                .link_changes_at(self.now)
                .expect("the device never comes");
        }
        let shown = self.device.link(self.now).expect("just seen");
        self.link = shown.min(self.port);
        self.now += 50 * MILLISECOND;
        self.device.bus_reset(self.now, self.link);
        self.now += 10 * MILLISECOND;
        self.address = 0;
        self.control_size = if self.link.is_super() { 512 } else { 64 };
        self.sequences.clear();
    }

    /// Gives the address 5 and the configuration 1.
    ///
    /// # Errors
    /// If the device does not take part.
    pub fn enumerate(&mut self) -> Result<(), Fault> {
        self.control([0x00, 5, 5, 0, 0, 0, 0, 0], &[])?;
        self.address = 5;
        self.now += 2 * MILLISECOND;
        self.control([0x00, 9, 1, 0, 0, 0, 0, 0], &[])?;
        Ok(())
    }

    /// A control transfer; the data that came, for IN requests.
    ///
    /// # Errors
    /// The stage that failed says how.
    ///
    /// # Panics
    /// If SETUP is answered by anything but ACK.
    pub fn control(&mut self, setup: [u8; 8], out: &[u8]) -> Result<Vec<u8>, Fault> {
        let length = usize::from(u16::from_le_bytes([setup[6], setup[7]]));
        match self.transact(0, Packet::Setup(setup))? {
            Reply::Ack => {}
            reply => panic!("SETUP got {reply:?}"),
        }
        let is_in = setup[0] & 0x80 != 0 && length > 0;
        let mut sequence = u8::from(!self.link.is_super());
        let mut received = Vec::new();
        if is_in {
            while received.len() < length {
                let packet = self.read_packet(
                    0x80,
                    self.control_size,
                    length - received.len(),
                    &mut sequence,
                )?;
                received.extend(&packet);
                if packet.len() < self.control_size {
                    break;
                }
            }
        }
        for chunk in out.chunks(self.control_size) {
            self.transact(
                0,
                Packet::Out {
                    data: chunk,
                    sequence,
                    stream: 0,
                },
            )?;
            sequence = self.next(sequence);
        }
        let status = match is_in {
            _ if self.link.is_super() => Packet::Status,
            true => Packet::Out {
                data: &[],
                sequence: 1,
                stream: 0,
            },
            false => Packet::In {
                sequence: 1,
                maximum: 64,
                stream: 0,
            },
        };
        self.transact(if is_in { 0 } else { 0x80 }, status)?;
        Ok(received)
    }

    /// Clears the halt of an endpoint at the device and in the host.
    ///
    /// # Errors
    /// If the device does not take part.
    pub fn clear_halt(&mut self, endpoint: u8) -> Result<(), Fault> {
        self.control([0x02, 1, 0, 0, endpoint, 0, 0, 0], &[])?;
        self.sequences.remove(&endpoint);
        Ok(())
    }

    /// Sends `data` in full packets and the rest.
    ///
    /// # Errors
    /// The halt, silence or patience that ended it.
    pub fn bulk_out(&mut self, endpoint: u8, data: &[u8]) -> Result<(), Fault> {
        let mut sequence = self.sequence(endpoint);
        for chunk in data.chunks(self.bulk_size()) {
            self.transact(
                endpoint,
                Packet::Out {
                    data: chunk,
                    sequence,
                    stream: 0,
                },
            )?;
            sequence = self.next(sequence);
            self.sequences.insert(endpoint, sequence);
        }
        Ok(())
    }

    /// Reads at most `length` bytes, until a short packet.
    ///
    /// # Errors
    /// The halt, silence, patience or babble that ended it.
    pub fn bulk_in(&mut self, endpoint: u8, length: usize) -> Result<Vec<u8>, Fault> {
        let size = self.bulk_size();
        let mut received = Vec::new();
        while received.len() < length {
            let mut sequence = self.sequence(endpoint);
            let room = length - received.len();
            let packet = self.read_packet(endpoint, size, room, &mut sequence)?;
            self.sequences.insert(endpoint, sequence);
            received.extend(&packet);
            if packet.len() < size {
                break;
            }
        }
        Ok(received)
    }

    /// One IN transaction, whatever it brings; moves `sequence` on.
    ///
    /// # Errors
    /// As [`Self::bulk_in`].
    ///
    /// # Panics
    /// If the device's packet has another sequence than expected.
    pub fn read_packet(
        &mut self,
        endpoint: u8,
        maximum: usize,
        room: usize,
        sequence: &mut u8,
    ) -> Result<Vec<u8>, Fault> {
        match self.transact(
            endpoint,
            Packet::In {
                sequence: *sequence,
                maximum,
                stream: 0,
            },
        )? {
            Reply::Data {
                bytes,
                sequence: came,
                ..
            } => {
                assert_eq!(came, *sequence, "the device's packet has the wrong number");
                *sequence = self.next(came);
                if bytes.len() > room {
                    Err(Fault::Babble)
                } else {
                    Ok(bytes)
                }
            }
            reply => panic!("IN got {reply:?}"),
        }
    }

    /// One transaction, repeated while the device answers NAK.
    ///
    /// # Errors
    /// Every answer but ACK, NYET and data.
    pub fn transact(&mut self, endpoint: u8, packet: Packet<'_>) -> Result<Reply, Fault> {
        let deadline = self.now + self.patience;
        loop {
            self.now += 10_000;
            match self
                .device
                .transact(self.now, self.address, endpoint, packet)
            {
                Reply::Nak => {}
                Reply::Stall => return Err(Fault::Stall),
                Reply::Silent | Reply::Corrupt => return Err(Fault::Silent),
                reply => return Ok(reply),
            }
            let ready = self
                .device
                .ready_at(endpoint, 0)
                .filter(|ready| *ready <= deadline);
            let Some(ready) = ready else {
                self.now = deadline;
                return Err(Fault::Timeout);
            };
            self.now = self.now.max(ready);
        }
    }

    fn sequence(&self, endpoint: u8) -> u8 {
        self.sequences.get(&endpoint).copied().unwrap_or(0)
    }

    fn next(&self, sequence: u8) -> u8 {
        (sequence + 1) & if self.link.is_super() { 31 } else { 1 }
    }

    fn bulk_size(&self) -> usize {
        match self.link {
            Link::Low | Link::Full => 64,
            Link::High => 512,
            Link::Super | Link::SuperPlus => 1024,
        }
    }
}
