//! [`Traits`]: the shape of a modelled EHCI controller.
//!
//! A test takes [`Traits::default`] and changes what it is about, or one of the presets.

use crate::device::{MICROSECOND, MILLISECOND, Nanoseconds};

/// The shape of a controller.
#[derive(Clone, Debug)]
pub struct Traits {
    /// HCIVERSION.
    pub version: u16,
    /// CAPLENGTH: where the operational registers begin.
    pub capability_length: u8,
    /// N_PORTS, 1 to 15.
    pub ports: usize,
    /// Ports that exist in the register file only, counted from 0: no PHY, no socket.
    pub missing_phys: Vec<usize>,
    /// N_CC: companion controllers. Without one, ports cannot be handed over.
    pub companions: u8,
    /// N_PCC: ports of each companion controller.
    pub ports_per_companion: u8,
    /// Ports' power can be switched; it is off after a reset (PPC).
    pub port_power_control: bool,
    /// Structures and buffers have 64-bit addresses, and 64-bit lengths of structures.
    pub addresses_64: bool,
    /// The frame list may have 256 or 512 elements, too.
    pub programmable_frame_list: bool,
    /// The asynchronous schedule can stay on a queue head for several transactions. Park mode is on
    /// after a reset then (EHCI 1.0 §2.3.1).
    pub park: bool,
    /// HCCPARAMS bits 7..4, the isochronous scheduling threshold.
    pub isochronous_threshold: u8,
    /// How long HCRESET takes.
    pub reset_time: Nanoseconds,
    /// How long it takes to halt, at most 16 microframes (EHCI 1.0 §2.3.1).
    pub halt_time: Nanoseconds,
    /// How long a schedule takes to follow its enable bit.
    pub follow_time: Nanoseconds,
    /// How long the port holds PR after software has cleared it, at most 2 ms (EHCI 1.0 §2.3.9).
    pub port_reset_end: Nanoseconds,
    /// The longest time from the doorbell to its answer.
    pub advance_time: Nanoseconds,
    /// Every poll of an endpoint that has nothing to say is really made. Otherwise the model leaps
    /// to the moment when an answer is to be expected if nothing else is on the bus.
    pub exact_polls: bool,
    /// The ports of hubs that full- and low-speed devices are behind, by hub address and port: a split to any
    /// other one fails the run. Empty: any will do.
    pub translators: Vec<(u8, u8)>,
}

impl Default for Traits {
    fn default() -> Self {
        Self {
            version: 0x0100,
            capability_length: 0x20,
            ports: 2,
            missing_phys: Vec::new(),
            companions: 1,
            ports_per_companion: 2,
            port_power_control: false,
            addresses_64: false,
            programmable_frame_list: false,
            park: false,
            isochronous_threshold: 1,
            reset_time: 50 * MICROSECOND,
            halt_time: 300 * MICROSECOND,
            follow_time: 200 * MICROSECOND,
            port_reset_end: MILLISECOND,
            advance_time: 250 * MICROSECOND,
            exact_polls: false,
            translators: Vec::new(),
        }
    }
}

impl Traits {
    /// The EHCI of an Allwinner H3 as emulators show it: no companion of its own, many ports of
    /// which only the first has a PHY.
    #[must_use]
    pub fn allwinner() -> Self {
        Self {
            capability_length: 0x10,
            ports: 6,
            missing_phys: (1..6).collect(),
            companions: 0,
            ports_per_companion: 0,
            isochronous_threshold: 8,
            ..Self::default()
        }
    }

    /// A controller with 64-bit addresses.
    #[must_use]
    pub fn addresses_64() -> Self {
        Self {
            addresses_64: true,
            ..Self::default()
        }
    }

    /// The opposite of the default in every respect that a driver must read from the chip.
    #[must_use]
    pub fn odd() -> Self {
        Self {
            version: 0x0110,
            capability_length: 0x40,
            ports: 5,
            missing_phys: vec![0, 3],
            companions: 3,
            ports_per_companion: 2,
            port_power_control: true,
            addresses_64: true,
            programmable_frame_list: true,
            park: true,
            isochronous_threshold: 7,
            reset_time: 20 * MILLISECOND,
            halt_time: 1_900 * MICROSECOND,
            follow_time: 2 * MILLISECOND,
            port_reset_end: 1_900 * MICROSECOND,
            advance_time: 2 * MILLISECOND,
            ..Self::default()
        }
    }

    /// HCSPARAMS (EHCI 1.0 §2.2.3).
    pub(super) fn structural_parameters(&self) -> u32 {
        self.ports as u32
            | u32::from(self.port_power_control) << 4
            | u32::from(self.ports_per_companion) << 8
            | u32::from(self.companions) << 12
    }

    /// HCCPARAMS (EHCI 1.0 §2.2.4), without extended capabilities.
    pub(super) fn capability_parameters(&self) -> u32 {
        u32::from(self.addresses_64)
            | u32::from(self.programmable_frame_list) << 1
            | u32::from(self.park) << 2
            | u32::from(self.isochronous_threshold) << 4
    }
}
