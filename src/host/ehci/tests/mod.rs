//! The driver as a whole, against the walker. One file for each theme; here is what they share.

mod control;
mod halts;
mod handshake;
mod kept;
mod life;
mod memory;
mod ports;
mod schedules;
mod transfers;

use super::testing::{Answer, Bell, FakeBus, PORTSC, Seen, Walker};
use super::*;
use crate::dma::testing::{TestMemory, segment};
use crate::dma::{Class, Owner, Pool, PoolRecord, Rules, Segment};
use crate::host::{
    Addressing, Attachment, DeviceHandle, Devices, EndpointConfig, EndpointHandle, EndpointKind,
    Endpoints, Event, HostController, HostError, Hubs, Outcome, Report, RootPort, RootPorts,
    Sequence, Token, Transfer, Translator,
};
use crate::time::Duration;
use crate::usb::setup::{Direction, SetupPacket};
use crate::usb::speed::Speed;

const BUS: u64 = 0x4000_0000;
const OUT: u8 = 0;
const IN: u8 = 1;
const SETUP: u8 = 2;

const HIGH: Attachment = Attachment {
    root_port: RootPort(0),
    route: 0,
    speed: Speed::High,
    max_packet0: 64,
    translator: None,
};

/// A controller, its pool, its walker and a clock.
struct Bench<'s> {
    ehci: Ehci<'s, FakeBus>,
    pool: Pool<'s>,
    walker: Walker,
    bus: FakeBus,
    now: Instant,
}

/// Runs `test` with a controller that runs.
fn bench(test: impl FnOnce(&mut Bench<'_>)) {
    with_options(Options::default(), |bench| {
        bench.start();
        test(bench);
    });
}

fn with_options(options: Options, test: impl FnOnce(&mut Bench<'_>)) {
    let memory = TestMemory::new(BUS, 0x8000);
    let mut records = [PoolRecord::EMPTY; 16];
    let mut storage = EhciMemory::<3, 8, 16>::new();
    let bus = FakeBus::controller();
    let ehci = Ehci::new(bus.clone(), 1, storage.slices(), options).unwrap();
    test(&mut Bench {
        ehci,
        pool: Pool::new(memory.region(), &mut records),
        walker: Walker {
            memory,
            bus: bus.clone(),
            seen: Vec::new(),
        },
        bus,
        now: Instant::from_micros(1_000),
    });
}

impl Bench<'_> {
    fn start(&mut self) {
        self.ehci.start(&mut self.pool, self.now);
        assert_eq!(self.until_event(), Event::Started(Ok(())));
    }

    fn poll(&mut self) -> Option<Event> {
        let event = self.ehci.poll(&mut self.pool, self.now);
        if event.is_none() {
            self.ehci.acknowledge_events();
        }
        event
    }

    /// Polls at the driver's own deadlines until something happens.
    fn until_event(&mut self) -> Event {
        let end = self.now + Duration::from_secs(2);
        loop {
            if let Some(event) = self.poll() {
                return event;
            }
            self.now = self.ehci.next_deadline().max(self.now);
            assert!(self.now < end, "nothing happens");
        }
    }

    fn open(&mut self) -> DeviceHandle {
        let device = self.ehci.open_device(&mut self.pool, &HIGH, self.now);
        let device = device.unwrap();
        self.settled(device);
        device
    }

    fn settled(&mut self, device: DeviceHandle) {
        let result = Ok(());
        assert_eq!(self.until_event(), Event::Device { device, result });
    }

    fn stopped(&mut self, endpoint: EndpointHandle) {
        let result = Ok(());
        assert_eq!(self.until_event(), Event::Endpoint { endpoint, result });
    }

    /// A device with a bulk pair.
    fn disk(&mut self) -> (DeviceHandle, EndpointHandle, EndpointHandle) {
        let device = self.open();
        let bulk_in = self.endpoint(device, &bulk(1, Direction::In));
        let bulk_out = self.endpoint(device, &bulk(2, Direction::Out));
        self.ehci.configure(device, self.now).unwrap();
        self.settled(device);
        (device, bulk_in, bulk_out)
    }

    fn endpoint(&mut self, device: DeviceHandle, config: &EndpointConfig) -> EndpointHandle {
        self.ehci
            .open_endpoint(&mut self.pool, device, config)
            .unwrap()
    }

    fn submit(&mut self, endpoint: EndpointHandle, transfer: &Transfer<'_>) {
        self.ehci.submit(endpoint, transfer).unwrap();
        self.ehci.kick(endpoint, 0);
    }

    fn quiesce(&mut self, endpoint: EndpointHandle) {
        self.ehci.quiesce(endpoint, self.now).unwrap();
    }

    fn restart(&mut self, endpoint: EndpointHandle, sequence: Sequence) {
        self.ehci.restart(endpoint, sequence, self.now).unwrap();
        self.stopped(endpoint);
    }
}

fn bulk(number: u8, direction: Direction) -> EndpointConfig {
    EndpointConfig {
        number,
        direction,
        kind: EndpointKind::Bulk,
        max_packet: 512,
        max_burst: 0,
        interval: 0,
        transfers: 3,
        longest: 64 * 1024,
        streams: 0,
    }
}

fn transfer(token: u32, direction: Direction, segments: &[Segment]) -> Transfer<'_> {
    Transfer {
        token: Token(token),
        setup: None,
        direction,
        segments,
        report: Report::Always,
        stream: 0,
    }
}

fn quiet<'t>(transfer: Transfer<'t>) -> Transfer<'t> {
    Transfer {
        report: Report::Unexpected,
        ..transfer
    }
}

fn ended(endpoint: EndpointHandle, token: u32, outcome: Outcome, actual: u32) -> Event {
    Event::Transfer {
        endpoint,
        token: Token(token),
        outcome,
        actual,
    }
}

fn toggles(seen: &[Seen]) -> Vec<u32> {
    seen.iter().map(|seen| seen.toggle).collect()
}
