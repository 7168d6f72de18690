//! The two wrappers of Bulk-Only Transport as bytes (BOT 1.0 §5.1, §5.2), read from the device's
//! side.

/// A command block wrapper that is valid: 31 bytes with the signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandWrapper {
    /// Comes back in the status wrapper.
    pub tag: u32,
    /// Bytes that the host means to transfer.
    #[doc(alias = "dCBWDataTransferLength")]
    pub length: u32,
    /// Whether to the host. Says nothing when the length is 0.
    pub to_host: bool,
    /// The logical unit.
    pub lun: u8,
    /// The command, as long as the wrapper says.
    pub cdb: Vec<u8>,
    /// Which reserved field is not zero, or which length is impossible.
    pub flaw: Option<&'static str>,
}

impl CommandWrapper {
    /// The signature "USBC".
    const SIGNATURE: [u8; 4] = *b"USBC";

    /// Takes a wrapper apart; `None` if it is not valid (BOT 1.0 §6.2.1).
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 31] = bytes.try_into().ok()?;
        if bytes[..4] != Self::SIGNATURE {
            return None;
        }
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let length = usize::from(bytes[14] & 0x1f);
        let flaw = if bytes[12] & 0x7f != 0 {
            Some("reserved bits of bmCBWFlags")
        } else if bytes[13] & 0xf0 != 0 {
            Some("reserved bits beside bCBWLUN")
        } else if bytes[14] & 0xe0 != 0 {
            Some("reserved bits beside bCBWCBLength")
        } else if !(1..=16).contains(&length) {
            Some("bCBWCBLength is not 1 to 16")
        } else {
            None
        };
        Some(Self {
            tag: word(4),
            length: word(8),
            to_host: bytes[12] & 0x80 != 0,
            lun: bytes[13] & 0x0f,
            cdb: bytes[15..15 + length.min(16)].to_vec(),
            flaw,
        })
    }
}

/// The 13 bytes of a well-formed status wrapper.
#[must_use]
pub fn status_wrapper(tag: u32, residue: u32, status: u8) -> Vec<u8> {
    let mut bytes = b"USBS".to_vec();
    bytes.extend(tag.to_le_bytes());
    bytes.extend(residue.to_le_bytes());
    bytes.push(status);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// READ(10) of one block at LBA 1, as 31 bytes.
    const READ: [u8; 31] = [
        0x55, 0x53, 0x42, 0x43, 1, 2, 3, 4, 0, 2, 0, 0, 0x80, 1, 10, 0x28, 0, 0, 0, 0, 1, 0, 0, 1,
        0, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    fn a_command_wrapper_is_little_endian_around_a_big_endian_command() {
        let wrapper = CommandWrapper::parse(&READ).expect("valid");
        assert_eq!((wrapper.tag, wrapper.length), (0x0403_0201, 512));
        assert_eq!(
            (wrapper.to_host, wrapper.lun, wrapper.flaw),
            (true, 1, None)
        );
        assert_eq!(wrapper.cdb, READ[15..25]);
    }

    #[test]
    fn a_wrapper_of_another_size_or_signature_is_not_valid() {
        assert_eq!(CommandWrapper::parse(&READ[..30]), None);
        let mut status = READ;
        status[3] = 0x53;
        assert_eq!(CommandWrapper::parse(&status), None);
    }

    #[test]
    fn each_reserved_field_is_a_flaw() {
        for (byte, bits) in [(12, 0x40), (13, 0x10), (14, 0x20), (14, 0x11)] {
            let mut flawed = READ;
            flawed[byte] |= bits;
            let flaw = CommandWrapper::parse(&flawed).expect("still valid").flaw;
            assert!(flaw.is_some(), "byte {byte}");
        }
    }
}
