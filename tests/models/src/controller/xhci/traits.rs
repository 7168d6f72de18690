//! [`Traits`]: the shape of a modelled xHCI controller.
//!
//! A test takes [`Traits::default`], a plausible controller with everything in its common form, and
//! changes what it is about; or one of the presets.

use crate::device::{MICROSECOND, MILLISECOND, Nanoseconds};

/// Which bus a root port belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// Low, full and high speed.
    Usb2,
    /// SuperSpeed.
    Usb3,
}

/// How interrupts leave the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// A wired level: IP, IE, INTE and EINT.
    Wired,
    /// A message each time; IP clears itself (xHCI 1.2 §4.17.5).
    Message,
}

/// What the firmware does with the controller before the driver comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Firmware {
    /// There is no legacy capability.
    Absent,
    /// It owns the controller and gives it up after this time.
    Releases(Nanoseconds),
    /// It owns the controller and keeps it.
    Keeps,
}

/// What Stop Endpoint reports of an endpoint that has nothing to do. Real controllers differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleStop {
    /// Nothing: only the command's completion.
    Silent,
    /// A transfer event "Stopped - Length Invalid" at the dequeue pointer.
    Event,
    /// One or the other, by chance.
    Either,
}

/// Of which streams Stop Endpoint reports where they stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamStop {
    /// Of the one whose data moved, if one did.
    Moving,
    /// Of each one with a TD.
    EachWithWork,
    /// Of each one that it knows, without saying which: "Stopped - Length Invalid" with a null
    /// pointer, as controllers in the field do.
    NullPointers,
}

/// What follows a short packet in a TRB that is not the last of its TD, if the last has IOC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterShort {
    /// A second event, Short Packet again (xHCI 1.2 §4.10.1.1).
    ShortAgain,
    /// A second event with code Success, as early controllers do.
    Success,
    /// No second event if the first was written.
    Nothing,
}

/// The shape of a controller.
#[derive(Clone, Debug)]
pub struct Traits {
    /// HCIVERSION.
    pub version: u16,
    /// CAPLENGTH: where the operational registers begin.
    pub capability_length: u8,
    /// DBOFF.
    pub doorbell_offset: usize,
    /// RTSOFF.
    pub runtime_offset: usize,
    /// xECP, as a byte offset; a multiple of 4.
    pub extended_offset: usize,
    /// Contexts have 64 bytes, not 32 (CSZ).
    pub large_contexts: bool,
    /// Addresses have 64 bits (AC64).
    pub addresses_64: bool,
    /// Ports' power can be switched; it is off after a reset (PPC).
    pub port_power_control: bool,
    /// Scratchpad pages, at most 1023.
    pub scratchpads: usize,
    /// Bytes of a page: 4096 shifted left by 0 to 15.
    pub page_size: usize,
    /// MaxSlots.
    pub slots: u8,
    /// MaxIntrs.
    pub interrupters: u16,
    /// ERST Max: the event ring has at most two to this power of segments.
    pub event_segments_log2: u8,
    /// MaxPSASize; 0 for no streams.
    pub stream_array_size: u8,
    /// Bits of HCCPARAMS1 beyond those that have a field of their own.
    pub other_capabilities: u32,
    /// The root ports in their order: a run of one protocol, then one of the other.
    pub ports: Vec<Protocol>,
    /// The slot type of each protocol's ports: USB 2, then USB 3.
    pub slot_types: [u8; 2],
    /// USB 2 ports show a speed only after their reset.
    pub speed_after_reset: bool,
    /// Reserved bits that must be preserved read as ones in places.
    pub odd_reserved_bits: bool,
    /// How long HCRST takes.
    pub reset_time: Nanoseconds,
    /// How long the controller is not ready after HCRST (CNR).
    pub not_ready_time: Nanoseconds,
    /// How long it is not ready after power-on, as one that loads its firmware first.
    pub not_ready_at_start: Nanoseconds,
    /// How long it takes to halt.
    pub halt_time: Nanoseconds,
    /// How long a root port's reset takes.
    pub port_reset_time: Nanoseconds,
    /// How long a SuperSpeed link trains.
    pub training_time: Nanoseconds,
    /// Who has it at first.
    pub firmware: Firmware,
    /// Whether it runs when the driver comes.
    pub running_at_start: bool,
    /// How interrupts leave.
    pub signal: Signal,
    /// Connections from before Run/Stop was set are reported when it is.
    pub port_events_at_run: bool,
    /// See [`IdleStop`].
    pub idle_stop: IdleStop,
    /// See [`StreamStop`].
    pub stream_stop: StreamStop,
    /// See [`AfterShort`].
    pub after_short: AfterShort,
    /// A write of the low half of ERDP is taken at once, with the high half of before (QEMU).
    pub erdp_by_low_half: bool,
    /// Set TR Dequeue Pointer may not point at a Link TRB (VL805).
    pub no_dequeue_at_link: bool,
    /// It fetches so many TRBs ahead, and stops for ever where those hold less than a packet and no end of
    /// their TD (Synopsys, Linux's XHCI_SG_TRB_CACHE_SIZE_QUIRK: 8 at high speed, 16 at SuperSpeed).
    pub fetches: Option<usize>,
}

