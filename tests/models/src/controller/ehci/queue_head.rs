//! [`QueueHead`]: the words of a queue head, and the rules for what they may hold (EHCI 1.0 §3.6).

use super::token::Token;
use crate::broken::{broken, require};
use crate::controller::ehci::List;

/// Words of a queue head with 32-bit and with 64-bit addresses.
pub(super) const WORDS: usize = 12;
pub(super) const WORDS_64: usize = 17;

/// A pointer to a structure with its type and Terminate bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pointer(pub(super) u32);

impl Pointer {
    /// T: there is nothing behind it.
    pub(super) fn ends(self) -> bool {
        self.0 & 1 != 0
    }

    /// The lower half of the address.
    pub(super) fn low(self) -> u32 {
        self.0 & !0x1f
    }

    /// Typ, of links between schedule structures.
    pub(super) fn kind(self) -> u32 {
        self.0 >> 1 & 3
    }
}

/// Typ of a queue head (§3.1).
pub(super) const QUEUE_HEAD: u32 = 1;

/// EPS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Speed {
    Full,
    Low,
    High,
}

/// A queue head as the controller holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct QueueHead {
    pub(super) words: [u32; WORDS_64],
}

impl QueueHead {
    pub(super) fn horizontal(&self) -> Pointer {
        Pointer(self.words[0])
    }

    pub(super) fn device(&self) -> u8 {
        (self.words[1] & 0x7f) as u8
    }

    pub(super) fn endpoint(&self) -> u8 {
        (self.words[1] >> 8 & 0xf) as u8
    }

    /// EPS, with its reserved value refused when the queue head was linked.
    pub(super) fn speed(&self) -> Speed {
        match self.words[1] >> 12 & 3 {
            0 => Speed::Full,
            1 => Speed::Low,
            _ => Speed::High,
        }
    }

    pub(super) fn is_high_speed(&self) -> bool {
        self.speed() == Speed::High
    }

    /// DTC: each qTD brings its toggle.
    pub(super) fn takes_toggle_from_descriptor(&self) -> bool {
        self.words[1] & 1 << 14 != 0
    }

    /// H: head of the reclamation list.
    pub(super) fn is_list_head(&self) -> bool {
        self.words[1] & 1 << 15 != 0
    }

    pub(super) fn max_packet(&self) -> usize {
        (self.words[1] >> 16 & 0x7ff) as usize
    }

    /// C: control endpoint of a device that is not at high speed.
    pub(super) fn is_slow_control(&self) -> bool {
        self.words[1] & 1 << 27 != 0
    }

    /// RL.
    pub(super) fn nak_reload(&self) -> u32 {
        self.words[1] >> 28
    }

    pub(super) fn start_mask(&self) -> u32 {
        self.words[2] & 0xff
    }

    pub(super) fn complete_mask(&self) -> u32 {
        self.words[2] >> 8 & 0xff
    }

    /// Address of the hub whose transaction translator serves this endpoint.
    pub(super) fn hub(&self) -> u8 {
        (self.words[2] >> 16 & 0x7f) as u8
    }

    /// The port of the hub that the device is behind.
    pub(super) fn hub_port(&self) -> u8 {
        (self.words[2] >> 23 & 0x7f) as u8
    }

    pub(super) fn mult(&self) -> u32 {
        self.words[2] >> 30
    }

    /// Where the current qTD lies.
    pub(super) fn current(&self) -> Pointer {
        Pointer(self.words[3])
    }

    pub(super) fn next(&self) -> Pointer {
        Pointer(self.words[4])
    }

    pub(super) fn alternate(&self) -> Pointer {
        Pointer(self.words[5])
    }

    /// NakCnt, in unused bits of the alternate pointer.
    pub(super) fn nak_count(&self) -> u32 {
        self.words[5] >> 1 & 0xf
    }

    pub(super) fn set_nak_count(&mut self, count: u32) {
        self.words[5] = self.words[5] & !0x1e | count << 1;
    }

    pub(super) fn token(&self) -> Token {
        Token(self.words[6])
    }

    pub(super) fn set_token(&mut self, token: Token) {
        self.words[6] = token.0;
    }

    /// C-prog-mask: the complete-splits made so far, a bit for each microframe.
    pub(super) fn progress_mask(&self) -> u32 {
        self.words[8] & 0xff
    }

    pub(super) fn set_progress_mask(&mut self, mask: u32) {
        self.words[8] = self.words[8] & !0xff | mask;
    }

    /// Whether the queue holds no transfer that could go on without software.
    pub(super) fn is_idle(&self) -> bool {
        !self.token().is_active()
    }

    /// The pointer that the queue will be advanced by (§4.10.2): the alternate one after a short
    /// packet.
    pub(super) fn advance_pointer(&self) -> Pointer {
        if self.token().bytes() != 0 && !self.alternate().ends() {
            self.alternate()
        } else {
            self.next()
        }
    }

