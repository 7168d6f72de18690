//! rootport on the Orange Pi Zero: Allwinner H2+, one USB socket, two more ports on a pin header.
//!
//! Board facts only; the rest is `board_common`'s. Start it by `cargo xtask run orangepi-zero`.
#![no_std]
#![no_main]

mod ports;

use board_common::board;
use board_common::h3::{H3, H3Board, Port};

struct OrangePiZero;

board!(H3<OrangePiZero>);

impl H3Board for OrangePiZero {
    const NAME: &'static str = "orangepi-zero";
    /// Sold with 256 and with 512 MiB.
    const LEAST_RAM: usize = 256 << 20;
    const PORTS: &'static [Port] = ports::PORTS;
}
