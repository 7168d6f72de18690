//! One function's header: who it is, what it may do.

use tock_registers::{LocalRegisterCopy, register_bitfields};

use super::config::{Address, ConfigSpace};

register_bitfields! {u32,
    /// Of the function, and of its subsystem.
    Identity [
        VENDOR OFFSET(0) NUMBITS(16) [],
        DEVICE OFFSET(16) NUMBITS(16) [],
    ],
    /// PCI 3.0 §6.2.2 (command). The status half is write-1-to-clear: it is written as 0.
    CommandStatus [
        MEMORY OFFSET(1) NUMBITS(1) [],
        BUS_MASTER OFFSET(2) NUMBITS(1) [],
        INTERRUPT_DISABLE OFFSET(10) NUMBITS(1) [],
        COMMAND OFFSET(0) NUMBITS(16) [],
    ],
    ClassRevision [
        CLASS OFFSET(8) NUMBITS(24) [],
    ],
    HeaderType [
        LAYOUT OFFSET(16) NUMBITS(7) [],
        MULTIFUNCTION OFFSET(23) NUMBITS(1) [],
    ],
    Interrupt [
        PIN OFFSET(8) NUMBITS(8) [],
    ],
}

/// Byte offsets in the header (PCI 3.0 figure 6-1).
const IDENTITY: u16 = 0x00;
const COMMAND_STATUS: u16 = 0x04;
const CLASS_REVISION: u16 = 0x08;
const HEADER_TYPE: u16 = 0x0c;
const SUBSYSTEM: u16 = 0x2c;
const INTERRUPT: u16 = 0x3c;

/// What a vendor id reads as where nobody answers (PCI 3.0 §6.1).
const NOBODY: u32 = 0xffff;
/// Header layout of an ordinary function, with six base addresses (PCI 3.0 §6.1).
const ORDINARY: u32 = 0;

/// A pin of the four that all devices share (PCI 3.0 §6.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "INTx")]
pub enum InterruptPin {
    /// INTA#
    A,
    /// INTB#
    B,
    /// INTC#
    C,
    /// INTD#
    D,
}

/// A function that answers.
#[derive(Clone, Copy, Debug)]
pub struct Function<C> {
    config: C,
    address: Address,
}

impl<C: ConfigSpace> Function<C> {
    /// The function at `address`, if somebody answers.
    #[must_use]
    pub fn probe(config: C, address: Address) -> Option<Self> {
        let function = Self { config, address };
        (function.identity().read(Identity::VENDOR) != NOBODY).then_some(function)
    }

    /// Where it is.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Vendor and device id.
    pub fn id(&self) -> (u16, u16) {
        let identity = self.identity();
        (
            identity.read(Identity::VENDOR) as u16,
            identity.read(Identity::DEVICE) as u16,
        )
    }

    /// Subsystem vendor and subsystem id: who put the chip to use.
    pub fn subsystem(&self) -> (u16, u16) {
        let words = LocalRegisterCopy::<u32, Identity::Register>::new(self.read(SUBSYSTEM));
        (
            words.read(Identity::VENDOR) as u16,
            words.read(Identity::DEVICE) as u16,
        )
    }

    /// Class, subclass and programming interface, from high to low: 0x0c0330 for an xHCI.
    pub fn class(&self) -> u32 {
        LocalRegisterCopy::<u32, ClassRevision::Register>::new(self.read(CLASS_REVISION))
            .read(ClassRevision::CLASS)
    }

    /// Whether it has six base addresses and is not a bridge.
    pub fn is_ordinary(&self) -> bool {
        self.header_type().read(HeaderType::LAYOUT) == ORDINARY
    }

    /// Whether the device has more functions than its first; meaningful on that.
    pub fn is_multifunction(&self) -> bool {
        self.header_type().is_set(HeaderType::MULTIFUNCTION)
    }

    /// The pin that it pulls, if it uses one.
    pub fn interrupt_pin(&self) -> Option<InterruptPin> {
        let line = LocalRegisterCopy::<u32, Interrupt::Register>::new(self.read(INTERRUPT));
        match line.read(Interrupt::PIN) {
            1 => Some(InterruptPin::A),
            2 => Some(InterruptPin::B),
            3 => Some(InterruptPin::C),
            4 => Some(InterruptPin::D),
            _ => None,
        }
    }

    /// Neither answers at its addresses nor does DMA nor pulls its pin.
    pub fn switch_off(&self) {
        self.set_command(CommandStatus::INTERRUPT_DISABLE::SET.value);
    }

    /// Answers at its addresses; no DMA.
    pub fn enable_memory(&self) {
        self.set_command(CommandStatus::MEMORY::SET.value);
    }

    /// Answers at its addresses and may do DMA.
    pub fn enable_dma(&self) {
        let both = CommandStatus::MEMORY::SET + CommandStatus::BUS_MASTER::SET;
        self.set_command(both.value);
    }

    /// Takes bus mastering away; its registers stay reachable. True when it is gone for sure: the
    /// register reads back so, and a read completes only after what the function had written
    /// before (PCIe 3.0 §2.4.1, completions do not pass posted writes).
    #[must_use]
    pub fn cut_dma(&self) -> bool {
        self.enable_memory();
        !self.command_status().is_set(CommandStatus::BUS_MASTER)
    }

    /// Reads a word of its configuration space.
    pub(super) fn read(&self, register: u16) -> u32 {
        self.config.read(self.address, register)
    }

    /// Writes a word of its configuration space.
    pub(super) fn write(&self, register: u16, value: u32) {
        self.config.write(self.address, register, value);
    }

    fn set_command(&self, bits: u32) {
        self.write(COMMAND_STATUS, bits);
    }

    fn command_status(&self) -> LocalRegisterCopy<u32, CommandStatus::Register> {
        LocalRegisterCopy::new(self.read(COMMAND_STATUS))
    }

    fn identity(&self) -> LocalRegisterCopy<u32, Identity::Register> {
        LocalRegisterCopy::new(self.read(IDENTITY))
    }

    fn header_type(&self) -> LocalRegisterCopy<u32, HeaderType::Register> {
        LocalRegisterCopy::new(self.read(HEADER_TYPE))
    }
}

impl<C: ConfigSpace> crate::brakes::CutDma for Function<C> {
    fn cut_dma(&self) -> bool {
        Function::cut_dma(self)
    }
}
