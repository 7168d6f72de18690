//! A controller without hardware, for tests of what is above the five traits.
//!
//! It does at once what it is told, or never, or refuses it, as a test wishes; control requests are
//! answered as by a Bulk-Only stick, other transfers stay in flight until the test ends them. A
//! clone is the same controller.

use core::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;

use super::{BusStorage, ControllerSlot};
use crate::dma::testing::TestMemory;
use crate::dma::{CoherentRegion, Pool, PoolRecord};
use crate::host::{
    Addressing, Attachment, Capabilities, ControllerFault, DeviceHandle, Devices, EndpointConfig,
    EndpointHandle, Endpoints, Event, HostController, HostError, HubInfo, Hubs, Outcome,
    PortProtocol, PortStatus, Requirement, RootPort, RootPorts, Sequence, Token, Transfer,
};
use crate::time::Instant;
use crate::usb::bus::{Bus, BusEvent};
use crate::usb::descriptor::DescriptorKind;
use crate::usb::setup::{Direction, SetupPacket};
use crate::usb::speed::Speed;
use crate::usb::{DeviceEntry, PortEntry};

/// What a controller is told to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    Start,
    Stop,
    Abandon,
    Open,
    ReachAtZero,
    Address,
    Configure,
    Close,
    Quiesce,
    Restart(Sequence),
    Control(SetupPacket),
    Submit(Direction),
    Reset(RootPort),
    Disable(RootPort),
}

/// A transfer that has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct InFlight {
    pub(crate) endpoint: EndpointHandle,
    pub(crate) direction: Direction,
    pub(crate) token: Token,
}

/// What a test sees and sets.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) number: u8,
    pub(crate) ports: Vec<PortStatus>,
    pub(crate) events: VecDeque<Event>,
    pub(crate) calls: Vec<Call>,
    pub(crate) in_flight: Vec<InFlight>,
    /// These never end.
    pub(crate) silent: Vec<Call>,
    /// These are refused.
    pub(crate) refused: Vec<(Call, HostError)>,
    /// Requests on endpoint 0 get no answer.
    pub(crate) mute: bool,
    /// How often it was told how far its events were taken.
    pub(crate) acknowledged: usize,
    protocol: PortProtocol,
    /// Ports from here on are SuperSpeed ports all the same.
    pub(crate) super_speed_from: u8,
    /// A port's contact closes, or opens, just before what it has shown is acknowledged.
    pub(crate) bounces: bool,
    memory: TestMemory,
    /// Handed out so far. Endpoint 0 of every device has the index 0.
    endpoints: u8,
    devices: u8,
}

impl State {
    pub(crate) fn count(&self, call: Call) -> usize {
        self.calls.iter().filter(|made| **made == call).count()
    }

    /// Connects or disconnects a device, and says that the port has changed.
    pub(crate) fn connect(&mut self, port: u8, connected: bool) {
        let status = &mut self.ports[usize::from(port)];
        status.connected = connected;
        status.enabled = status.enabled && connected;
        status.connect_changed = true;
        self.events.push_back(Event::Port(RootPort(port)));
    }

    /// Ends the oldest transfer in this direction that is not on endpoint 0.
    #[track_caller]
    pub(crate) fn end(&mut self, direction: Direction, outcome: Outcome, actual: u32) {
        let is_it =
            |transfer: &InFlight| transfer.direction == direction && transfer.endpoint.index != 0;
        let place = self.in_flight.iter().position(is_it);
        let transfer = self.in_flight.remove(place.expect("nothing in flight"));
        self.events.push_back(Event::Transfer {
            endpoint: transfer.endpoint,
            token: transfer.token,
            outcome,
            actual,
        });
    }

    /// Ends the closing of the newest device, with all that is in flight.
    pub(crate) fn finish_close(&mut self) {
        self.cancel(|_| true);
        let device = DeviceHandle {
            index: self.devices,
            generation: 0,
        };
        self.events.extend(device_done(device));
    }

    /// Writes what a device sends, in whole words.
    fn write(&self, bus: u32, bytes: &[u8]) {
        for (word, bytes) in (bus..).step_by(4).zip(bytes.chunks(4)) {
            let mut whole = [0; 4];
            whole[..bytes.len()].copy_from_slice(bytes);
            self.memory.write32(word, u32::from_le_bytes(whole));
        }
    }

