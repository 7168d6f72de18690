//! rootport on the Orange Pi Plus 2E: Allwinner H3, three USB sockets and an OTG socket.
//!
//! Board facts only; the rest is `board_common`'s. Start it by `cargo xtask run orangepi-plus2e`.
#![no_std]
#![no_main]

mod ports;

use board_common::board;
use board_common::h3::{H3, H3Board, Port};

struct OrangePiPlus2e;

board!(H3<OrangePiPlus2e>);

impl H3Board for OrangePiPlus2e {
    const NAME: &'static str = "orangepi-plus2e";
    const LEAST_RAM: usize = 2 << 30;
    const PORTS: &'static [Port] = ports::PORTS;
}
