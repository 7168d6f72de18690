//! [`Token`]: the third word of a qTD and of a queue head's overlay (EHCI 1.0 §3.5.3).

/// Bits of the status byte.
pub(super) mod status {
    pub(in super::super) const ACTIVE: u32 = 1 << 7;
    pub(in super::super) const HALTED: u32 = 1 << 6;
    pub(in super::super) const DATA_BUFFER: u32 = 1 << 5;
    pub(in super::super) const BABBLE: u32 = 1 << 4;
    pub(in super::super) const TRANSACTION: u32 = 1 << 3;
    pub(in super::super) const MISSED_MICROFRAME: u32 = 1 << 2;
    /// A split transaction waits for its complete-split.
    pub(in super::super) const COMPLETE_SPLIT: u32 = 1 << 1;
    /// High speed: the next OUT begins with PING.
    pub(in super::super) const PING: u32 = 1;
}

/// The direction of a qTD's transactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pid {
    Out,
    In,
    Setup,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Token(pub(super) u32);

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "token {:#010x}", self.0)
    }
}

impl Token {
    pub(super) fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }

    pub(super) fn set(&mut self, bits: u32, to: bool) {
        self.0 = if to { self.0 | bits } else { self.0 & !bits };
    }

    pub(super) fn is_active(self) -> bool {
        self.has(status::ACTIVE)
    }

    pub(super) fn is_halted(self) -> bool {
        self.has(status::HALTED)
    }

    /// The PID code; 3 is reserved.
    pub(super) fn pid(self) -> Option<Pid> {
        match self.0 >> 8 & 3 {
            0 => Some(Pid::Out),
            1 => Some(Pid::In),
            2 => Some(Pid::Setup),
            _ => None,
        }
    }

    /// CERR.
    pub(super) fn errors_left(self) -> u32 {
        self.0 >> 10 & 3
    }

    pub(super) fn set_errors_left(&mut self, count: u32) {
        self.0 = self.0 & !(3 << 10) | count << 10;
    }

    /// C_Page.
    pub(super) fn page(self) -> u32 {
        self.0 >> 12 & 7
    }

    pub(super) fn set_page(&mut self, page: u32) {
        self.0 = self.0 & !(7 << 12) | page << 12;
    }

    /// IOC.
    pub(super) fn interrupts(self) -> bool {
        self.has(1 << 15)
    }

    /// Total Bytes to Transfer.
    pub(super) fn bytes(self) -> u32 {
        self.0 >> 16 & 0x7fff
    }

    pub(super) fn set_bytes(&mut self, bytes: u32) {
        self.0 = self.0 & !(0x7fff << 16) | bytes << 16;
    }

    /// DATA0 or DATA1.
    pub(super) fn toggle(self) -> u8 {
        (self.0 >> 31) as u8
    }

    pub(super) fn flip_toggle(&mut self) {
        self.0 ^= 1 << 31;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_section_3_5_3_has_them() {
        let token = Token(0x8005_9d8c);
        assert_eq!(token.toggle(), 1);
        assert_eq!(token.bytes(), 5);
        assert!(token.interrupts());
        assert_eq!(token.page(), 1);
        assert_eq!(token.errors_left(), 3);
        assert_eq!(token.pid(), Some(Pid::In));
        assert!(token.is_active() && !token.is_halted());
    }

    #[test]
    fn setting_a_field_leaves_the_others_alone() {
        let mut token = Token(u32::MAX);
        token.set_bytes(0x1234);
        token.set_page(2);
        token.set_errors_left(1);
        token.set(status::HALTED, false);
        token.flip_toggle();
        assert_eq!(token.0, 0x1234_a7bf);
    }
}
