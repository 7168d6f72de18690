//! rootport on the Orange Pi PC: Allwinner H3, three USB sockets and an OTG socket.
//!
//! Board facts only; the rest is `board_common`'s. Start it by `cargo xtask run orangepi-pc`.
#![no_std]
#![no_main]

mod ports;

use board_common::board;
use board_common::h3::{H3, H3Board, Port};

struct OrangePiPc;

board!(H3<OrangePiPc>);

impl H3Board for OrangePiPc {
    const NAME: &'static str = "orangepi-pc";
    const LEAST_RAM: usize = 1 << 30;
    const PORTS: &'static [Port] = ports::PORTS;
}
