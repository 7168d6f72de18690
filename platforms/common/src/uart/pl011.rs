//! ARM PrimeCell UART (PL011), as the boot loader or the emulator has set it up.
//!
//! Who calls it: a board's console. It sets no baud rate and touches neither control nor line
//! register: the console works before us, and an exception report must not depend on more.
//! Read first: PL011 TRM (DDI 0183) §3.3.1 UARTDR, §3.3.3 UARTFR.

use tock_registers::interfaces::{Readable, Writeable};
use tock_registers::registers::{ReadOnly, ReadWrite};
use tock_registers::{register_bitfields, register_structs};

register_bitfields! {u32,
    Data [
        CHARACTER OFFSET(0) NUMBITS(8) [],
    ],
    Flags [
        RECEIVE_EMPTY OFFSET(4) NUMBITS(1) [],
        TRANSMIT_FULL OFFSET(5) NUMBITS(1) [],
    ],
}

register_structs! {
    Registers {
        (0x00 => data: ReadWrite<u32, Data::Register>),
        (0x04 => _status),
        (0x18 => flags: ReadOnly<u32, Flags::Register>),
        (0x1c => @END),
    }
}

/// Polls of the flags until a byte is given up.
/// Policy: a byte takes 87 us at 115200 baud, a full FIFO of 32 some 3 ms; a poll of a peripheral
/// register takes 50 ns or more.
const POLLS: usize = 100_000;

/// A PL011 at a fixed address.
#[derive(Clone, Copy, Debug)]
pub struct Pl011 {
    base: usize,
}

impl Pl011 {
    /// The UART whose registers start at `base`.
    ///
    /// # Safety
    ///
    /// `base` is the address of a PL011 on this machine, aligned to 4, reachable whenever a method
    /// is called (MMU off, or mapped one to one as device memory).
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
        let empty = registers.flags.is_set(Flags::RECEIVE_EMPTY);
        // Reading the data register takes the byte out of the FIFO.
        (!empty).then(|| registers.data.read(Data::CHARACTER) as u8)
    }

    fn send(self, byte: u8) {
        let registers = self.registers();
        let ready = (0..POLLS).any(|_| !registers.flags.is_set(Flags::TRANSMIT_FULL));
        if ready {
            registers.data.write(Data::CHARACTER.val(u32::from(byte)));
        }
    }

    fn registers(self) -> &'static Registers {
        // SAFETY: `new` was promised a PL011 at this address for as long as methods are called;
        // the registers are only ever accessed through volatile reads and writes, which tolerate
        // any number of shared references.
        unsafe { &*(self.base as *const Registers) }
    }
}
