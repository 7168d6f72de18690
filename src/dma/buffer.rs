//! [`DmaBuffer`]: memory that a request owns while a device may reach it.

use core::ptr::NonNull;

/// A stretch of CPU memory, as an address and a length. It owns nothing and promises nothing.
#[derive(Clone, Copy, Debug)]
pub struct RawBuffer {
    /// The first byte.
    pub start: NonNull<u8>,
    /// Length in bytes.
    pub length: usize,
    /// No line of it is dirty in a cache: the CPU has not written to it since a transfer brought the
    /// two into step.
    pub(crate) in_step: bool,
}

// SAFETY: an address and a length; using them is what needs care, and is unsafe where it happens.
unsafe impl Send for RawBuffer {}

impl RawBuffer {
    /// The buffer behind a borrow. The caller keeps the borrow alive for as long as it is used.
    #[must_use]
    pub fn of(bytes: &mut [u8]) -> Self {
        Self {
            start: NonNull::from(&mut *bytes).cast(),
            length: bytes.len(),
            in_step: false,
        }
    }

    /// The buffer behind a shared borrow, for transfers to a device: it is only read.
    #[must_use]
    pub fn of_shared(bytes: &[u8]) -> Self {
        Self {
            start: NonNull::from(bytes).cast(),
            length: bytes.len(),
            in_step: false,
        }
    }

    /// Whether it lies between cache lines of `line` bytes: no end of it shares one.
    #[inline]
    #[must_use]
    pub fn is_aligned(&self, line: usize) -> bool {
        (self.start.addr().get() | self.length).is_multiple_of(line)
    }

    /// `length` bytes from `offset`, if they lie inside.
    #[must_use]
    pub fn slice(&self, offset: usize, length: usize) -> Option<Self> {
        let end = offset.checked_add(length)?;
        if end > self.length {
            return None;
        }
        // SAFETY: `offset <= self.length`: inside the same buffer, or just behind it.
        let start = unsafe { self.start.add(offset) };
        Some(Self {
            start,
            length,
            ..*self
        })
    }
}

/// Bytes of the longest cache line of any CPU that the stack runs on.
const LONGEST_LINE: usize = 128;

/// Where the memory of a [`DmaBuffer`] came from. A whole word, so that a buffer, or none, is moved in words:
/// one is moved to and fro with every request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
enum Origin {
    Static,
    Raw,
}

/// A type-erased buffer that a request of the queue face owns until it is given back.
///
/// Completion, error and cancellation all return it; dropping it leaks the memory rather than
/// freeing it, because a device might still write to it.
#[derive(Debug)]
pub struct DmaBuffer {
    memory: RawBuffer,
    origin: Origin,
}

impl DmaBuffer {
    /// Takes over a buffer that lives for ever.
    #[must_use]
    pub fn from_static(bytes: &'static mut [u8]) -> Self {
        Self {
            memory: RawBuffer::of(bytes),
            origin: Origin::Static,
        }
    }

    /// Takes over `length` bytes at `start`.
    ///
    /// # Safety
    ///
    /// Until [`DmaBuffer::into_raw`] has returned the buffer, the memory is valid for reads and
    /// writes and nothing else reaches it, even if the value is dropped.
    #[must_use]
    pub unsafe fn from_raw(start: NonNull<u8>, length: usize) -> Self {
        Self {
            memory: RawBuffer {
                start,
                length,
                in_step: false,
            },
            origin: Origin::Raw,
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.memory.length
    }

    /// The bytes. Only its owner has a `DmaBuffer`, so no device writes to them meanwhile.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the constructors made the memory valid and ours alone.
        unsafe { core::slice::from_raw_parts(self.memory.start.as_ptr(), self.memory.length) }
    }