    fn begin(&mut self, call: Call, end: Option<Event>) -> Result<(), HostError> {
        self.calls.push(call);
        if let Some((_, error)) = self.refused.iter().find(|(refused, _)| *refused == call) {
            return Err(*error);
        }
        if !self.silent.contains(&call) {
            self.events.extend(end);
        }
        Ok(())
    }

    fn cancel(&mut self, is_it: impl Fn(&InFlight) -> bool) {
        let (cancelled, kept) = self.in_flight.drain(..).partition(is_it);
        self.in_flight = kept;
        let cancelled: Vec<InFlight> = cancelled;
        let events = cancelled.iter().map(|transfer| Event::Transfer {
            endpoint: transfer.endpoint,
            token: transfer.token,
            outcome: Outcome::Cancelled,
            actual: 0,
        });
        self.events.extend(events);
    }
}

/// A controller without hardware.
#[derive(Clone, Debug)]
pub(crate) struct Fake(Rc<RefCell<State>>);

impl Fake {
    /// A controller with so many empty ports, whose devices reach `memory`.
    pub(crate) fn new(ports: usize, protocol: PortProtocol, memory: TestMemory) -> Self {
        let empty = PortStatus {
            connected: false,
            enabled: false,
            resetting: false,
            powered: true,
            over_current: false,
            needs_warm_reset: false,
            speed: None,
            connect_changed: false,
            reset_changed: false,
            handed_over: false,
        };
        Self(Rc::new(RefCell::new(State {
            number: 0,
            ports: vec![empty; ports],
            events: VecDeque::new(),
            calls: Vec::new(),
            in_flight: Vec::new(),
            silent: Vec::new(),
            refused: Vec::new(),
            mute: false,
            acknowledged: 0,
            protocol,
            super_speed_from: u8::MAX,
            bounces: false,
            memory,
            endpoints: 0,
            devices: 0,
        })))
    }

    pub(crate) fn state(&self) -> RefMut<'_, State> {
        self.0.borrow_mut()
    }
}

/// Memory for a pool, and what devices reach of it.
pub(crate) fn region() -> (CoherentRegion, TestMemory) {
    let memory = TestMemory::new(0x4000_0000, 16 * 4096);
    (memory.region(), memory)
}

/// A bus with fake controllers of two ports each, all of it leaked.
pub(crate) fn fake_bus(
    controllers: usize,
    protocol: PortProtocol,
) -> (Bus<'static, Fake>, Vec<Fake>) {
    let (region, memory) = region();
    // One more than there are.
    let slots = (0..=controllers).map(|_| ControllerSlot::EMPTY);
    let storage = BusStorage {
        controllers: slots.collect::<Vec<_>>().leak(),
        ports: vec![PortEntry::EMPTY; 2 * (controllers + 1)].leak(),
        devices: (0..4)
            .map(|_| DeviceEntry::EMPTY)
            .collect::<Vec<_>>()
            .leak(),
    };
    let pool = Pool::new(region, vec![PoolRecord::EMPTY; 32].leak());
    let mut bus = Bus::new(storage, pool);
    let fakes: Vec<_> = (0..controllers)
        .map(|_| Fake::new(2, protocol, memory))
        .collect();
    for (fake, number) in fakes.iter().zip(0..) {
        fake.state().number = number;
        bus.add(fake.clone()).unwrap();
    }
    bus.start(Instant::from_micros(0));
    (bus, fakes)
}

/// Polls until nothing is left to do at `now`, and returns what the drivers must know.
#[track_caller]
pub(crate) fn poll(bus: &mut Bus<'_, Fake>, now: Instant) -> Vec<BusEvent> {
    let mut events = Vec::new();
    while let Some(event) = bus.poll(now) {
        events.push(event);
        assert!(events.len() < 1000, "no end of events: {event:?}");
    }
    events
}

/// Lets time run until `until`, from one wish of the bus to the next.
#[track_caller]
pub(crate) fn run(bus: &mut Bus<'_, Fake>, from: Instant, until: Instant) -> Vec<BusEvent> {
    let mut now = from;
    let mut events = Vec::new();
    let mut restless = 0;
    loop {
        events.extend(poll(bus, now));
        let wake = bus.next_wake();
        if wake > until {
            return events;
        }
        restless = if wake > now { 0 } else { restless + 1 };
        assert!(
            restless < 10,
            "a bus that wants to be polled at once, for ever"
        );
        now = wake.max(now);
    }
}

