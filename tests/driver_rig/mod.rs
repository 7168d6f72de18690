//! What the tests of the controllers' drivers share: a driver on a modelled machine, and the part of
//! the USB core that is needed to get at a disk. `rig` of each says which controller and driver.
//!
//! `recovery` has the tests that are the same for every kind: both run them by the same names.

pub(crate) mod recovery;

use rootport::dma::{self, Allocation, Class, Owner, Pool, PoolRecord, Rules, Segment};
use rootport::host::{
    Addressing, Attachment, ControllerFault, DeviceHandle, EndpointConfig, EndpointHandle,
    EndpointKind, Event, HostError, Outcome, PortProtocol, Report, RootPort, Sequence, Token,
    Transfer,
};
use rootport::platform::Platform;
use rootport::time::{Duration, Instant};
use rootport::usb::Driver;
use rootport::usb::descriptor::EndpointAddress;
use rootport::usb::setup::{Direction, SetupPacket};
use rootport::usb::speed::Speed;
use rootport_models::adapter::ModelPlatform;
use rootport_models::machine::{self, Machine};

pub(crate) use recovery::{READ, script, with_disk};

/// A machine with one controller, before a driver has it: its shape, what goes wrong with it, and how the
/// driver is to be made.
#[derive(Clone, Default)]
pub(crate) struct Setting<Traits, Faults, Options> {
    pub(crate) machine: machine::Options,
    pub(crate) traits: Traits,
    pub(crate) faults: Faults,
    pub(crate) options: Options,
}

/// Runs `test` with the memory that a driver works in: the machine's pool, and some of it for data.
pub(crate) fn with_memory<R>(
    machine: &Machine,
    test: impl FnOnce(ModelPlatform, Pool<'_>, Allocation) -> R,
) -> R {
    let platform = ModelPlatform::new(machine);
    let mut records = [PoolRecord::EMPTY; 64];
    let mut pool = Pool::new(platform.coherent_region(1 << 20), &mut records);
    let rules = Rules::aligned(0x1_0000);
    let data = pool
        .allocate(Owner::Host, Class::Bounce, 0x4_0000, rules)
        .unwrap();
    dma::release();
    test(platform, pool, data)
}

/// The driver on its machine.
pub(crate) struct Rig<'s, D> {
    pub(crate) machine: Machine,
    pub(crate) platform: ModelPlatform,
    pub(crate) driver: D,
    pub(crate) pool: Pool<'s>,
    /// Memory for data, 256 KiB on a 64 KiB boundary.
    pub(crate) data: Allocation,
    /// Events that nobody has asked for yet.
    pub(crate) left: Vec<Event>,
    /// Called after each wait, as an interrupt handler would be.
    pub(crate) handler: Option<Box<dyn FnMut() + 's>>,
}

/// Moments at which a start may stand anywhere: close together at first, up to a second.
pub(crate) fn moments_of_a_start() -> impl Iterator<Item = Duration> {
    let next = |before: &u64| Some(before + 20 + before / 10);
    let moments = std::iter::successors(Some(0), next);
    let moments = moments.take_while(|microseconds| *microseconds < 1_000_000);
    moments.map(Duration::from_micros)
}

/// How a transfer ended: token, outcome, bytes.
pub(crate) type Ended = (u32, Outcome, u32);

