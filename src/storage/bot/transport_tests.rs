//! The transport on a fake controller: what is queued when, and when a caller's memory comes back.

use super::*;
use crate::dma::RawBuffer;
use crate::dma::testing::Lent;
use crate::host::{HostError, PortProtocol};
use crate::scsi::capacity::BlockLength;
use crate::scsi::cdb::{Extent, read, test_unit_ready};
use crate::scsi::transport::{Completion, Fault, Status};
use crate::storage::choose::{Offer, Way};
use crate::storage::quirks::Quirks;
use crate::usb::bus::testing::{Call, Fake, fake_bus, poll, run};
use crate::usb::quirks::BusQuirks;
use crate::usb::setup::SetupPacket;
use crate::usb::{BusEvent, DeviceId, function_and_tag};

const START: Instant = Instant::from_micros(1_000);
const TIMEOUT: Duration = Duration::from_secs(10);

/// A Bulk-Only device that was found and configured, and the transport on it.
struct Bench {
    bus: Bus<'static, Fake>,
    fake: Fake,
    device: DeviceId,
    transport: Transport,
    lent: Lent,
    now: Instant,
    /// The memory of the command under way.
    buffer: Vec<u8>,
    ended: Vec<CommandOutcome>,
}

impl Bench {
    fn new(queueing: Queueing) -> Self {
        let (mut bus, fakes) = fake_bus(1, PortProtocol::Usb2);
        let fake = fakes[0].clone();
        run(&mut bus, START, START);
        fake.state().connect(0, true);
        let now = START + Duration::from_secs(1);
        let events = run(&mut bus, START, now);
        let [BusEvent::Described(device)] = events[..] else {
            panic!("{events:?}")
        };
        let mut bytes = [0; 64];
        let configuration = bus.read_configuration(device, &mut bytes);
        let speed = bus.info(device).unwrap().speed();
        let choice = Offer::of(configuration, speed, Quirks::empty(), BusQuirks::empty());
        let choice = choice.bulk_only.unwrap();
        let Way::BulkOnly(described) = choice.way else {
            panic!("{choice:?}")
        };
        let mut open = |endpoint| bus.open_pipe(device, endpoint, 2, 65_536).unwrap();
        let pipes = Pipes {
            bulk_in: open(&described.bulk_in),
            bulk_out: open(&described.bulk_out),
        };
        let config = crate::usb::bus::FunctionConfig {
            configuration: choice.configuration,
            interface: choice.interface,
            alternate: choice.alternate,
        };
        bus.configure(device, config, now).unwrap();
        run(&mut bus, now, now);
        let mut transport = Transport::new(&mut bus, 0, 0, pipes).unwrap();
        transport.set_queueing(queueing);
        fake.state().calls.clear();
        Self {
            bus,
            fake,
            device,
            transport,
            lent: Lent::default(),
            now,
            buffer: vec![0; 512],
            ended: Vec::new(),
        }
    }

    /// Begins to read a block into the bench's buffer.
    fn read(&mut self) {
        let extent = Extent::new(0, 1, BlockLength::BYTES_512).unwrap();
        let data = DataPlace::Caller(RawBuffer::of(&mut self.buffer));
        self.begin(read(extent), data);
    }

    fn begin(&mut self, command: Command, data: DataPlace) {
        let request = Request {
            lun: 0,
            command,
            data,
            timeout: TIMEOUT,
        };
        let (bus, lent) = (&mut self.bus, &self.lent);
        let begun = self.transport.begin(bus, lent, &request, self.now);
        begun.unwrap();
    }

