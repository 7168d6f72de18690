//! The policies, their letters, and which of them the run-time string may switch off.

bitflags::bitflags! {
    /// Policies for a device. Each names what the device does, and says what is done about it.
    ///
    /// "By construction" means that the stack treats every device so: the flag then only names the
    /// devices that would mind.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Quirks: u32 {
        /// Letter `s`. It has one unit, and GET MAX LUN or another unit's number harms it: neither is
        /// sent.
        const SINGLE_LUN = 1 << 0;
        /// It fails INQUIRY or dies of it: none is sent, and it counts as a removable disk of SCSI-2.
        const FIX_INQUIRY = 1 << 1;
        /// Letter `c`. READ CAPACITY gives the number of blocks in place of the last one: one is taken
        /// off.
        const FIX_CAPACITY = 1 << 2;
        /// Letter `r`. The residue of its status is not to be believed: the bytes that came count.
        const IGNORE_RESIDUE = 1 << 3;
        /// It wants command wrappers of 32 bytes: a zero is appended.
        const BULK32 = 1 << 4;
        /// Letter `l`. It minds PREVENT ALLOW MEDIUM REMOVAL. By construction: that is never sent.
        const NOT_LOCKABLE = 1 << 5;
        /// It loses data that follow the wrapper at once at high speed: a pause goes between.
        const GO_SLOW = 1 << 6;
        /// Letter `w`. It minds the question for write protection: MODE SENSE is not sent, and the
        /// medium counts as writable until a write is refused.
        const NO_WP_DETECT = 1 << 7;
        /// Letter `m`. A command moves at most 32 KiB (64 sectors).
        const MAX_SECTORS_64 = 1 << 8;
        /// Letter `i`. It is no disk, whatever it says: no driver takes it.
        const IGNORE_DEVICE = 1 << 9;
        /// Letter `h`. It may give the number of blocks in place of the last one: an odd number of
        /// blocks is made even, since flash has an even one.
        const CAPACITY_HEURISTICS = 1 << 10;
        /// A command moves at most 4 KiB.
        const MAX_SECTORS_MIN = 1 << 11;
        /// The tag of its status is not the command's: it is not compared.
        const BULK_IGNORE_TAG = 1 << 12;
        /// Letter `a`. It has more sense data than 18 bytes: 96 are asked for.
        const SANE_SENSE = 1 << 13;
        /// Letter `o`. Its capacity is right: its vendor's other devices get
        /// [`Quirks::CAPACITY_HEURISTICS`], it does not.
        const CAPACITY_OK = 1 << 14;
        /// Letter `b`. It fails when more than 18 bytes of sense data are asked for: more never are.
        const BAD_SENSE = 1 << 15;
        /// Letter `d`. Of optical drives; nothing here asks them.
        const NO_READ_DISC_INFO = 1 << 16;
        /// Letter `e`. READ CAPACITY (16) hangs it: that is not sent, and a disk beyond 2 TiB is used as
        /// far as READ CAPACITY (10) can say.
        const NO_READ_CAPACITY_16 = 1 << 17;
        /// Letter `n`. Its first READ (10) after it got a medium fails, or brings junk. By construction:
        /// bring-up reads block 0 of every medium, twice if need be, and throws it away.
        const INITIAL_READ10 = 1 << 18;
        /// Letter `p`. It does not say that it has a write cache. By construction: on Bulk-Only a cache
        /// is taken for granted, and a flush is a command.
        const WRITE_CACHE = 1 << 19;
        /// READ CAPACITY (10) wraps at 2 TiB: READ CAPACITY (16) is asked first.
        const NEEDS_CAP16 = 1 << 20;
        /// Letter `u`. Its UAS does not work: Bulk-Only is used.
        const IGNORE_UAS = 1 << 21;
        /// Forced unit access fails or lies. By construction on Bulk-Only: it is not used; a flush is.
        const BROKEN_FUA = 1 << 22;
        /// Letter `t`. ATA PASS-THROUGH harms it: none is sent.
        const NO_ATA_1X = 1 << 23;
        /// Letter `f`. REPORT SUPPORTED OPERATION CODES harms it. By construction: never sent.
        const NO_REPORT_OPCODES = 1 << 24;
        /// Letter `g`. A command moves at most 120 KiB (240 sectors).
        const MAX_SECTORS_240 = 1 << 25;
        /// Letter `j`. REPORT LUNS harms it. By construction on Bulk-Only: never sent there.
        const NO_REPORT_LUNS = 1 << 26;
        /// Letter `y`. It hides its write cache and hangs on the question: MODE SENSE is not sent, and a
        /// cache is taken for granted.
        const ALWAYS_SYNC = 1 << 27;
        /// Letter `k`. WRITE SAME harms it. By construction on Bulk-Only: never sent there.
        const NO_SAME = 1 << 28;
        /// It leaves unless it is asked for sense data soon after a flush: REQUEST SENSE follows every
        /// SYNCHRONIZE CACHE.
        const SENSE_AFTER_SYNC = 1 << 29;
        /// Its interface is Bulk-Only whatever its class, subclass and protocol bytes say.
        const BULK_ONLY = 1 << 30;
        /// A status read that is queued while its data are due is stalled, or never answered: it is
        /// queued when the data have been moved.
        const STATUS_LAST = 1 << 31;
    }
}

