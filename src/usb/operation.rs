//! One management operation on a device: a control request, or making a pipe quiet or usable.
//!
//! A machine without I/O, driven by the bus; at most one is under way on a device. A control
//! request that goes wrong leaves endpoint 0 usable: the machine makes it quiet and restarts it
//! before the failure is reported. Clearing a halt keeps the order that controllers and devices
//! need: the host's endpoint first, then the device's halt, then the restart
//! (`xHCI 1.2 §4.6.8`, `USB 2.0 §9.4.5`).

use super::descriptor::EndpointAddress;
use super::error::UsbError;
use super::setup::SetupPacket;
use crate::host::{EndpointHandle, HostError, Outcome, Sequence};
use crate::time::{Duration, Instant};

/// How long the controller may take to make an endpoint quiet, beyond its own deadlines.
/// Policy: the drivers give up after 10 s, one command and its abort, and then report it; this is the net below.
const QUIESCE_TIMEOUT: Duration = Duration::from_secs(15);

/// How long CLEAR_FEATURE may take. Policy: a request without data has 50 ms (USB 2.0 §9.2.6.4);
/// slow bridges get a second.
const CLEAR_TIMEOUT: Duration = Duration::from_secs(1);

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A request on endpoint 0, with its data in the device's control buffer.
    Request(SetupPacket, Duration),
    /// Take all transfers of an endpoint back.
    Quiesce(EndpointHandle),
    /// Take all transfers of an endpoint back and make it usable again. Fails with
    /// [`HostError::Halted`] if the controller had halted it and counts from zero again: so must the
    /// device, by [`Operation::ClearHalt`].
    Recall(EndpointHandle),
    /// Take all transfers back, clear the device's halt, and start both sides at zero again.
    ClearHalt(EndpointHandle, EndpointAddress),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The request of a plain [`Operation::Request`] is under way.
    Requesting,
    /// Endpoint 0 is made quiet after a request went wrong.
    Quieting(UsbError),
    /// Endpoint 0 is restarted after that.
    Restarting(UsbError),
    /// The endpoint of the operation is made quiet.
    PipeQuieting,
    /// CLEAR_FEATURE is under way.
    Clearing,
    /// The endpoint of the operation is restarted.
    PipeRestarting,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// The transfer on endpoint 0 ended, with so many bytes of data.
    Transfer(Outcome, u32),
    /// The controller made an endpoint quiet or restarted it.
    Endpoint(Result<(), HostError>),
    /// The deadline has passed.
    Deadline,
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Submit a control transfer on endpoint 0.
    Submit(SetupPacket, Instant),
    /// Make an endpoint quiet; `None` is endpoint 0.
    Quiesce(Option<EndpointHandle>, Instant),
    /// Restart an endpoint; `None` is endpoint 0.
    Restart(Option<EndpointHandle>, Sequence, Instant),
    /// Nothing: wait for what is under way.
    Wait,
    /// The operation has ended, with the bytes of data.
    Done(Result<u32, UsbError>),
}

/// An operation under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Running {
    operation: Operation,
    phase: Phase,
}

impl Running {
    /// Begins an operation.
    #[must_use]
    pub fn begin(operation: Operation, now: Instant) -> (Self, Action) {
        let (phase, action) = match operation {
            Operation::Request(setup, timeout) => {
                (Phase::Requesting, Action::Submit(setup, now + timeout))
            }
            Operation::Quiesce(pipe) | Operation::Recall(pipe) | Operation::ClearHalt(pipe, _) => (
                Phase::PipeQuieting,
                Action::Quiesce(Some(pipe), now + QUIESCE_TIMEOUT),
            ),
        };
        (Self { operation, phase }, action)
    }

    /// Takes what happened, and says what to do next.
    pub fn step(&mut self, input: Input, now: Instant) -> Action {
        match (self.phase, input) {
            (Phase::Requesting, Input::Transfer(outcome, actual)) => {
                match UsbError::from_outcome(outcome) {
                    None => Action::Done(Ok(actual)),
                    Some(error) => self.recover(error, now),
                }
            }
            (Phase::Requesting, Input::Deadline) => self.recover(UsbError::Timeout, now),
            (Phase::Quieting(error), Input::Endpoint(Ok(()))) => {
                self.phase = Phase::Restarting(error);
                Action::Restart(None, Sequence::Keep, now + QUIESCE_TIMEOUT)
            }
            (Phase::Restarting(error), Input::Endpoint(Ok(()))) => Action::Done(Err(error)),
            (Phase::PipeQuieting, Input::Endpoint(Ok(()))) => self.pipe_is_quiet(now),
            (Phase::Clearing, Input::Transfer(outcome, _)) => {
                match UsbError::from_outcome(outcome) {
                    None => self.restart_pipe(Sequence::Reset, now),
                    Some(error) => self.recover(error, now),
                }
            }
            (Phase::Clearing, Input::Deadline) => self.recover(UsbError::Timeout, now),
            (Phase::PipeRestarting, Input::Endpoint(Ok(()))) => Action::Done(Ok(0)),
            (_, Input::Endpoint(Err(error))) => Action::Done(Err(error.into())),
            (_, Input::Deadline) => Action::Done(Err(UsbError::Timeout)),
            // The end of a transfer that was recalled.
            (_, Input::Transfer(..) | Input::Endpoint(Ok(()))) => Action::Wait,
        }
    }

