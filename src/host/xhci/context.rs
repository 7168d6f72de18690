//! Device and endpoint contexts: how the driver describes a device to the controller.
//!
//! Built by [`device`](super::device) and [`endpoint`](super::endpoint). Contexts have 32 bytes or 64,
//! as the chip says, also in the input context; the words beyond the eighth are the controller's
//! own. Everything that goes into an input context comes from the driver's state: the output
//! context is read only for what the controller alone knows. Read `xHCI 1.2 §6.2`.

use super::capability::Parameters;
use crate::dma::{Allocation, BusAddress, Class, Owner, Pool, PoolError, Rules};
use crate::host::{Attachment, EndpointConfig, EndpointKind, HubInfo};
use crate::usb::setup::Direction;
use crate::usb::speed::Speed;

/// Contexts of a device: the slot's and 31 endpoints'.
const CONTEXTS: usize = 32;

/// Endpoint states in an output context (`xHCI 1.2 table 6-8`).
pub(super) mod state {
    pub(in super::super) const RUNNING: u32 = 1;
    pub(in super::super) const HALTED: u32 = 2;
}

/// Bytes of a device's output and input context.
pub(super) fn bytes(parameters: &Parameters) -> [usize; 2] {
    let context = parameters.context;
    [CONTEXTS * context, (CONTEXTS + 1) * context]
}

/// The contexts of one device.
#[derive(Debug)]
pub(super) struct Contexts {
    input: Allocation,
    output: Allocation,
    /// Bytes of one context.
    size: usize,
}

impl Contexts {
    pub(super) fn allocate(
        pool: &mut Pool<'_>,
        owner: Owner,
        parameters: &Parameters,
    ) -> Result<Self, PoolError> {
        let [output, input] = bytes(parameters);
        let rules = Rules::aligned(64).within(parameters.page);
        Ok(Self {
            output: pool.allocate(owner, Class::Context, output, rules)?,
            input: pool.allocate(owner, Class::Context, input, rules)?,
            size: parameters.context,
        })
    }

    /// What the controller is told the addresses of.
    pub(super) fn pieces(&self) -> [&Allocation; 2] {
        [&self.input, &self.output]
    }

    /// Where the controller finds the input context.
    pub(super) fn input(&self) -> BusAddress {
        self.input.bus()
    }

    /// Where the controller keeps the output context.
    pub(super) fn output(&self) -> BusAddress {
        self.output.bus()
    }

    /// Says which contexts the next command adds and drops: bit 0 the slot, bit n the endpoint
    /// with context index n (`xHCI 1.2 §6.2.5.1`).
    pub(super) fn write_flags(&self, add: u32, drop: u32) {
        self.input.write_words(0, &[drop, add, 0, 0, 0, 0, 0, 0]);
    }

    /// Writes the input slot context.
    pub(super) fn write_slot(&self, words: [u32; 8]) {
        self.input.write_words(self.size, &words);
    }

    /// Writes the input context of endpoint `dci`.
    pub(super) fn write_endpoint(&self, dci: u8, words: [u32; 8]) {
        let offset = (usize::from(dci) + 1) * self.size;
        self.input.write_words(offset, &words);
    }

    /// The state of endpoint `dci`, as the controller last wrote it.
    pub(super) fn endpoint_state(&self, dci: u8) -> u32 {
        self.output.read32(usize::from(dci) * self.size) & 7
    }

    /// Where endpoint `dci` stands in its ring, valid while it is stopped.
    pub(super) fn endpoint_position(&self, dci: u8) -> u64 {
        self.output.read64(usize::from(dci) * self.size + 8) & !0xf
    }
}

/// A slot context (`xHCI 1.2 §6.2.2`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot<'d> {
    pub(super) attachment: &'d Attachment,
    /// What is known if the device is a hub.
    pub(super) hub: Option<&'d HubInfo>,
    /// Slot of the hub with the transaction translator, 0 without.
    pub(super) translator_slot: u8,
    /// The highest context index in use.
    pub(super) entries: u8,
}

impl Slot<'_> {
    /// The eight words. State and address are the controller's, and zero here.
    pub(super) fn words(&self) -> [u32; 8] {
        let attachment = self.attachment;
        let translator = attachment.translator.as_ref();
        let multi = translator.is_some_and(|translator| translator.multi)
            || self.hub.is_some_and(|hub| hub.multi_translator);
        let ports = self.hub.map_or(0, |hub| hub.ports);
        let think_time = match self.hub {
            Some(hub) if attachment.speed == Speed::High => hub.think_time & 3,
            _ => 0,
        };
        [
            attachment.route & 0xf_ffff
                | speed_id(attachment.speed) << 20
                | u32::from(multi) << 25
                | u32::from(self.hub.is_some()) << 26
                | u32::from(self.entries) << 27,
            (u32::from(attachment.root_port.0) + 1) << 16 | u32::from(ports) << 24,
            u32::from(self.translator_slot)
                | translator.map_or(0, |translator| u32::from(translator.port)) << 8
                | u32::from(think_time) << 16,
            0,
            0,
            0,
            0,
            0,
        ]
    }
}

