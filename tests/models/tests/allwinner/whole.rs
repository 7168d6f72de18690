//! The whole bring-up, from a cold chip and from what U-Boot leaves, and the way back.

use rootport::mmio::Bus;
use rootport::soc::allwinner::{H3, Port, Vbus, cut_dma, is_cut};
use rootport_models::board::allwinner::{Before, Board, Plug, Power};
use rootport_models::board_adapter::{BoardBus, Gated};

use super::rig::{CHIP_H3, KINDS, OTG, SWITCH, blocks, broken_by, cold, touch, up, wired};

const ALL: [Port; 4] = [OTG, wired(1), wired(2), wired(3)];

#[test]
fn every_port_works_after_a_cold_start() {
    let board = cold(CHIP_H3, 0);
    up(CHIP_H3, &board, &ALL);
    for port in 0..4 {
        touch(CHIP_H3, &board, port);
    }
    assert!(board.is_vbus_on());
}

#[test]
fn every_port_of_every_chip_works_after_a_cold_start_and_after_another() {
    for kind in KINDS {
        for port in kind.ports() {
            let board = cold(kind, 1);
            let ports: Vec<_> = kind.ports().map(wired).collect();
            up(kind, &board, &ports);
            touch(kind, &board, port);
            up(kind, &board, &ports);
            touch(kind, &board, port);
            assert!(cut_dma(&kind.chip, port, &blocks(kind, &board)));
            assert!(
                !board.reaches_memory(port.into()),
                "{} port {port}",
                kind.name
            );
        }
    }
}

#[test]
fn every_port_works_after_a_boot_loader_that_started_some_of_them() {
    for started in [&[1, 3][..], &[0], &[0, 1, 2, 3]] {
        let power = Power::Switched(Plug::Host);
        let board = Board::new(Before::UsbStart(started), power);
        for &port in started {
            assert!(board.reaches_memory(port), "it was left running");
        }
        up(CHIP_H3, &board, &ALL);
        for port in 0..4 {
            touch(CHIP_H3, &board, port);
        }
    }
}

#[test]
fn bringing_up_twice_changes_nothing() {
    let board = cold(CHIP_H3, 0);
    up(CHIP_H3, &board, &ALL);
    up(CHIP_H3, &board, &ALL);
    for port in 0..4 {
        touch(CHIP_H3, &board, port);
    }
}

#[test]
fn a_port_that_was_not_brought_up_cannot_be_touched() {
    let board = Board::new(Before::Nothing, Power::Wired);
    up(CHIP_H3, &board, &[wired(1), wired(3)]);
    touch(CHIP_H3, &board, 1);
    touch(CHIP_H3, &board, 3);
    assert_eq!(broken_by(|| touch(CHIP_H3, &board, 2)), "bus gates");
    assert!(!board.reaches_memory(2));
}

#[test]
fn a_socket_without_a_hosts_plug_gets_no_power() {
    let board = Board::new(Before::Nothing, Power::Switched(Plug::Open));
    up(CHIP_H3, &board, &ALL);
    assert!(!board.is_vbus_on());
    touch(CHIP_H3, &board, 0);
}

#[test]
fn a_socket_behind_a_switch_gets_its_power_whatever_its_id_pin_says() {
    let board = cold(CHIP_H3, 0);
    let port = Port {
        number: 0,
        vbus: Vbus::Pin(SWITCH),
    };
    up(CHIP_H3, &board, &[port]);
    assert!(board.is_vbus_on());
    touch(CHIP_H3, &board, 0);
}

#[test]
fn only_a_switched_socket_costs_time() {
    let board = Board::new(Before::Nothing, Power::Wired);
    up(CHIP_H3, &board, &[wired(0), wired(1), wired(2), wired(3)]);
    assert_eq!(board.now(), 0);
    let board = cold(CHIP_H3, 0);
    up(CHIP_H3, &board, &ALL);
    assert!(board.now() <= 102_000_000, "{} ns", board.now());
}

#[test]
fn a_port_that_was_cut_off_reaches_no_memory_and_its_neighbours_do() {
    let board = cold(CHIP_H3, 0);
    up(CHIP_H3, &board, &ALL);
    assert!(!is_cut(&H3, 1, &blocks(CHIP_H3, &board)));
    assert!(cut_dma(&H3, 1, &blocks(CHIP_H3, &board)));
    assert!(is_cut(&H3, 1, &blocks(CHIP_H3, &board)));
    let reaches: Vec<_> = (0..4).map(|port| board.reaches_memory(port)).collect();
    assert_eq!(reaches, [true, false, true, true]);
    assert_eq!(broken_by(|| touch(CHIP_H3, &board, 1)), "bus resets");
    up(CHIP_H3, &board, &[wired(1)]);
    assert!(!is_cut(&H3, 1, &blocks(CHIP_H3, &board)));
    touch(CHIP_H3, &board, 1);
}

#[test]
fn a_controller_behind_the_board_is_reached_only_when_it_is_up() {
    let board = Board::new(Before::Nothing, Power::Wired);
    let start = H3.port(1).unwrap().ehci;
    let window = || BoardBus::new(&board, start, 0x400);
    // Any registers will do for the controller: those of a board that is up.
    let other = Board::new(Before::UsbStart(&[1]), Power::Wired);
    up(CHIP_H3, &other, &[wired(1)]);
    let gated = Gated::new(window(), BoardBus::new(&other, start, 0x400));
    let early = broken_by(|| assert_eq!(gated.read32(0x54), 0));
    assert_eq!(early, "bus gates");
    up(CHIP_H3, &board, &[wired(1)]);
    assert_eq!(gated.read32(0x54), 0);
    gated.write32(0x54, 0);
}
