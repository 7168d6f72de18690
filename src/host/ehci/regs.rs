//! The registers: offsets, fields, and what may be done with each.
//!
//! Used by every other file of the driver through [`Registers`](crate::mmio::Registers) blocks: one
//! for the capability registers at the start of the window, one for the operational registers that
//! begin `CAPLENGTH` bytes further on. `EHCI 1.0 §2.2` and `§2.3`; field names are the
//! specification's.

use tock_registers::register_bitfields;

use crate::mmio::{ReadOnly, ReadWrite, WriteOneToClear};

register_bitfields! [u32,
    /// CAPLENGTH and HCIVERSION, which share a word (§2.2.1, §2.2.2).
    pub(super) CAPBASE [
        /// Bytes from the start of the window to the operational registers.
        CAPLENGTH OFFSET(0) NUMBITS(8) [],
        /// Interface version as binary-coded decimal.
        HCIVERSION OFFSET(16) NUMBITS(16) [],
    ],
    /// HCSPARAMS (§2.2.3).
    pub(super) HCSPARAMS [
        /// Number of root ports.
        N_PORTS OFFSET(0) NUMBITS(4) [],
        /// Port power can be switched.
        PPC OFFSET(4) NUMBITS(1) [],
        /// Number of companion controllers.
        N_CC OFFSET(12) NUMBITS(4) [],
    ],
    /// HCCPARAMS (§2.2.4).
    pub(super) HCCPARAMS [
        /// Structures have 64-bit fields.
        AC64 OFFSET(0) NUMBITS(1) [],
    ],
    /// USBCMD (§2.3.1).
    pub(super) USBCMD [
        /// Run.
        RS OFFSET(0) NUMBITS(1) [],
        /// Reset everything, ports too.
        HCRESET OFFSET(1) NUMBITS(1) [],
        /// Periodic schedule enable.
        PSE OFFSET(4) NUMBITS(1) [],
        /// Asynchronous schedule enable.
        ASE OFFSET(5) NUMBITS(1) [],
        /// Interrupt on async advance doorbell.
        IAAD OFFSET(6) NUMBITS(1) [],
        /// Interrupt threshold in microframes.
        ITC OFFSET(16) NUMBITS(8) [],
    ],
    /// USBSTS, and USBINTR in its low six bits (§2.3.2, §2.3.3).
    pub(super) USBSTS [
        /// A qTD with IOC ended, or a short packet came.
        USBINT OFFSET(0) NUMBITS(1) [],
        /// A qTD ended with an error.
        USBERRINT OFFSET(1) NUMBITS(1) [],
        /// A port changed.
        PCD OFFSET(2) NUMBITS(1) [],
        /// Host system error: the controller has stopped.
        HSE OFFSET(4) NUMBITS(1) [],
        /// The doorbell was answered.
        IAA OFFSET(5) NUMBITS(1) [],
        /// Stopped.
        HCHALTED OFFSET(12) NUMBITS(1) [],
        /// The periodic schedule runs.
        PSS OFFSET(14) NUMBITS(1) [],
        /// The asynchronous schedule runs.
        ASS OFFSET(15) NUMBITS(1) [],
    ],
    /// A register that is one number or address.
    pub(super) WORD [
        /// All of it.
        VALUE OFFSET(0) NUMBITS(32) [],
    ],
    /// CONFIGFLAG (§2.3.8).
    pub(super) CONFIGFLAG [
        /// Ports belong to this controller rather than to companions.
        CF OFFSET(0) NUMBITS(1) [],
    ],
    /// PORTSC (§2.3.9).
    pub(super) PORTSC [
        /// A device is connected.
        CCS OFFSET(0) NUMBITS(1) [],
        /// Connect status change.
        CSC OFFSET(1) NUMBITS(1) [],
        /// Enabled. Software can only clear it; a one written to a disabled port does nothing.
        PED OFFSET(2) NUMBITS(1) [],
        /// Enable change: the port was disabled by an error.
        PEDC OFFSET(3) NUMBITS(1) [],
        /// Over-current.
        OCA OFFSET(4) NUMBITS(1) [],
        /// Over-current change.
        OCC OFFSET(5) NUMBITS(1) [],
        /// Reset.
        PR OFFSET(8) NUMBITS(1) [],
        /// What the data lines show, valid before the reset.
        LINE OFFSET(10) NUMBITS(2) [
            /// Both low.
            Se0 = 0,
            /// K: a low-speed device.
            K = 1,
            /// J: full or high speed.
            J = 2,
        ],
        /// Power.
        PP OFFSET(12) NUMBITS(1) [],
        /// The companion owns the port.
        PO OFFSET(13) NUMBITS(1) [],
    ],
];

/// Capability registers, from the start of the window.
pub(super) const CAPBASE_REGISTER: ReadOnly<CAPBASE::Register> = ReadOnly::at(0x00);
/// Structural parameters.
pub(super) const HCSPARAMS_REGISTER: ReadOnly<HCSPARAMS::Register> = ReadOnly::at(0x04);
/// Capability parameters.
pub(super) const HCCPARAMS_REGISTER: ReadOnly<HCCPARAMS::Register> = ReadOnly::at(0x08);

/// Operational registers, from `CAPLENGTH`.
pub(super) const USBCMD_REGISTER: ReadWrite<USBCMD::Register> = ReadWrite::at(0x00);
/// Status.
pub(super) const USBSTS_REGISTER: WriteOneToClear<USBSTS::Register> = WriteOneToClear::at(0x04);
/// Which status bits interrupt.
pub(super) const USBINTR_REGISTER: ReadWrite<USBSTS::Register> = ReadWrite::at(0x08);
/// Address bits 63..32 of all structures, on 64-bit controllers only.
pub(super) const CTRLDSSEGMENT_REGISTER: ReadWrite<WORD::Register> = ReadWrite::at(0x10);
/// The frame list.
pub(super) const PERIODICLISTBASE_REGISTER: ReadWrite<WORD::Register> = ReadWrite::at(0x14);
/// The next asynchronous queue head.
pub(super) const ASYNCLISTADDR_REGISTER: ReadWrite<WORD::Register> = ReadWrite::at(0x18);
/// Port routing.
pub(super) const CONFIGFLAG_REGISTER: ReadWrite<CONFIGFLAG::Register> = ReadWrite::at(0x40);

/// Offset of the first port's register.
pub(super) const PORTSC_OFFSET: usize = 0x44;

/// Status and control of port `index`, counted from 0.
pub(super) const fn portsc(index: u8) -> WriteOneToClear<PORTSC::Register> {
    WriteOneToClear::at(PORTSC_OFFSET).array(index as usize, 4)
}

/// What a write to PORTSC must keep as it was read: enable, suspend and reset (bits 2, 7, 8), power
/// and owner (12, 13), indicators, test mode and wake enables (14 to 22). All change bits are zero.
pub(super) const PORTSC_PRESERVE: u32 = 0x007f_f184;

/// The status bits that a one clears and that this driver uses: all but the frame list rollover.
pub(super) const USBSTS_CHANGES: u32 = 0x37;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_change_bit_of_a_port_is_preserved() {
        let changes = PORTSC::CSC::SET + PORTSC::PEDC::SET + PORTSC::OCC::SET;
        assert_eq!(PORTSC_PRESERVE & changes.value, 0);
    }

    #[test]
    fn the_last_port_lies_where_the_specification_puts_it() {
        assert_eq!(portsc(14).offset(), 0x44 + 4 * 14);
    }
}
