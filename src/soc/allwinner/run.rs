//! Carries steps out.
//!
//! A board says how each block of registers is reached: on hardware a window at
//! [`Chip::address`], in tests a model.

use embedded_hal::delay::DelayNs;

use super::chip::Chip;
use super::sequence::Pin;
use super::step::{Action, Block, Step};
use crate::mmio::Bus;

/// How a port's sockets get their power.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vbus {
    /// From the board's supply, or not at all: nothing is to be done.
    Wired,
    /// Through a switch behind a pin, active high.
    Pin(Pin),
    /// Likewise, but only while the `id` pin of an OTG socket is pulled low by a host's plug
    /// (`USB OTG 2.0 §4.4`): a socket into which a PC is plugged is not to be powered.
    HostPlug {
        /// The switch.
        switch: Pin,
        /// The id pin.
        id: Pin,
    },
}

/// A host port of a board.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// Its number on the chip.
    pub number: u8,
    /// How its sockets get their power.
    pub vbus: Vbus,
}

/// Brings ports up: afterwards their controllers can be given to the stack.
///
/// Nothing is assumed of what ran before: every step makes its bits what they must be, and one that
/// was done already changes nothing. An EHCI that a boot loader has left running keeps running
/// until its driver stops it; the OHCI beside it, which has no driver here, is put to rest.
pub fn bring_up<B: Bus>(
    chip: &Chip,
    ports: &[Port],
    blocks: &impl Fn(Block) -> Option<B>,
    delay: &mut impl DelayNs,
) {
    for port in ports {
        carry_out(chip, chip.port_steps(port.number), blocks, delay);
        let switch = match port.vbus {
            Vbus::Wired => None,
            Vbus::Pin(pin) => Some(pin),
            Vbus::HostPlug { switch, id } => {
                carry_out(chip, chip.input_steps(id), blocks, delay);
                is_low(id, blocks).then_some(switch)
            }
        };
        if let Some(pin) = switch {
            carry_out(chip, chip.vbus_steps(pin), blocks, delay);
        }
    }
}

/// Takes both controllers of a port off the bus. `true` if the chip shows that it has done so: from then on they
/// reach no memory, and none of their registers may be touched.
///
/// They are usable again after [`bring_up`].
#[must_use]
pub fn cut_dma<B: Bus>(chip: &Chip, number: u8, blocks: &impl Fn(Block) -> Option<B>) -> bool {
    for step in chip.cut_steps(number) {
        if let Action::Change {
            block,
            offset,
            clear,
            set,
        } = step.action
        {
            change(blocks, block, offset, clear, set);
        }
    }
    is_cut(chip, number, blocks)
}

/// Whether both controllers of a port are off the bus, as the chip shows.
#[must_use]
pub fn is_cut<B: Bus>(chip: &Chip, number: u8, blocks: &impl Fn(Block) -> Option<B>) -> bool {
    let shows = |step: Step| match step.action {
        Action::Change {
            block,
            offset,
            clear,
            set,
        } => blocks(block).is_some_and(|bus| {
            let value = bus.read32(usize::from(offset));
            value & clear == 0 && value & set == set
        }),
        Action::Shift { .. } | Action::Wait(_) => true,
    };
    chip.port(number).is_some() && chip.cut_steps(number).all(shows)
}

/// Carries steps out, one after the other. Steps to blocks that the board does not have do nothing.
pub fn carry_out<B: Bus>(
    chip: &Chip,
    steps: impl IntoIterator<Item = Step>,
    blocks: &impl Fn(Block) -> Option<B>,
    delay: &mut impl DelayNs,
) {
    for step in steps {
        match step.action {
            Action::Change {
                block,
                offset,
                clear,
                set,
            } => change(blocks, block, offset, clear, set),
            Action::Shift {
                phy,
                address,
                length,
                value,
            } => shift(chip, blocks, phy, address..address + length, value),
            Action::Wait(time) => {
                delay.delay_us(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
            }
        }
    }
}

fn change<B: Bus>(
    blocks: &impl Fn(Block) -> Option<B>,
    block: Block,
    offset: u16,
    clear: u32,
    set: u32,
) {
    if let Some(bus) = blocks(block) {
        let offset = usize::from(offset);
        bus.write32(offset, bus.read32(offset) & !clear | set);
    }
}

fn is_low<B: Bus>(pin: Pin, blocks: &impl Fn(Block) -> Option<B>) -> bool {
    let (offset, bit) = pin.level();
    blocks(pin.block()).is_some_and(|bus| bus.read32(usize::from(offset)) & bit == 0)
}

/// The serial port: the address of a bit, the bit, and a strobe per PHY.
const ADDRESS_SHIFT: u32 = 8;
const ADDRESS_MASK: u32 = 0xff << ADDRESS_SHIFT;
const DATA: u8 = 1 << 7;

fn shift<B: Bus>(
    chip: &Chip,
    blocks: &impl Fn(Block) -> Option<B>,
    phy: u8,
    addresses: core::ops::Range<u8>,
    value: u8,
) {
    let Some(bus) = blocks(Block::Phy) else {
        return;
    };
    let offset = usize::from(chip.serial.offset);
    let strobe = 1 << (2 * (phy % 4));
    if chip.serial.cleared_first {
        bus.write32(offset, 0);
    }
    let mut bits = value;
    for address in addresses {
        let rest = bus.read32(offset) & !ADDRESS_MASK;
        bus.write32(offset, rest | u32::from(address) << ADDRESS_SHIFT);
        let data = if bits & 1 == 0 { 0 } else { DATA };
        // The low byte alone: the address stays.
        let quiet = bus.read8(offset) & !(DATA | strobe) | data;
        bus.write8(offset, quiet);
        bus.write8(offset, quiet | strobe);
        bus.write8(offset, quiet);
        bits >>= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::super::H3;
    use super::*;

    /// One register for all offsets, which takes what is written to it or not.
    #[derive(Clone)]
    struct Register {
        value: Rc<Cell<u32>>,
        takes: bool,
    }

    impl Bus for Register {
        fn length(&self) -> usize {
            0x400
        }

        fn read8(&self, _offset: usize) -> u8 {
            self.value.get() as u8
        }

        fn read16(&self, _offset: usize) -> u16 {
            self.value.get() as u16
        }

        fn read32(&self, _offset: usize) -> u32 {
            self.value.get()
        }

        fn write8(&self, _offset: usize, _value: u8) {}

        fn write16(&self, _offset: usize, _value: u16) {}

        fn write32(&self, _offset: usize, value: u32) {
            if self.takes {
                self.value.set(value);
            }
        }
    }

    #[test]
    fn a_cut_counts_only_when_the_chip_shows_it() {
        for takes in [true, false] {
            let register = Register {
                value: Rc::new(Cell::new(u32::MAX)),
                takes,
            };
            let blocks = |_| Some(register.clone());
            assert!(!is_cut(&H3, 1, &blocks));
            assert_eq!(cut_dma(&H3, 1, &blocks), takes);
            assert_eq!(is_cut(&H3, 1, &blocks), takes);
        }
    }

    #[test]
    fn what_cannot_be_reached_or_is_not_there_was_not_cut() {
        assert!(!cut_dma(&H3, 1, &|_| None::<Register>));
        let register = Register {
            value: Rc::default(),
            takes: true,
        };
        let ports = H3.ports.len() as u8;
        assert!(!cut_dma(&H3, ports, &|_| Some(register.clone())));
    }
}
