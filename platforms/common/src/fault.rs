//! Fault status in words: the encoding that AArch64 and the long descriptors of ARMv7 share.
//!
//! Who calls it: the exception reports. Read first: ARM DDI 0487 §D17.2.37 (DFSC); ARM DDI 0406C
//! §B3.13.3 (long-descriptor fault status).

/// Why an access was aborted. `status` has six bits.
#[must_use]
#[doc(alias = "DFSC")]
pub const fn words(status: u32) -> &'static str {
    match status {
        0x00..=0x03 => "address beyond the tables",
        0x04..=0x07 => "nothing is mapped there",
        0x08..=0x0b => "access flag clear",
        0x0c..=0x0f => "the mapping does not allow it",
        0x10 | 0x11 | 0x14..=0x17 => "the bus answered with an error",
        0x18 | 0x1c..=0x1f => "parity or ECC error",
        0x21 => "misaligned access to device memory, or with the MMU off",
        0x30 => "conflicting TLB entries",
        _ => "other fault",
    }
}
