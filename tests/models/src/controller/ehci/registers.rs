//! The register map: where each register lies, how wide it is, and which may be written when
//! (EHCI 1.0 §2.2, §2.3).

use super::{Death, Ehci};
use crate::broken::{broken, require};
use crate::controller::{Surroundings, Width};

const USBCMD: usize = 0x00;
const USBSTS: usize = 0x04;
const USBINTR: usize = 0x08;
const FRINDEX: usize = 0x0c;
const CTRLDSSEGMENT: usize = 0x10;
const PERIODICLISTBASE: usize = 0x14;
const ASYNCLISTADDR: usize = 0x18;
const CONFIGFLAG: usize = 0x40;
const PORTSC: usize = 0x44;

/// What lies at an offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Capability(usize),
    Operational(usize),
    Port(usize),
    Nothing,
}

impl Ehci {
    fn place(&self, offset: usize) -> Place {
        let operational = usize::from(self.traits.capability_length);
        match offset.checked_sub(operational) {
            None => Place::Capability(offset),
            Some(local @ (USBCMD..=ASYNCLISTADDR | CONFIGFLAG)) => Place::Operational(local),
            Some(local) if local >= PORTSC && (local - PORTSC) / 4 < self.ports.len() => {
                Place::Port((local - PORTSC) / 4)
            }
            Some(_) => Place::Nothing,
        }
    }

    pub(super) fn read_register(
        &mut self,
        around: &mut Surroundings<'_>,
        offset: usize,
        width: Width,
    ) -> u32 {
        let ones = u32::MAX >> (32 - 8 * width.bytes());
        if self.death == Some(Death::AllOnes) {
            return ones;
        }
        let place = self.place(offset & !3);
        check_width(place, offset, width);
        let word = match place {
            Place::Capability(local) => self.read_capability(local),
            Place::Operational(USBCMD) => self.read_command(),
            Place::Operational(USBSTS) => self.read_status(around),
            Place::Operational(USBINTR) => self.interrupts.enabled,
            Place::Operational(FRINDEX) => self.operational.frame_index(around.now),
            Place::Operational(CTRLDSSEGMENT) => self.operational.segment,
            Place::Operational(PERIODICLISTBASE) => self.operational.periodic_base,
            Place::Operational(ASYNCLISTADDR) => self.operational.async_address,
            Place::Operational(_) => u32::from(self.operational.configured),
            Place::Port(index) => self.ports[index].read(),
            Place::Nothing => 0,
        };
        (word >> (8 * (offset % 4))) & ones
    }

    fn read_capability(&self, local: usize) -> u32 {
        match local {
            0x00 => u32::from(self.traits.capability_length) | u32::from(self.traits.version) << 16,
            0x04 => self.traits.structural_parameters(),
            0x08 => self.traits.capability_parameters(),
            _ => 0,
        }
    }

    pub(super) fn write_register(
        &mut self,
        around: &mut Surroundings<'_>,
        offset: usize,
        width: Width,
        value: u32,
    ) {
        if self.death == Some(Death::AllOnes) {
            return;
        }
        let place = self.place(offset & !3);
        check_width(place, offset, width);
        require!(
            !self.operational.is_resetting(),
            "EHCI 1.0 §2.3.1",
            "a register was written before HCRESET had cleared: {place:?}"
        );
        match place {
            Place::Operational(USBCMD) => self.write_command(around, value),
            Place::Operational(USBSTS) => self.write_status(around, value),
            Place::Operational(USBINTR) => self.write_enables(value),
            Place::Operational(FRINDEX) => self.write_frame_index(value),
            Place::Operational(CTRLDSSEGMENT) => self.write_segment(value),
            Place::Operational(PERIODICLISTBASE) => self.write_periodic_base(value),
            Place::Operational(ASYNCLISTADDR) => self.write_async_address(value),
            Place::Operational(_) => self.write_configured(around, value),
            Place::Port(index) => self.write_port(around, index, value),
            Place::Capability(_) => {
                broken!(
                    "EHCI 1.0 §2.2",
                    "capability registers are read-only ({offset:#x})"
                )
            }
            Place::Nothing => {
                broken!(
                    "EHCI 1.0 §2.3",
                    "{value:#x} was written to {offset:#x}: no register"
                )
            }
        }
    }
}

/// §2.2: CAPLENGTH has 8 bits, HCIVERSION 16, and both may be read as one word with what lies between
/// them. §2.3: operational registers are words.
fn check_width(place: Place, offset: usize, width: Width) {
    let narrow = matches!(
        (place, offset % 4, width),
        (Place::Capability(0), 0, Width::Byte) | (Place::Capability(0), 2, Width::Half)
    );
    let whole = width == Width::Word && offset.is_multiple_of(4);
    match place {
        Place::Capability(_) => require!(
            narrow || whole,
            "EHCI 1.0 §2.2",
            "an access of {} bytes to the capability register at {offset:#x}",
            width.bytes()
        ),
        _ => require!(
            whole,
            "EHCI 1.0 §2.3",
            "an access of {} bytes to the operational register at {offset:#x}",
            width.bytes()
        ),
    }
}
