//! The ports that the boards have, as they have them, on the modelled chip.

use rootport::soc::allwinner::{Port, Vbus};
use rootport_models::board::allwinner::{Before, Board, Plug, Power};

use super::rig::{CHIP_H3, touch, up};

#[path = "../../../../platforms/orangepi-pc/src/ports.rs"]
mod orangepi_pc;
#[path = "../../../../platforms/orangepi-plus2e/src/ports.rs"]
mod orangepi_plus2e;
#[path = "../../../../platforms/orangepi-zero/src/ports.rs"]
mod orangepi_zero;

const BEFORE: [Before; 2] = [Before::Nothing, Before::UsbStart(&[0, 1, 2, 3])];

/// Brings all of a board's ports up and touches each.
fn works(ports: &[Port], before: Before, power: Power) -> Board {
    let board = Board::new(before, power);
    up(CHIP_H3, &board, ports);
    for port in ports {
        touch(CHIP_H3, &board, port.number);
    }
    board
}

#[test]
fn every_port_of_the_zero_works_and_no_pin_is_touched() {
    assert_eq!(orangepi_zero::PORTS.len(), 4);
    let is_wired = |port: &Port| port.vbus == Vbus::Wired;
    assert!(orangepi_zero::PORTS.iter().all(is_wired));
    for before in BEFORE {
        works(orangepi_zero::PORTS, before, Power::Wired);
    }
}

/// The model knows the pins of both boards, and fails the run where power would go to another host.
#[test]
fn every_port_of_the_pc_and_the_plus_2e_works_and_the_otg_socket_has_power_for_a_device_only() {
    for ports in [orangepi_pc::PORTS, orangepi_plus2e::PORTS] {
        assert_eq!(ports.len(), 4);
        for before in BEFORE {
            for (plug, is_on) in [(Plug::Host, true), (Plug::Open, false)] {
                let board = works(ports, before, Power::Switched(plug));
                assert_eq!(board.is_vbus_on(), is_on, "{plug:?} after {before:?}");
            }
        }
    }
}
