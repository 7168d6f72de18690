//! The registers of an xHCI: four blocks in one window.
//!
//! Used by every file of this driver that touches hardware; nothing else knows an offset. The
//! blocks start where the capability registers say (`xHCI 1.2 §5.2`), so a handle holds its offset
//! within a block, and [`Blocks`] holds the blocks.

use tock_registers::LocalRegisterCopy;

use crate::mmio::{Bus, ReadOnly, ReadWrite, Registers, WriteOneToClear, WriteOnly};

tock_registers::register_bitfields! [u32,
    /// `xHCI 1.2 §5.3.1, §5.3.2`.
    pub(super) CAPLENGTH [
        /// Bytes from here to the operational registers.
        LENGTH OFFSET(0) NUMBITS(8) [],
        /// Interface version, binary coded decimal.
        HCIVERSION OFFSET(16) NUMBITS(16) []
    ],
    /// `xHCI 1.2 §5.3.3`.
    pub(super) HCSPARAMS1 [
        MAX_SLOTS OFFSET(0) NUMBITS(8) [],
        MAX_INTERRUPTERS OFFSET(8) NUMBITS(11) [],
        MAX_PORTS OFFSET(24) NUMBITS(8) []
    ],
    /// `xHCI 1.2 §5.3.4`.
    pub(super) HCSPARAMS2 [
        /// The event ring has at most 2^this segments.
        ERST_MAX OFFSET(4) NUMBITS(4) [],
        MAX_SCRATCHPADS_HIGH OFFSET(21) NUMBITS(5) [],
        MAX_SCRATCHPADS_LOW OFFSET(27) NUMBITS(5) []
    ],
    /// `xHCI 1.2 §5.3.6`.
    pub(super) HCCPARAMS1 [
        /// 64-bit addresses.
        AC64 OFFSET(0) NUMBITS(1) [],
        /// Contexts of 64 bytes instead of 32.
        CSZ OFFSET(2) NUMBITS(1) [],
        /// Port power can be switched.
        PPC OFFSET(3) NUMBITS(1) [],
        /// Stream arrays have up to 2^(this + 1) entries.
        MAX_PSA_SIZE OFFSET(12) NUMBITS(4) [],
        /// Extended capabilities start at this many words from the window's start.
        XECP OFFSET(16) NUMBITS(16) []
    ],
    /// `xHCI 1.2 §5.3.7, §5.3.8`: DBOFF and RTSOFF, whole bytes with low bits reserved.
    pub(super) BLOCK_OFFSET [
        BYTES OFFSET(0) NUMBITS(32) []
    ],
    /// `xHCI 1.2 §5.4.1`.
    pub(super) USBCMD [
        RUN OFFSET(0) NUMBITS(1) [],
        HCRST OFFSET(1) NUMBITS(1) [],
        /// Interrupter enable.
        INTE OFFSET(2) NUMBITS(1) [],
        /// Host system error enable.
        HSEE OFFSET(3) NUMBITS(1) []
    ],
    /// `xHCI 1.2 §5.4.2`.
    pub(super) USBSTS [
        HALTED OFFSET(0) NUMBITS(1) [],
        /// Host system error.
        HSE OFFSET(2) NUMBITS(1) [],
        /// Event interrupt.
        EINT OFFSET(3) NUMBITS(1) [],
        /// Controller not ready.
        CNR OFFSET(11) NUMBITS(1) [],
        /// Host controller error.
        HCE OFFSET(12) NUMBITS(1) []
    ],
    /// `xHCI 1.2 §5.4.3`.
    pub(super) PAGESIZE [
        /// Bit n: pages of 2^(n + 12) bytes.
        SIZES OFFSET(0) NUMBITS(16) []
    ],
    /// Low half of CRCR, `xHCI 1.2 §5.4.5`.
    pub(super) CRCR [
        /// Ring cycle state.
        RCS OFFSET(0) NUMBITS(1) [],
        /// Command abort.
        CA OFFSET(2) NUMBITS(1) [],
        /// Command ring running.
        CRR OFFSET(3) NUMBITS(1) []
    ],
    /// `xHCI 1.2 §5.4.7`.
    pub(super) CONFIG [
        MAX_SLOTS_ENABLED OFFSET(0) NUMBITS(8) []
    ],
    /// `xHCI 1.2 §5.4.8`.
    pub(super) PORTSC [
        /// Current connect status.
        CCS OFFSET(0) NUMBITS(1) [],
        /// Enabled. Writing 1 disables.
        PED OFFSET(1) NUMBITS(1) [],
        /// Over-current.
        OCA OFFSET(3) NUMBITS(1) [],
        /// Reset.
        PR OFFSET(4) NUMBITS(1) [],
        /// Link state.
        PLS OFFSET(5) NUMBITS(4) [
            Disabled = 4,
            RxDetect = 5,
            Inactive = 6,
            Compliance = 10
        ],
        /// Power.
        PP OFFSET(9) NUMBITS(1) [],
        SPEED OFFSET(10) NUMBITS(4) [],
        /// Link state write strobe.
        LWS OFFSET(16) NUMBITS(1) [],
        /// Connect status change.
        CSC OFFSET(17) NUMBITS(1) [],
        /// Warm reset change.
        WRC OFFSET(19) NUMBITS(1) [],
        /// Reset change.
        PRC OFFSET(21) NUMBITS(1) [],
        /// Cold attach: a SuperSpeed device is there, but its link is not.
        CAS OFFSET(24) NUMBITS(1) [],
        /// Warm reset.
        WPR OFFSET(31) NUMBITS(1) []
    ],
    /// `xHCI 1.2 §5.5.2.1`.
    pub(super) IMAN [
        /// Interrupt pending.
        IP OFFSET(0) NUMBITS(1) [],
        /// Interrupt enable.
        IE OFFSET(1) NUMBITS(1) []
    ],
    /// `xHCI 1.2 §5.5.2.2`.
    pub(super) IMOD [
        /// Least time between two interrupts, in units of 250 ns.
        INTERVAL OFFSET(0) NUMBITS(16) []
    ],
    /// `xHCI 1.2 §5.5.2.3.1`.
    pub(super) ERSTSZ [
        SEGMENTS OFFSET(0) NUMBITS(16) []
    ],
    /// `xHCI 1.2 §5.6`.
    pub(super) DOORBELL [
        TARGET OFFSET(0) NUMBITS(8) [],
        STREAM OFFSET(16) NUMBITS(16) []
    ],
    /// First word of an extended capability, `xHCI 1.2 §7`.
    pub(super) EXTENDED [
        ID OFFSET(0) NUMBITS(8) [],
        /// Words to the next one; 0 in the last.
        NEXT OFFSET(8) NUMBITS(8) [],
        /// Supported protocol: major revision (`§7.2`).
        MAJOR OFFSET(24) NUMBITS(8) []
    ],
    /// Third word of a supported protocol capability, `xHCI 1.2 §7.2`.
    pub(super) PROTOCOL_PORTS [
        /// The first port, counted from 1.
        FIRST OFFSET(0) NUMBITS(8) [],
        COUNT OFFSET(8) NUMBITS(8) []
    ],
    /// Fourth word of a supported protocol capability, `xHCI 1.2 §7.2`.
    pub(super) PROTOCOL_SLOT [
        TYPE OFFSET(0) NUMBITS(5) []
    ],
    /// USBLEGSUP, `xHCI 1.2 §7.1.1`.
    pub(super) LEGACY [
        FIRMWARE_OWNED OFFSET(16) NUMBITS(1) [],
        SYSTEM_OWNED OFFSET(24) NUMBITS(1) []
    ],
    /// USBLEGCTLSTS, `xHCI 1.2 §7.1.2`.
    pub(super) LEGACY_CONTROL [
        ANY OFFSET(0) NUMBITS(32) []
    ]
];

