//! What the chip says about itself, read once and believed only where it makes sense.
//!
//! Called by [`Xhci::new`](super::Xhci::new). Everything after it uses [`Parameters`] and
//! [`Blocks`], whose values cannot lead outside the register window. Nothing is written here. Read
//! `xHCI 1.2 §5.3` (capability registers) and `§7` (extended capabilities).

use super::regs::{
    BLOCK_OFFSET, Blocks, CAPLENGTH, DOORBELL_STRIDE, EXTENDED, HCCPARAMS1, HCSPARAMS1, HCSPARAMS2,
    PAGESIZE, PROTOCOL_PORTS, PROTOCOL_SLOT, capability, interrupter, operational,
};
use crate::host::{CapabilityField, ControllerFault, PortProtocol, RootPort};
use crate::mmio::{Bus, ReadOnly, Registers};

/// Protocol capabilities that are kept. Chips have one for each of USB 2 and USB 3, some two.
/// Policy: ports of any further ones count as USB 2, which costs them a needless reset.
const PROTOCOLS: usize = 8;

/// The most extended capabilities that are looked at: the list could not hold more, since each
/// link leads forward by a word at least and at most 255 ids exist. Policy.
const EXTENDED_LIMIT: usize = 256;

/// The most bytes of scratchpads that are believed. Policy: more than any pool has, and few enough to be
/// counted in 32 bits; chips want some pages of 4 KiB.
const MOST_SCRATCHPADS: u64 = 1 << 30;

/// Constants of one chip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    /// HCIVERSION, binary coded decimal: 0x0110 is 1.1.
    pub(super) version: u16,
    /// Device slots, 1 to 255.
    pub(super) slots: u8,
    /// Root ports, 1 to 255.
    pub(super) ports: u8,
    /// The event ring has at most so many segments.
    pub(super) event_segments: usize,
    /// Scratchpad pages.
    pub(super) scratchpads: usize,
    /// Bytes of a page, a power of two from 4096 up.
    pub(super) page: usize,
    /// Bytes of a context: 32 or 64.
    pub(super) context: usize,
    /// The highest address that it can form.
    pub(super) address_mask: u64,
    /// Exponent of the largest primary stream array, less one; 0 without streams.
    #[cfg(feature = "uas")]
    pub(super) stream_array: u8,
    /// Port power can be switched.
    pub(super) power_switch: bool,
    /// Byte offset of the legacy support capability.
    pub(super) legacy: Option<usize>,
    pub(super) protocols: [Protocol; PROTOCOLS],
}

/// The ports that speak one protocol (`xHCI 1.2 §7.2`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Protocol {
    /// First port, counted from 0.
    first: u8,
    count: u8,
    protocol: PortProtocol,
    slot_type: u8,
}

impl Protocol {
    const NONE: Self = Self {
        first: 0,
        count: 0,
        protocol: PortProtocol::Usb2,
        slot_type: 0,
    };

    fn covers(&self, port: RootPort) -> bool {
        port.0
            .checked_sub(self.first)
            .is_some_and(|distance| distance < self.count)
    }
}

impl Parameters {
    /// The protocol of a port. Ports that no capability names count as USB 2.
    pub(super) fn port_protocol(&self, port: RootPort) -> PortProtocol {
        self.protocol(port).protocol
    }

    /// What Enable Slot needs to know for a device below this port (`xHCI 1.2 §6.4.3.2`).
    pub(super) fn slot_type(&self, port: RootPort) -> u8 {
        self.protocol(port).slot_type
    }

    #[inline(never)]
    fn protocol(&self, port: RootPort) -> Protocol {
        let covering = self.protocols.iter().find(|entry| entry.covers(port));
        covering.copied().unwrap_or(Protocol::NONE)
    }
}

/// Reads and checks everything.
pub(super) fn probe<B: Bus>(bus: &B) -> Result<(Blocks<B>, Parameters), ControllerFault> {
    let window = Registers::new(bus.clone(), 0);
    let first = window.read(capability::CAPLENGTH);
    if first.get() == u32::MAX {
        return Err(ControllerFault::Absent);
    }
    let params1 = window.read(capability::HCSPARAMS1);
    let slots = params1.read(HCSPARAMS1::MAX_SLOTS) as u8;
    let ports = params1.read(HCSPARAMS1::MAX_PORTS) as u8;
    plausible(slots != 0 && ports != 0, CapabilityField::Ports)?;
    plausible(
        params1.read(HCSPARAMS1::MAX_INTERRUPTERS) != 0,
        CapabilityField::Interrupters,
    )?;
    let version = first.read(CAPLENGTH::HCIVERSION) as u16;
    plausible(version != 0, CapabilityField::Version)?;
    let blocks = blocks(bus, first.read(CAPLENGTH::LENGTH) as usize, slots, ports)?;
    let page = page_size(&blocks.operational)?;
    let params2 = window.read(capability::HCSPARAMS2);
    let features = window.read(capability::HCCPARAMS1);
    let mut parameters = Parameters {
        version,
        slots,
        ports,
        event_segments: 1 << params2.read(HCSPARAMS2::ERST_MAX),
        scratchpads: (params2.read(HCSPARAMS2::MAX_SCRATCHPADS_HIGH) << 5
            | params2.read(HCSPARAMS2::MAX_SCRATCHPADS_LOW)) as usize,
        page,
        context: if features.is_set(HCCPARAMS1::CSZ) {
            64
        } else {
            32
        },
        address_mask: if features.is_set(HCCPARAMS1::AC64) {
            u64::MAX
        } else {
            u64::from(u32::MAX)
        },
        #[cfg(feature = "uas")]
        stream_array: features.read(HCCPARAMS1::MAX_PSA_SIZE) as u8,
        power_switch: features.is_set(HCCPARAMS1::PPC),
        legacy: None,
        protocols: [Protocol::NONE; PROTOCOLS],
    };
    let scratchpads = parameters.scratchpads as u64 * page as u64;
    plausible(scratchpads <= MOST_SCRATCHPADS, CapabilityField::PageSize)?;
    let start = 4 * features.read(HCCPARAMS1::XECP) as usize;
    extended(&window, start, &mut parameters);
    Ok((blocks, parameters))
}

