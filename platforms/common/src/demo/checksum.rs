//! CRC-32 as in zip, in pieces.

use crc::{CRC_32_ISO_HDLC, Crc, Digest, Table};

static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);

/// A checksum under way.
pub struct Checksum(Digest<'static, u32, Table<16>>);

impl Default for Checksum {
    /// The checksum of nothing.
    fn default() -> Self {
        Self(CRC.digest())
    }
}

impl Checksum {
    /// Goes on with `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all that came.
    #[must_use]
    pub fn value(self) -> u32 {
        self.0.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::Checksum;

    #[test]
    fn pieces_make_the_same_as_the_whole() {
        let mut sum = Checksum::default();
        sum.update(b"1234");
        sum.update(b"56789");
        assert_eq!(sum.value(), 0xcbf4_3926);
    }
}
