//! Lays the image out: the board's addresses and sizes for the linker script.
//!
//! The load address: QEMU puts an ELF where it is linked and its device tree at the base of RAM; a
//! raw Image at the base of RAM plus its text offset; U-Boot's `booti` too (flag bit 3 of the
//! header is clear, so that it does not run where it was loaded). 2 MiB above the base suits all
//! three, and leaves the device tree alone.

#[path = "src/memory_map.rs"]
mod memory_map;

use std::env;
use std::path::Path;

use memory_map::{RAM_BASE, UART};

/// Where the image is linked and must be loaded.
const LOAD_ADDRESS: usize = RAM_BASE + (2 << 20);
/// Bytes of the main stack.
const STACK_SIZE: usize = 128 << 10;
/// Bytes that are mapped uncached, for rings, contexts and their like.
const DMA_POOL_SIZE: usize = 1 << 20;

fn main() {
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets the manifest's directory");
    let script = Path::new(&here).join("../../linker/aarch64.ld");
    println!("cargo::rerun-if-changed={}", script.display());
    println!("cargo::rerun-if-changed=src/memory_map.rs");
    println!("cargo::rustc-link-arg-bins=-T{}", script.display());
    let symbols = [
        ("BOARD_LOAD_ADDRESS", LOAD_ADDRESS),
        ("BOARD_TEXT_OFFSET", LOAD_ADDRESS - RAM_BASE),
        ("BOARD_STACK_SIZE", STACK_SIZE),
        ("BOARD_DMA_POOL_SIZE", DMA_POOL_SIZE),
        ("BOARD_EARLY_UART", UART),
    ];
    for (name, value) in symbols {
        println!("cargo::rustc-link-arg-bins=--defsym={name}={value:#x}");
    }
}
