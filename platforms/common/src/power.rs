//! The end of an image: the verdict on the console, then power off.
//!
//! The exit status goes over the console because a board has no other way to tell it; the host
//! reads the marker line (`docs/demo-protocol.md`).

use core::fmt::{self, Write as _};

use heapless::String;

use crate::tables::MapError;

/// Policy: a line of a console, and small enough to be returned by value. The rest is cut.
const REASON_BYTES: usize = 112;

/// Why an image fails, in words for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason(String<REASON_BYTES>);

impl Reason {
    /// The reason that `words` make, cut to one line's length.
    #[must_use]
    pub fn new(words: fmt::Arguments<'_>) -> Self {
        let mut line = Line(Self::default());
        // Full is not an error here: what fits is kept.
        let _ = line.write_fmt(words);
        line.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<MapError> for Reason {
    fn from(error: MapError) -> Self {
        let words = match error {
            MapError::BadRegion(_) => "a region is not made of pages of the address space",
            MapError::Conflict(_) => "regions of different kinds overlap",
            MapError::NoTables => "out of translation tables",
        };
        Self::new(format_args!("memory map: {words} ({error:x?})"))
    }
}

impl From<&str> for Reason {
    fn from(words: &str) -> Self {
        Self::new(format_args!("{words}"))
    }
}

/// Takes what fits, one line.
struct Line(Reason);

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let one_line = text.chars().map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        });
        for character in one_line {
            self.0.0.push(character).map_err(|_| fmt::Error)?;
        }
        Ok(())
    }
}

/// Prints the verdict and switches the power off.
#[cfg(target_os = "none")]
pub fn off(verdict: Result<(), Reason>) -> ! {
    use crate::println;
    match verdict {
        Ok(()) => println!("@done result=ok"),
        Err(reason) => println!("@fail reason={reason}"),
    }
    (crate::board::facts().power_off)();
    println!("The power does not go off; stopped.");
    crate::cpu::park()
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::Reason;

    #[test]
    fn a_long_reason_is_cut_and_stays_one_line() {
        let reason = format!("{}", Reason::new(format_args!("a\nb {}", "x".repeat(500))));
        assert!(reason.starts_with("a b xxx"));
        assert_eq!(reason.len(), 112);
    }
}
