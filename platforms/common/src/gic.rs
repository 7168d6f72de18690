//! Generic Interrupt Controller, version 2, for one core.
//!
//! Who calls it: a board's `main` (set up, enable) and its interrupt entry (acknowledge, end).
//! Invariant: no method reads, changes and writes a register that the other side uses, so that
//! main context and interrupt handler may share one [`Gic`]. The same code serves a GIC without
//! security extensions (group 0) and the non-secure view of one with them, where the bits of group
//! 1 sit in the same places (IHI 0048B §4.3.1, §4.4.1).
//! What it does not do: software-generated interrupts, priorities, routing to other cores.

use tock_registers::interfaces::{Readable, Writeable};
use tock_registers::registers::{ReadOnly, ReadWrite, WriteOnly};
use tock_registers::{register_bitfields, register_structs};

register_bitfields! {u32,
    Control [
        ENABLE OFFSET(0) NUMBITS(1) [],
    ],
    Type [
        /// 32 interrupts each, less one.
        LINES OFFSET(0) NUMBITS(5) [],
    ],
    PriorityMask [
        PRIORITY OFFSET(0) NUMBITS(8) [],
    ],
    Acknowledge [
        INTERRUPT OFFSET(0) NUMBITS(10) [],
    ],
}

register_structs! {
    /// IHI 0048B table 4-1.
    Distributor {
        (0x000 => control: ReadWrite<u32, Control::Register>),
        (0x004 => kind: ReadOnly<u32, Type::Register>),
        (0x008 => _identity),
        (0x100 => set_enable: [WriteOnly<u32>; 32]),
        (0x180 => clear_enable: [WriteOnly<u32>; 32]),
        (0x200 => _pending_and_active),
        (0x400 => priority: [ReadWrite<u8>; 1024]),
        (0x800 => targets: [ReadWrite<u8>; 1024]),
        (0xc00 => @END),
    }
}

register_structs! {
    /// IHI 0048B table 4-2.
    CpuInterface {
        (0x000 => control: ReadWrite<u32, Control::Register>),
        (0x004 => priority_mask: ReadWrite<u32, PriorityMask::Register>),
        (0x008 => _binary_point),
        (0x00c => acknowledge: ReadOnly<u32, Acknowledge::Register>),
        (0x010 => end: WriteOnly<u32>),
        (0x014 => @END),
    }
}

/// Ids from here on are special: nothing is pending, or not for us (IHI 0048B §3.2.5).
const FIRST_SPECIAL: u32 = 1020;
/// Private interrupts of a core have ids below this (IHI 0048B §2.2.1).
const FIRST_SHARED: u32 = 32;
/// The first private peripheral interrupt (IHI 0048B §2.2.1).
const FIRST_PRIVATE_PERIPHERAL: u32 = 16;
/// Policy: all interrupts are equal; the middle leaves room on both sides, and it is below the
/// mask in the secure and in the non-secure view.
const PRIORITY: u8 = 0x80;
/// Lets every priority through (IHI 0048B §4.4.2).
const MASK_NOTHING: u32 = 0xff;
/// The only core in play is CPU interface 0.
const FIRST_CORE: u8 = 1;

/// The number of an interrupt as the GIC counts them, below 1020.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptId(u32);

impl InterruptId {
    /// Private peripheral interrupt `number` (0 to 15), "PPI" in a device tree's `<1 number …>`.
    ///
    /// # Panics
    ///
    /// If there is no such interrupt; in a constant this is a compile error.
    #[must_use]
    #[doc(alias = "PPI")]
    pub const fn private(number: u32) -> Self {
        assert!(
            number < FIRST_SHARED - FIRST_PRIVATE_PERIPHERAL,
            "PPIs are 0 to 15"
        );
        Self(FIRST_PRIVATE_PERIPHERAL + number)
    }