fn plausible(condition: bool, what: CapabilityField) -> Result<(), ControllerFault> {
    if condition {
        Ok(())
    } else {
        Err(ControllerFault::Implausible(what))
    }
}

/// Places the blocks, each wholly inside the window and none over the capability registers.
fn blocks<B: Bus>(
    bus: &B,
    length: usize,
    slots: u8,
    ports: u8,
) -> Result<Blocks<B>, ControllerFault> {
    let window = Registers::new(bus.clone(), 0);
    let offset = |register: ReadOnly<BLOCK_OFFSET::Register>, reserved: u32| {
        (window.read(register).get() & !reserved) as usize
    };
    let doorbells = offset(capability::DBOFF, 0x3);
    let runtime = offset(capability::RTSOFF, 0x1f);
    let inside = |start: usize, bytes: usize| {
        start >= capability::LENGTH && start.saturating_add(bytes) <= bus.length()
    };
    let port_bytes = usize::from(ports) * operational::PORT_STRIDE;
    plausible(
        length.is_multiple_of(4) && inside(length, operational::PORTSC.offset() + port_bytes),
        CapabilityField::Length,
    )?;
    plausible(
        inside(doorbells, (usize::from(slots) + 1) * DOORBELL_STRIDE),
        CapabilityField::Doorbells,
    )?;
    plausible(
        inside(runtime, interrupter::LENGTH),
        CapabilityField::Runtime,
    )?;
    Ok(Blocks {
        operational: Registers::new(bus.clone(), length),
        runtime: Registers::new(bus.clone(), runtime),
        doorbell: Registers::new(bus.clone(), doorbells),
        capability: window,
    })
}

/// The smallest page that the chip offers (`xHCI 1.2 §5.4.3`).
fn page_size<B: Bus>(registers: &Registers<B>) -> Result<usize, ControllerFault> {
    let sizes = registers.read(operational::PAGESIZE).read(PAGESIZE::SIZES);
    plausible(sizes != 0 && sizes != 0xffff, CapabilityField::PageSize)?;
    Ok(1 << (12 + sizes.trailing_zeros()))
}

/// Walks the extended capabilities. Links only lead forward, so the walk ends with the window.
fn extended<B: Bus>(window: &Registers<B>, start: usize, parameters: &mut Parameters) {
    let mut offset = start;
    for _ in 0..EXTENDED_LIMIT {
        let end = offset.saturating_add(16);
        if offset < capability::LENGTH || end > window.bus().length() {
            return;
        }
        let head = window.read(ReadOnly::<EXTENDED::Register>::at(offset));
        if head.get() == u32::MAX {
            return;
        }
        match head.read(EXTENDED::ID) {
            1 => parameters.legacy = parameters.legacy.or(Some(offset)),
            2 => protocol(window, offset, head.read(EXTENDED::MAJOR), parameters),
            _ => {}
        }
        match head.read(EXTENDED::NEXT) as usize {
            0 => return,
            next => offset += 4 * next,
        }
    }
}

/// Takes over a supported protocol capability at `offset`, cut to the ports that exist.
fn protocol<B: Bus>(window: &Registers<B>, offset: usize, major: u32, into: &mut Parameters) {
    let block = Registers::new(window.bus().clone(), offset);
    let name = block.read(ReadOnly::<BLOCK_OFFSET::Register>::at(4)).get();
    let protocol = match major {
        2 => PortProtocol::Usb2,
        3 => PortProtocol::Usb3,
        _ => return,
    };
    let ports = block.read(capability::PROTOCOL_PORTS);
    let slot = block.read(capability::PROTOCOL_SLOT);
    let Some(first) = (ports.read(PROTOCOL_PORTS::FIRST) as u8).checked_sub(1) else {
        return;
    };
    let count = ports.read(PROTOCOL_PORTS::COUNT) as u8;
    let free = into.protocols.iter_mut().find(|entry| entry.count == 0);
    if let (Some(entry), capability::PROTOCOL_NAME) = (free, name) {
        *entry = Protocol {
            first,
            count: count.min(into.ports.saturating_sub(first)),
            protocol,
            slot_type: slot.read(PROTOCOL_SLOT::TYPE) as u8,
        };
    }
}

#[cfg(test)]
#[path = "capability_tests.rs"]
mod tests;
