//! rootport on the Orange Pi Plus 2E: Allwinner H3, three USB sockets and an OTG socket.
//!
//! Board facts only; the rest is `board_common`'s. Start it by `cargo xtask run orangepi-plus2e`.
#![no_std]
#![no_main]

use board_common::board;
use board_common::h3::{Bank, H3, H3Board, Pin, Port, Vbus};

struct OrangePiPlus2e;

board!(H3<OrangePiPlus2e>);

impl H3Board for OrangePiPlus2e {
    const NAME: &'static str = "orangepi-plus2e";
    const LEAST_RAM: usize = 2 << 30;
    /// Port 0 is the OTG socket; its power is switched. The sockets of the others are on the
    /// board's 5 V.
    const PORTS: &'static [Port] = &[OTG, wired(1), wired(2), wired(3)];
}

/// Linux's device tree of the board: `reg_usb0_vbus` is PL2, the id pin PG12.
const OTG: Port = Port {
    number: 0,
    vbus: Vbus::HostPlug {
        switch: Pin {
            bank: Bank::L,
            number: 2,
        },
        id: Pin {
            bank: Bank::G,
            number: 12,
        },
    },
};

const fn wired(number: u8) -> Port {
    Port {
        number,
        vbus: Vbus::Wired,
    }
}