const DEVICE: [u8; 18] = [18, 1, 0, 2, 0, 0, 0, 64, 0xf4, 0x46, 1, 0, 0, 1, 0, 0, 0, 1];
const CONFIGURATION: [u8; 32] = [
    9, 2, 32, 0, 1, 1, 0, 0x80, 50, // one interface
    9, 4, 0, 0, 2, 8, 6, 0x50, 0, // mass storage, SCSI, Bulk-Only
    7, 5, 0x81, 2, 0, 2, 0, // bulk in
    7, 5, 0x02, 2, 0, 2, 0, // bulk out
];

/// What a stick answers on endpoint 0.
fn answer(setup: &SetupPacket) -> &'static [u8] {
    let [kind, _] = setup.value.to_be_bytes();
    let all: &[u8] = match (setup.request_type, setup.request) {
        (0x80, 6) if kind == DescriptorKind::DEVICE.0 => &DEVICE,
        (0x80, 6) if kind == DescriptorKind::CONFIGURATION.0 => &CONFIGURATION,
        (0xa1, 0xfe) => &[0],
        _ => &[],
    };
    &all[..all.len().min(usize::from(setup.length))]
}

impl HostController for Fake {
    fn capabilities(&self) -> Capabilities {
        let state = self.state();
        Capabilities {
            number: state.number,
            address_mask: u64::MAX,
            grain: 1,
            root_ports: state.ports.len() as u8,
            streams: 0,
            holds: false,
            reset_hold: None,
        }
    }

    fn requirement(&self) -> Requirement {
        Requirement {
            pool: 0,
            pool_records: 0,
            pool_per_device: 0,
            scratchpads: 0,
        }
    }

    fn start(&mut self, _pool: &mut Pool<'_>, _now: Instant) {
        let _ = self
            .state()
            .begin(Call::Start, Some(Event::Started(Ok(()))));
    }

    fn stop(&mut self, _now: Instant) {
        let mut state = self.state();
        if state
            .begin(Call::Stop, Some(Event::Stopped(Ok(()))))
            .is_err()
        {
            let stuck = Event::Stopped(Err(ControllerFault::HaltTimeout));
            state.events.push_back(stuck);
        }
    }

    fn has_events(&self) -> bool {
        !self.state().events.is_empty()
    }

    fn poll(&mut self, _pool: &mut Pool<'_>, _now: Instant) -> Option<Event> {
        self.state().events.pop_front()
    }

    fn abandon(&mut self) {
        self.state().calls.push(Call::Abandon);
    }

    fn check_alive(&mut self) -> bool {
        true
    }

    fn acknowledge_events(&mut self) {
        self.state().acknowledged += 1;
    }

    fn next_deadline(&self) -> Instant {
        Instant::NEVER
    }
}

/// The end of a device's operation.
fn device_done(device: DeviceHandle) -> Option<Event> {
    Some(Event::Device {
        device,
        result: Ok(()),
    })
}

impl Devices for Fake {
    fn open_device(
        &mut self,
        _pool: &mut Pool<'_>,
        _attachment: &Attachment,
        _now: Instant,
    ) -> Result<DeviceHandle, HostError> {
        let mut state = self.state();
        state.devices += 1;
        let device = DeviceHandle {
            index: state.devices,
            generation: 0,
        };
        state.begin(Call::Open, device_done(device))?;
        Ok(device)
    }

    fn reach_at_zero(
        &mut self,
        device: DeviceHandle,
        _now: Instant,
    ) -> Result<Addressing, HostError> {
        self.state().begin(Call::ReachAtZero, device_done(device))?;
        Ok(Addressing::Controller)
    }

    fn address_device(
        &mut self,
        device: DeviceHandle,
        _now: Instant,
    ) -> Result<Addressing, HostError> {
        self.state().begin(Call::Address, device_done(device))?;
        Ok(Addressing::Controller)
    }

    fn adopt_address(&mut self, _device: DeviceHandle, _address: u8) {}

    fn set_max_packet0(
        &mut self,
        device: DeviceHandle,
        _bytes: u16,
        _now: Instant,
    ) -> Result<(), HostError> {
        self.state().events.extend(device_done(device));
        Ok(())
    }

    fn endpoint0(&self, device: DeviceHandle) -> Option<EndpointHandle> {
        Some(EndpointHandle {
            index: 0,
            generation: device.index,
        })
    }

    fn configure(&mut self, device: DeviceHandle, _now: Instant) -> Result<(), HostError> {
        self.state().begin(Call::Configure, device_done(device))
    }

