//! How an endpoint is stopped, its transfers taken back, and started again.
//!
//! Begun by [`endpoint`](super::endpoint) and [`device`](super::device), carried on by command
//! completions. The order that the specification asks for, and that the core follows:
//!
//! | endpoint | quiesce | core | restart |
//! |---|---|---|---|
//! | halted | Reset Endpoint | CLEAR_FEATURE, not for endpoint 0 | Set TR Dequeue Pointer |
//! | running | Stop Endpoint | nothing | Set TR Dequeue Pointer |
//! | running | Stop Endpoint | CLEAR_FEATURE | Configure Endpoint: drop and add it |
//!
//! Of an endpoint with streams those that were named are set to a new start, one after the other; the
//! others go on where they were, and their doorbells ring.
//!
//! The last line: only Reset Endpoint and Configure Endpoint set the sequence to zero. The doorbell
//! rings with the next kick. Read `xHCI 1.2 §4.6.8` to `§4.6.10`.

use super::Xhci;
use super::command::Completion;
use super::context::state;
use super::device::{DeviceState, Work};
use super::endpoint::{EndpointRecord, EndpointState, EndpointWork};
use super::trb::{Trb, code, kind};
use crate::dma::release;
use crate::host::{Event, HostError, Sequence};
use crate::mmio::Bus;
use crate::time::Instant;

/// Commands that are tried to stop an endpoint whose state changes meanwhile. Policy: stop, reset,
/// and one more for an endpoint that was caught starting.
const TRIES: u8 = 3;