/// Capability registers, from the window's start.
pub(super) mod capability {
    use super::{
        BLOCK_OFFSET, CAPLENGTH, HCCPARAMS1, HCSPARAMS1, HCSPARAMS2, PROTOCOL_PORTS, PROTOCOL_SLOT,
        ReadOnly,
    };

    pub(in super::super) const CAPLENGTH: ReadOnly<CAPLENGTH::Register> = ReadOnly::at(0x00);
    pub(in super::super) const HCSPARAMS1: ReadOnly<HCSPARAMS1::Register> = ReadOnly::at(0x04);
    pub(in super::super) const HCSPARAMS2: ReadOnly<HCSPARAMS2::Register> = ReadOnly::at(0x08);
    pub(in super::super) const HCCPARAMS1: ReadOnly<HCCPARAMS1::Register> = ReadOnly::at(0x10);
    pub(in super::super) const DBOFF: ReadOnly<BLOCK_OFFSET::Register> = ReadOnly::at(0x14);
    pub(in super::super) const RTSOFF: ReadOnly<BLOCK_OFFSET::Register> = ReadOnly::at(0x18);
    /// The capability registers end here, whatever else an implementation adds.
    pub(in super::super) const LENGTH: usize = 0x1c;
    /// "USB ": the name in a supported protocol capability.
    pub(in super::super) const PROTOCOL_NAME: u32 = 0x2042_5355;
    /// From the start of a supported protocol capability.
    pub(in super::super) const PROTOCOL_PORTS: ReadOnly<PROTOCOL_PORTS::Register> =
        ReadOnly::at(0x08);
    pub(in super::super) const PROTOCOL_SLOT: ReadOnly<PROTOCOL_SLOT::Register> =
        ReadOnly::at(0x0c);
}