/// The default protocol speed ids (`xHCI 1.2 §7.2.2.1.1`).
pub(super) fn speed_id(speed: Speed) -> u32 {
    match speed {
        Speed::Full => 1,
        Speed::Low => 2,
        Speed::High => 3,
        Speed::Super => 4,
        Speed::SuperPlus => 5,
    }
}

/// The speed of a default protocol speed id. Every one above 5 is some SuperSpeedPlus.
pub(super) fn speed_of(id: u32) -> Option<Speed> {
    match id {
        0 => None,
        1 => Some(Speed::Full),
        2 => Some(Speed::Low),
        3 => Some(Speed::High),
        4 => Some(Speed::Super),
        _ => Some(Speed::SuperPlus),
    }
}

/// Device context index: where an endpoint's context is (`xHCI 1.2 §4.5.1`).
pub(super) fn context_index(config: &EndpointConfig) -> u8 {
    let number = config.number & 0xf;
    match (number, config.direction) {
        (0, _) | (_, Direction::In) => 2 * number + 1,
        (_, Direction::Out) => 2 * number,
    }
}

/// The eight words of an endpoint context (`xHCI 1.2 §6.2.3`). `start` is the ring's start pointer
/// with the cycle state.
pub(super) fn endpoint_words(config: &EndpointConfig, speed: Speed, start: u64) -> [u32; 8] {
    let errors = 3 << 1;
    let kind = endpoint_type(config) << 3;
    let burst = u32::from(config.max_burst) << 8;
    let service = service_payload(config);
    [
        interval(config, speed) << 16,
        errors | kind | burst | u32::from(config.max_packet) << 16,
        start as u32,
        (start >> 32) as u32,
        average_length(config) | service << 16,
        0,
        0,
        0,
    ]
}

/// The same for an endpoint with streams: `array` is the address of its primary stream array, which has
/// 2^(`exponent` + 1) entries and no others behind them (linear).
pub(super) fn stream_words(
    config: &EndpointConfig,
    speed: Speed,
    array: u64,
    exponent: u32,
) -> [u32; 8] {
    let mut words = endpoint_words(config, speed, array);
    let [first, ..] = &mut words;
    *first |= exponent << 10 | 1 << 15;
    words
}

/// Endpoint type (`xHCI 1.2 table 6-9`).
fn endpoint_type(config: &EndpointConfig) -> u32 {
    match (config.kind, config.direction) {
        (EndpointKind::Control, _) => 4,
        (EndpointKind::Bulk, Direction::Out) => 2,
        (EndpointKind::Bulk, Direction::In) => 6,
        (EndpointKind::Interrupt, Direction::Out) => 3,
        (EndpointKind::Interrupt, Direction::In) => 7,
    }
}

/// Bytes that an interrupt endpoint may move in one interval (`xHCI 1.2 §4.14.2`).
fn service_payload(config: &EndpointConfig) -> u32 {
    match config.kind {
        EndpointKind::Interrupt => {
            let payload = u32::from(config.max_packet) * (u32::from(config.max_burst) + 1);
            payload.min(0xffff)
        }
        EndpointKind::Control | EndpointKind::Bulk => 0,
    }
}

/// Average TRB length, in bytes: the values that `xHCI 1.2 §4.14.1.1` proposes to start with.
fn average_length(config: &EndpointConfig) -> u32 {
    match config.kind {
        EndpointKind::Control => 8,
        EndpointKind::Interrupt => 1024,
        EndpointKind::Bulk => 3072,
    }
}

/// Exponent of an interrupt endpoint's interval, in units of 125 µs (`xHCI 1.2 §6.2.3.6`). What a
/// device says out of range is clamped.
fn interval(config: &EndpointConfig, speed: Speed) -> u32 {
    if config.kind != EndpointKind::Interrupt {
        return 0;
    }
    let said = u32::from(config.interval).max(1);
    match speed {
        Speed::Low | Speed::Full => (said * 8).ilog2().clamp(3, 10),
        Speed::High | Speed::Super | Speed::SuperPlus => said.min(16) - 1,
    }
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