    /// Carries what the bus reports to the transport, as the stack does.
    fn carry(&mut self) {
        for event in poll(&mut self.bus, self.now) {
            let (bus, lent, now) = (&mut self.bus, &self.lent, self.now);
            let ended = match event {
                BusEvent::Transfer(end) if self.transport.data_sent(bus, &end) => None,
                BusEvent::Transfer(end) if self.transport.ended_well(bus, lent, &end) => {
                    Some(Ok(Completion {
                        status: Status::Good,
                        moved: self.transport.announced(),
                    }))
                }
                BusEvent::Transfer(end) => {
                    let (_, tag) = function_and_tag(end.token);
                    self.transport
                        .transfer_ended(bus, lent, tag, end.outcome, end.actual, now)
                }
                BusEvent::Operated(_, result) => {
                    let result = result.map(|_| ());
                    self.transport.operated(bus, lent, result, now)
                }
                BusEvent::Gone(_) => {
                    self.transport.gone();
                    None
                }
                BusEvent::Closed(..) => self.transport.closed(lent),
                other => panic!("{other:?}"),
            };
            self.ended.extend(ended);
        }
    }

    /// Lets time run, with every deadline looked at, for so long.
    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        for _ in 0..200 {
            for _ in 0..10 {
                self.carry();
            }
            if self.transport.take_stuck() {
                self.bus.give_up(self.device, self.now);
            } else if self.now >= self.transport.deadline() {
                let (bus, lent, now) = (&mut self.bus, &self.lent, self.now);
                let ended = self.transport.deadline_passed(bus, lent, now);
                self.ended.extend(ended);
                continue;
            }
            let wake = self.bus.next_wake().min(self.transport.deadline());
            if wake > until {
                self.now = until;
                return;
            }
            self.now = wake.max(self.now);
        }
        panic!("no rest within {span:?}");
    }

    fn end(&mut self, direction: Direction, outcome: Outcome, actual: u32) {
        self.fake.state().end(direction, outcome, actual);
        self.carry();
    }

    fn count(&self, call: Call) -> usize {
        self.fake.state().count(call)
    }
}

const OUT: Call = Call::Submit(Direction::Out);
const IN: Call = Call::Submit(Direction::In);

#[test]
fn data_and_status_are_queued_when_the_command_has_arrived_or_with_it() {
    let mut bench = Bench::new(Queueing::AfterCommand);
    bench.read();
    assert_eq!((bench.count(OUT), bench.count(IN)), (1, 0));
    bench.end(Direction::Out, Outcome::Complete, 31);
    assert_eq!((bench.count(OUT), bench.count(IN)), (1, 2));
    let mut bench = Bench::new(Queueing::Eager);
    bench.read();
    assert_eq!((bench.count(OUT), bench.count(IN)), (1, 2));
}

/// Every way in which reset recovery may fail to stop a pipe.
mod memory_comes_back_only_when_the_controller_has_let_go {
    use super::*;

    /// A read whose data is in flight, on a controller that does not stop endpoints.
    fn stuck(queueing: Queueing, spoil: impl FnOnce(&Fake)) -> Bench {
        let mut bench = Bench::new(queueing);
        bench.read();
        if queueing == Queueing::AfterCommand {
            bench.end(Direction::Out, Outcome::Complete, 31);
        }
        spoil(&bench.fake);
        bench
    }

    #[track_caller]
    fn keeps_until_closed(mut bench: Bench) {
        bench.fake.state().silent.push(Call::Close);
        // Until the device is given up, and for a while after it; in the end the core would stop a
        // controller that does not let go.
        while bench.count(Call::Close) == 0 {
            bench.pass(Duration::from_secs(1));
        }
        bench.pass(Duration::from_secs(10));
        assert_eq!(bench.ended, []);
        assert_eq!(bench.lent.count(), 1, "the controller may still write");
        assert!(bench.transport.is_busy());
        assert_eq!(bench.transport.deadline(), Instant::NEVER);
        assert_eq!(bench.count(Call::Close), 1, "the device was given up");
        bench.fake.state().finish_close();
        bench.carry();
        assert_eq!(bench.ended, [Err(TransportError::Disconnected)]);
        assert_eq!(bench.lent.count(), 0);
    }

    #[test]
    fn when_stopping_a_pipe_never_ends() {
        for queueing in [Queueing::AfterCommand, Queueing::Eager] {
            let silent = |fake: &Fake| fake.state().silent.push(Call::Quiesce);
            keeps_until_closed(stuck(queueing, silent));
        }
    }

