//! What a boot loader leaves in r0 to r2, and what it means.
//!
//! Who calls it: entry, with the MMU off and RAM clean of what the boot loader's caches held.
//! Nothing is read that does not lie in RAM. U-Boot passes either of two things:
//!
//! | command | r0 | r1 | r2 |
//! |---|---|---|---|
//! | `go ADDRESS WORDS…` | how many words, the address counted | their addresses | nothing |
//! | `bootm`, `bootz` | 0 | a machine number | a device tree (Linux, `Documentation/arch/arm/booting.rst`) |

use heapless::String;

use crate::region::Region;

/// Policy: U-Boot takes 512 characters a command (`CONFIG_SYS_CBSIZE`).
const LONGEST_LINE: usize = 512;
/// U-Boot takes at most so many words a command (`CONFIG_SYS_MAXARGS`, 16 by default, 64 on some).
const MOST_WORDS: usize = 64;
/// Bytes of a pointer of the boot loader's.
const POINTER: usize = 4;

/// A command line.
pub type Line = String<LONGEST_LINE>;

/// Memory of the boot loader's.
pub trait Memory {
    /// The byte at `address`, if that is RAM.
    fn byte(&self, address: usize) -> Option<u8>;

    /// The little-endian word at `address`, if that is RAM.
    fn word(&self, address: usize) -> Option<usize> {
        let mut bytes = [0; POINTER];
        for (offset, byte) in bytes.iter_mut().enumerate() {
            *byte = self.byte(address.checked_add(offset)?)?;
        }
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    }
}

/// RAM, read as it is.
#[derive(Clone, Copy, Debug)]
pub struct Ram(Region);

impl Ram {
    /// RAM at `region`.
    ///
    /// # Safety
    ///
    /// All of it can be read whenever a method is called.
    #[must_use]
    pub const unsafe fn new(region: Region) -> Self {
        Self(region)
    }
}

impl Memory for Ram {
    fn byte(&self, address: usize) -> Option<u8> {
        let inside = self.0.contains(Region::new(address, 1));
        // SAFETY: inside, so that it can be read; volatile, since what a boot loader left there is
        // none of the compiler's objects.
        inside.then(|| unsafe { (address as *const u8).read_volatile() })
    }
}

/// The words behind the address of U-Boot's `go`, as one line; `None` if this was no `go`.
///
/// What does not fit is left out, word by word.
pub fn words(memory: &impl Memory, count: usize, first: usize) -> Option<Line> {
    if !(1..=MOST_WORDS).contains(&count) || !first.is_multiple_of(POINTER) {
        return None;
    }
    // The list ends in a null pointer: with the count that is proof enough.
    let end = first.checked_add(count.checked_mul(POINTER)?)?;
    if memory.word(end)? != 0 {
        return None;
    }
    let mut line = Line::new();
    for index in 1..count {
        let word = word(memory, memory.word(first + index * POINTER)?)?;
        if line.len() + word.len() < line.capacity() {
            // There is room for both.
            let _ = line.push_str(&word).and_then(|()| line.push(' '));
        }
    }
    Some(line)
}

/// The zero-terminated ASCII text at `address`.
fn word(memory: &impl Memory, address: usize) -> Option<Line> {
    let mut word = Line::new();
    for offset in 0..LONGEST_LINE {
        match memory.byte(address.checked_add(offset)?)? {
            0 => return Some(word),
            byte if byte.is_ascii_graphic() => word.push(char::from(byte)).ok()?,
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::{Memory, words};

    /// Bytes from address 0x100 on.
    struct Fake(Vec<u8>);

    impl Memory for Fake {
        fn byte(&self, address: usize) -> Option<u8> {
            self.0.get(address.checked_sub(0x100)?).copied()
        }
    }

    /// A list at 0x100 of texts that follow it.
    fn list(texts: &[&[u8]]) -> Fake {
        let mut pointers = Vec::new();
        let mut bytes = Vec::new();
        let start = 0x100 + (texts.len() + 1) * 4;
        for text in texts {
            pointers.extend(((start + bytes.len()) as u32).to_le_bytes());
            bytes.extend(*text);
            bytes.push(0);
        }
        pointers.extend([0; 4]);
        pointers.extend(bytes);
        Fake(pointers)
    }

    #[test]
    fn the_words_behind_the_address_make_the_line() {
        let memory = list(&[b"42000000", b"rootport.mode=read", b"rootport.disks=2"]);
        let line = words(&memory, 3, 0x100).unwrap();
        assert_eq!(line.trim_end(), "rootport.mode=read rootport.disks=2");
        assert_eq!(words(&list(&[b"42000000"]), 1, 0x100).unwrap(), "");
    }

    #[test]
    fn registers_of_another_hand_off_are_no_words() {
        let memory = list(&[b"42000000", b"rootport.mode=read"]);
        assert_eq!(words(&memory, 0, 0x100), None, "bootm");
        assert_eq!(words(&memory, 2, 0x9000), None, "not RAM");
        assert_eq!(words(&memory, 1, 0x100), None, "another count");
        assert_eq!(words(&memory, 2, 0x101), None, "no list of pointers");
        assert_eq!(
            words(&list(&[b"4", b"\xff\xfe"]), 2, 0x100),
            None,
            "no text"
        );
    }

    #[test]
    fn words_that_do_not_fit_are_left_out() {
        let long = [b'x'; 300];
        let memory = list(&[b"42000000", &long, &long, b"rootport.mode=raw"]);
        let line = words(&memory, 4, 0x100).unwrap();
        assert_eq!(line.len(), 300 + 1 + 17 + 1);
        assert!(line.trim_end().ends_with("rootport.mode=raw"));
    }
}
