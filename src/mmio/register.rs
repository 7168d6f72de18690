//! Handles that say what may be done with a register.
//!
//! A handle is a byte offset, a field layout and a right. It is a constant of a driver's `regs`
//! module and is used through a [`Registers`] block, which adds the block's base.
//!
//! | handle | read | write | modify |
//! |---|---|---|---|
//! | [`ReadOnly`] | yes | no | no |
//! | [`WriteOnly`] | no | yes | no |
//! | [`ReadWrite`] | yes | yes | yes |
//! | [`WriteOneToClear`] | yes | only through [`ChangeBits`] | no: a read value written back clears what it shows |

use core::marker::PhantomData;

use tock_registers::fields::FieldValue;
use tock_registers::{LocalRegisterCopy, RegisterLongName};

use super::Bus;

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<R: RegisterLongName> {
            offset: usize,
            layout: PhantomData<fn() -> R>,
        }

        impl<R: RegisterLongName> $name<R> {
            /// The register at byte `offset` of its block.
            #[must_use]
            pub const fn at(offset: usize) -> Self {
                Self { offset, layout: PhantomData }
            }

            /// The `index`-th of an array of such registers that are `stride` bytes apart.
            #[must_use]
            pub const fn array(self, index: usize, stride: usize) -> Self {
                Self::at(self.offset.wrapping_add(index.wrapping_mul(stride)))
            }

            /// Byte offset in the block.
            #[must_use]
            pub const fn offset(&self) -> usize {
                self.offset
            }
        }

        impl<R: RegisterLongName> Clone for $name<R> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<R: RegisterLongName> Copy for $name<R> {}
    };
}

handle! {
    /// A 32-bit register that software only reads.
    ReadOnly
}
handle! {
    /// A 32-bit register that software only writes: what it reads as means nothing.
    WriteOnly
}
handle! {
    /// A 32-bit register whose read value may be written back.
    ReadWrite
}
handle! {
    /// A 32-bit register with bits that a written one clears (or, worse, disables).
    ///
    /// It has no `modify`. A write goes through [`ChangeBits`], which keeps what the register's own
    /// `preserve` mask names and sends zeros to everything else.
    WriteOneToClear
}

/// The value of a [`WriteOneToClear`] register to be written: what must be kept is kept, all
/// write-1 bits are zero until they are asked for.
#[derive(Clone, Copy, Debug)]
pub struct ChangeBits<R: RegisterLongName> {
    value: u32,
    layout: PhantomData<fn() -> R>,
}

impl<R: RegisterLongName> ChangeBits<R> {
    /// Keeps the bits of `current` that are in the mask `preserve`, and nothing else.
    #[must_use]
    pub fn preserving(current: LocalRegisterCopy<u32, R>, preserve: u32) -> Self {
        Self {
            value: current.get() & preserve,
            layout: PhantomData,
        }
    }

    /// Nothing kept: for status registers that hold only write-1-to-clear bits.
    #[must_use]
    pub fn none() -> Self {
        Self {
            value: 0,
            layout: PhantomData,
        }
    }

    /// Writes `field` as given.
    #[must_use]
    pub fn with(self, field: FieldValue<u32, R>) -> Self {
        let value = self.value & !field.mask() | field.value;
        Self { value, ..self }
    }

    /// Writes ones to the bits of `mask`, which are change bits that are to be cleared.
    #[must_use]
    pub fn clearing(self, mask: u32) -> Self {
        Self {
            value: self.value | mask,
            ..self
        }
    }

    /// The raw value that will be written.
    #[must_use]
    pub fn get(self) -> u32 {
        self.value
    }
}

/// A block of registers: a [`Bus`] and the byte offset at which the block starts.
#[derive(Clone, Debug)]
pub struct Registers<B> {
    bus: B,
    /// Where the block starts, in 32-bit words: so the compiler knows that its registers lie as they must, and
    /// no access asks.
    words: usize,
}

impl<B: Bus> Registers<B> {
    /// The block that starts at byte `base` of `bus`, a multiple of 4; what is none is rounded down.
    pub fn new(bus: B, base: usize) -> Self {
        Self {
            bus,
            words: base / 4,
        }
    }