    /// The operation that was begun.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Whether the machine waits for `endpoint`, on a device with this endpoint 0.
    #[must_use]
    pub fn awaits(&self, endpoint: EndpointHandle, endpoint0: EndpointHandle) -> bool {
        match (self.phase, self.operation) {
            (Phase::Quieting(_) | Phase::Restarting(_), _) => endpoint == endpoint0,
            (
                Phase::PipeQuieting | Phase::PipeRestarting,
                Operation::Quiesce(pipe) | Operation::Recall(pipe) | Operation::ClearHalt(pipe, _),
            ) => endpoint == pipe,
            _ => false,
        }
    }

    fn recover(&mut self, error: UsbError, now: Instant) -> Action {
        self.phase = Phase::Quieting(error);
        Action::Quiesce(None, now + QUIESCE_TIMEOUT)
    }

    fn pipe_is_quiet(&mut self, now: Instant) -> Action {
        match self.operation {
            Operation::ClearHalt(_, address) => {
                self.phase = Phase::Clearing;
                Action::Submit(
                    SetupPacket::clear_endpoint_halt(address),
                    now + CLEAR_TIMEOUT,
                )
            }
            Operation::Recall(_) => self.restart_pipe(Sequence::Keep, now),
            Operation::Quiesce(_) | Operation::Request(..) => Action::Done(Ok(0)),
        }
    }

    fn restart_pipe(&mut self, sequence: Sequence, now: Instant) -> Action {
        self.phase = Phase::PipeRestarting;
        match self.operation {
            Operation::Recall(pipe) | Operation::ClearHalt(pipe, _) => {
                Action::Restart(Some(pipe), sequence, now + QUIESCE_TIMEOUT)
            }
            Operation::Quiesce(_) | Operation::Request(..) => Action::Done(Ok(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usb::setup::Direction;

    const NOW: Instant = Instant::from_micros(1_000);
    const PIPE: EndpointHandle = EndpointHandle {
        index: 3,
        generation: 1,
    };

    fn request() -> (Running, Action) {
        let setup = SetupPacket::device_descriptor(8);
        Running::begin(Operation::Request(setup, Duration::from_secs(1)), NOW)
    }

    #[test]
    fn a_good_request_ends_with_its_bytes() {
        let (mut running, _) = request();
        let end = running.step(Input::Transfer(Outcome::Short, 5), NOW);
        assert_eq!(end, Action::Done(Ok(5)));
    }

    #[test]
    fn a_stalled_request_leaves_endpoint_0_restarted() {
        let (mut running, _) = request();
        let quiet = running.step(Input::Transfer(Outcome::Stall, 0), NOW);
        assert!(matches!(quiet, Action::Quiesce(None, _)));
        let restart = running.step(Input::Endpoint(Ok(())), NOW);
        assert!(matches!(restart, Action::Restart(None, Sequence::Keep, _)));
        let end = running.step(Input::Endpoint(Ok(())), NOW);
        assert_eq!(end, Action::Done(Err(UsbError::Stall)));
    }

    #[test]
    fn a_late_request_is_recalled_before_it_fails() {
        let (mut running, _) = request();
        assert!(matches!(
            running.step(Input::Deadline, NOW),
            Action::Quiesce(None, _)
        ));
        assert_eq!(
            running.step(Input::Transfer(Outcome::Cancelled, 0), NOW),
            Action::Wait
        );
        running.step(Input::Endpoint(Ok(())), NOW);
        let end = running.step(Input::Endpoint(Ok(())), NOW);
        assert_eq!(end, Action::Done(Err(UsbError::Timeout)));
    }

    #[test]
    fn a_halt_is_cleared_on_the_host_then_the_device_then_the_ring_restarts() {
        let address = EndpointAddress::new(1, Direction::In).unwrap();
        let (mut running, first) = Running::begin(Operation::ClearHalt(PIPE, address), NOW);
        assert!(matches!(first, Action::Quiesce(Some(PIPE), _)));
        let clear = running.step(Input::Endpoint(Ok(())), NOW);
        let setup = SetupPacket::clear_endpoint_halt(address);
        assert_eq!(clear, Action::Submit(setup, NOW + CLEAR_TIMEOUT));
        let restart = running.step(Input::Transfer(Outcome::Complete, 0), NOW);
        assert!(matches!(
            restart,
            Action::Restart(Some(PIPE), Sequence::Reset, _)
        ));
        assert_eq!(
            running.step(Input::Endpoint(Ok(())), NOW),
            Action::Done(Ok(0))
        );
    }

    #[test]
    fn a_device_that_refuses_to_clear_its_halt_fails_the_operation_with_endpoint_0_usable() {
        let address = EndpointAddress::new(1, Direction::In).unwrap();
        let (mut running, _) = Running::begin(Operation::ClearHalt(PIPE, address), NOW);
        running.step(Input::Endpoint(Ok(())), NOW);
        let quiet = running.step(Input::Transfer(Outcome::Stall, 0), NOW);
        assert!(matches!(quiet, Action::Quiesce(None, _)));
        running.step(Input::Endpoint(Ok(())), NOW);
        let end = running.step(Input::Endpoint(Ok(())), NOW);
        assert_eq!(end, Action::Done(Err(UsbError::Stall)));
    }

    #[test]
    fn a_controller_that_cannot_make_an_endpoint_quiet_ends_the_operation() {
        let (mut running, _) = Running::begin(Operation::Quiesce(PIPE), NOW);
        let end = running.step(Input::Endpoint(Err(HostError::Timeout)), NOW);
        assert_eq!(end, Action::Done(Err(UsbError::Timeout)));
        let (mut running, _) = Running::begin(Operation::Quiesce(PIPE), NOW);
        assert_eq!(
            running.step(Input::Deadline, NOW),
            Action::Done(Err(UsbError::Timeout))
        );
    }
}