impl<'s, D: Driver> Rig<'s, D> {
    /// A driver that was not started.
    pub(crate) fn new(
        machine: &Machine,
        platform: ModelPlatform,
        driver: D,
        pool: Pool<'s>,
        data: Allocation,
    ) -> Self {
        Self {
            machine: machine.clone(),
            platform,
            driver,
            pool,
            data,
            left: Vec::new(),
            handler: None,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.platform.now()
    }

    /// Polls until an event is what `wanted` looks for; the others are kept. `None` after `limit`.
    pub(crate) fn try_find<T>(
        &mut self,
        limit: Duration,
        mut wanted: impl FnMut(&Event) -> Option<T>,
    ) -> Option<T> {
        for index in 0..self.left.len() {
            if let Some(found) = wanted(&self.left[index]) {
                self.left.remove(index);
                return Some(found);
            }
        }
        let end = self.now() + limit;
        loop {
            let mut found = None;
            while let Some(event) = self.driver.poll(&mut self.pool, self.platform.now()) {
                match wanted(&event) {
                    Some(value) if found.is_none() => {
                        found = Some(value);
                        break;
                    }
                    _ => self.left.push(event),
                }
            }
            self.driver.acknowledge_events();
            if found.is_some() || self.now() >= end {
                return found;
            }
            self.platform.wait(end.min(self.driver.next_deadline()));
            if let Some(handler) = &mut self.handler {
                handler();
            }
        }
    }

    /// The same, for what must come.
    pub(crate) fn find<T>(&mut self, wanted: impl FnMut(&Event) -> Option<T>) -> T {
        let found = self.try_find(Duration::from_secs(30), wanted);
        found.unwrap_or_else(|| panic!("it never came; left: {:?}", self.left))
    }

    /// Lets time pass while events are collected.
    pub(crate) fn idle(&mut self, span: Duration) {
        assert_eq!(self.try_find(span, |_| None::<()>), None);
    }

    pub(crate) fn start(&mut self) -> Result<(), ControllerFault> {
        let now = self.now();
        self.driver.start(&mut self.pool, now);
        self.find(|event| match event {
            Event::Started(result) => Some(*result),
            _ => None,
        })
    }

    pub(crate) fn stop(&mut self) -> Result<(), ControllerFault> {
        let now = self.now();
        self.driver.stop(now);
        self.find(|event| match event {
            Event::Stopped(result) => Some(*result),
            _ => None,
        })
    }

    /// Stops a driver so long after it was told to start, and starts it again. Returns whether it ran by then.
    pub(crate) fn stop_while_starting(&mut self, after: Duration) -> bool {
        let now = self.now();
        self.driver.start(&mut self.pool, now);
        self.idle(after);
        let runs = self.left.contains(&Event::Started(Ok(())));
        self.left.clear();
        assert_eq!(self.stop(), Ok(()), "after {after:?}");
        self.pool.reclaim_controller(0);
        assert_eq!(self.start(), Ok(()), "after {after:?}");
        assert_eq!(self.stop(), Ok(()), "after {after:?}");
        self.pool.reclaim_controller(0);
        runs
    }

    pub(crate) fn device_result(&mut self, wanted: DeviceHandle) -> Result<(), HostError> {
        self.find(|event| match event {
            Event::Device { device, result } if *device == wanted => Some(*result),
            _ => None,
        })
    }

    pub(crate) fn endpoint_result(&mut self, wanted: EndpointHandle) -> Result<(), HostError> {
        self.find(|event| match event {
            Event::Endpoint { endpoint, result } if *endpoint == wanted => Some(*result),
            _ => None,
        })
    }

    /// The next transfer of an endpoint that ends.
    pub(crate) fn ended(&mut self, wanted: EndpointHandle) -> Ended {
        self.find(|event| match event {
            Event::Transfer {
                endpoint,
                token,
                outcome,
                actual,
            } if *endpoint == wanted => Some((token.0, *outcome, *actual)),
            _ => None,
        })
    }

    /// Transfers of an endpoint that were reported and not asked for.
    pub(crate) fn ended_so_far(&mut self, wanted: EndpointHandle) -> Vec<Ended> {
        let mut all = Vec::new();
        self.left.retain(|event| match event {
            Event::Transfer {
                endpoint,
                token,
                outcome,
                actual,
            } if *endpoint == wanted => {
                all.push((token.0, *outcome, *actual));
                false
            }
            _ => true,
        });
        all
    }

    /// Waits for a device in a port and resets it as far as its bus wants.
    pub(crate) fn connect(&mut self, port: usize) -> Attachment {
        let port = RootPort(port as u8);
        self.driver.power_port(port, true);
        for _ in 0..1000 {
            let status = self.driver.read_port(port);
            self.driver.acknowledge(port, &status);
            let waits = status.connected && !status.enabled && !status.resetting;
            if waits && self.driver.port_protocol(port) == PortProtocol::Usb2 {
                self.idle(Duration::from_millis(100));
                self.reset(port);
            } else if status.connected && status.enabled {
                self.idle(Duration::from_millis(20));
                return attachment(port, status.speed.unwrap());
            }
            self.idle(Duration::from_millis(1));
        }
        panic!(
            "no device came up at {port:?}: {:?}",
            self.driver.read_port(port)
        );
    }

    /// Resets a port, where software times that to the end that the driver reports.
    pub(crate) fn reset(&mut self, port: RootPort) {
        self.driver.begin_reset(port);
        let Some(hold) = self.driver.capabilities().reset_hold else {
            return;
        };
        self.idle(hold);
        self.left.retain(|event| *event != Event::Port(port));
        self.driver.end_reset(port);
        self.find(|event| (*event == Event::Port(port)).then_some(()));
        assert!(!self.driver.read_port(port).resetting);
    }

    /// Opens and addresses a device.
    pub(crate) fn address(&mut self, attachment: &Attachment) -> DeviceHandle {
        let now = self.now();
        let device = self
            .driver
            .open_device(&mut self.pool, attachment, now)
            .unwrap();
        self.device_result(device).unwrap();
        let now = self.now();
        match self.driver.address_device(device, now).unwrap() {
            Addressing::Controller => {
                self.device_result(device).unwrap();
                self.idle(Duration::from_millis(10));
            }
            Addressing::Software(address) => {
                let set = SetupPacket::set_address(address);
                assert_eq!(self.control(device, set), (Outcome::Complete, 0));
                self.idle(Duration::from_millis(10));
                self.driver.adopt_address(device, address);
            }
        }
        device
    }

    /// Begins a control transfer with data at the start of the data memory.
    pub(crate) fn try_control(
        &mut self,
        device: DeviceHandle,
        setup: SetupPacket,
    ) -> Result<EndpointHandle, HostError> {
        let endpoint = self.driver.endpoint0(device).unwrap();
        let segments = [self.segment(0, usize::from(setup.length))];
        let transfer = Transfer {
            token: Token(0xc0),
            setup: Some(setup),
            direction: setup.direction(),
            segments: &segments,
            report: Report::Always,
            stream: 0,
        };
        self.driver.submit(endpoint, &transfer)?;
        self.driver.kick(endpoint, 0);
        Ok(endpoint)
    }

    /// A control transfer, to its end.
    pub(crate) fn control(&mut self, device: DeviceHandle, setup: SetupPacket) -> (Outcome, u32) {
        let endpoint = self.try_control(device, setup).unwrap();
        let (token, outcome, actual) = self.ended(endpoint);
        assert_eq!(token, 0xc0);
        (outcome, actual)
    }

    pub(crate) fn segment(&self, offset: usize, length: usize) -> Segment {
        self.data.raw(offset, length).unwrap().into()
    }

    /// Queues a transfer of one piece of the data memory.
    pub(crate) fn queue(
        &mut self,
        endpoint: EndpointHandle,
        token: u32,
        direction: Direction,
        piece: (usize, usize),
        report: Report,
    ) {
        let segments = [self.segment(piece.0, piece.1)];
        let transfer = Transfer {
            token: Token(token),
            setup: None,
            direction,
            segments: &segments,
            report,
            stream: 0,
        };
        self.driver.submit(endpoint, &transfer).unwrap();
    }

    pub(crate) fn quiesce(&mut self, endpoint: EndpointHandle) -> Result<(), HostError> {
        let now = self.now();
        self.driver.quiesce(endpoint, now)?;
        self.endpoint_result(endpoint)
    }

    pub(crate) fn restart(
        &mut self,
        endpoint: EndpointHandle,
        sequence: Sequence,
    ) -> Result<(), HostError> {
        let now = self.now();
        self.driver.restart(endpoint, sequence, now)?;
        self.endpoint_result(endpoint)
    }

    pub(crate) fn close(&mut self, device: DeviceHandle) -> Result<(), HostError> {
        let now = self.now();
        self.driver.close_device(device, now)?;
        self.device_result(device)
    }

    /// Brings a modelled disk up, with both bulk endpoints.
    pub(crate) fn disk(&mut self, port: usize) -> DiskRig {
        let attachment = self.connect(port);
        let device = self.address(&attachment);
        assert_eq!(self.control(device, SetupPacket::device_descriptor(8)).1, 8);
        let mut head = [0; 8];
        self.data.read_bytes(0, &mut head);
        let size = match attachment.speed {
            Speed::Super | Speed::SuperPlus => 1 << head[7],
            _ => u16::from(head[7]),
        };
        let now = self.now();
        self.driver.set_max_packet0(device, size, now).unwrap();
        self.device_result(device).unwrap();
        let (outcome, length) = self.control(device, SetupPacket::configuration_descriptor(0, 255));
        assert_eq!(outcome, Outcome::Short);
        let [input, output] = self.bulk_endpoints(length);
        let addresses = [0x80 | input.number, output.number];
        let now = self.now();
        let pool = &mut self.pool;
        let input = self.driver.open_endpoint(pool, device, &input).unwrap();
        let output = self.driver.open_endpoint(pool, device, &output).unwrap();
        self.driver.configure(device, now).unwrap();
        self.device_result(device).unwrap();
        let configured = self.control(device, SetupPacket::set_configuration(1));
        assert_eq!(configured, (Outcome::Complete, 0));
        DiskRig {
            device,
            addresses,
            input,
            output,
            tag: 0,
        }
    }

    /// The bulk endpoints of the configuration in the data memory: in, out.
    fn bulk_endpoints(&self, length: u32) -> [EndpointConfig; 2] {
        let mut bytes = vec![0; length as usize];
        self.data.read_bytes(0, &mut bytes);
        let mut found: Vec<EndpointConfig> = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at + 1] {
                5 => found.push(bulk_config(&bytes[at..])),
                0x30 => {
                    if let Some(last) = found.last_mut() {
                        last.max_burst = bytes[at + 2];
                    }
                }
                _ => {}
            }
            at += usize::from(bytes[at]);
        }
        let of = |direction| *found.iter().find(|one| one.direction == direction).unwrap();
        [of(Direction::In), of(Direction::Out)]
    }

    /// Queues READ(10) as a Bulk-Only device takes it, all three transfers at once, with the data
    /// at `start`.
    pub(crate) fn queue_read(&mut self, disk: &mut DiskRig, lba: u32, blocks: u16, start: usize) {
        self.queue_read_data(disk, (lba, blocks, start), Report::Unexpected);
        self.queue(disk.input, 3, Direction::In, (STATUS, 1024), Report::Always);
        self.driver.kick(disk.input, 0);
    }

    /// Queues its wrapper and data, without the status.
    pub(crate) fn queue_read_data(
        &mut self,
        disk: &mut DiskRig,
        (lba, blocks, start): (u32, u16, usize),
        report: Report,
    ) {
        disk.tag += 1;
        let bytes = u32::from(blocks) * 512;
        let wrapper = command_wrapper(disk.tag, bytes, 0x28, lba, blocks);
        self.data.write_bytes(WRAPPER, &wrapper);
        let data = (start, bytes as usize);
        self.queue(
            disk.output,
            1,
            Direction::Out,
            (WRAPPER, 31),
            Report::Unexpected,
        );
        self.driver.kick(disk.output, 0);
        self.queue(disk.input, 2, Direction::In, data, report);
    }

    /// Reads blocks to `start`. Returns how data and status ended, and the status byte, or 0xff after a
    /// transfer that ended badly.
    pub(crate) fn read_blocks(
        &mut self,
        disk: &mut DiskRig,
        lba: u32,
        blocks: u16,
        start: usize,
    ) -> (Vec<Ended>, u8) {
        self.queue_read(disk, lba, blocks, start);
        let mut ended = Vec::new();
        while ended.last().is_none_or(|last: &Ended| last.0 != 3) {
            ended.push(self.ended(disk.input));
            if !ended.last().unwrap().1.is_ok() {
                return (ended, 0xff);
            }
        }
        self.driver.retire(disk.output);
        let mut status = [0; 13];
        self.data.read_bytes(STATUS, &mut status);
        assert_eq!(status[..4], *b"USBS");
        assert_eq!(status[4..8], disk.tag.to_le_bytes());
        (ended, status[12])
    }

    /// Reads blocks to `start` and returns their bytes.
    pub(crate) fn read_at(&mut self, disk: &mut DiskRig, start: usize, blocks: u16) -> Vec<u8> {
        let (ended, status) = self.read_blocks(disk, 0, blocks, start);
        assert_eq!(ended, [(3, Outcome::Short, 13)]);
        assert_eq!(status, 0);
        let mut bytes = vec![0; usize::from(blocks) * 512];
        self.data.read_bytes(start, &mut bytes);
        bytes
    }

    /// Brings a pair of endpoints back after one has halted: Bulk-Only's reset recovery without
    /// the class request.
    pub(crate) fn recover(&mut self, disk: &DiskRig) {
        for (endpoint, address) in [
            (disk.input, disk.addresses[0]),
            (disk.output, disk.addresses[1]),
        ] {
            self.quiesce(endpoint).unwrap();
            let clear = SetupPacket::clear_endpoint_halt(endpoint_address(address));
            assert_eq!(self.control(disk.device, clear), (Outcome::Complete, 0));
            self.restart(endpoint, Sequence::Reset).unwrap();
        }
    }
}