    /// The bus behind the block.
    pub fn bus(&self) -> &B {
        &self.bus
    }

    /// Where the block starts on its bus, in bytes.
    pub fn base(&self) -> usize {
        self.words * 4
    }

    fn address(&self, offset: usize) -> usize {
        self.base().wrapping_add(offset)
    }

    /// Reads a register. One 32-bit access.
    #[inline]
    pub fn read<R: RegisterLongName>(
        &self,
        register: impl Readable<R>,
    ) -> LocalRegisterCopy<u32, R> {
        LocalRegisterCopy::new(self.bus.read32(self.address(register.byte_offset())))
    }

    /// Writes a whole register. One 32-bit access.
    #[inline]
    pub fn write<R: RegisterLongName>(
        &self,
        register: impl Writable<R>,
        value: FieldValue<u32, R>,
    ) {
        self.write_raw(register, value.value);
    }

    /// Writes a whole register from a raw value. One 32-bit access.
    #[inline]
    pub fn write_raw<R: RegisterLongName>(&self, register: impl Writable<R>, value: u32) {
        self.bus
            .write32(self.address(register.byte_offset()), value);
    }

    /// Reads a register, changes `fields` and writes it back. Two 32-bit accesses.
    pub fn modify<R: RegisterLongName>(&self, register: ReadWrite<R>, fields: FieldValue<u32, R>) {
        let mut copy = self.read(register);
        copy.modify(fields);
        self.write_raw(register, copy.get());
    }

    /// Writes a write-1-to-clear register. One 32-bit access.
    #[inline]
    pub fn change<R: RegisterLongName>(&self, register: WriteOneToClear<R>, bits: ChangeBits<R>) {
        self.bus
            .write32(self.address(register.offset()), bits.get());
    }

    /// Writes a 64-bit register at byte `offset` of the block: low half, then high half.
    #[inline]
    pub fn write64(&self, offset: usize, value: u64) {
        self.bus.write64(self.address(offset), value);
    }

    /// Writes the low half of a 64-bit register alone.
    #[inline]
    pub fn write_low_half(&self, offset: usize, value: u64) {
        self.bus.write32(self.address(offset), value as u32);
    }

    /// Reads a 64-bit register at byte `offset` of the block: low half, then high half.
    pub fn read64(&self, offset: usize) -> u64 {
        self.bus.read64(self.address(offset))
    }
}

/// Handles that a block can read.
pub trait Readable<R: RegisterLongName> {
    /// Byte offset in the block.
    fn byte_offset(&self) -> usize;
}

/// Handles that a block can write as a whole.
pub trait Writable<R: RegisterLongName> {
    /// Byte offset in the block.
    fn byte_offset(&self) -> usize;
}

macro_rules! right {
    ($right:ident: $($name:ident),*) => {$(
        impl<R: RegisterLongName> $right<R> for $name<R> {
            fn byte_offset(&self) -> usize {
                self.offset
            }
        }
    )*};
}

right!(Readable: ReadOnly, ReadWrite, WriteOneToClear);
right!(Writable: WriteOnly, ReadWrite);

#[cfg(test)]
mod tests {
    use super::*;
    use tock_registers::register_bitfields;

    register_bitfields! [u32,
        PORT [
            CONNECTED OFFSET(0) NUMBITS(1) [],
            ENABLED OFFSET(1) NUMBITS(1) [],
            POWER OFFSET(9) NUMBITS(1) [],
            CONNECT_CHANGE OFFSET(17) NUMBITS(1) [],
        ]
    ];

    #[test]
    fn preserving_keeps_only_what_the_mask_names() {
        let current = LocalRegisterCopy::<u32, PORT::Register>::new(0x0002_0203);
        let bits = ChangeBits::preserving(current, 1 << 9);
        assert_eq!(
            bits.get(),
            0x0000_0200,
            "neither the change bit nor ENABLED is written back"
        );
        assert_eq!(bits.clearing(1 << 17).get(), 0x0002_0200);
        assert_eq!(bits.with(PORT::POWER::CLEAR).get(), 0);
    }
}
