//! The USB ports of the Orange Pi Zero.
//!
//! In a file of their own, for the test that brings them up on a modelled chip too.

use rootport::soc::allwinner::{Port, Vbus};

/// Port 0 is the micro-USB socket, through which the board itself gets its power: nothing
/// switches it. Port 1 is the socket, 2 and 3 the header; all on the board's 5 V.
pub(crate) const PORTS: &[Port] = &[wired(0), wired(1), wired(2), wired(3)];

const fn wired(number: u8) -> Port {
    Port {
        number,
        vbus: Vbus::Wired,
    }
}
