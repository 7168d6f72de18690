//! Requests whose memory a controller cannot reach: piece by piece through the pool.
//!
//! Nothing here is on the way of a request whose memory is reached: a transport refuses it first. A
//! piece of the pool belongs to the request's function, as all that its device may reach, and ends with
//! the command that it was taken for. A request has one at a time.

use super::Host;
use crate::block::queue::{Operation, Piece, RequestSlot};
use crate::dma::{Bounced, DataDirection, MapError, Owner, Pool, RawBuffer};
use crate::platform::Platform;
use crate::scsi::cdb::DataPhase;
use crate::scsi::transport::{Client, ClientKind, DataPlace, Outcome, Request, TransportError};
use crate::usb::Driver;

const EXHAUSTED: TransportError = TransportError::Memory(MapError::BounceExhausted);

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// A command again, with a piece of the pool in place of the caller's memory: a read or a write may
    /// move fewer blocks then.
    pub(super) fn bounce(
        &mut self,
        function: u8,
        client: Client,
        request: &Request,
    ) -> Result<(Client, Request), TransportError> {
        let (ClientKind::Request, DataPlace::Caller(buffer)) = (client.kind, request.data) else {
            return Err(EXHAUSTED);
        };
        let device = self.functions.get(usize::from(function));
        let device = device.and_then(|slot| slot.function.device());
        let rules = device.and_then(|device| self.bus.segment_rules(device));
        let grain = rules.map_or(1, |rules| rules.grain);
        let slot = self.requests.get_mut(usize::from(client.index));
        let slot = slot.ok_or(EXHAUSTED)?;
        if slot.bounced.is_some() {
            return Err(TransportError::Busy);
        }
        let unit = self.units.get_mut(usize::from(slot.disk.index));
        let unit = unit.ok_or(TransportError::Disconnected)?;
        let least = match slot.operation {
            Operation::Read(_) | Operation::Write(_) | Operation::WriteForced(_) => unit
                .geometry()
                .map_or(buffer.length, |geometry| geometry.block_bytes as usize),
            _ => buffer.length,
        };
        let pool = self.bus.pool();
        let owner = Owner::Function(function);
        let memory = Bounced::reserve(pool, owner, grain, buffer.length, least);
        let memory = memory.map_err(TransportError::Memory)?;
        let mut command = *request;
        if memory.length() < buffer.length {
            slot.not_issued(client.piece);
            if let Ok(shorter) = unit.command_within(slot, &self.policy, memory.length() as u32) {
                let timeout = request.timeout;
                command = Request { timeout, ..shorter };
            }
        }
        match part(&command, memory.length()) {
            Some((buffer, direction)) => {
                let bounced = Bounced::new(memory, buffer, direction);
                command.data = bounced.data().map_or(command.data, DataPlace::Pool);
                let piece = slot.piece;
                slot.bounced = Some((piece, bounced));
                slot.carried = slot.sequence;
                Ok((Client::request(client.index, piece), command))
            }
            None => {
                pool.free(memory);
                Err(EXHAUSTED)
            }
        }
    }

    /// The command for a piece of a request has ended, and its device has let go of the memory that
    /// carried it, if it was carried.
    #[inline]
    pub(super) fn end_bounce(&mut self, request: u8, piece: Piece, outcome: Outcome) {
        if let Some(slot) = self.requests.get_mut(usize::from(request))
            && slot.bounced.is_some()
        {
            settle(slot, self.bus.pool(), piece, outcome);
        }
    }
}

#[cold]
fn settle(slot: &mut RequestSlot, pool: &mut Pool<'_>, piece: Piece, outcome: Outcome) {
    let moved = outcome.map_or(0, |completion| completion.moved as usize);
    if let Some((_, bounced)) = slot.bounced.take_if(|(carried, _)| *carried == piece) {
        bounced.end(pool, moved);
    }
}

/// The part of the caller's memory that a command is about, if it is not longer than `room`, and which
/// way its data goes.
fn part(command: &Request, room: usize) -> Option<(RawBuffer, DataDirection)> {
    let DataPlace::Caller(buffer) = command.data else {
        return None;
    };
    let direction = match command.command.data {
        DataPhase::In(_) => DataDirection::FromDevice,
        DataPhase::Out(_) => DataDirection::ToDevice,
        DataPhase::None => return None,
    };
    (buffer.length <= room).then_some((buffer, direction))
}
