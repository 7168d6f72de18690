//! The modelled board as the library's register windows, delay, and platform.

use std::fmt;
use std::ptr::NonNull;

use embedded_hal::delay::DelayNs;
use rootport::dma::{BusAddress, Dma};
use rootport::mmio::Bus;
use rootport::platform::{ControllerId, Platform};
use rootport::time::Instant;

use crate::adapter::{ModelBus, ModelPlatform};
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

/// A machine on a board: controllers are cut off from memory by what the board has for it, and by nothing else.
#[derive(Clone, Debug)]
pub struct BoardPlatform<F> {
    machine: ModelPlatform,
    cut: F,
}

impl<F: Fn(ControllerId) -> bool> BoardPlatform<F> {
    /// The platform of `machine`, whose controllers `cut` takes off the bus; it returns whether that is certain.
    #[must_use]
    pub fn new(machine: ModelPlatform, cut: F) -> Self {
        Self { machine, cut }
    }

    /// The machine without its board.
    #[must_use]
    pub fn machine(&self) -> &ModelPlatform {
        &self.machine
    }
}

// SAFETY: all of it is the machine's.
unsafe impl<F> Dma for BoardPlatform<F> {
    fn coherent(&self) -> bool {
        self.machine.coherent()
    }

    fn cache_line(&self) -> usize {
        self.machine.cache_line()
    }

    fn bus_address(&self, start: NonNull<u8>, length: usize) -> Option<BusAddress> {
        self.machine.bus_address(start, length)
    }

    fn clean(&self, start: NonNull<u8>, length: usize) {
        self.machine.clean(start, length);
    }

    unsafe fn invalidate(&self, start: NonNull<u8>, length: usize) {
        // SAFETY: the caller's promise is the same.
        unsafe { self.machine.invalidate(start, length) }
    }

    fn returned(&self, start: NonNull<u8>, length: usize) {
        self.machine.returned(start, length);
    }
}

impl<F: Fn(ControllerId) -> bool> Platform for BoardPlatform<F> {
    type Bus = ModelBus;

    fn now(&self) -> Instant {
        self.machine.now()
    }

    fn wait(&self, until: Instant) {
        self.machine.wait(until);
    }

    fn cut_dma(&self, controller: ControllerId) -> bool {
        // What the board takes off the bus reaches no memory: the model of the controller is to know it.
        let is_cut = (self.cut)(controller);
        if is_cut {
            self.machine.cut_dma(controller);
        }
        is_cut
    }

    fn can_cut_dma(&self, _controller: ControllerId) -> bool {
        true
    }

    fn log(&self, line: fmt::Arguments<'_>) {
        self.machine.log(line);
    }
}
