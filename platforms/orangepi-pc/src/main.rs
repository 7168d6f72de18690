//! rootport on the Orange Pi PC: Allwinner H3, three USB sockets and an OTG socket.
//!
//! Board facts only; the rest is `board_common`'s. Start it by `cargo xtask run orangepi-pc`.
#![no_std]
#![no_main]

use board_common::board;
use board_common::h3::{Bank, H3, H3Board, Pin, Port, Vbus};

struct OrangePiPc;

board!(H3<OrangePiPc>);

impl H3Board for OrangePiPc {
    const NAME: &'static str = "orangepi-pc";
    const LEAST_RAM: usize = 1 << 30;
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
