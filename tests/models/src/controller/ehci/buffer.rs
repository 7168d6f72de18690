//! The page pointers of an overlay (EHCI 1.0 §3.5.4, §4.10.6): only the first has an offset, and
//! crossing a page moves C_Page on.

use super::queue_head::QueueHead;
use crate::memory::Memory;

const PAGE: u32 = 4096;

impl QueueHead {
    /// Where the next byte of the buffer lies.
    fn place(&self) -> u64 {
        let page = self.token().page() as usize;
        let low = self.words[7 + page] & !(PAGE - 1);
        (u64::from(self.words[12 + page]) << 32) | u64::from(low | self.offset())
    }

    fn offset(&self) -> u32 {
        self.words[7] & (PAGE - 1)
    }

    /// Goes on by `length` bytes, which do not cross a page.
    fn advance_in_page(&mut self, length: u32) {
        let offset = self.offset() + length;
        self.words[7] = self.words[7] & !(PAGE - 1) | (offset % PAGE);
        let mut token = self.token();
        token.set_page(token.page() + offset / PAGE);
        self.set_token(token);
    }

    /// The addresses of the next `length` bytes, and the place behind them.
    fn pieces(&mut self, length: usize) -> Vec<(u64, usize)> {
        let mut pieces = Vec::new();
        let mut left = length as u32;
        while left != 0 {
            let here = left.min(PAGE - self.offset());
            pieces.push((self.place(), here as usize));
            self.advance_in_page(here);
            left -= here;
        }
        pieces
    }

    /// Reads the next `length` bytes of the buffer without going on: a packet may have to be sent
    /// again.
    pub(super) fn read_ahead(&self, memory: &mut Memory, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let mut done = 0;
        for (at, count) in self.clone().pieces(length) {
            memory.read(at, &mut bytes[done..done + count]);
            done += count;
        }
        bytes
    }

    /// Writes a packet into the buffer; Total Bytes and the place go on.
    pub(super) fn deliver(&mut self, memory: &mut Memory, bytes: &[u8]) {
        let mut done = 0;
        let mut ahead = *self;
        for (at, count) in ahead.pieces(bytes.len()) {
            memory.write(at, &bytes[done..done + count]);
            done += count;
        }
        self.moved(bytes.len());
    }

    /// Total Bytes and the place go on by `length`.
    pub(super) fn moved(&mut self, length: usize) {
        let _ = self.pieces(length);
        let mut token = self.token();
        token.set_bytes(token.bytes() - length as u32);
        self.set_token(token);
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue_head::WORDS_64;
    use super::*;

    fn overlay(offset: u32, bytes: u32) -> QueueHead {
        let mut words = [0; WORDS_64];
        words[6] = bytes << 16;
        for page in 0..5 {
            words[7 + page] = 0x1_0000 * (page as u32 + 1);
            words[12 + page] = page as u32;
        }
        words[7] |= offset;
        QueueHead { words }
    }

    #[test]
    fn a_packet_that_crosses_a_page_goes_on_at_the_start_of_the_next_pointer() {
        let mut head = overlay(4000, 1024);
        assert_eq!(head.pieces(512), [(0x1_0fa0, 96), (0x1_0002_0000, 416)]);
        assert_eq!((head.token().page(), head.offset()), (1, 416));
    }

    #[test]
    fn a_packet_that_ends_at_a_page_leaves_the_next_one_current() {
        let mut head = overlay(3584, 1024);
        head.moved(512);
        assert_eq!((head.token().page(), head.offset()), (1, 0));
        assert_eq!(head.token().bytes(), 512);
    }
}
