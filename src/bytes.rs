//! Numbers out of byte strings that a device wrote.
//!
//! The parsers of `usb::descriptor`, `scsi` and `storage` call it. Every read is total: where the
//! string ends before the number does, the answer is `None`, so no length that a device announces
//! can lead a parser out of bounds. Byte order is in each name: USB is little-endian (USB 2.0
//! §8.1), SCSI big-endian. Wire images that we write ourselves are array literals over
//! `to_le_bytes` and `to_be_bytes` and need no helper.

/// The `N` bytes that start at `offset`.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk::<N>().copied()
}

/// The byte at `offset`.
pub(crate) fn u8_at(bytes: &[u8], offset: usize) -> Option<u8> {
    bytes.get(offset).copied()
}

/// The little-endian 16-bit number at `offset`.
pub(crate) fn u16_le_at(bytes: &[u8], offset: usize) -> Option<u16> {
    array_at(bytes, offset).map(u16::from_le_bytes)
}

/// The little-endian 32-bit number at `offset`.
pub(crate) fn u32_le_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array_at(bytes, offset).map(u32::from_le_bytes)
}

/// The big-endian 16-bit number at `offset`.
pub(crate) fn u16_be_at(bytes: &[u8], offset: usize) -> Option<u16> {
    big_endian_at(bytes, offset, 2).map(|number| number as u16)
}

/// The big-endian 32-bit number at `offset`.
pub(crate) fn u32_be_at(bytes: &[u8], offset: usize) -> Option<u32> {
    big_endian_at(bytes, offset, 4).map(|number| number as u32)
}

/// The big-endian 64-bit number at `offset`.
pub(crate) fn u64_be_at(bytes: &[u8], offset: usize) -> Option<u64> {
    big_endian_at(bytes, offset, 8)
}

/// Of any width, so that there is one of it in the program.
#[inline(never)]
fn big_endian_at(bytes: &[u8], offset: usize, width: usize) -> Option<u64> {
    let number = bytes.get(offset..)?.get(..width)?;
    let append = |number, byte: &u8| number << 8 | u64::from(*byte);
    Some(number.iter().fold(0, append))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTING: [u8; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

    #[test]
    fn byte_order_is_what_the_name_says() {
        assert_eq!(u16_le_at(&COUNTING, 1), Some(0x0201));
        assert_eq!(u16_be_at(&COUNTING, 1), Some(0x0102));
        assert_eq!(u32_le_at(&COUNTING, 1), Some(0x0403_0201));
        assert_eq!(u32_be_at(&COUNTING, 1), Some(0x0102_0304));
        assert_eq!(u64_be_at(&COUNTING, 1), Some(0x0102_0304_0506_0708));
    }

    #[test]
    fn a_number_that_the_string_does_not_hold_whole_is_absent() {
        assert_eq!(u8_at(&COUNTING, 9), None);
        assert_eq!(u16_le_at(&COUNTING, 8), None);
        assert_eq!(u64_be_at(&COUNTING, 2), None);
        assert_eq!(u32_le_at(&COUNTING, usize::MAX), None);
    }
}