/// The legacy support capability, from its own start.
pub(super) mod legacy {
    use super::{LEGACY, LEGACY_CONTROL, ReadWrite};

    pub(in super::super) const SUPPORT: ReadWrite<LEGACY::Register> = ReadWrite::at(0);
    pub(in super::super) const CONTROL: ReadWrite<LEGACY_CONTROL::Register> = ReadWrite::at(4);
    /// Reserved bits of `CONTROL` that are kept: 3..1, 12..5 and 19..17.
    pub(in super::super) const CONTROL_KEEP: u32 = 0x000e_1fee;
    /// The firmware's three events, cleared by ones.
    pub(in super::super) const CONTROL_EVENTS: u32 = 0xe000_0000;
}

/// Operational registers.
pub(super) mod operational {
    use super::{
        CONFIG, CRCR, PAGESIZE, PORTSC, ReadOnly, ReadWrite, USBCMD, USBSTS, WriteOneToClear,
    };

    pub(in super::super) const USBCMD: ReadWrite<USBCMD::Register> = ReadWrite::at(0x00);
    pub(in super::super) const USBSTS: WriteOneToClear<USBSTS::Register> =
        WriteOneToClear::at(0x04);
    pub(in super::super) const PAGESIZE: ReadOnly<PAGESIZE::Register> = ReadOnly::at(0x08);
    /// The low half: only its running bit means anything when read.
    pub(in super::super) const CRCR: ReadOnly<CRCR::Register> = ReadOnly::at(0x18);
    pub(in super::super) const DCBAAP: usize = 0x30;
    pub(in super::super) const CONFIG: ReadWrite<CONFIG::Register> = ReadWrite::at(0x38);
    pub(in super::super) const PORTSC: WriteOneToClear<PORTSC::Register> =
        WriteOneToClear::at(0x400);
    pub(in super::super) const PORT_STRIDE: usize = 0x10;
    /// Bits that a write to PORTSC keeps: power, indicators, wake enables (`xHCI 1.2 §5.4.8`).
    pub(in super::super) const PORT_KEEP: u32 = 0x0e00_c200;
    /// The seven change bits of PORTSC.
    pub(in super::super) const PORT_CHANGES: u32 = 0x00fe_0000;
}

/// Interrupter 0, from the start of the runtime registers.
pub(super) mod interrupter {
    use super::{ERSTSZ, IMAN, IMOD, ReadWrite, WriteOneToClear};

    pub(in super::super) const IMAN: WriteOneToClear<IMAN::Register> = WriteOneToClear::at(0x20);
    pub(in super::super) const IMOD: ReadWrite<IMOD::Register> = ReadWrite::at(0x24);
    pub(in super::super) const ERSTSZ: ReadWrite<ERSTSZ::Register> = ReadWrite::at(0x28);
    pub(in super::super) const ERSTBA: usize = 0x30;
    pub(in super::super) const ERDP: usize = 0x38;
    /// The runtime registers reach at least so far.
    pub(in super::super) const LENGTH: usize = 0x40;
}

/// Doorbell 0 of the doorbell array; doorbell `n` belongs to slot `n`.
pub(super) const DOORBELL: WriteOnly<DOORBELL::Register> = WriteOnly::at(0);
/// Bytes from one doorbell to the next.
pub(super) const DOORBELL_STRIDE: usize = 4;

/// Writes where something lies into a 64-bit register of a controller that is being set up. Out of
/// line, unlike the writes on the way of a transfer.
#[inline(never)]
pub(super) fn write_address<B: Bus>(block: &Registers<B>, offset: usize, address: u64) {
    block.write64(offset, address);
}

/// The blocks of one controller's window.
#[derive(Clone, Debug)]
pub(super) struct Blocks<B> {
    /// The window's start: capability registers and extended capabilities.
    pub(super) capability: Registers<B>,
    /// Operational registers and ports.
    pub(super) operational: Registers<B>,
    /// Runtime registers: interrupter 0.
    pub(super) runtime: Registers<B>,
    /// Doorbells.
    pub(super) doorbell: Registers<B>,
}

impl<B: Bus> Blocks<B> {
    /// Rings doorbell `slot`: 0 for the command ring.
    #[inline]
    pub(super) fn ring(&self, slot: u8, target: u8, stream: u16) {
        let value = u32::from(stream) << 16 | u32::from(target);
        let doorbell = DOORBELL.array(usize::from(slot), DOORBELL_STRIDE);
        self.doorbell.write_raw(doorbell, value);
    }

    /// Reads the status register.
    pub(super) fn read_status(&self) -> LocalRegisterCopy<u32, USBSTS::Register> {
        self.operational.read(operational::USBSTS)
    }
}
