//! What the tests share: a board, the library's sequences on it, and a look at what broke.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rootport::mmio::Bus;
use rootport::soc::allwinner::{Bank, Block, H3, Pin, Port, Step, Vbus, bring_up, carry_out};
use rootport_models::board::allwinner::{Before, Board, Plug, Power};
use rootport_models::board_adapter::{BoardBus, BoardDelay};

pub(crate) const SWITCH: Pin = Pin {
    bank: Bank::L,
    number: 2,
};
pub(crate) const ID: Pin = Pin {
    bank: Bank::G,
    number: 12,
};
/// Port 0 as on the boards whose OTG socket has a switch.
pub(crate) const OTG: Port = Port {
    number: 0,
    vbus: Vbus::HostPlug {
        switch: SWITCH,
        id: ID,
    },
};

/// A port that has its power anyway.
pub(crate) const fn wired(number: u8) -> Port {
    Port {
        number,
        vbus: Vbus::Wired,
    }
}

/// How the board's blocks are reached.
pub(crate) fn blocks(board: &Board) -> impl Fn(Block) -> Option<BoardBus> {
    let board = board.clone();
    move |block| {
        let (address, length) = H3.address(block)?;
        Some(BoardBus::new(&board, address, length))
    }
}

/// The library's bring-up.
pub(crate) fn up(board: &Board, ports: &[Port]) {
    bring_up(&H3, ports, &blocks(board), &mut BoardDelay(board.clone()));
}

/// Some steps of it.
pub(crate) fn carry(board: &Board, steps: impl IntoIterator<Item = Step>) {
    carry_out(&H3, steps, &blocks(board), &mut BoardDelay(board.clone()));
}

/// What a driver does first, and what makes it see its ports: capability, a port register, and the
/// same of the OHCI.
pub(crate) fn touch(board: &Board, port: u8) {
    let start = H3.port(port).unwrap().ehci;
    let window = BoardBus::new(board, start, 0x800);
    for offset in [0x00, 0x54, 0x400, 0x454] {
        window.read32(offset);
    }
}

/// A board that did nothing for USB, with a host's plug in the socket of port 0.
pub(crate) fn cold(port: u8) -> Board {
    let power = if port == 0 {
        Power::Switched(Plug::Host)
    } else {
        Power::Wired
    };
    Board::new(Before::Nothing, power)
}

/// All steps of a port, its switch included.
pub(crate) fn all_steps(port: u8) -> Vec<Step> {
    let mut steps: Vec<_> = H3.port_steps(port).collect();
    if port == 0 {
        steps.extend(H3.vbus_steps(SWITCH));
    }
    steps
}

/// The step that the model names while this runs; panics if nothing breaks.
pub(crate) fn broken_by(run: impl FnOnce()) -> String {
    let text = breaks(run);
    let named = text.split('"').nth(1);
    named
        .unwrap_or_else(|| panic!("no step named: {text}"))
        .to_owned()
}

/// The model's words while this runs; panics if nothing breaks.
pub(crate) fn breaks(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("nothing broke");
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => (*other.downcast::<&str>().expect("the model speaks")).to_owned(),
    }
}
