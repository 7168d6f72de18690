//! What every board image shares, from the first instruction to the demo.
//!
//! A board crate implements [`Board`](board::Board) for a type of its own and hands it to
//! [`board!`]; this crate brings the machine up and calls the board's `main` with caches on:
//!
//! ```text
//! boot loader -> entry.s       the right place and mode, caches clean and off, bss, stacks
//!             -> cpu::entry    to EL1 or SVC, vectors, page tables, MMU and caches on
//!             -> Board::main   interrupt controller, clocks, PCIe, the work
//!             -> power::off    exit status on the console, power off
//! ```
//!
//! | room | what it is for |
//! |---|---|
//! | [`mod@board`] | what a board must say about itself |
//! | [`aarch64`], [`armv7a`] | entry, MMU, exceptions, timer of 64-bit and 32-bit ARM; `cpu` is one of them |
//! | [`tables`], [`region`], `address_space` | translation tables, spans of addresses, the image's address space |
//! | [`console`], [`uart`] | text in and out, polled |
//! | `panic`, [`fault`], [`brakes`] | what is printed when all is lost, and the controllers stopped before |
//! | [`power`] | the verdict on the console, and the end |
//! | `machine`, [`wake`] | the stack's `Platform`, and its waits |
//! | `work` | the host made of a board's controllers, and what it does |
//! | [`attention`] | the controllers' interrupt halves |
//! | [`cells`] | memory of their drivers |
//! | `h3` | what the boards with Allwinner's H3 share |
//! | [`gic`] | interrupt controller, GICv2 |
//! | [`device_tree`] | RAM, command line, PCIe host bridge, as the boot loader tells them |
//! | [`demo`] | what is done with the disks |
//! | [`bench`](mod@bench) | what that costs |
//! | [`pcie`] | USB controllers behind an ECAM host bridge |
//!
//! What it does not do: more than one core (the others stay where firmware parked them), user
//! mode, memory allocation.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod aarch64;
#[cfg(target_os = "none")]
pub mod address_space;
pub mod armv7a;
pub mod attention;
pub mod bench;
pub mod board;
pub mod brakes;
pub mod cells;
pub mod console;
pub mod demo;
pub mod device_tree;
pub mod fault;
pub mod gic;
#[cfg(all(target_arch = "arm", target_os = "none"))]
pub mod h3;
#[cfg(target_os = "none")]
pub mod machine;
#[cfg(target_os = "none")]
mod panic;
pub mod pcie;
pub mod power;
pub mod region;
pub mod tables;
pub mod uart;
pub mod wake;
#[cfg(target_os = "none")]
pub mod work;

/// The processor that this image is built for.
#[cfg(all(target_arch = "aarch64", target_os = "none"))]
pub use aarch64 as cpu;
/// The processor that this image is built for.
#[cfg(all(target_arch = "arm", target_os = "none"))]
pub use armv7a as cpu;
