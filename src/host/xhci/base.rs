//! The memory that a controller needs for itself: directory, scratchpads, command and event ring.
//!
//! Allocated by [`controller`](super::controller) after each reset, and given back by the caller, who
//! reclaims all that the controller owns after it was stopped. Read `xHCI 1.2 §4.2` and `§6.1`.

use super::capability::Parameters;
use super::command::{self, CommandRing};
use super::context;
use super::encode;
use super::event::{EventRing, Shape};
use super::quirks::Quirks;
use super::regs::{Blocks, CONFIG, operational, write_address};
use crate::dma::{Allocation, Class, Owner, Pool, Rules, release};
use crate::host::{CapabilityField, ControllerFault, EndpointConfig, EndpointKind, Requirement};
use crate::mmio::Bus;
use crate::usb::setup::Direction;

/// Pieces of the pool are multiples of this.
const GRANULE: usize = 128;

/// How much of everything, from the chip's parameters and the caller's storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Device slots that are enabled.
    pub(super) slots: u8,
    /// Commands in flight.
    pub(super) commands: usize,
    /// Events that may wait.
    pub(super) events: usize,
}

/// The memory of a controller.
#[derive(Debug)]
pub(super) struct Base {
    /// Device context base address array: entry 0 the scratchpads, entry n slot n.
    directory: Allocation,
    pub(super) commands: CommandRing,
    pub(super) events: EventRing,
}

impl Base {
    /// Allocates and fills it.
    pub(super) fn allocate(
        pool: &mut Pool<'_>,
        owner: Owner,
        parameters: &Parameters,
        extent: Extent,
        quirks: Quirks,
    ) -> Result<Self, ControllerFault> {
        // What is taken later is reached, too.
        if !pool.is_reachable(parameters.address_mask) {
            return Err(ControllerFault::Implausible(CapabilityField::AddressWidth));
        }
        let page = Rules::aligned(64).within(parameters.page);
        let directory = pool.allocate(owner, Class::Base, directory_bytes(extent), page)?;
        scratchpads(pool, owner, parameters, &directory)?;
        let blocks = command::ring_blocks(extent.commands);
        let commands = CommandRing::allocate(pool, owner, blocks, quirks.ring_spare())?;
        let shape = Shape::for_events(extent.events, parameters);
        let events = EventRing::allocate(pool, owner, shape, quirks)?;
        Ok(Self {
            directory,
            commands,
            events,
        })
    }

    /// Tells the controller where everything is.
    pub(super) fn install<B: Bus>(&mut self, blocks: &Blocks<B>, extent: Extent) {
        // The controller reads the segment table as soon as it knows its address.
        release();
        let slots = CONFIG::MAX_SLOTS_ENABLED.val(u32::from(extent.slots));
        let registers = &blocks.operational;
        // The addresses lead the controller to tables that are read at once.
        release();
        registers.modify(operational::CONFIG, slots);
        write_address(registers, operational::DCBAAP, self.directory.bus().get());
        self.commands.install(blocks);
        self.events.install(blocks);
    }

    /// Enters the output context of a slot, or none.
    pub(super) fn set_slot(&self, slot: u8, context: u64) {
        self.directory.write64(8 * usize::from(slot), context);
    }
}

fn directory_bytes(extent: Extent) -> usize {
    8 * (usize::from(extent.slots) + 1)
}

/// Gives the controller the pages that it wants for itself (`xHCI 1.2 §4.20`).
fn scratchpads(
    pool: &mut Pool<'_>,
    owner: Owner,
    parameters: &Parameters,
    directory: &Allocation,
) -> Result<(), ControllerFault> {
    let count = parameters.scratchpads;
    if count == 0 {
        return Ok(());
    }
    let page = parameters.page;
    let rules = Rules::aligned(64).within(page.max(8 * count.next_power_of_two()));
    let array = pool.allocate(owner, Class::Scratchpad, 8 * count, rules)?;
    let pages = pool.allocate(owner, Class::Scratchpad, page * count, Rules::aligned(page))?;
    for index in 0..count {
        let address = pages.bus().offset((index * page) as u64);
        array.write64(8 * index, address.get());
    }
    directory.write64(0, array.bus().get());
    Ok(())
}

/// What the controller and its devices will need.
pub(super) fn requirement(
    parameters: &Parameters,
    extent: Extent,
    endpoint0: &EndpointConfig,
    quirks: Quirks,
) -> Requirement {
    let sum = |pieces: &[usize]| -> usize {
        let round = |bytes: &usize| bytes.next_multiple_of(GRANULE);
        pieces.iter().map(round).sum()
    };
    let ring = |blocks: u32| 16 * blocks as usize + quirks.ring_spare();
    let [events, table] = Shape::for_events(extent.events, parameters).bytes();
    let scratchpads = parameters.scratchpads * (parameters.page + 8);
    let own = sum(&[
        directory_bytes(extent),
        ring(command::ring_blocks(extent.commands)),
        events,
        table,
    ]);
    // What alignment may cost: a page for the scratchpads, and as much for the boundaries.
    let alignment = match parameters.scratchpads {
        0 => parameters.page,
        _ => 2 * parameters.page,
    };
    let [output, input] = context::bytes(parameters);
    let bulk = ring(encode::ring_blocks(&DEFAULT_BULK).unwrap_or(0));
    let control = ring(encode::ring_blocks(endpoint0).unwrap_or(0));
    Requirement {
        pool: own + scratchpads.next_multiple_of(GRANULE) + alignment,
        pool_records: 6,
        pool_per_device: sum(&[output, input, control, bulk, bulk]),
        scratchpads,
    }
}

/// A bulk endpoint of default depth: data and status of one Bulk-Only command.
const DEFAULT_BULK: EndpointConfig = EndpointConfig {
    number: 1,
    direction: Direction::In,
    kind: EndpointKind::Bulk,
    max_packet: 512,
    max_burst: 0,
    interval: 0,
    transfers: 2,
    longest: 1 << 20,
    streams: 0,
};