impl Default for Traits {
    fn default() -> Self {
        Self {
            version: 0x0110,
            capability_length: 0x40,
            doorbell_offset: 0x2000,
            runtime_offset: 0x1000,
            extended_offset: 0x0800,
            large_contexts: false,
            addresses_64: true,
            port_power_control: false,
            scratchpads: 2,
            page_size: 4096,
            slots: 32,
            interrupters: 8,
            event_segments_log2: 1,
            stream_array_size: 7,
            other_capabilities: 0,
            ports: vec![
                Protocol::Usb2,
                Protocol::Usb2,
                Protocol::Usb3,
                Protocol::Usb3,
            ],
            slot_types: [0, 0],
            speed_after_reset: false,
            odd_reserved_bits: true,
            reset_time: 200 * MICROSECOND,
            not_ready_time: 2 * MILLISECOND,
            not_ready_at_start: 0,
            halt_time: 500 * MICROSECOND,
            port_reset_time: 50 * MILLISECOND,
            training_time: 20 * MILLISECOND,
            firmware: Firmware::Absent,
            running_at_start: false,
            signal: Signal::Wired,
            port_events_at_run: true,
            idle_stop: IdleStop::Either,
            stream_stop: StreamStop::Moving,
            after_short: AfterShort::ShortAgain,
            erdp_by_low_half: false,
            no_dequeue_at_link: false,
            fetches: None,
        }
    }
}

impl Traits {
    /// The xHCI block of the RK3328, a Synopsys DWC3: the values that kernel logs of the Rock64 show
    /// (HCSPARAMS1 0x02000140, HCCPARAMS1 0x0220fe64, HCIVERSION 0x110). Offsets of the runtime and
    /// doorbell registers are those of the core's databook.
    #[must_use]
    pub fn rk3328() -> Self {
        Self {
            capability_length: 0x20,
            runtime_offset: 0x440,
            doorbell_offset: 0x480,
            extended_offset: 0x880,
            large_contexts: true,
            addresses_64: false,
            other_capabilities: 0x0e60,
            stream_array_size: 15,
            scratchpads: 1,
            slots: 64,
            interrupters: 1,
            ports: vec![Protocol::Usb2, Protocol::Usb3],
            // Fewer than any that is known: nothing that suits it troubles the real ones.
            fetches: Some(4),
            ..Self::default()
        }
    }

    /// A controller that forms 32-bit addresses only.
    #[must_use]
    pub fn addresses_32() -> Self {
        Self {
            addresses_64: false,
            ..Self::default()
        }
    }

    /// The opposite of the default in every respect that a driver must read from the chip.
    #[must_use]
    pub fn odd() -> Self {
        Self {
            version: 0x0100,
            capability_length: 0x80,
            doorbell_offset: 0x3000,
            runtime_offset: 0x2000,
            extended_offset: 0x1000,
            large_contexts: true,
            port_power_control: true,
            scratchpads: 40,
            slots: 8,
            interrupters: 1,
            event_segments_log2: 4,
            ports: vec![Protocol::Usb3, Protocol::Usb2, Protocol::Usb2],
            slot_types: [0, 3],
            speed_after_reset: true,
            not_ready_time: 120 * MILLISECOND,
            not_ready_at_start: 45 * MILLISECOND,
            firmware: Firmware::Releases(30 * MILLISECOND),
            running_at_start: true,
            signal: Signal::Message,
            port_events_at_run: false,
            idle_stop: IdleStop::Silent,
            after_short: AfterShort::Success,
            no_dequeue_at_link: true,
            fetches: Some(4),
            ..Self::default()
        }
    }

    pub(super) fn context_bytes(&self) -> u64 {
        if self.large_contexts { 64 } else { 32 }
    }
}