/// The letters of the run-time string (Linux, `usb-storage.quirks`).
const LETTERS: [(u8, Quirks); 22] = [
    (b'a', Quirks::SANE_SENSE),
    (b'b', Quirks::BAD_SENSE),
    (b'c', Quirks::FIX_CAPACITY),
    (b'd', Quirks::NO_READ_DISC_INFO),
    (b'e', Quirks::NO_READ_CAPACITY_16),
    (b'f', Quirks::NO_REPORT_OPCODES),
    (b'g', Quirks::MAX_SECTORS_240),
    (b'h', Quirks::CAPACITY_HEURISTICS),
    (b'i', Quirks::IGNORE_DEVICE),
    (b'j', Quirks::NO_REPORT_LUNS),
    (b'k', Quirks::NO_SAME),
    (b'l', Quirks::NOT_LOCKABLE),
    (b'm', Quirks::MAX_SECTORS_64),
    (b'n', Quirks::INITIAL_READ10),
    (b'o', Quirks::CAPACITY_OK),
    (b'p', Quirks::WRITE_CACHE),
    (b'r', Quirks::IGNORE_RESIDUE),
    (b's', Quirks::SINGLE_LUN),
    (b't', Quirks::NO_ATA_1X),
    (b'u', Quirks::IGNORE_UAS),
    (b'w', Quirks::NO_WP_DETECT),
    (b'y', Quirks::ALWAYS_SYNC),
];

impl Quirks {
    /// What the run-time string replaces: every policy with a letter but `k`, which it can only
    /// switch on. The others stay as the table has them.
    pub const REPLACEABLE: Self = Self::lettered().difference(Self::NO_SAME);

    const fn lettered() -> Self {
        let mut all = Self::empty();
        let mut rest: &[(u8, Self)] = &LETTERS;
        while let [(_, quirk), behind @ ..] = rest {
            all = all.union(*quirk);
            rest = behind;
        }
        all
    }

    /// The policy that a letter stands for, in either case.
    #[must_use]
    pub fn from_letter(letter: u8) -> Option<Self> {
        let letter = letter.to_ascii_lowercase();
        let is_it = |(known, _): &&(u8, Self)| *known == letter;
        LETTERS.iter().find(is_it).map(|(_, quirk)| *quirk)
    }

    /// The letter of a single policy, if it has one.
    #[must_use]
    pub fn letter(self) -> Option<char> {
        let is_it = |(_, known): &&(u8, Self)| *known == self;
        LETTERS
            .iter()
            .find(is_it)
            .map(|(letter, _)| char::from(*letter))
    }

    /// The most bytes that one command may move, if the policies limit that.
    #[must_use]
    pub const fn transfer_limit(self) -> Option<u32> {
        if self.contains(Self::MAX_SECTORS_MIN) {
            Some(4096)
        } else if self.contains(Self::MAX_SECTORS_64) {
            Some(64 * 512)
        } else if self.contains(Self::MAX_SECTORS_240) {
            Some(240 * 512)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_policies_belong_together_in_either_case() {
        for (letter, quirk) in LETTERS {
            assert_eq!(Quirks::from_letter(letter), Some(quirk));
            assert_eq!(
                Quirks::from_letter(letter.to_ascii_uppercase()),
                Some(quirk)
            );
            assert_eq!(quirk.letter(), Some(char::from(letter)));
        }
        assert_eq!(Quirks::from_letter(b'z'), None);
        assert_eq!(Quirks::GO_SLOW.letter(), None);
    }

    #[test]
    fn only_what_has_a_letter_is_replaced_and_write_same_is_not() {
        for kept in [
            Quirks::BROKEN_FUA,
            Quirks::BULK_IGNORE_TAG,
            Quirks::GO_SLOW,
            Quirks::NEEDS_CAP16,
            Quirks::FIX_INQUIRY,
            Quirks::NO_SAME,
        ] {
            assert!(!Quirks::REPLACEABLE.intersects(kept), "{kept:?}");
        }
        assert_eq!(Quirks::REPLACEABLE.iter().count(), 21);
    }

    #[test]
    fn the_strictest_limit_holds() {
        let both = Quirks::MAX_SECTORS_64 | Quirks::MAX_SECTORS_240;
        assert_eq!(both.transfer_limit(), Some(32_768));
        assert_eq!(Quirks::MAX_SECTORS_240.transfer_limit(), Some(122_880));
        assert_eq!(Quirks::MAX_SECTORS_MIN.transfer_limit(), Some(4096));
        assert_eq!(Quirks::IGNORE_UAS.transfer_limit(), None);
    }
}
