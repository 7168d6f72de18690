//! rootport on QEMU's `virt` machine: one Cortex-A53, GICv2, a PL011, USB controllers on PCIe.
//!
//! Board facts only; the rest is `board_common`'s. Start it by `cargo xtask run qemu-virt`.
#![no_std]
#![no_main]

mod board;
mod host;
mod memory_map;
mod pci;