impl<B: Bus> Xhci<'_, B> {
    pub(super) fn begin_quiesce(&mut self, place: usize, now: Instant) -> Result<(), HostError> {
        let endpoint = self.endpoints.get_mut(place).ok_or(HostError::Stale)?;
        if let Some(transfers) = &mut endpoint.transfers {
            transfers.forget_stop();
            transfers.forget_held();
        }
        if let Some(set) = &endpoint.streams {
            set.forget_stop(self.streams, &mut self.records);
        }
        match endpoint.state {
            EndpointState::Running => self.stop_endpoint(place, 0, now),
            EndpointState::Halted => self.reset_endpoint(place, 0, now),
            _ => {
                // The controller does not work on it.
                self.set_endpoint_work(place, EndpointWork::Draining);
                self.mark_pending();
                Ok(())
            }
        }
    }

    pub(super) fn begin_restart(
        &mut self,
        place: usize,
        sequence: Sequence,
        now: Instant,
    ) -> Result<(), HostError> {
        let endpoint = self.endpoints.get_mut(place).ok_or(HostError::Stale)?;
        if endpoint.state != EndpointState::Stopped {
            return Err(HostError::Busy);
        }
        let fresh = endpoint.sequence_reset || endpoint.dci == 1;
        if sequence == Sequence::Keep && endpoint.sequence_reset && endpoint.dci != 1 {
            // Reset Endpoint has set the controller's to zero, the device's is where it was.
            return Err(HostError::Halted);
        }
        if endpoint.streams.is_some() {
            // To configure it anew would lose the streams that are to go on.
            return match sequence {
                Sequence::Reset if !fresh => Err(HostError::Halted),
                _ => self.restart_stream(place, now),
            };
        }
        if sequence == Sequence::Reset && !fresh {
            return self.reconfigure(place, now);
        }
        let ring = endpoint.transfers.as_mut().ok_or(HostError::Stale)?;
        let pointer = ring.start_pointer();
        self.endpoint_command(
            place,
            EndpointWork::SettingDequeue,
            kind::SET_DEQUEUE,
            pointer,
            now,
        )
    }

    /// Sets the next named stream to the start of what is to come; behind the last, the endpoint runs.
    fn restart_stream(&mut self, place: usize, now: Instant) -> Result<(), HostError> {
        let endpoint = self.endpoints.get_mut(place).ok_or(HostError::Stale)?;
        let set = endpoint.streams.as_ref().ok_or(HostError::Stale)?;
        let Some((stream, pointer)) = set.take_named(self.streams) else {
            set.forget_stop(self.streams, &mut self.records);
            endpoint.state = EndpointState::Running;
            endpoint.sequence_reset = false;
            endpoint.work = EndpointWork::Finished(Ok(()));
            self.ring_streams(place);
            self.mark_pending();
            return Ok(());
        };
        let kind = kind::SET_DEQUEUE;
        let trb = Trb::endpoint_command(kind, endpoint.slot, endpoint.dci, pointer);
        let work = EndpointWork::SettingDequeue;
        self.issue_for(place, work, trb.for_stream(stream), now)
    }

    /// An endpoint with streams runs again: the streams that were left as they were go on.
    fn ring_streams(&self, place: usize) {
        let Some(endpoint) = self.endpoints.get(place) else {
            return;
        };
        let Some(set) = &endpoint.streams else {
            return;
        };
        release();
        for stream in set.busy(self.streams) {
            self.blocks.ring(endpoint.slot, endpoint.dci, stream);
        }
    }

    fn stop_endpoint(&mut self, place: usize, tries: u8, now: Instant) -> Result<(), HostError> {
        let work = EndpointWork::Stopping(tries + 1);
        self.endpoint_command(place, work, kind::STOP_ENDPOINT, 0, now)
    }

    fn reset_endpoint(&mut self, place: usize, tries: u8, now: Instant) -> Result<(), HostError> {
        let work = EndpointWork::Resetting(tries + 1);
        self.endpoint_command(place, work, kind::RESET_ENDPOINT, 0, now)
    }

    fn endpoint_command(
        &mut self,
        place: usize,
        work: EndpointWork,
        kind: u32,
        parameter: u64,
        now: Instant,
    ) -> Result<(), HostError> {
        let endpoint = self.endpoints.get(place).ok_or(HostError::Stale)?;
        let trb = Trb::endpoint_command(kind, endpoint.slot, endpoint.dci, parameter);
        self.issue_for(place, work, trb, now)
    }

    /// Issues a command on an endpoint, whose end is waited for.
    fn issue_for(
        &mut self,
        place: usize,
        work: EndpointWork,
        trb: Trb,
        now: Instant,
    ) -> Result<(), HostError> {
        let command = self.issue(trb, now);
        let endpoint = self.endpoints.get_mut(place).ok_or(HostError::Stale)?;
        if command.is_none() {
            return Err(HostError::Dead);
        }
        endpoint.command = command;
        endpoint.work = work;
        Ok(())
    }

    /// Drops and adds an endpoint in one command, which sets its sequence to zero.
    fn reconfigure(&mut self, place: usize, now: Instant) -> Result<(), HostError> {
        let endpoint = self.endpoints.get(place).ok_or(HostError::Stale)?;
        let index = usize::from(endpoint.device);
        let device = self.devices.get(index).ok_or(HostError::Stale)?;
        if device.lent || device.work != Work::Idle {
            return Err(HostError::Busy);
        }
        let flag = self.write_endpoint(index, place)?;
        let entries = self.context_entries(index);
        let slot = self.write_slot(index, entries)?;
        let input = self.write_flags(index, 1 | flag, flag)?;
        let trb = Trb::command(kind::CONFIGURE_ENDPOINT, slot, input);
        self.issue_for(place, EndpointWork::Reconfiguring, trb, now)?;
        self.lend_input(index, true);
        Ok(())
    }

    fn lend_input(&mut self, index: usize, lent: bool) {
        if let Some(device) = self.devices.get_mut(index) {
            device.lent = lent;
        }
    }

    fn set_endpoint_work(&mut self, place: usize, work: EndpointWork) {
        if let Some(endpoint) = self.endpoints.get_mut(place) {
            endpoint.work = work;
        }
    }

    /// What comes after an endpoint's command.
    pub(super) fn endpoint_command_done(
        &mut self,
        place: usize,
        completion: Completion,
        now: Instant,
    ) {
        let Some(endpoint) = self.endpoints.get_mut(place) else {
            return;
        };
        endpoint.command = None;
        let index = usize::from(endpoint.device);
        match endpoint.work {
            EndpointWork::Stopping(tries) | EndpointWork::Resetting(tries) => {
                self.quiesce_step(place, tries, completion, now);
            }
            EndpointWork::SettingDequeue => self.restarted(place, completion, now),
            EndpointWork::Reconfiguring => {
                self.lend_input(index, false);
                self.restarted(place, completion, now);
            }
            // The device is being closed: nobody waits for it.
            EndpointWork::Idle | EndpointWork::Draining | EndpointWork::Finished(_) => {}
        }
    }

    /// Stop or Reset Endpoint has ended. The endpoint may have halted just before it was to be
    /// stopped, and the other way round: its context tells.
    fn quiesce_step(&mut self, place: usize, tries: u8, completion: Completion, now: Instant) {
        let next = match completion.code {
            code::SUCCESS => {
                self.note_reset(place);
                self.stopped(place)
            }
            code::CONTEXT_STATE if tries < TRIES => match self.context_state(place) {
                state::HALTED => self.reset_endpoint(place, tries, now),
                state::RUNNING => self.stop_endpoint(place, tries, now),
                // Stopped already, or in error, which Set TR Dequeue Pointer ends: in both cases the
                // sequence is what it was.
                _ => self.stopped(place),
            },
            _ => completion.result(),
        };
        if let Err(error) = next {
            self.set_endpoint_work(place, EndpointWork::Finished(Err(error)));
            self.mark_pending();
        }
    }

    /// The endpoint's state as its context shows it.
    fn context_state(&self, place: usize) -> u32 {
        self.with_contexts(place, |contexts, dci| contexts.endpoint_state(dci))
            .unwrap_or(0)
    }

    fn with_contexts<R>(
        &self,
        place: usize,
        read: impl FnOnce(&super::context::Contexts, u8) -> R,
    ) -> Option<R> {
        let endpoint = self.endpoints.get(place)?;
        let device = self.devices.get(usize::from(endpoint.device))?;
        Some(read(device.contexts.as_ref()?, endpoint.dci))
    }

    /// A command has succeeded: if it was Reset Endpoint, the sequence is at zero now.
    fn note_reset(&mut self, place: usize) {
        if let Some(endpoint) = self.endpoints.get_mut(place) {
            endpoint.sequence_reset |= matches!(endpoint.work, EndpointWork::Resetting(_));
        }
    }

    /// The controller has let go of an endpoint: its transfers can be taken back.
    fn stopped(&mut self, place: usize) -> Result<(), HostError> {
        let position = self.with_contexts(place, |contexts, dci| contexts.endpoint_position(dci));
        let endpoint = self.endpoints.get_mut(place).ok_or(HostError::Stale)?;
        let was_halted = matches!(endpoint.work, EndpointWork::Resetting(_));
        endpoint.state = EndpointState::Stopped;
        endpoint.work = EndpointWork::Draining;
        if let (Some(transfers), false, Some(position)) =
            (&mut endpoint.transfers, was_halted, position)
        {
            transfers.settle_stop(&mut self.records, position);
        }
        if let Some(set) = &endpoint.streams {
            set.settle_stop(self.streams, &mut self.records);
        }
        self.mark_pending();
        Ok(())
    }

    fn restarted(&mut self, place: usize, completion: Completion, now: Instant) {
        let mut result = completion.result();
        let has_streams = |endpoint: &EndpointRecord| endpoint.streams.is_some();
        if result.is_ok() && self.endpoints.get(place).is_some_and(has_streams) {
            match self.restart_stream(place, now) {
                Ok(()) => return,
                Err(error) => result = Err(error),
            }
        }
        if let Some(endpoint) = self.endpoints.get_mut(place) {
            if result.is_ok() {
                endpoint.state = EndpointState::Running;
                endpoint.sequence_reset = false;
            }
            endpoint.work = EndpointWork::Finished(result);
        }
        self.mark_pending();
    }

    /// Reports what an endpoint has to say, if anything.
    pub(super) fn report_endpoint(&mut self, place: usize) -> Option<Event> {
        let endpoint = self.endpoints.get_mut(place)?;
        let handle = endpoint.handle(place);
        let result = match endpoint.work {
            EndpointWork::Finished(result) => result,
            EndpointWork::Draining => {
                if let Some(ended) = endpoint.drain(self.streams, &mut self.records, false) {
                    return Some(ended.event(handle));
                }
                Ok(())
            }
            _ => return None,
        };
        endpoint.work = EndpointWork::Idle;
        Some(Event::Endpoint {
            endpoint: handle,
            result,
        })
    }
}