/// A disk that is up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskRig {
    pub(crate) device: DeviceHandle,
    /// Addresses of the endpoints: in, out.
    pub(crate) addresses: [u8; 2],
    pub(crate) input: EndpointHandle,
    pub(crate) output: EndpointHandle,
    pub(crate) tag: u32,
}

impl DiskRig {
    pub(crate) fn address_in(&self) -> EndpointAddress {
        endpoint_address(self.addresses[0])
    }
}

fn endpoint_address(byte: u8) -> EndpointAddress {
    EndpointAddress::new(byte & 0xf, Direction::from_bit_7(byte)).unwrap()
}

/// Where the command wrapper and the status lie in the data memory.
pub(crate) const WRAPPER: usize = 0x3_0000;
pub(crate) const STATUS: usize = 0x3_1000;

/// A device on a root port.
pub(crate) fn attachment(root_port: RootPort, speed: Speed) -> Attachment {
    Attachment {
        root_port,
        route: 0,
        speed,
        max_packet0: match speed {
            Speed::Low => 8,
            Speed::Full | Speed::High => 64,
            Speed::Super | Speed::SuperPlus => 512,
        },
        translator: None,
    }
}

fn bulk_config(descriptor: &[u8]) -> EndpointConfig {
    EndpointConfig {
        number: descriptor[2] & 0xf,
        direction: Direction::from_bit_7(descriptor[2]),
        kind: EndpointKind::Bulk,
        max_packet: u16::from_le_bytes([descriptor[4], descriptor[5]]),
        max_burst: 0,
        interval: 0,
        transfers: 3,
        longest: 0x2_0000,
        streams: 0,
    }
}

pub(crate) fn command_wrapper(tag: u32, bytes: u32, opcode: u8, lba: u32, blocks: u16) -> [u8; 31] {
    let mut wrapper = [0; 31];
    wrapper[..4].copy_from_slice(b"USBC");
    wrapper[4..8].copy_from_slice(&tag.to_le_bytes());
    wrapper[8..12].copy_from_slice(&bytes.to_le_bytes());
    wrapper[12] = 0x80;
    wrapper[14] = 10;
    wrapper[15] = opcode;
    wrapper[17..21].copy_from_slice(&lba.to_be_bytes());
    wrapper[22..24].copy_from_slice(&blocks.to_be_bytes());
    wrapper
}
