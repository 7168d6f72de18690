//! The one command line of the repository, as a library.
//!
//! `main.rs` parses the command line and calls the functions here; the QEMU tests (`tests/qemu`)
//! use the same parts. In the order in which `cargo xtask demo` needs them:
//!
//! | module | what it does |
//! |---|---|
//! | [`workspace`] | where things are: the repository, the boards, the build directory, logs |
//! | [`progress`], [`command`] | long steps with elapsed time; child processes with one-line failures |
//! | [`packages`] | QEMU and the disk tools, installed when they are missing |
//! | `apt` | packages that are unpacked below the build directory, not installed |
//! | [`toolchain`] | `core` for the bare-metal targets, by the first of four ways that works |
//! | [`board`], [`image`] | boards found by looking in `platforms/`, and their images |
//! | [`u_boot`] | the boards' own boot loaders, and the files that they take |
//! | [`disk`] | disk images made and checked with the real tools |
//! | [`qemu`], [`marker`], [`transcript`] | the emulator, its console and its control socket; what the board says in marker lines |
//! | [`demo`], [`run`] | the demo, its verdict, and a plain run |
//! | [`quirk`] | what the stack makes of a device that is not at hand |
//! | [`bench`](mod@bench) | what the stack costs, and the table of it |
//! | [`mutants`] | mistakes in the drivers, each with a test that notices it |
//! | [`check`], [`mod@test`] | what CI runs |
//!
//! Errors are [`anyhow::Error`]s whose alternate form (`{:#}`) is one line that says what to do.

mod apt;
pub mod bench;
pub mod board;
pub mod check;
pub mod command;
pub mod demo;
pub mod disk;
pub mod image;
pub mod marker;
pub mod mutants;
pub mod packages;
pub mod progress;
pub mod qemu;
pub mod quirk;
pub mod run;
pub mod test;
pub mod toolchain;
pub mod transcript;
pub mod u_boot;
pub mod workspace;
