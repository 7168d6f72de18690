//! Streaming buffers: the caller's own memory as the source or target of a transfer.
//!
//! Called by a transport of `storage` when it submits a caller's data. Nothing is copied where the buffer
//! is aligned and reachable; where the first or last cache line of a read is shared with other
//! data, only that end goes through a bounce area.
//!
//! Why a read needs two passes on a CPU whose caches DMA does not see: before the transfer, a dirty
//! line could be evicted over the data that the device is writing; after it, a line could have been
//! fetched speculatively while the data was still under way. A write needs one pass, before. The pass
//! before is for dirty lines: a buffer that the CPU has not written to since its last transfer has
//! none, and is spared it.

use core::ptr::NonNull;

use super::pool::{Allocation, RawCoherent};
use super::{BusAddress, RawBuffer};

/// Which way data moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataDirection {
    /// The CPU's memory is read by the device.
    ToDevice,
    /// The CPU's memory is written by the device.
    FromDevice,
}

/// What a platform knows about DMA: addresses, coherency and cache maintenance. Part of
/// [`Platform`](crate::Platform).
///
/// On a CPU that this library knows, the maintenance functions are those of [`arch::cache`](crate::arch::cache).
/// `clean` is called with any start and length, `invalidate` for whole lines only, neither for the pool.
///
/// # Safety
///
/// `bus_address` must tell the truth: the stack hands its answer to DMA masters. The maintenance
/// functions must do what they say on platforms that are not coherent.
pub unsafe trait Dma {
    /// Whether hardware keeps caches and DMA coherent, so that no maintenance is due.
    fn coherent(&self) -> bool;

    /// Bytes of the cache line that maintenance works on: a power of two, 16 to 128.
    fn cache_line(&self) -> usize;

    /// Where devices find the `length` bytes at `start`: contiguous for them, or `None`. Memory that they do
    /// not reach is carried by pieces of the pool.
    fn bus_address(&self, start: NonNull<u8>, length: usize) -> Option<BusAddress>;

    /// Writes the dirty lines of the range back to memory.
    fn clean(&self, start: NonNull<u8>, length: usize);

    /// Drops the lines of the range.
    ///
    /// # Safety
    ///
    /// The caller owns every byte of the lines that the range touches: what was written to them and
    /// not cleaned is lost.
    unsafe fn invalidate(&self, start: NonNull<u8>, length: usize);

    /// The stack lets no device reach the range any more, whose address it took from
    /// [`Dma::bus_address`]. For platforms that map each buffer (an IOMMU) or watch them (a model).
    fn returned(&self, start: NonNull<u8>, length: usize) {
        let _ = (start, length);
    }
}

/// A contiguous piece of memory for a controller to read or write.
///
/// Only the crate makes them, out of pool memory and mapped buffers: a controller cannot be told to
/// reach anything else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    bus: BusAddress,
    length: u32,
}

impl Segment {
    /// No bytes.
    pub const EMPTY: Self = Self {
        bus: BusAddress::new(0),
        length: 0,
    };

    /// The devices' address of the first byte.
    #[must_use]
    pub fn bus(&self) -> BusAddress {
        self.bus
    }

    /// Length in bytes.
    #[must_use]
    pub fn length(&self) -> u32 {
        self.length
    }

    /// What is left of it behind the first `bytes`.
    #[must_use]
    pub(crate) fn behind(&self, bytes: u32) -> Self {
        let bytes = bytes.min(self.length);
        Self {
            bus: self.bus.offset(u64::from(bytes)),
            length: self.length - bytes,
        }
    }
}

impl From<RawCoherent> for Segment {
    fn from(memory: RawCoherent) -> Self {
        Self {
            bus: memory.bus,
            length: memory.length as u32,
        }
    }
}

/// Why a buffer cannot be reached by a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// The platform gives no contiguous bus address, or one above the controller's mask. Move the
    /// buffer, or use one from the pool.
    Unreachable,
    /// An end of the buffer shares a cache line, and the bounce area is too small for it. Align
    /// the buffer to the cache line.
    NoBounce,
    /// The controller cannot reach the buffer itself, and the pool has no room to carry a block of
    /// it. Give the platform's coherent region a block more, or move the buffer.
    BounceExhausted,
    /// Longer than one mapping can be: 4 GiB - 1 bytes.
    TooLong,
}

/// How a controller wants memory to be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentRules {
    /// The highest address that the controller can form.
    pub mask: u64,
    /// A bounced end reaches to a multiple of this: 1 where pieces may have any length (xHCI), 4096
    /// where memory is scattered at pages only (EHCI, OHCI). Bounce areas hold two of them, or two
    /// cache lines if that is more.
    pub grain: usize,
}

