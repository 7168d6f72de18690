//! UART of the 16550 kind (National Semiconductor, and DesignWare's in Allwinner and Rockchip chips)
//! whose registers are four bytes apart, as the boot loader has set it up.
//!
//! Who calls it: a board's console. It sets no baud rate and touches neither control nor line
//! register: the console works before us, and an exception report must not depend on more.
//! Read first: PC16550D data sheet §8.0; DesignWare's is accessed 32 bits at a time.

use tock_registers::interfaces::{Readable, Writeable};
use tock_registers::registers::{ReadOnly, ReadWrite};
use tock_registers::{register_bitfields, register_structs};

register_bitfields! {u32,
    Data [
        CHARACTER OFFSET(0) NUMBITS(8) [],
    ],
    LineStatus [
        DATA_READY OFFSET(0) NUMBITS(1) [],
        TRANSMIT_EMPTY OFFSET(5) NUMBITS(1) [],
    ],
}

register_structs! {
    Registers {
        (0x00 => data: ReadWrite<u32, Data::Register>),
        (0x04 => _control),
        (0x14 => line_status: ReadOnly<u32, LineStatus::Register>),
        (0x18 => @END),
    }
}

/// Polls of the status until a byte is given up.
/// Policy: a byte takes 87 us at 115200 baud, a full FIFO of 64 some 6 ms; a poll of a peripheral
/// register takes 50 ns or more.
const POLLS: usize = 200_000;

/// A 16550 at a fixed address.
#[derive(Clone, Copy, Debug)]
pub struct Ns16550 {
    base: usize,
}

impl Ns16550 {
    /// The UART whose registers start at `base`, four bytes apart.
    ///
    /// # Safety
    ///
    /// `base` is the address of such a UART on this machine, aligned to 4, reachable whenever a
    /// method is called (MMU off, or mapped one to one as device memory).
    #[must_use]
    pub const unsafe fn new(base: usize) -> Self {
        Self { base }
    }

    /// Sends bytes, a carriage return before each line feed. A byte that the UART does not take in
    /// time is dropped.
    pub fn write(self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                self.send(b'\r');
            }
            self.send(byte);
        }
    }

    /// A received byte, if there is one. Receive errors are not looked at.
    #[must_use]
    pub fn read(self) -> Option<u8> {
        let registers = self.registers();
        let ready = registers.line_status.is_set(LineStatus::DATA_READY);
        // Reading the data register takes the byte out of the FIFO.
        ready.then(|| registers.data.read(Data::CHARACTER) as u8)
    }

    fn send(self, byte: u8) {
        let registers = self.registers();
        let empty = || registers.line_status.is_set(LineStatus::TRANSMIT_EMPTY);
        if (0..POLLS).any(|_| empty()) {
            registers.data.write(Data::CHARACTER.val(u32::from(byte)));
        }
    }

    fn registers(self) -> &'static Registers {
        // SAFETY: `new` was promised such a UART at this address for as long as methods are called;
        // the registers are only ever accessed through volatile reads and writes, which tolerate
        // any number of shared references.
        unsafe { &*(self.base as *const Registers) }
    }
}
