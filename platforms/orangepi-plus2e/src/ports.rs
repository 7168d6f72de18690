//! The USB ports of the Orange Pi Plus 2E.
//!
//! In a file of their own, for the test that brings them up on a modelled chip too.

use rootport::soc::allwinner::{Bank, Pin, Port, Vbus};

/// Port 0 is the OTG socket; its power is switched. The sockets of the others are on the
/// board's 5 V.
pub(crate) const PORTS: &[Port] = &[OTG, wired(1), wired(2), wired(3)];

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
