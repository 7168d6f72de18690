//! The modelled board as the library's register windows and delay.

use embedded_hal::delay::DelayNs;
use rootport::mmio::Bus;

use crate::board::allwinner::Board;

/// A window of a board's registers.
#[derive(Clone, Debug)]
pub struct BoardBus {
    board: Board,
    address: u32,
    length: usize,
}

impl BoardBus {
    /// The window of `length` bytes at a physical address.
    #[must_use]
    pub fn new(board: &Board, address: u32, length: usize) -> Self {
        Self {
            board: board.clone(),
            address,
            length,
        }
    }

    fn read(&self, offset: usize, width: usize) -> u32 {
        assert!(offset + width <= self.length, "a read outside the window");
        self.board.read(self.address + offset as u32, width)
    }

    fn write(&self, offset: usize, width: usize, value: u32) {
        assert!(offset + width <= self.length, "a write outside the window");
        self.board.write(self.address + offset as u32, width, value);
    }
}

impl Bus for BoardBus {
    fn length(&self) -> usize {
        self.length
    }

    fn read8(&self, offset: usize) -> u8 {
        self.read(offset, 1) as u8
    }

    fn read16(&self, offset: usize) -> u16 {
        self.read(offset, 2) as u16
    }

    fn read32(&self, offset: usize) -> u32 {
        self.read(offset, 4)
    }

    fn write8(&self, offset: usize, value: u8) {
        self.write(offset, 1, u32::from(value));
    }

    fn write16(&self, offset: usize, value: u16) {
        self.write(offset, 2, u32::from(value));
    }

    fn write32(&self, offset: usize, value: u32) {
        self.write(offset, 4, value);
    }
}

/// Another window, open only as long as the board lets its controller be touched: every access is
/// one to the board's window first.
#[derive(Clone, Debug)]
pub struct Gated<B> {
    gate: BoardBus,
    inner: B,
}

impl<B: Bus> Gated<B> {
    /// `inner` behind `gate`.
    #[must_use]
    pub fn new(gate: BoardBus, inner: B) -> Self {
        Self { gate, inner }
    }

    /// Touches the register that an access of any width lies in.
    fn touch(&self, offset: usize) {
        let _ = self.gate.read32(offset & !3);
    }
}

impl<B: Bus> Bus for Gated<B> {
    fn length(&self) -> usize {
        self.inner.length()
    }

    fn read8(&self, offset: usize) -> u8 {
        self.touch(offset);
        self.inner.read8(offset)
    }

    fn read16(&self, offset: usize) -> u16 {
        self.touch(offset);
        self.inner.read16(offset)
    }

    fn read32(&self, offset: usize) -> u32 {
        self.touch(offset);
        self.inner.read32(offset)
    }

    fn write8(&self, offset: usize, value: u8) {
        self.touch(offset);
        self.inner.write8(offset, value);
    }

    fn write16(&self, offset: usize, value: u16) {
        self.touch(offset);
        self.inner.write16(offset, value);
    }

    fn write32(&self, offset: usize, value: u32) {
        self.touch(offset);
        self.inner.write32(offset, value);
    }
}

/// Waits by letting the board's time pass.
#[derive(Clone, Debug)]
pub struct BoardDelay(pub Board);

impl DelayNs for BoardDelay {
    fn delay_ns(&mut self, nanoseconds: u32) {
        self.0.pass(u64::from(nanoseconds));
    }
}