/// A buffer that a device may reach, from `Mapping::map` to `Mapping::unmap`, which are the
/// transports' own.
///
/// It is small on purpose: it is moved on the way of every read.
#[derive(Debug)]
pub struct Mapping {
    buffer: RawBuffer,
    bus: BusAddress,
    care: Care,
    bounced: Option<BouncedEnds>,
}

/// What a mapping's memory wants when the device has let go of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Care {
    /// It was read only.
    None,
    /// The device has written to it.
    Invalidate,
    /// It is the pool's: both sides see the same.
    Coherent,
}

/// The ends of a read that go through the bounce area.
#[derive(Clone, Copy, Debug)]
struct BouncedEnds {
    head: RawCoherent,
    tail: RawCoherent,
}

/// The pieces of a mapping: a bounced head, the middle, a bounced tail, as far as there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pieces {
    all: [Segment; 3],
    count: usize,
}

impl Pieces {
    /// The pieces to transfer, in order.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[Segment] {
        self.all.get(..self.count).unwrap_or_default()
    }
}

impl Mapping {
    /// Maps `buffer` for a transfer and makes the first pass of cache maintenance. The mapping is made
    /// in `place`, which is empty.
    ///
    /// `bounce` holds the ends of a read that share cache lines.
    ///
    /// # Errors
    ///
    /// [`MapError`] says why the controller cannot reach the buffer: the mapping is void.
    #[inline(always)]
    pub(crate) fn map<'p>(
        place: &'p mut Option<Self>,
        dma: &impl Dma,
        rules: SegmentRules,
        buffer: RawBuffer,
        direction: DataDirection,
        bounce: Option<&Allocation>,
    ) -> Result<&'p Self, MapError> {
        u32::try_from(buffer.length).map_err(|_| MapError::TooLong)?;
        let bus = dma
            .bus_address(buffer.start, buffer.length)
            .ok_or(MapError::Unreachable)?;
        if !bus.reachable(buffer.length, rules.mask) {
            dma.returned(buffer.start, buffer.length);
            return Err(MapError::Unreachable);
        }
        let care = match direction {
            DataDirection::ToDevice => Care::None,
            DataDirection::FromDevice => Care::Invalidate,
        };
        let mapping = place.insert(Self {
            buffer,
            bus,
            care,
            bounced: None,
        });
        if dma.coherent() {
            return Ok(mapping);
        }
        let line = dma.cache_line();
        if direction == DataDirection::FromDevice && !buffer.is_aligned(line) {
            mapping.bounce_ends(dma, rules.grain.max(line), bounce)?;
        }
        // A buffer that is in step already needs no first pass.
        if !buffer.in_step {
            let middle = mapping.middle();
            dma.clean(middle.start, middle.length);
        }
        Ok(mapping)
    }

    /// Has the ends that share a line go through the bounce area. Written down only where there are some: they
    /// are too long to be moved for nothing.
    #[cold]
    fn bounce_ends(
        &mut self,
        dma: &impl Dma,
        grain: usize,
        bounce: Option<&Allocation>,
    ) -> Result<(), MapError> {
        let buffer = self.buffer;
        let ends = bounced_ends(&buffer, dma.cache_line(), grain, bounce);
        let ends = ends.inspect_err(|_| dma.returned(buffer.start, buffer.length))?;
        self.bounced = Some(ends);
        Ok(())
    }

    /// Memory of the pool, which needs no maintenance, as a mapping like any other.
    pub(crate) fn of_pool(memory: RawCoherent) -> Self {
        Self {
            buffer: RawBuffer {
                start: memory.cpu,
                length: memory.length,
                in_step: true,
            },
            bus: memory.bus,
            care: Care::Coherent,
            bounced: None,
        }
    }

    /// The one piece to transfer, where nothing is bounced.
    #[inline]
    pub(crate) fn whole(&self) -> Option<Segment> {
        self.bounced.is_none().then_some(Segment {
            bus: self.bus,
            length: self.buffer.length as u32,
        })
    }

    /// The pieces to transfer.
    pub(crate) fn pieces(&self) -> Pieces {
        let (head, tail) = self.ends();
        let middle = Segment {
            bus: self.bus.offset(head as u64),
            length: (self.buffer.length - head - tail) as u32,
        };
        let candidates = [
            self.bounced.map(|ends| Segment::from(ends.head)),
            Some(middle),
            self.bounced.map(|ends| Segment::from(ends.tail)),
        ];
        let mut pieces = Pieces {
            all: [Segment::EMPTY; 3],
            count: 0,
        };
        let wanted = candidates.into_iter().flatten();
        for piece in wanted.filter(|piece| piece.length != 0) {
            if let Some(slot) = pieces.all.get_mut(pieces.count) {
                *slot = piece;
                pieces.count += 1;
            }
        }
        pieces
    }

    /// Bytes of the first and of the last piece that go through the bounce area.
    #[inline]
    fn ends(&self) -> (usize, usize) {
        match &self.bounced {
            None => (0, 0),
            Some(ends) => (ends.head.length, ends.tail.length),
        }
    }

    /// Bytes that go through the bounce area.
    #[inline]
    #[must_use]
    pub(crate) fn bounced(&self) -> usize {
        let (head, tail) = self.ends();
        head + tail
    }

    /// Ends the mapping in `place`, if there is one, as [`Mapping::unmap`] does.
    #[inline]
    pub(crate) fn end(place: &mut Option<Self>, dma: &impl Dma, actual: usize) {
        if let Some(mapping) = place {
            mapping.unmap(dma, actual);
            *place = None;
        }
    }

    /// Ends the mapping after the device has let go of it: the second pass of a read, and the
    /// bounced ends of the `actual` bytes that came.
    ///
    /// The memory belongs to the CPU again when this returns.
    #[inline]
    pub(crate) fn unmap(&self, dma: &impl Dma, actual: usize) {
        if self.care == Care::Invalidate && !dma.coherent() {
            self.take_over(dma, actual);
        }
        if self.care != Care::Coherent {
            dma.returned(self.buffer.start, self.buffer.length);
        }
    }

    /// The second pass of a read, and its bounced ends.
    #[inline(never)]
    fn take_over(&self, dma: &impl Dma, actual: usize) {
        let middle = self.middle();
        // SAFETY: `bounced_ends` left only lines in the middle that lie wholly inside the buffer,
        // which the request owns until this returns.
        unsafe { dma.invalidate(middle.start, middle.length) };
        if let Some(ends) = &self.bounced {
            self.bring_ends(ends, actual);
        }
    }

    /// Copies what came through the bounce area of a read of `actual` bytes. Apart, because few reads have such
    /// ends.
    #[cold]
    fn bring_ends(&self, ends: &BouncedEnds, actual: usize) {
        self.copy_out(ends.head, 0, ends.head.length.min(actual));
        let start = self.buffer.length - ends.tail.length;
        let came = ends.tail.length.min(actual.saturating_sub(start));
        self.copy_out(ends.tail, start, came);
    }

    /// Ends the mapping of a transfer that brought exactly as many bytes as `bytes` has, and copies
    /// them there too.
    pub(crate) fn unmap_and_peek(self, dma: &impl Dma, bytes: &mut [u8]) {
        let buffer = self.buffer;
        self.unmap(dma, bytes.len());
        for (index, byte) in bytes.iter_mut().enumerate().take(buffer.length) {
            // SAFETY: inside the buffer, which the request still owns, and which no device writes
            // to any more.
            *byte = unsafe { buffer.start.add(index).read() };
        }
    }

    /// The part of the buffer that the device reaches directly.
    #[inline]
    fn middle(&self) -> RawBuffer {
        if self.bounced.is_none() {
            return self.buffer;
        }
        let (head, tail) = self.ends();
        let length = self.buffer.length - head - tail;
        self.buffer.slice(head, length).unwrap_or(RawBuffer {
            length: 0,
            ..self.buffer
        })
    }

    /// Copies `length` bytes of a bounced end to byte `offset` of the buffer.
    fn copy_out(&self, bounce: RawCoherent, offset: usize, length: usize) {
        debug_assert!(length <= bounce.length && offset + length <= self.buffer.length);
        for index in 0..length {
            // SAFETY: `length` is at most the end's length, which both the bounce piece and the
            // buffer from `offset` on hold; the request owns the buffer until `unmap` returns.
            unsafe {
                let byte = bounce.cpu.add(index).read_volatile();
                self.buffer.start.add(offset + index).write(byte);
            }
        }
    }
}

/// The ends that share a cache line, of which there is at least one, go through the bounce area, each up to a
/// multiple of `grain`.
fn bounced_ends(
    buffer: &RawBuffer,
    line: usize,
    grain: usize,
    bounce: Option<&Allocation>,
) -> Result<BouncedEnds, MapError> {
    let start = buffer.start.addr().get();
    let end = start + buffer.length;
    let head = if start.is_multiple_of(line) {
        0
    } else {
        (grain - start % grain).min(buffer.length)
    };
    let rest = buffer.length - head;
    let tail = if rest == 0 || end.is_multiple_of(line) {
        0
    } else {
        (end % grain).min(rest)
    };
    let bounce = bounce.ok_or(MapError::NoBounce)?;
    // The head keeps its offset in the grain, so that it ends where the middle begins.
    let head_offset = if head == 0 { 0 } else { start % grain };
    Ok(BouncedEnds {
        head: bounce.raw(head_offset, head).ok_or(MapError::NoBounce)?,
        tail: bounce.raw(grain, tail).ok_or(MapError::NoBounce)?,
    })
}

#[cfg(test)]
#[path = "streaming_tests.rs"]
mod tests;