    #[test]
    fn when_stopping_a_pipe_fails() {
        for error in [
            HostError::Timeout,
            HostError::Dead,
            HostError::Busy,
            HostError::Stale,
        ] {
            let refuse = |fake: &Fake| fake.state().refused.push((Call::Quiesce, error));
            keeps_until_closed(stuck(Queueing::Eager, refuse));
        }
    }

    #[test]
    fn when_a_transfer_fails_while_the_device_is_being_closed() {
        let mut bench = stuck(Queueing::Eager, |fake| {
            let mut state = fake.state();
            state.silent.push(Call::Close);
            state.connect(0, false);
        });
        bench.pass(Duration::from_millis(1));
        assert_eq!(bench.count(Call::Close), 1);
        // The command wrapper fails; the data is still in flight.
        bench.end(Direction::Out, Outcome::TransactionError, 0);
        keeps_until_closed(bench);
    }

    #[test]
    fn when_the_device_is_pulled_and_its_transfers_are_cancelled_one_by_one() {
        let mut bench = stuck(Queueing::AfterCommand, |fake| {
            fake.state().connect(0, false);
        });
        bench.pass(Duration::from_secs(1));
        assert_eq!(bench.ended, [Err(TransportError::Disconnected)]);
        assert_eq!(bench.lent.count(), 0);
    }
}

#[test]
fn a_silent_device_is_reset_and_the_command_ends_as_timed_out() {
    let mut bench = Bench::new(Queueing::Eager);
    bench.read();
    bench.pass(TIMEOUT + Duration::from_secs(1));
    assert_eq!(bench.ended, [Err(TransportError::Timeout)]);
    let reset = Call::Control(SetupPacket::bulk_only_reset(0));
    assert_eq!(bench.count(reset), 1);
    assert_eq!(bench.lent.count(), 0);
    assert!(bench.fake.state().in_flight.is_empty());
}

#[test]
fn a_device_that_does_not_take_its_reset_is_broken_but_its_memory_is_free() {
    let mut bench = Bench::new(Queueing::Eager);
    bench.read();
    bench.fake.state().mute = true;
    bench.pass(TIMEOUT + Duration::from_secs(10));
    let broken = TransportError::Broken(Fault::Timeout);
    assert_eq!(bench.ended, [Err(broken)]);
    assert_eq!(bench.lent.count(), 0);
    let directions: Vec<_> = bench.fake.state().in_flight.clone();
    assert!(
        directions
            .iter()
            .all(|transfer| transfer.endpoint.index == 0)
    );
}

#[test]
fn the_end_of_an_earlier_commands_transfer_moves_nothing() {
    let mut bench = Bench::new(Queueing::Eager);
    bench.begin(test_unit_ready(), DataPlace::Scratch);
    bench.pass(TIMEOUT + Duration::from_secs(1));
    assert_eq!(bench.ended.len(), 1);
    bench.begin(test_unit_ready(), DataPlace::Scratch);
    // Status of the first command.
    let (bus, lent, now) = (&mut bench.bus, &bench.lent, bench.now);
    let stale = 1 << part::BITS | part::STATUS;
    let stall = Outcome::Stall;
    let ended = bench
        .transport
        .transfer_ended(bus, lent, stale, stall, 0, now);
    assert_eq!(ended, None);
    assert_eq!(bench.count(Call::Quiesce), 4, "no recovery began");
}

#[test]
fn a_pipe_that_takes_no_transfer_ends_the_command_without_waiting_for_its_deadline() {
    let mut bench = Bench::new(Queueing::AfterCommand);
    bench.fake.state().refused.push((OUT, HostError::QueueFull));
    bench.begin(test_unit_ready(), DataPlace::Scratch);
    bench.pass(Duration::from_millis(1));
    assert_eq!(bench.ended.len(), 1);
    assert!(bench.ended[0].is_err());
    assert!(bench.bus.info(bench.device).is_some());
}
