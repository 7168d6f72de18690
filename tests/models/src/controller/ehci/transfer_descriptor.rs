//! [`TransferDescriptor`]: a qTD as it was handed over, and the rules for what it may hold
//! (EHCI 1.0 §3.5).

use super::queue_head::Pointer;
use super::token::{Pid, Token, status};
use crate::broken::require;
use crate::memory::Memory;

/// Words of a qTD with 32-bit and with 64-bit addresses.
pub(super) const WORDS: usize = 8;
pub(super) const WORDS_64: usize = 13;
/// The index of the token.
pub(super) const TOKEN: usize = 2;
const PAGE: u64 = 4096;
/// Five pages (§3.5.3).
const LIMIT: u32 = 0x5000;

/// A qTD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TransferDescriptor {
    pub(super) words: [u32; WORDS_64],
}

impl TransferDescriptor {
    pub(super) fn next(&self) -> Pointer {
        Pointer(self.words[0])
    }

    pub(super) fn alternate(&self) -> Pointer {
        Pointer(self.words[1])
    }

    pub(super) fn token(&self) -> Token {
        Token(self.words[TOKEN])
    }

    /// Whether `now` is this qTD with nothing changed but that software has taken its Active bit
    /// away (§4.8.2).
    pub(super) fn is_deactivated_as(&self, now: &Self) -> bool {
        let mut expected = *self;
        expected.words[TOKEN] &= !status::ACTIVE;
        expected == *now
    }

    fn first_offset(&self) -> u64 {
        u64::from(self.token().page()) * PAGE + u64::from(self.words[3] & 0xfff)
    }

    /// The rules for a qTD whose Active bit is set.
    pub(super) fn check(&self, at: u64, memory: &Memory) {
        let token = self.token();
        let bytes = token.bytes();
        let initial = status::ACTIVE | status::PING;
        require!(
            token.0 & 0xff & !initial == 0,
            "EHCI 1.0 §3.5.3",
            "the qTD at {at:#x} is active and has status {:#04x}",
            token.0 & 0xff
        );
        require!(
            token.pid().is_some(),
            "EHCI 1.0 §3.5.3",
            "the PID code of the qTD at {at:#x} is reserved"
        );
        require!(
            token.errors_left() != 0,
            "Policy: errors are counted",
            "CERR of the qTD at {at:#x} is zero: it would be tried for ever"
        );
        require!(
            bytes <= LIMIT,
            "EHCI 1.0 §3.5.3",
            "the qTD at {at:#x} moves {bytes} bytes, more than five pages"
        );
        require!(
            token.page() < 5 && self.first_offset() + u64::from(bytes) <= 5 * PAGE,
            "EHCI 1.0 §3.5.4",
            "the qTD at {at:#x} moves {bytes} bytes from {:#x}, beyond its fifth page",
            self.first_offset()
        );
        require!(
            token.pid() != Some(Pid::Setup) || (bytes == 8 && token.toggle() == 0),
            "USB 2.0 §8.5.3",
            "the SETUP at {at:#x} has {bytes} bytes and DATA{}",
            token.toggle()
        );
        self.check_pages(at, memory);
    }

    fn check_pages(&self, at: u64, memory: &Memory) {
        for index in 1..5 {
            require!(
                self.words[3 + index] & 0xfff == 0,
                "EHCI 1.0 §3.5.4",
                "page pointer {index} of the qTD at {at:#x} has an offset; only the first has one"
            );
        }
        let (mut offset, end) = (
            self.first_offset(),
            self.first_offset() + u64::from(self.token().bytes()),
        );
        while offset < end {
            let page = (offset / PAGE) as usize;
            let length = (PAGE - offset % PAGE).min(end - offset);
            let low = u64::from(self.words[3 + page] & !0xfff);
            let start = u64::from(self.words[8 + page]) << 32 | low | (offset % PAGE);
            require!(
                memory.is_mapped(start, length as usize),
                "EHCI 1.0 §3.5.4",
                "page {page} of the qTD at {at:#x}: {length} bytes at {start:#x} are not all \
                 memory that a device may reach"
            );
            offset += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Layout;
    use crate::random::Random;

    fn memory() -> (Memory, u64) {
        let layout = Layout {
            line: 64,
            coherent: true,
            base: 0x1000_0000,
        };
        let mut memory = Memory::new(layout, Random::new(1));
        let (_, bus) = memory.add_region(5 * 4096);
        (memory, bus)
    }

    fn read_of(bus: u64, offset: u32, bytes: u32) -> TransferDescriptor {
        let mut words = [0; WORDS_64];
        (words[0], words[1]) = (1, 1);
        words[2] = bytes << 16 | 3 << 10 | 1 << 8 | status::ACTIVE;
        for page in 0..5 {
            words[3 + page] = bus as u32 + 4096 * page as u32;
        }
        words[3] |= offset;
        TransferDescriptor { words }
    }

    #[test]
    fn five_whole_pages_and_any_offset_inside_them_are_fine() {
        let (memory, bus) = memory();
        read_of(bus, 0, 0x5000).check(0x100, &memory);
        read_of(bus, 4095, 0x4001).check(0x100, &memory);
    }

    #[test]
    #[should_panic(expected = "EHCI 1.0 §3.5.4")]
    fn a_byte_beyond_the_fifth_page_is_refused() {
        let (memory, bus) = memory();
        read_of(bus, 4095, 0x4002).check(0x100, &memory);
    }

    #[test]
    fn only_a_cleared_active_bit_is_a_deactivation() {
        let given = read_of(0x1000, 0, 512);
        let mut now = given;
        now.words[TOKEN] &= !status::ACTIVE;
        assert!(given.is_deactivated_as(&now));
        now.words[0] = 0x40;
        assert!(!given.is_deactivated_as(&now));
    }
}
