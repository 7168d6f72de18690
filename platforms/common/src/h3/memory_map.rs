//! Where things are on H3 and H2+ (Allwinner H3 Datasheet 1.2 §4.1). Shared by the images and their
//! build script.

/// The console, UART0: a 16550 with registers four bytes apart.
pub(crate) const UART: usize = 0x01c2_8000;
