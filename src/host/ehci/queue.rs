//! One endpoint's queue: a queue head and a circle of qTDs behind it.
//!
//! Called by [`endpoint`](super::endpoint). Each qTD's next pointer leads to its neighbour for ever,
//! the last one's to the first. The controller stops at the first qTD that is not active, and that
//! is always the one at `tail`: so a transfer is appended to a running queue by writing all that
//! follows first, and the token at `tail` last. No register is touched (`EHCI 1.0 §4.10`).
//!
//! Invariant: the qTD at `tail` is inactive. Those behind it may be left over from a transfer that ended
//! short; nothing leads there until the one at `tail` is activated, and then they were written anew.
//! Positions and lengths live here; what the controller writes are tokens only.

use super::queue_head;
use super::transfer_descriptor::{
    ALTERNATE, LINK_END, NEXT, PLANNED, STATUS, STRIDE, Token, surely_taken,
};
use crate::dma::{self, Allocation, Block, Pinned, Row};
use crate::host::{EndpointConfig, EndpointKind};

/// Consecutive qTDs of a [`Queue`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    /// Position of the first.
    pub(super) first: u16,
    /// How many.
    pub(super) count: u16,
}

/// A transfer that was written but that the controller cannot see: its first qTD is not active.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prepared {
    /// Where it lies.
    pub(super) span: Span,
    /// What makes it visible when it is written to the first qTD's token.
    pub(super) token: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) memory: Allocation,
    /// The same memory, cut into pieces as long as a qTD.
    pub(super) row: Row<STRIDE>,
    /// Bus address of the first qTD.
    base: u32,
    /// Number of qTDs.
    pub(super) size: u16,
    /// Where the next transfer begins.
    pub(super) tail: u16,
    /// How many qTDs transfers may still take.
    pub(super) free: u16,
    /// qTDs have extended page pointers.
    pub(super) wide: bool,
}

/// A qTD whose token is looked at again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watched(Pinned<STRIDE>);

impl Watched {
    /// One read of memory.
    #[inline]
    pub(super) fn read_token(&self) -> Token {
        Token::new(self.0.block().read32::<STATUS>())
    }
}

/// How many qTDs an endpoint needs: for its transfers, and one to stop at. `None` if that is more
/// than a queue can count.
pub(super) fn descriptors(config: &EndpointConfig) -> Option<u16> {
    let stages = match config.kind {
        EndpointKind::Control => 2,
        EndpointKind::Bulk | EndpointKind::Interrupt => 0,
    };
    let data = config.longest.div_ceil(surely_taken(config.max_packet));
    let each = data.max(1).checked_add(stages)?;
    let all = each
        .checked_mul(u32::from(config.transfers.max(1)))?
        .checked_add(1)?;
    u16::try_from(all).ok().filter(|all| *all <= u16::MAX / 2)
}

/// How many places of a qTD's length the queue head takes.
const HEAD_PLACES: u32 = (queue_head::LENGTH / STRIDE) as u32;

/// Bytes of the pool for a queue of `size` qTDs.
pub(super) const fn length(size: u16) -> usize {
    queue_head::LENGTH + size as usize * STRIDE
}

impl Queue {
    /// A queue of `size` qTDs in `memory`, which is zeroed, in the controller's segment of 4 GiB, and
    /// `length(size)` long.
    pub(super) fn new(memory: Allocation, size: u16, wide: bool) -> Self {
        let base = memory.bus().offset(queue_head::LENGTH as u64).low();
        let row = memory.row(HEAD_PLACES + u32::from(size));
        let queue = Self {
            memory,
            row,
            base,
            size,
            tail: 0,
            free: size.saturating_sub(1),
            wide,
        };
        for position in 0..size {
            let next = queue.address(queue.after(position, 1));
            queue.write(position, NEXT, next);
            queue.write(position, ALTERNATE, LINK_END);
        }
        queue
    }

    /// The queue head's memory, with the qTDs behind it.
    pub(super) fn memory(&self) -> &Allocation {
        &self.memory
    }

    /// Gives the memory up. The controller reaches it no more.
    pub(super) fn into_memory(self) -> Allocation {
        self.memory
    }

    /// The position `count` behind `position`; `count` is at most the size.
    #[inline]
    pub(super) fn after(&self, position: u16, count: u16) -> u16 {
        let sum = position + count;
        if sum >= self.size {
            sum - self.size
        } else {
            sum
        }
    }

    /// The devices' address of the qTD at `position`.
    #[inline]
    pub(super) fn address(&self, position: u16) -> u32 {
        self.base + u32::from(position) * STRIDE as u32
    }

    /// Writes one field of the qTD at `position`.
    pub(super) fn write(&self, position: u16, field: usize, value: u32) {
        self.memory.write32(Self::offset(position) + field, value);
    }

    /// Where in the memory the qTD at `position` lies.
    #[inline]
    pub(super) fn offset(position: u16) -> usize {
        queue_head::LENGTH + usize::from(position) * STRIDE
    }

    /// Where in `row` the qTD at `position` lies.
    #[inline]
    pub(super) fn place(position: u16) -> u32 {
        HEAD_PLACES + u32::from(position)
    }

    /// The qTD at `position`.
    #[inline]
    pub(super) fn descriptor(&self, position: u16) -> Option<Block<'_, STRIDE>> {
        self.row.get(Self::place(position))
    }

    /// Writes the token of the qTD at `position`.
    #[inline]
    pub(super) fn write_token(&self, position: u16, token: u32) {
        if let Some(descriptor) = self.descriptor(position) {
            descriptor.write32::<STATUS>(token);
        }
    }

    /// The qTD at `position`, to be looked at often.
    #[inline]
    pub(super) fn watch(&self, position: u16) -> Watched {
        Watched(self.row.pin(Self::place(position)))
    }

    /// The token of the qTD at `position`.
    #[inline]
    pub(super) fn read_token(&self, position: u16) -> Token {
        self.watch(position).read_token()
    }

    /// How many bytes the qTD at `position` was made for.
    pub(super) fn read_planned(&self, position: u16) -> u32 {
        self.memory.read32(Self::offset(position) + PLANNED)
    }

    /// The token of the qTD at `position` as far as the controller has come with it: while it is at
    /// work on it, progress is in the overlay only. The queue head is out of its schedule.
    pub(super) fn read_progress(&self, position: u16) -> Token {
        if queue_head::read_current(&self.memory) == self.address(position) {
            Token::new(queue_head::read_token(&self.memory))
        } else {
            self.read_token(position)
        }
    }

    /// Makes a prepared transfer visible.
    #[inline]
    pub(super) fn activate(&self, prepared: Prepared) {
        dma::release();
        self.write_token(prepared.span.first, prepared.token);
    }

    /// Takes back the qTDs of the oldest transfer, all of them inactive.
    #[inline]
    pub(super) fn give_back(&mut self, count: u16) {
        self.free += count;
    }

    /// Empties the queue: nothing is in flight, and the controller goes on at `tail` with the toggle
    /// and ping state of `token`. The queue head is out of its schedule.
    pub(super) fn rewind(&mut self, token: u32) {
        self.free = self.size.saturating_sub(1);
        queue_head::write_overlay(&self.memory, self.address(self.tail), token);
    }
}

/// The devices' address of the queue head in `memory`, for a schedule's pointer.
pub(super) fn link(memory: &Allocation) -> u32 {
    queue_head::link_to(memory.bus())
}
