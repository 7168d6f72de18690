//! The blocking face: a disk that is read and written in one call each.
//!
//! A caller's buffer is borrowed for the length of the call. That is sound only if the controller
//! surely lets go of it before the call returns, whatever happens: where the platform can cut a
//! controller's DMA off, that is the last resort, also when the call is left by a panic. Elsewhere
//! data goes through memory of the stack's own, piece by piece.

use super::Host;
use super::requests::Waiter;
use crate::block::queue::{DiskId, Operation, RequestId};
use crate::block::{BlockDevice, BlockError, Geometry, Lba};
use crate::dma::RawBuffer;
use crate::platform::{ControllerId, Platform};
use crate::usb::Driver;

/// A disk of a host, for blocking use.
#[derive(Debug)]
pub struct Disk<'h, 's, P: Platform, C> {
    pub(super) host: &'h mut Host<'s, P, C>,
    id: DiskId,
}

impl<'s, P: Platform, C: Driver> Host<'s, P, C> {
    /// A disk, for blocking use. Requests of the queue face go on meanwhile.
    pub fn disk(&mut self, id: DiskId) -> Disk<'_, 's, P, C> {
        Disk { host: self, id }
    }
}

/// A buffer that is moved by one command.
#[derive(Debug)]
pub(super) enum Small<'b> {
    /// To be filled.
    In(&'b mut [u8]),
    /// To be written.
    Out(&'b [u8]),
}

impl Small<'_> {
    fn length(&self) -> usize {
        match self {
            Self::In(bytes) => bytes.len(),
            Self::Out(bytes) => bytes.len(),
        }
    }
}

/// A blocking request under way. Dropped before it has ended only by a panic that passes through:
/// then the controller is cut off from the caller's memory, and the host forgets that memory.
struct Borrowed<'b, 's, P: Platform, C: Driver> {
    host: &'b mut Host<'s, P, C>,
    controller: ControllerId,
    ended: bool,
}

impl<P: Platform, C: Driver> Borrowed<'_, '_, P, C> {
    #[inline]
    fn wait(mut self, id: RequestId) -> Result<(), BlockError> {
        // It may have ended where it was submitted; after that only a poll that finds something can end it. The
        // first poll comes after a wait, which ends at once if the controller has something to say already.
        let mut result = self.host.take_result(id);
        let mut wake = self.host.next_wake();
        loop {
            if let Some(result) = result {
                self.ended = true;
                if result == Err(BlockError::Quarantined) {
                    self.host.surely_cut(self.controller);
                }
                return result;
            }
            self.host.platform.wait(wake);
            let found;
            (found, wake) = self.host.look();
            if found {
                result = self.host.take_result(id);
            }
        }
    }
}

impl<P: Platform, C: Driver> Drop for Borrowed<'_, '_, P, C> {
    fn drop(&mut self) {
        if !self.ended {
            self.host.cut_off(self.controller);
        }
    }
}

impl<P: Platform, C: Driver> Disk<'_, '_, P, C> {
    /// Which disk it is.
    #[must_use]
    pub fn id(&self) -> DiskId {
        self.id
    }

    /// Carries out an operation that moves no data.
    pub(super) fn run(&mut self, operation: Operation) -> Result<(), BlockError> {
        self.run_on(self.controller()?, operation, None)
    }

    /// Carries out an operation on the disk, which is behind `controller`.
    #[inline]
    pub(super) fn run_on(
        &mut self,
        controller: ControllerId,
        operation: Operation,
        memory: Option<RawBuffer>,
    ) -> Result<(), BlockError> {
        let id = self
            .host
            .submit_for(self.id, operation, memory, None, Waiter::Call)?;
        Borrowed {
            host: self.host,
            controller,
            ended: false,
        }
        .wait(id)
    }

    /// The controller that the disk is behind.
    #[inline]
    pub(super) fn controller(&self) -> Result<ControllerId, BlockError> {
        Ok(self
            .host
            .unit(self.id)
            .ok_or(BlockError::Disconnected)?
            .controller)
    }