/// Closing a whole device.
impl<B: Bus> Xhci<'_, B> {
    pub(super) fn is_closing(&self, index: usize) -> bool {
        let device = self.devices.get(index);
        device.is_none_or(|device| device.state == DeviceState::Closing)
    }

    /// Nobody waits any more for what the endpoints of a device have under way.
    pub(super) fn abandon_endpoint_work(&mut self, index: usize) {
        for endpoint in self.endpoints.iter_mut() {
            if usize::from(endpoint.device) == index {
                endpoint.work = EndpointWork::Idle;
            }
        }
        self.lend_input(index, false);
    }

    /// Issues Stop Endpoint for each running endpoint of a device that has work.
    pub(super) fn stop_all_endpoints(&mut self, index: usize, now: Instant) {
        for place in 0..self.endpoints.len() {
            let Some(endpoint) = self.endpoints.get(place) else {
                break;
            };
            let busy = usize::from(endpoint.device) == index
                && endpoint.state == EndpointState::Running
                && endpoint.command.is_none()
                && !endpoint.is_idle(self.streams);
            if busy {
                let trb =
                    Trb::endpoint_command(kind::STOP_ENDPOINT, endpoint.slot, endpoint.dci, 0);
                let command = self.issue(trb, now);
                if let Some(endpoint) = self.endpoints.get_mut(place) {
                    endpoint.command = command;
                    if let Some(transfers) = &mut endpoint.transfers {
                        transfers.forget_held();
                    }
                }
            }
        }
    }

    /// Takes a transfer of a closed device back.
    pub(super) fn drain_device(&mut self, index: usize) -> Option<Event> {
        for (place, endpoint) in self.endpoints.iter_mut().enumerate() {
            if usize::from(endpoint.device) != index {
                continue;
            }
            let handle = endpoint.handle(place);
            if let Some(ended) = endpoint.drain(self.streams, &mut self.records, true) {
                return Some(ended.event(handle));
            }
        }
        None
    }
}
