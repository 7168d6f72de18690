//! What the bus writes into a transfer's [`Token`], to sort its end.

use crate::host::Token;

/// Whose transfer it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A control transfer of the bus on the device with this place in the table; the count tells
    /// a late end of an earlier one.
    Control { device: u8, count: u8 },
    /// A transfer of a function driver.
    Function,
}

const CONTROL: u8 = 1;
const FUNCTION: u8 = 2;
const FUNCTION_KIND: u32 = FUNCTION as u32;

/// The token of a control transfer.
pub(super) fn control(device: u8, count: u8) -> Token {
    Token(u32::from_le_bytes([device, count, 0, CONTROL]))
}

/// The token of a function's transfer.
#[inline]
pub(crate) fn function(function: u8, tag: u16) -> Token {
    Token(FUNCTION_KIND << 24 | u32::from(function) << 16 | u32::from(tag))
}

/// Whose transfer it was, of one that a function's driver has submitted: the function's number and the
/// driver's own tag.
#[inline]
#[must_use]
pub fn function_and_tag(token: Token) -> (u8, u16) {
    ((token.0 >> 16) as u8, token.0 as u16)
}

/// Whether a function's driver has submitted the transfer.
#[inline]
pub(super) fn is_of_function(token: Token) -> bool {
    token.0 >> 24 == FUNCTION_KIND
}

impl Kind {
    #[inline]
    pub(super) fn of(token: Token) -> Option<Self> {
        let [low, high, _, kind] = token.0.to_le_bytes();
        match kind {
            FUNCTION => Some(Self::Function),
            CONTROL => Some(Self::Control {
                device: low,
                count: high,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_what_it_was_made_from() {
        let token = function(7, 0x1234);
        assert_eq!(Kind::of(token), Some(Kind::Function));
        assert!(is_of_function(token) && !is_of_function(control(3, 250)));
        assert_eq!(function_and_tag(token), (7, 0x1234));
        assert_eq!(
            Kind::of(control(3, 250)),
            Some(Kind::Control {
                device: 3,
                count: 250
            })
        );
        assert_eq!(Kind::of(Token(0)), None);
    }
}
