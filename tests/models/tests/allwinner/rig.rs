//! What the tests share: a board, the library's sequences on it, and a look at what broke.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rootport::mmio::Bus;
use rootport::soc::allwinner::{
    A20, A64, Bank, Block, Chip, H3, H5, Pin, Port, Step, Vbus, bring_up, carry_out,
};
use rootport_models::board::allwinner::{self as model, Before, Board, Plug, Power};
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

/// A chip by the library's facts and by the model's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) chip: Chip,
    pub(crate) model: model::Chip,
}

pub(crate) const CHIP_H3: Kind = Kind {
    name: "H3",
    chip: H3,
    model: model::H3,
};

/// All chips.
pub(crate) const KINDS: [Kind; 4] = [
    CHIP_H3,
    Kind {
        name: "H5",
        chip: H5,
        model: model::H3,
    },
    Kind {
        name: "A64",
        chip: A64,
        model: model::A64,
    },
    Kind {
        name: "A20",
        chip: A20,
        model: model::A20,
    },
];

impl Kind {
    /// Its ports.
    pub(crate) fn ports(self) -> impl Iterator<Item = u8> {
        (0..4).filter(move |port| self.chip.port(*port).is_some())
    }
}

/// A port that has its power anyway.
pub(crate) const fn wired(number: u8) -> Port {
    Port {
        number,
        vbus: Vbus::Wired,
    }
}

/// How the board's blocks are reached.
pub(crate) fn blocks(kind: Kind, board: &Board) -> impl Fn(Block) -> Option<BoardBus> {
    let board = board.clone();
    move |block| {
        let (address, length) = kind.chip.address(block)?;
        Some(BoardBus::new(&board, address, length))
    }
}

/// The library's bring-up.
pub(crate) fn up(kind: Kind, board: &Board, ports: &[Port]) {
    let delay = &mut BoardDelay(board.clone());
    bring_up(&kind.chip, ports, &blocks(kind, board), delay);
}

/// Some steps of it.
pub(crate) fn carry(kind: Kind, board: &Board, steps: impl IntoIterator<Item = Step>) {
    let delay = &mut BoardDelay(board.clone());
    carry_out(&kind.chip, steps, &blocks(kind, board), delay);
}

/// What a driver does first, and what makes it see its ports: capability, a port register, and the
/// same of the OHCI.
pub(crate) fn touch(kind: Kind, board: &Board, port: u8) {
    let start = kind.chip.port(port).unwrap().ehci;
    let window = BoardBus::new(board, start, 0x800);
    for offset in [0x00, 0x54, 0x400, 0x454] {
        window.read32(offset);
    }
}

/// The steps of a port, as its bring-up goes through them: the id pin is read when all is done for it.
pub(crate) fn go_through(kind: Kind, board: &Board, mut steps: Vec<Step>) {
    let last = steps
        .iter()
        .rposition(|step| step.name.starts_with("input"));
    if let Some(last) = last {
        let rest = steps.split_off(last + 1);
        carry(kind, board, steps);
        // PG12's level (H3 Datasheet 1.2 §4.22).
        BoardBus::new(board, 0x01c2_0800, 0x400).read32(6 * 0x24 + 0x10);
        steps = rest;
    }
    carry(kind, board, steps);
}

/// A board that did nothing for USB, with a host's plug in the socket of port 0.
pub(crate) fn cold(kind: Kind, port: u8) -> Board {
    let power = if port == 0 {
        Power::Switched(Plug::Host)
    } else {
        Power::Wired
    };
    Board::of(kind.model, Before::Nothing, power)
}

/// All steps of a port, its switch included.
pub(crate) fn all_steps(kind: Kind, port: u8) -> Vec<Step> {
    let mut steps: Vec<_> = kind.chip.port_steps(port).collect();
    if port == 0 {
        steps.extend(kind.chip.input_steps(ID));
        steps.extend(kind.chip.vbus_steps(SWITCH));
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