    /// The rules that hold as soon as the controller can reach the queue head.
    pub(super) fn check_reachable(&self, at: u64, list: List) {
        require!(
            self.words[0] & 0x18 == 0,
            "EHCI 1.0 §3.6.1",
            "reserved bits of the horizontal link of the queue head at {at:#x}"
        );
        require!(
            self.words[1] >> 12 & 3 != 3,
            "EHCI 1.0 §3.6.2",
            "EPS of the queue head at {at:#x} is reserved"
        );
        require!(
            self.words[1] & 1 << 7 == 0,
            "EHCI 1.0 §3.6.2",
            "the queue head at {at:#x} has the I bit set"
        );
        require!(
            self.words[3] & 0x1f == 0,
            "EHCI 1.0 §3.6.3",
            "reserved bits of the current qTD pointer of the queue head at {at:#x}"
        );
        require!(
            !self.token().is_active() || self.current().low() != 0,
            "EHCI 1.0 §3.6.3",
            "the overlay of the queue head at {at:#x} is active without a current qTD"
        );
        match list {
            List::Asynchronous => require!(
                self.start_mask() == 0,
                "EHCI 1.0 §3.6.2",
                "the queue head at {at:#x} has an S-mask in the asynchronous schedule"
            ),
            List::Periodic => self.check_periodic(at),
        }
    }

    fn check_periodic(&self, at: u64) {
        require!(
            self.start_mask() != 0,
            "EHCI 1.0 §3.6.2",
            "the queue head at {at:#x} in the periodic schedule has no S-mask"
        );
        require!(
            !self.is_list_head(),
            "EHCI 1.0 §4.8.6",
            "the queue head at {at:#x} in the periodic schedule has its H bit set"
        );
        require!(
            self.nak_reload() == 0,
            "EHCI 1.0 §4.9",
            "the interrupt queue head at {at:#x} reloads a NAK counter"
        );
    }

    /// The rules for a queue head that is about to be executed.
    pub(super) fn check_executable(&self, at: u64, list: List) {
        let limit = match (self.speed(), list) {
            (Speed::Low, _) => 8,
            (Speed::Full, _) => 64,
            (Speed::High, List::Asynchronous) => 512,
            (Speed::High, List::Periodic) => 1024,
        };
        let size = self.max_packet();
        require!(
            size != 0 && size <= limit,
            "USB 2.0 §5.8.3",
            "the queue head at {at:#x} has a maximum packet of {size} bytes at {:?} speed",
            self.speed()
        );
        require!(
            self.mult() != 0,
            "EHCI 1.0 §3.6.2",
            "Mult of the queue head at {at:#x} is zero"
        );
        if self.is_high_speed() {
            require!(
                !self.is_slow_control(),
                "EHCI 1.0 §3.6.2",
                "the queue head at {at:#x} is at high speed and has its C bit set"
            );
        } else {
            self.check_split(at, list);
        }
    }

    fn check_split(&self, at: u64, list: List) {
        require!(
            self.endpoint() != 0 || self.is_slow_control(),
            "EHCI 1.0 §3.6.2",
            "the queue head at {at:#x} is a control endpoint at {:?} speed without its C bit",
            self.speed()
        );
        require!(
            self.hub() != 0,
            "EHCI 1.0 §3.6.2",
            "the queue head at {at:#x} is at {:?} speed and names no hub",
            self.speed()
        );
        if list == List::Asynchronous {
            return;
        }
        let (start, complete) = (self.start_mask(), self.complete_mask());
        require!(
            start.count_ones() == 1,
            "EHCI 1.0 §4.12.2",
            "the split interrupt queue head at {at:#x} has the S-mask {start:#x}"
        );
        // Without an FSTN a split ends in the frame in which it began.
        let too_early = (start << 2) - 1;
        require!(
            complete != 0 && complete & too_early == 0,
            "EHCI 1.0 §4.12.2",
            "the split interrupt queue head at {at:#x} starts by {start:#x} and completes by \
             {complete:#x}: not from two microframes later on in the same frame"
        );
    }
}

/// A link of the asynchronous schedule must lead to a queue head (§3.6.1).
pub(super) fn check_asynchronous_link(pointer: Pointer, from: u64) {
    if pointer.ends() {
        broken!(
            "EHCI 1.0 §3.6.1",
            "the horizontal link of the queue head at {from:#x} in the asynchronous schedule is \
             terminated"
        )
    }
    require!(
        pointer.kind() == QUEUE_HEAD,
        "EHCI 1.0 §4.8",
        "the horizontal link {:#x} at {from:#x} leads to no queue head",
        pointer.0
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> QueueHead {
        let mut words = [0; WORDS_64];
        words[0] = 0x4800_0002;
        words[1] = 0x4200_2181 & !0x80;
        words[2] = 1 << 30;
        (words[4], words[5]) = (1, 1);
        QueueHead { words }
    }

    #[test]
    fn fields_lie_where_figure_3_7_has_them() {
        let head = head();
        assert_eq!((head.device(), head.endpoint()), (1, 1));
        assert_eq!((head.speed(), head.max_packet()), (Speed::High, 512));
        assert_eq!((head.nak_reload(), head.mult()), (4, 1));
        assert!(!head.is_list_head() && !head.takes_toggle_from_descriptor());
        assert_eq!(head.horizontal().kind(), QUEUE_HEAD);
    }

    #[test]
    fn a_short_packet_takes_the_alternate_pointer_unless_it_is_terminated() {
        let mut head = head();
        (head.words[4], head.words[5]) = (0x1000, 0x2000);
        assert_eq!(head.advance_pointer(), Pointer(0x1000));
        head.words[6] = 5 << 16;
        assert_eq!(head.advance_pointer(), Pointer(0x2000));
        head.words[5] = 1;
        assert_eq!(head.advance_pointer(), Pointer(0x1000));
    }
}
