//! The build script of every board with an H3 or H2+: lays the image out, with the chip's addresses
//! and sizes for the linker script.

#[path = "memory_map.rs"]
mod memory_map;

use std::env;
use std::path::Path;

use memory_map::UART;

/// U-Boot's `kernel_addr_r` on Allwinner's 32-bit chips: above the first 32 MiB of RAM, and below
/// U-Boot itself at the top.
const LOAD_ADDRESS: usize = 0x4200_0000;
/// Bytes of the main stack.
const STACK_SIZE: usize = 128 << 10;
/// Bytes that are mapped uncached, for queue heads, transfer descriptors and their like.
const DMA_POOL_SIZE: usize = 1 << 20;

fn main() {
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets the manifest's directory");
    let script = Path::new(&here).join("../../linker/armv7a.ld");
    println!("cargo::rerun-if-changed={}", script.display());
    println!("cargo::rerun-if-changed=../common/src/h3");
    println!("cargo::rustc-link-arg-bins=-T{}", script.display());
    let symbols = [
        ("BOARD_LOAD_ADDRESS", LOAD_ADDRESS),
        ("BOARD_STACK_SIZE", STACK_SIZE),
        ("BOARD_DMA_POOL_SIZE", DMA_POOL_SIZE),
        ("BOARD_EARLY_UART", UART),
    ];
    for (name, value) in symbols {
        println!("cargo::rustc-link-arg-bins=--defsym={name}={value:#x}");
    }
}
