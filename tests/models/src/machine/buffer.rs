//! [`Buffer`]: cached memory for a test's data, known to the model for the whole run.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

use super::Machine;

/// A stretch of cached memory of a machine, used as a byte slice.
///
/// What a device wrote shows in it only after the driver has invalidated it, as on a CPU whose
/// caches DMA does not see. It keeps the machine alive.
pub struct Buffer {
    /// Keeps the memory alive.
    _machine: Machine,
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the buffer is the only handle of its memory on the CPU's side, and the machine reaches it
// only while the driver has it mapped, under its lock.
unsafe impl Send for Buffer {}

impl Buffer {
    pub(super) fn new(machine: Machine, start: NonNull<u8>, length: usize) -> Self {
        Self {
            _machine: machine,
            start,
            length,
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Buffer of {} bytes", self.length)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the machine made the memory for this buffer alone, and is still alive.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the buffer is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}