    /// Carries out one operation with a small buffer: in its place where the controller can be cut
    /// off from it, else through the stack's own memory.
    pub(super) fn run_with(
        &mut self,
        operation: Operation,
        buffer: Small<'_>,
    ) -> Result<(), BlockError> {
        let controller = self.controller()?;
        if self.host.platform.can_cut_dma(controller) {
            let memory = match buffer {
                Small::In(bytes) => RawBuffer::of(bytes),
                Small::Out(bytes) => RawBuffer::of_shared(bytes),
            };
            return self.run_on(controller, operation, Some(memory));
        }
        let mut staging = self.host.staging.take().ok_or(BlockError::NoStaging)?;
        let length = buffer.length();
        let result = match staging.raw().slice(0, length) {
            None => Err(BlockError::NoStaging),
            Some(memory) => {
                if let (Small::Out(bytes), Some(place)) =
                    (&buffer, staging.as_mut_slice().get_mut(..length))
                {
                    place.copy_from_slice(bytes);
                }
                self.run_on(controller, operation, Some(memory))
            }
        };
        if let (Ok(()), Small::In(bytes), Some(place)) =
            (result, buffer, staging.as_slice().get(..length))
        {
            bytes.copy_from_slice(place);
        }
        if result != Err(BlockError::Quarantined) {
            self.host.staging = Some(staging);
        }
        result
    }

    /// Writes a buffer by one of the operations that do.
    #[inline]
    pub(super) fn write_pieces(
        &mut self,
        operation: fn(Lba) -> Operation,
        lba: Lba,
        buffer: &[u8],
    ) -> Result<(), BlockError> {
        let controller = self.controller()?;
        if self.host.platform.can_cut_dma(controller) {
            let memory = RawBuffer::of_shared(buffer);
            return self.run_on(controller, operation(lba), Some(memory));
        }
        let before = |offset: usize, bytes: &mut [u8]| {
            if let Some(source) = buffer.get(offset..offset + bytes.len()) {
                bytes.copy_from_slice(source);
            }
        };
        self.run_staged(controller, operation, lba, buffer.len(), before, |_, _| {})
    }

    /// Moves `length` bytes from `lba` on through the stack's own memory; `copy` gets each piece
    /// with its offset, before a write and after a read.
    #[inline(never)]
    fn run_staged(
        &mut self,
        controller: ControllerId,
        operation: impl Fn(Lba) -> Operation,
        lba: Lba,
        length: usize,
        mut before: impl FnMut(usize, &mut [u8]),
        mut after: impl FnMut(usize, &[u8]),
    ) -> Result<(), BlockError> {
        let geometry = self.host.geometry(self.id)?;
        geometry.extent(lba, length)?;
        let block_bytes = geometry.block_bytes as usize;
        // Taken out for the length of the call; a controller that never lets go keeps it for good.
        let mut staging = self.host.staging.take().ok_or(BlockError::NoStaging)?;
        let piece = staging.length() / block_bytes * block_bytes;
        let mut result = if piece == 0 {
            Err(BlockError::NoStaging)
        } else {
            Ok(())
        };
        let mut offset = 0;
        while result.is_ok() && offset < length {
            let now = piece.min(length - offset);
            if let Some(bytes) = staging.as_mut_slice().get_mut(..now) {
                before(offset, bytes);
            }
            let at = Lba(lba.0 + (offset / block_bytes) as u64);
            result = self.run_on(controller, operation(at), staging.raw().slice(0, now));
            if let (Ok(()), Some(bytes)) = (result, staging.as_slice().get(..now)) {
                after(offset, bytes);
            }
            offset += now;
        }
        if result != Err(BlockError::Quarantined) {
            self.host.staging = Some(staging);
        }
        result
    }
}

impl<P: Platform, C: Driver> BlockDevice for Disk<'_, '_, P, C> {
    fn geometry(&self) -> Result<Geometry, BlockError> {
        self.host.geometry(self.id)
    }

    #[inline]
    fn read(&mut self, lba: Lba, buffer: &mut [u8]) -> Result<(), BlockError> {
        let controller = self.controller()?;
        if self.host.platform.can_cut_dma(controller) {
            let memory = RawBuffer::of(buffer);
            return self.run_on(controller, Operation::Read(lba), Some(memory));
        }
        let length = buffer.len();
        self.run_staged(
            controller,
            Operation::Read,
            lba,
            length,
            |_, _| {},
            |offset, bytes| {
                if let Some(target) = buffer.get_mut(offset..offset + bytes.len()) {
                    target.copy_from_slice(bytes);
                }
            },
        )
    }

    #[inline]
    fn write(&mut self, lba: Lba, buffer: &[u8]) -> Result<(), BlockError> {
        self.write_pieces(Operation::Write, lba, buffer)
    }

    fn flush(&mut self) -> Result<(), BlockError> {
        self.run(Operation::Flush)
    }
}
