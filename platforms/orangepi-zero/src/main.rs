//! rootport on the Orange Pi Zero: Allwinner H2+, one USB socket, two more ports on a pin header.
//!
//! Board facts only; the rest is `board_common`'s. Start it by `cargo xtask run orangepi-zero`.
#![no_std]
#![no_main]

use board_common::board;
use board_common::h3::{H3, H3Board, Port, Vbus};

struct OrangePiZero;

board!(H3<OrangePiZero>);

impl H3Board for OrangePiZero {
    const NAME: &'static str = "orangepi-zero";
    /// Sold with 256 and with 512 MiB.
    const LEAST_RAM: usize = 256 << 20;
    /// Port 0 is the micro-USB socket, through which the board itself gets its power: nothing
    /// switches it. Port 1 is the socket, 2 and 3 the header; all on the board's 5 V.
    const PORTS: &'static [Port] = &[wired(0), wired(1), wired(2), wired(3)];
}

const fn wired(number: u8) -> Port {
    Port {
        number,
        vbus: Vbus::Wired,
    }
}
