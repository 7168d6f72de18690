//! Where things are on QEMU's `virt` (its documentation: "Hardware configuration information for
//! bare-metal programming"; `hw/arm/virt.c`). Shared by the image and its build script.

/// First address of RAM.
pub(crate) const RAM_BASE: usize = 0x4000_0000;
/// The console, a PL011.
pub(crate) const UART: usize = 0x0900_0000;
