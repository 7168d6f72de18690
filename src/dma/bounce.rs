//! Memory that a controller cannot reach, carried through the pool.
//!
//! Called by the stack when a transport says that a request's buffer is unreachable: above the highest
//! address that the controller can form, or without a bus address at all. A piece of the pool takes
//! the data of one command at a time; the request goes on with the next command and another piece.
//! It is a detour, not a way: whoever has many such buffers moves them.

use super::pool::{Allocation, RawCoherent};
use super::{Class, DataDirection, MapError, Owner, Pool, RawBuffer, Rules};

/// Bytes of a piece at most. Policy: half of a usual transfer limit; more costs the pool more than
/// it saves in commands.
const LONGEST: usize = 64 << 10;

/// A part of a request's buffer with the piece of the pool that stands for it while one command is
/// under way.
#[derive(Debug)]
pub(crate) struct Bounced {
    memory: Allocation,
    buffer: RawBuffer,
    direction: DataDirection,
}

impl Bounced {
    /// A piece of the pool for `wanted` bytes, or for as many whole blocks of them as there is room
    /// for, laid out for a controller that scatters memory in multiples of `grain`.
    ///
    /// # Errors
    ///
    /// [`MapError::BounceExhausted`]: there is no room for one block.
    pub(crate) fn reserve(
        pool: &mut Pool<'_>,
        owner: Owner,
        grain: usize,
        wanted: usize,
        block: usize,
    ) -> Result<Allocation, MapError> {
        let mut length = wanted.min(LONGEST.max(block));
        while length >= block && block != 0 {
            let whole = length / block * block;
            let piece = pool.allocate(owner, Class::Bounce, whole, Rules::aligned(grain));
            if let Ok(piece) = piece {
                return Ok(piece);
            }
            length /= 2;
        }
        Err(MapError::BounceExhausted)
    }

    /// `buffer` with `memory`, which is as long; what a device is to read is copied.
    pub(crate) fn new(memory: Allocation, buffer: RawBuffer, direction: DataDirection) -> Self {
        if direction == DataDirection::ToDevice {
            // SAFETY: the request that the buffer is of owns it until it has ended, and nothing writes
            // to it meanwhile.
            let bytes =
                unsafe { core::slice::from_raw_parts(buffer.start.as_ptr(), buffer.length) };
            memory.write_bytes(0, bytes);
        }
        Self {
            memory,
            buffer,
            direction,
        }
    }

    /// Where the command's data is.
    pub(crate) fn data(&self) -> Option<RawCoherent> {
        self.memory.raw(0, self.buffer.length)
    }

    /// The device has let go of it, after `moved` bytes: they are copied to the buffer, if it was
    /// read, and the piece goes back to the pool.
    pub(crate) fn end(self, pool: &mut Pool<'_>, moved: usize) {
        if self.direction == DataDirection::FromDevice {
            self.copy_out(moved.min(self.buffer.length));
        }
        pool.free(self.memory);
    }

    fn copy_out(&self, length: usize) {
        for offset in 0..length.min(self.memory.length()) {
            // SAFETY: `offset` lies inside both; the request owns the buffer until it has ended,
            // and nobody borrows the pool's memory.
            unsafe {
                let byte = self.memory.cpu.add(offset).read_volatile();
                self.buffer.start.add(offset).write(byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dma::PoolRecord;
    use crate::dma::testing::TestMemory;

    const OWNER: Owner = Owner::Function(0);

    #[test]
    fn a_piece_shrinks_to_whole_blocks_that_fit() {
        let mut records = [PoolRecord::EMPTY; 4];
        let mut pool = Pool::new(
            TestMemory::new(0x8000_0000, 16 << 10).region(),
            &mut records,
        );
        let reserve = |pool: &mut Pool<'_>, wanted, block| {
            Bounced::reserve(pool, OWNER, 128, wanted, block).map(|piece| piece.length())
        };
        assert_eq!(reserve(&mut pool, 33 * 512, 512), Ok(8 << 10));
        assert_eq!(reserve(&mut pool, 64 << 10, 4096), Ok(8 << 10));
        let none = Err(MapError::BounceExhausted);
        assert_eq!(reserve(&mut pool, 512, 512), none, "all is taken");
    }

    #[test]
    fn a_piece_is_never_longer_than_it_need_be() {
        let mut records = [PoolRecord::EMPTY; 4];
        let mut pool = Pool::new(
            TestMemory::new(0x8000_0000, 256 << 10).region(),
            &mut records,
        );
        let piece = Bounced::reserve(&mut pool, OWNER, 4096, 1 << 20, 512);
        assert_eq!(piece.map(|piece| piece.length()), Ok(LONGEST));
    }

    #[test]
    fn only_what_came_reaches_the_buffer_and_the_piece_goes_back() {
        let mut records = [PoolRecord::EMPTY; 4];
        let mut pool = Pool::new(
            TestMemory::new(0x8000_0000, 16 << 10).region(),
            &mut records,
        );
        let mut bytes = [7; 512];
        let piece = Bounced::reserve(&mut pool, OWNER, 128, 512, 512).unwrap();
        let direction = DataDirection::FromDevice;
        let bounced = Bounced::new(piece, RawBuffer::of(&mut bytes), direction);
        assert_eq!(bounced.data().unwrap().length, 512);
        bounced.end(&mut pool, 100);
        assert!(bytes[..100].iter().all(|byte| *byte == 0));
        assert!(bytes[100..].iter().all(|byte| *byte == 7));
        assert_eq!(pool.usage().used, 0);
    }

    #[test]
    fn what_is_to_be_written_is_in_the_piece() {
        let mut records = [PoolRecord::EMPTY; 4];
        let mut pool = Pool::new(
            TestMemory::new(0x8000_0000, 16 << 10).region(),
            &mut records,
        );
        let piece = Bounced::reserve(&mut pool, OWNER, 128, 4, 4).unwrap();
        let buffer = RawBuffer::of_shared(&[1, 2, 3, 4]);
        let bounced = Bounced::new(piece, buffer, DataDirection::ToDevice);
        assert_eq!(bounced.memory.read32(0), 0x0403_0201);
        bounced.end(&mut pool, 4);
        assert_eq!(pool.usage().used, 0);
    }
}
