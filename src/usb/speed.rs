//! The speed at which a device was connected.
//!
//! Set by the port when it has been reset, read by everything above: packet sizes, intervals,
//! streams and splits all depend on it.

/// Signalling speed of a device's link.
///
/// Ordered from slow to fast, so that "SuperSpeed and above" is a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Speed {
    /// 1.5 Mb/s (USB 2.0 §4.2.1).
    Low,
    /// 12 Mb/s.
    Full,
    /// 480 Mb/s.
    High,
    /// 5 Gb/s (USB 3.2 Gen 1 x 1).
    Super,
    /// 10 Gb/s and above (USB 3.2 Gen 2 and x 2).
    SuperPlus,
}

impl Speed {
    /// Whether the link is a SuperSpeed one: companions, bursts and streams exist.
    #[must_use]
    pub const fn is_super(self) -> bool {
        matches!(self, Self::Super | Self::SuperPlus)
    }
}
