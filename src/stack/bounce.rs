//! Requests whose memory a controller cannot reach: piece by piece through the pool.
//!
//! Nothing here is on the way of a request whose memory is reached: a transport refuses it first. A
//! piece belongs to the request's function, as all that its device may reach, and ends with the command
//! that it was taken for.

use super::Host;
use super::schedule::Work;
use crate::block::queue::RequestSlot;
use crate::dma::{Bounced, DataDirection, MapError, Owner, Pool, RawBuffer};
use crate::platform::Platform;
use crate::scsi::cdb::DataPhase;
use crate::scsi::transport::{DataPlace, Outcome, Request, TransportError};
use crate::time::Instant;
use crate::usb::Driver;

const EXHAUSTED: TransportError = TransportError::Memory(MapError::BounceExhausted);

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Begins the next command of a request with a piece of the pool in place of its memory: it moves
    /// as many blocks as the piece takes.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_bounced(
        &mut self,
        function: u8,
        request: u8,
        now: Instant,
    ) -> Result<(), TransportError> {
        let command = self.bounced_command(function, request)?;
        let slot = self.functions.get_mut(usize::from(function));
        let slot = slot.ok_or(TransportError::Disconnected)?;
        let (bus, platform) = (&mut self.bus, &self.platform);
        match slot.function.begin(bus, platform, &command, now) {
            Ok(()) => self.began(function, Work::Request(request)),
            Err(error) => {
                self.end_bounce(request, Err(error));
                return Err(error);
            }
        }
        Ok(())
    }

    /// The command, with the piece in the request's slot.
    fn bounced_command(&mut self, function: u8, request: u8) -> Result<Request, TransportError> {
        let device = self.functions.get(usize::from(function));
        let device = device.and_then(|slot| slot.function.device());
        let device = device.ok_or(TransportError::Disconnected)?;
        let rules = self.bus.segment_rules(device).ok_or(EXHAUSTED)?;
        let slot = self.requests.get_mut(usize::from(request));
        let slot = slot.ok_or(EXHAUSTED)?;
        let unit = self.units.get_mut(usize::from(slot.disk.index));
        let unit = unit.ok_or(TransportError::Disconnected)?;
        let block = unit.geometry().map_or(0, |geometry| geometry.block_bytes);
        let wanted = (u64::from(slot.chunk) * u64::from(block)) as usize;
        let owner = Owner::Function(function);
        let pool = self.bus.pool();
        let memory = Bounced::reserve(pool, owner, rules.grain, wanted, block as usize)
            .map_err(TransportError::Memory)?;
        let made = unit.command_within(slot, &self.policy, memory.length() as u32);
        match made
            .ok()
            .and_then(|command| Some((command, part(&command)?)))
        {
            Some((command, (buffer, direction))) => {
                let bounced = Bounced::new(memory, buffer, direction);
                let data = bounced.data().map(DataPlace::Pool);
                slot.bounced = Some(bounced);
                let data = data.ok_or(EXHAUSTED)?;
                Ok(Request { data, ..command })
            }
            None => {
                pool.free(memory);
                Err(EXHAUSTED)
            }
        }
    }

    /// The command of a request has ended, and its device has let go of the piece that the command was
    /// carried by, if it was.
    #[inline]
    pub(super) fn end_bounce(&mut self, request: u8, outcome: Outcome) {
        if let Some(slot) = self.requests.get_mut(usize::from(request))
            && slot.bounced.is_some()
        {
            settle(slot, self.bus.pool(), outcome);
        }
    }

    /// The device of a request was closed, and all that its function held has gone back to the pool.
    pub(super) fn forget_bounce(&mut self, work: Work) {
        if let Work::Request(request) = work
            && let Some(slot) = self.requests.get_mut(usize::from(request))
        {
            slot.bounced = None;
        }
    }
}

#[cold]
fn settle(slot: &mut RequestSlot, pool: &mut Pool<'_>, outcome: Outcome) {
    let moved = outcome.map_or(0, |completion| completion.moved as usize);
    if let Some(bounced) = slot.bounced.take() {
        bounced.end(pool, moved);
    }
}

/// The part of the caller's memory that a command is about, and which way its data goes.
fn part(command: &Request) -> Option<(RawBuffer, DataDirection)> {
    let DataPlace::Caller(buffer) = command.data else {
        return None;
    };
    match command.command.data {
        DataPhase::In(_) => Some((buffer, DataDirection::FromDevice)),
        DataPhase::Out(_) => Some((buffer, DataDirection::ToDevice)),
        DataPhase::None => None,
    }
}
