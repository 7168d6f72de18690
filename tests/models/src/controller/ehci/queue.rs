//! Advance Queue and Write Back qTD (EHCI 1.0 §4.10.2, §4.10.4).

use super::interrupts::{COMPLETION, ERROR};
use super::queue_head::QueueHead;
use super::token::{Pid, Token, status};
use super::transfer_descriptor::{TOKEN, TransferDescriptor};
use super::{Ehci, TransferFault};
use crate::broken::{broken, require};
use crate::controller::Surroundings;

/// Bits of a queue head's buffer words that belong to split transactions: C-prog-mask, FrameTag.
const PROGRESS_MASK: u32 = 0xff;
const FRAME_TAG: u32 = 0x1f;

impl QueueHead {
    /// §4.10.2: a qTD is laid over the queue head.
    fn overlay(&mut self, place: u32, descriptor: &TransferDescriptor) {
        let old = self.token();
        let mut token = descriptor.token();
        if !self.takes_toggle_from_descriptor() && token.toggle() != old.toggle() {
            token.flip_toggle();
        }
        if self.is_high_speed() {
            token.set(status::PING, old.has(status::PING));
        }
        self.words[3] = place;
        self.words[4] = descriptor.words[0];
        self.words[5] = descriptor.words[1];
        self.set_nak_count(self.nak_reload());
        self.set_token(token);
        self.words[7..].copy_from_slice(&descriptor.words[3..]);
        self.words[8] &= !PROGRESS_MASK;
        self.words[9] &= !FRAME_TAG;
    }

    /// The endpoint's address, by the direction of the qTD in the overlay.
    pub(super) fn endpoint_address(&self) -> u8 {
        match (self.endpoint(), self.token().pid()) {
            (0, _) => 0,
            (number, Some(Pid::In)) => number | 0x80,
            (number, _) => number,
        }
    }
}

impl Ehci {
    /// An idle queue goes on to its next qTD, if that is active: whether it is.
    pub(super) fn advance(&mut self, around: &mut Surroundings<'_>, at: u64) -> Option<bool> {
        let pointer = self.held.get(at)?.head.advance_pointer();
        if pointer.ends() {
            return Some(false);
        }
        self.access(around)?;
        let place = self.structure(pointer.low());
        let descriptor = self.read_descriptor(around, place);
        if !descriptor.token().is_active() {
            return Some(false);
        }
        self.check_unchanged(at, place, &descriptor);
        let held = self.held.get_mut(at)?;
        held.head.overlay(pointer.low(), &descriptor);
        held.head.check_executable(at, held.list);
        held.quiet_until = None;
        self.store_overlay(around, at);
        self.look(around, at);
        self.inject_fault(around, at)?;
        Some(true)
    }

    fn read_descriptor(&self, around: &mut Surroundings<'_>, at: u64) -> TransferDescriptor {
        let mut descriptor = TransferDescriptor { words: [0; 13] };
        let mut bytes = vec![0; 4 * self.descriptor_words()];
        around.memory.read(at, &mut bytes);
        for (word, chunk) in descriptor.words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
        descriptor
    }

    fn check_unchanged(&self, at: u64, place: u64, descriptor: &TransferDescriptor) {
        match self.held.get(at).and_then(|held| held.given(place)) {
            Some(given) => require!(
                given == descriptor,
                "EHCI 1.0 §4.10.2",
                "the qTD at {place:#x} is not what was handed over"
            ),
            None => broken!(
                "EHCI 1.0 §4.10.2",
                "the qTD at {place:#x} is active for the controller and not for the CPU: a store that \
                 takes it back is still under way"
            ),
        }
    }

    /// A fault that a test has planned for this qTD.
    fn inject_fault(&mut self, around: &mut Surroundings<'_>, at: u64) -> Option<()> {
        let address = self.held.get(at)?.head.endpoint_address();
        let count = self.begun.entry(address).or_default();
        let key = (address, *count);
        *count += 1;
        let bits = match self.faults.of_transfer(key) {
            None => return Some(()),
            Some(TransferFault::Never) => {
                self.held.get_mut(at)?.stuck = true;
                return Some(());
            }
            Some(TransferFault::Stall) => 0,
            Some(TransferFault::Babble) => status::BABBLE,
            Some(TransferFault::Transaction) => status::TRANSACTION,
            Some(TransferFault::DataBuffer) => status::DATA_BUFFER,
        };
        let mut token = self.held.get(at)?.head.token();
        token.set(bits | status::HALTED, true);
        token.set(status::ACTIVE, false);
        if bits == status::TRANSACTION {
            token.set_errors_left(0);
        }
        self.finish(around, at, token)
    }

    /// A transaction left this token in the overlay. If it is not active any more, the qTD is
    /// retired: bytes, error counter and status go back to it.
    pub(super) fn finish(
        &mut self,
        around: &mut Surroundings<'_>,
        at: u64,
        token: Token,
    ) -> Option<()> {
        self.held.get_mut(at)?.head.set_token(token);
        self.access(around)?;
        self.store_overlay(around, at);
        if !token.is_active() {
            self.retire(around, at, token);
        }
        Some(())
    }

    fn retire(&mut self, around: &mut Surroundings<'_>, at: u64, token: Token) {
        let Some(held) = self.held.get_mut(at) else {
            return;
        };
        let place = u64::from(held.head.current().low());
        let place = place | u64::from(self.operational.segment) << 32;
        held.retire(place);
        held.quiet_until = None;
        around
            .memory
            .write_words(place + 4 * TOKEN as u64, &[token.0]);
        *around.noticed = true;
        self.look(around, at);
        // §4.10.8, §4.15.1: IOC, or a short packet; and any error that halts.
        let short = token.bytes() != 0 && !token.is_halted();
        if token.interrupts() || short {
            self.raise_at_threshold(around, COMPLETION);
        }
        if token.is_halted() {
            self.raise_at_threshold(around, ERROR);
        }
    }
}
