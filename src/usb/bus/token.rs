//! What the bus writes into a transfer's [`Token`], to sort its end.

use crate::host::Token;

/// Whose transfer it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A control transfer of the bus on the device with this place in the table; the count tells
    /// a late end of an earlier one.
    Control { device: u8, count: u8 },
    /// A transfer of a function driver.
    Function { function: u8, tag: u16 },
}

const CONTROL: u8 = 1;
const FUNCTION: u8 = 2;

/// The token of a control transfer.
pub(super) fn control(device: u8, count: u8) -> Token {
    Token(u32::from_le_bytes([device, count, 0, CONTROL]))
}

/// The token of a function's transfer.
#[inline]
pub(crate) fn function(function: u8, tag: u16) -> Token {
    Token(u32::from(FUNCTION) << 24 | u32::from(function) << 16 | u32::from(tag))
}

impl Kind {
    #[inline]
    pub(super) fn of(token: Token) -> Option<Self> {
        let [low, high, third, kind] = token.0.to_le_bytes();
        match kind {
            FUNCTION => Some(Self::Function {
                function: third,
                tag: u16::from_le_bytes([low, high]),
            }),
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
        assert_eq!(
            Kind::of(function(7, 0x1234)),
            Some(Kind::Function {
                function: 7,
                tag: 0x1234
            })
        );
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