    /// Shared peripheral interrupt `number` (0 to 987), "SPI" in a device tree's `<0 number …>`.
    ///
    /// # Panics
    ///
    /// If there is no such interrupt; in a constant this is a compile error.
    #[must_use]
    #[doc(alias = "SPI")]
    pub const fn shared(number: u32) -> Self {
        assert!(number < FIRST_SPECIAL - FIRST_SHARED, "SPIs are 0 to 987");
        Self(FIRST_SHARED + number)
    }

    /// The id as the GIC counts: 16 for the first PPI, 32 for the first SPI.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    const fn word(self) -> usize {
        (self.0 / 32) as usize
    }

    const fn bit(self) -> u32 {
        1 << (self.0 % 32)
    }
}

/// An interrupt that was acknowledged and must be ended.
#[derive(Debug)]
#[must_use = "an interrupt that is not ended blocks all others"]
pub struct Acknowledged {
    id: InterruptId,
    value: u32,
}

impl Acknowledged {
    /// Which interrupt it is.
    #[must_use]
    pub const fn id(&self) -> InterruptId {
        self.id
    }
}

/// A GICv2 at fixed addresses.
#[derive(Clone, Copy, Debug)]
pub struct Gic {
    distributor: usize,
    cpu_interface: usize,
}

impl Gic {
    /// The controller with these register banks.
    ///
    /// # Safety
    ///
    /// Both are addresses of a GICv2's distributor and CPU interface on this machine, mapped one
    /// to one as device memory whenever a method is called.
    #[must_use]
    pub const unsafe fn new(distributor: usize, cpu_interface: usize) -> Self {
        Self {
            distributor,
            cpu_interface,
        }
    }

    /// Switches distributor and CPU interface on, with every interrupt disabled whatever a boot
    /// loader had enabled.
    pub fn set_up(self) {
        let words = self.distributor().kind.read(Type::LINES) as usize + 1;
        for word in self.distributor().clear_enable.iter().take(words) {
            word.set(u32::MAX);
        }
        self.distributor().control.write(Control::ENABLE::SET);
        self.cpu_interface()
            .priority_mask
            .write(PriorityMask::PRIORITY.val(MASK_NOTHING));
        self.cpu_interface().control.write(Control::ENABLE::SET);
    }

    /// Lets `id` through to this core. Its trigger stays as at reset: level-sensitive for SPIs.
    pub fn enable(self, id: InterruptId) {
        let distributor = self.distributor();
        let index = id.number() as usize;
        distributor.priority[index].set(PRIORITY);
        if id.number() >= FIRST_SHARED {
            distributor.targets[index].set(FIRST_CORE);
        }
        distributor.set_enable[id.word()].set(id.bit());
    }

    /// Holds `id` back.
    pub fn disable(self, id: InterruptId) {
        self.distributor().clear_enable[id.word()].set(id.bit());
    }

    /// Takes the most urgent pending interrupt, if there is one. The read itself acknowledges.
    pub fn acknowledge(self) -> Option<Acknowledged> {
        let value = self.cpu_interface().acknowledge.extract();
        let number = value.read(Acknowledge::INTERRUPT);
        (number < FIRST_SPECIAL).then(|| Acknowledged {
            id: InterruptId(number),
            value: value.get(),
        })
    }

    /// Ends an interrupt: the next one of the same or a lower priority can come.
    pub fn end(self, interrupt: Acknowledged) {
        self.cpu_interface().end.set(interrupt.value);
    }

    fn distributor(self) -> &'static Distributor {
        // SAFETY: `new` was promised a distributor at this address; it is accessed through
        // volatile reads and writes only, which tolerate any number of shared references.
        unsafe { &*(self.distributor as *const Distributor) }
    }

    fn cpu_interface(self) -> &'static CpuInterface {
        // SAFETY: as in `distributor`.
        unsafe { &*(self.cpu_interface as *const CpuInterface) }
    }
}

#[cfg(test)]
mod tests {
    use super::InterruptId;

    #[test]
    fn device_tree_numbers_become_gic_ids() {
        assert_eq!(InterruptId::private(11).number(), 27);
        assert_eq!(InterruptId::shared(3).number(), 35);
    }
}