    fn close_device(&mut self, device: DeviceHandle, _now: Instant) -> Result<(), HostError> {
        let mut state = self.state();
        if !state.silent.contains(&Call::Close) {
            state.cancel(|_| true);
        }
        state.begin(Call::Close, device_done(device))
    }
}

impl Endpoints for Fake {
    fn open_endpoint(
        &mut self,
        _pool: &mut Pool<'_>,
        _device: DeviceHandle,
        _config: &EndpointConfig,
    ) -> Result<EndpointHandle, HostError> {
        let mut state = self.state();
        state.endpoints += 1;
        Ok(EndpointHandle {
            index: state.endpoints,
            generation: 0,
        })
    }

    fn close_endpoint(
        &mut self,
        _pool: &mut Pool<'_>,
        _endpoint: EndpointHandle,
    ) -> Result<(), HostError> {
        Ok(())
    }

    fn submit(
        &mut self,
        endpoint: EndpointHandle,
        transfer: &Transfer<'_>,
    ) -> Result<(), HostError> {
        let mut state = self.state();
        let Transfer {
            token, direction, ..
        } = *transfer;
        let call = match transfer.setup {
            Some(setup) => Call::Control(setup),
            None => Call::Submit(direction),
        };
        state.begin(call, None)?;
        let answered = transfer.setup.filter(|_| !state.mute);
        let Some(setup) = answered else {
            state.in_flight.push(InFlight {
                endpoint,
                direction,
                token,
            });
            return Ok(());
        };
        let bytes = answer(&setup);
        for (segment, bytes) in transfer.segments.iter().zip([bytes]) {
            state.write(segment.bus().get() as u32, bytes);
        }
        state.events.push_back(Event::Transfer {
            endpoint,
            token,
            outcome: Outcome::Complete,
            actual: bytes.len() as u32,
        });
        Ok(())
    }

    fn kick(&mut self, _endpoint: EndpointHandle, _stream: u16) {}

    fn retire(&mut self, _endpoint: EndpointHandle) {}

    fn quiesce(&mut self, endpoint: EndpointHandle, _now: Instant) -> Result<(), HostError> {
        let mut state = self.state();
        if !state.silent.contains(&Call::Quiesce) {
            state.cancel(|transfer| transfer.endpoint == endpoint);
        }
        let result = Ok(());
        state.begin(Call::Quiesce, Some(Event::Endpoint { endpoint, result }))
    }

    fn restart(
        &mut self,
        endpoint: EndpointHandle,
        sequence: Sequence,
        _now: Instant,
    ) -> Result<(), HostError> {
        let result = Ok(());
        let end = Event::Endpoint { endpoint, result };
        self.state().begin(Call::Restart(sequence), Some(end))
    }
}

impl Hubs for Fake {
    fn update_hub(
        &mut self,
        device: DeviceHandle,
        _hub: &HubInfo,
        _now: Instant,
    ) -> Result<(), HostError> {
        self.state().events.extend(device_done(device));
        Ok(())
    }
}

impl RootPorts for Fake {
    fn port_protocol(&self, port: RootPort) -> PortProtocol {
        let state = self.state();
        if port.0 >= state.super_speed_from {
            return PortProtocol::Usb3;
        }
        state.protocol
    }

    fn read_port(&self, port: RootPort) -> PortStatus {
        self.state().ports[usize::from(port.0)]
    }

    fn acknowledge(&mut self, port: RootPort, _status: &PortStatus) {
        let mut state = self.state();
        let bounces = core::mem::take(&mut state.bounces);
        let status = &mut state.ports[usize::from(port.0)];
        status.connected ^= bounces;
        status.connect_changed = false;
    }

    fn power_port(&mut self, _port: RootPort, _on: bool) {}

    fn begin_reset(&mut self, port: RootPort) {
        let mut state = self.state();
        let _ = state.begin(Call::Reset(port), None);
        let is_stuck = state.silent.contains(&Call::Reset(port));
        let status = &mut state.ports[usize::from(port.0)];
        status.enabled = status.connected && !is_stuck;
        status.speed = status.enabled.then_some(Speed::High);
    }

    fn end_reset(&mut self, _port: RootPort) {}

    fn begin_warm_reset(&mut self, port: RootPort) {
        self.begin_reset(port);
    }

    fn disable_port(&mut self, port: RootPort) {
        let mut state = self.state();
        let _ = state.begin(Call::Disable(port), None);
        state.ports[usize::from(port.0)].enabled = false;
    }

    fn hand_over(&mut self, _port: RootPort) -> bool {
        false
    }
}
