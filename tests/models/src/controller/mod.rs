//! Controller models, and what the machine asks of each of them.
//!
//! A model sees every register access with its width and its moment, does its DMA through the
//! machine's [`Memory`], and talks to devices packet by packet. It shares nothing with the drivers.

pub mod ehci;
pub mod xhci;

use crate::device::{Nanoseconds, UsbDevice};
use crate::memory::Memory;
use crate::random::Random;

/// The rest of the machine, as a controller sees it at one moment.
#[derive(Debug)]
pub struct Surroundings<'m> {
    /// Virtual time.
    pub now: Nanoseconds,
    /// Memory, for DMA.
    pub memory: &'m mut Memory,
    /// Chance.
    pub random: &'m mut Random,
    /// Set by the controller when something happened that the driver can see.
    pub noticed: &'m mut bool,
}

/// The width of a register access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Width {
    /// 8 bits.
    Byte,
    /// 16 bits.
    Half,
    /// 32 bits.
    Word,
}

impl Width {
    /// Bytes of the access.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Half => 2,
            Self::Word => 4,
        }
    }
}

/// A host controller in a machine.
pub trait Controller: Send {
    /// Bytes of the register window.
    fn length(&self) -> usize;

    /// The driver reads a register inside the window.
    fn read(&mut self, around: &mut Surroundings<'_>, offset: usize, width: Width) -> u32;

    /// The driver writes a register inside the window.
    fn write(&mut self, around: &mut Surroundings<'_>, offset: usize, width: Width, value: u32);

    /// When something will happen by itself.
    fn next_event(&self) -> Option<Nanoseconds>;

    /// Does everything that is due.
    fn run(&mut self, around: &mut Surroundings<'_>);

    /// The CPU stored `length` bytes to coherent memory at the bus address `bus`: the controller may
    /// look at any structure that it owns.
    fn stored(&mut self, around: &mut Surroundings<'_>, bus: u64, length: u64);

    /// Whether the wired interrupt is asserted.
    fn interrupt_line(&self) -> bool;

    /// How many interrupts there were: rising edges of the line, or messages.
    fn interrupts(&self) -> u64;

    /// Number of root ports.
    fn ports(&self) -> usize;

    /// Puts a device into a root port, counted from 0.
    fn plug(&mut self, around: &mut Surroundings<'_>, port: usize, device: Box<dyn UsbDevice>);

    /// Pulls the device out of a root port.
    fn unplug(&mut self, around: &mut Surroundings<'_>, port: usize) -> Option<Box<dyn UsbDevice>>;

    /// Takes all access to memory away, as a cleared bus master bit does.
    fn cut_dma(&mut self);
}