    /// The bytes, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.memory.in_step = false;
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.memory.start.as_ptr(), self.memory.length) }
    }

    /// The memory's address and length; ownership stays here.
    pub(crate) fn raw(&self) -> RawBuffer {
        self.memory
    }

    /// A transfer of all of it has ended well, and it was not written to by the CPU: none of its
    /// lines is dirty, until [`DmaBuffer::as_mut_slice`] is asked for.
    ///
    /// The ends of a read that share a cache line were copied by the CPU, so only a buffer of
    /// whole lines counts.
    pub(crate) fn note_transfer(&mut self) {
        let start = self.memory.start.addr().get();
        self.memory.in_step = (start | self.memory.length).is_multiple_of(LONGEST_LINE);
    }

    /// Data of it is moved by the CPU: its lines may be dirty from now on.
    pub(crate) fn note_carried(&mut self) {
        self.memory.in_step = false;
    }

    /// Gives up ownership: the caller answers for the memory again.
    #[must_use]
    pub fn into_raw(self) -> RawBuffer {
        self.memory
    }

    /// The slice that [`DmaBuffer::from_static`] took.
    ///
    /// # Errors
    ///
    /// The buffer itself, if it was made by [`DmaBuffer::from_raw`].
    pub fn into_static(self) -> Result<&'static mut [u8], Self> {
        match self.origin {
            // SAFETY: the memory came as `&'static mut [u8]`, and ownership ends here.
            Origin::Static => Ok(unsafe {
                core::slice::from_raw_parts_mut(self.memory.start.as_ptr(), self.memory.length)
            }),
            Origin::Raw => Err(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_buffer_between_cache_lines_needs_no_bounce() {
        #[repr(align(64))]
        struct Lines([u8; 256]);
        let mut lines = Lines([0; 256]);
        for (start, length, aligned) in [
            (0, 256, true),
            (64, 128, true),
            (1, 63, false),
            (0, 65, false),
        ] {
            let buffer = RawBuffer::of(&mut lines.0[start..start + length]);
            assert_eq!(buffer.is_aligned(64), aligned, "{start} {length}");
        }
    }

    #[test]
    fn a_static_buffer_comes_back_whole() {
        let bytes: &'static mut [u8] = Box::leak(vec![1, 2, 3].into_boxed_slice());
        let mut buffer = DmaBuffer::from_static(bytes);
        buffer.as_mut_slice()[1] = 9;
        assert_eq!(buffer.into_static().unwrap(), &[1, 9, 3]);
    }

    #[test]
    fn a_buffer_is_in_step_from_a_transfer_until_it_may_be_written_to() {
        #[repr(align(128))]
        struct Lines([u8; 256]);
        let lines: &'static mut Lines = Box::leak(Box::new(Lines([0; 256])));
        let (whole, rest) = lines.0.split_at_mut(128);
        let mut buffer = DmaBuffer::from_static(whole);
        assert!(!buffer.raw().in_step, "nobody knows who wrote to it");
        buffer.note_transfer();
        assert_eq!(buffer.as_slice().len(), 128);
        assert!(buffer.raw().in_step);
        buffer.as_mut_slice();
        assert!(!buffer.raw().in_step);
        let mut part = DmaBuffer::from_static(&mut rest[..64]);
        part.note_transfer();
        assert!(!part.raw().in_step, "it shares a line");
    }

    #[test]
    fn a_raw_buffer_is_not_turned_into_a_static_one() {
        let mut bytes = [0_u8; 4];
        let raw = RawBuffer::of(&mut bytes);
        // SAFETY: the array outlives the buffer and is not used meanwhile.
        let buffer = unsafe { DmaBuffer::from_raw(raw.start, raw.length) };
        assert!(buffer.into_static().is_err());
    }

    #[test]
    fn a_slice_of_a_buffer_stays_inside() {
        let mut bytes = [0_u8; 8];
        let raw = RawBuffer::of(&mut bytes);
        assert_eq!(raw.slice(6, 2).unwrap().length, 2);
        assert!(raw.slice(6, 3).is_none());
        assert!(raw.slice(usize::MAX, 2).is_none());
    }
}
