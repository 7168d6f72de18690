//! An EHCI's hand-off from firmware: its semaphore is in configuration space, not in its registers.
//!
//! Who calls it: the board's `main`, before the driver starts. Boards without firmware that uses
//! USB find no capability, or nobody owning it. Read first: EHCI 1.0 §2.1.7, §2.1.8, §5.1.

use rootport::mmio::Bus;
use tock_registers::{LocalRegisterCopy, register_bitfields};

use super::config::ConfigSpace;
use super::function::Function;

register_bitfields! {u32,
    /// EHCI 1.0 §2.2.4.
    CapabilityParameters [
        EXTENDED OFFSET(8) NUMBITS(8) [],
    ],
    /// EHCI 1.0 §2.1.7.
    LegacySupport [
        ID OFFSET(0) NUMBITS(8) [],
        NEXT OFFSET(8) NUMBITS(8) [],
        FIRMWARE_OWNS OFFSET(16) NUMBITS(1) [],
        SYSTEM_OWNS OFFSET(24) NUMBITS(1) [],
    ],
}

/// HCCPARAMS in the capability registers.
const CAPABILITY_PARAMETERS: usize = 0x08;
/// Capabilities below this would lie in the header (EHCI 1.0 §2.2.4).
const FIRST_CAPABILITY: u32 = 0x40;
/// Id of the hand-off capability.
const LEGACY_SUPPORT: u32 = 1;
/// Policy: configuration space has room for no more.
const MOST_CAPABILITIES: usize = 48;
/// Policy, in microseconds: firmware answers within milliseconds; after a second it never will.
const PATIENCE: u64 = 1_000_000;

/// How an EHCI came to be ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handoff {
    /// Nobody had it.
    Free,
    /// Firmware had it and gave it up.
    Given,
    /// Firmware did not answer; it was taken, and its interrupts into firmware are off.
    Taken,
}

/// Takes the EHCI with these registers from firmware. `clock` tells microseconds.
pub fn take<C: ConfigSpace>(
    function: &Function<C>,
    registers: &impl Bus,
    clock: impl Fn() -> u64,
) -> Handoff {
    let Some(place) = find(function, registers) else {
        return Handoff::Free;
    };
    let semaphore = read(function, place);
    if !semaphore.is_set(LegacySupport::FIRMWARE_OWNS) {
        return Handoff::Free;
    }
    function.write(
        place,
        semaphore.get() | LegacySupport::SYSTEM_OWNS::SET.value,
    );
    let deadline = clock().saturating_add(PATIENCE);
    while clock() < deadline {
        if !read(function, place).is_set(LegacySupport::FIRMWARE_OWNS) {
            return Handoff::Given;
        }
        core::hint::spin_loop();
    }
    function.write(place, LegacySupport::SYSTEM_OWNS::SET.value);
    // The control word behind it: all system management interrupts off.
    function.write(place + 4, 0);
    Handoff::Taken
}

/// Where the hand-off capability is.
fn find<C: ConfigSpace>(function: &Function<C>, registers: &impl Bus) -> Option<u16> {
    let parameters = registers.read32(CAPABILITY_PARAMETERS);
    let mut next = LocalRegisterCopy::<u32, CapabilityParameters::Register>::new(parameters)
        .read(CapabilityParameters::EXTENDED);
    for _ in 0..MOST_CAPABILITIES {
        if next < FIRST_CAPABILITY {
            return None;
        }
        let place = (next & !3) as u16;
        let capability = read(function, place);
        if capability.read(LegacySupport::ID) == LEGACY_SUPPORT {
            return Some(place);
        }
        next = capability.read(LegacySupport::NEXT);
    }
    None
}

fn read<C: ConfigSpace>(
    function: &Function<C>,
    place: u16,
) -> LocalRegisterCopy<u32, LegacySupport::Register> {
    LocalRegisterCopy::new(function.read(place))
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use rootport::mmio::Bus;

    use super::{Handoff, take};
    use crate::pcie::config::Address;
    use crate::pcie::fake::FakeBus;
    use crate::pcie::function::Function;

    const EHCI: Address = Address {
        device: 3,
        function: 0,
    };
    const PLACE: u16 = 0x68;
    const FIRMWARE: u32 = 1 << 16;
    const SYSTEM: u32 = 1 << 24;

    /// Registers that hold HCCPARAMS and nothing else.
    #[derive(Clone)]
    struct Registers(u32);

    impl Bus for Registers {
        fn length(&self) -> usize {
            0x100
        }
        fn read8(&self, _: usize) -> u8 {
            0
        }
        fn read16(&self, _: usize) -> u16 {
            0
        }
        fn read32(&self, offset: usize) -> u32 {
            if offset == 8 { self.0 } else { 0 }
        }
        fn write8(&self, _: usize, _: u8) {}
        fn write16(&self, _: usize, _: u16) {}
        fn write32(&self, _: usize, _: u32) {}
    }

    fn handoff(bus: &FakeBus, parameters: u32, clock: impl Fn() -> u64) -> Handoff {
        let function = Function::probe(bus, EHCI).unwrap();
        take(&function, &Registers(parameters), clock)
    }

    fn bus(semaphore: u32) -> FakeBus {
        let bus = FakeBus::new().with(EHCI, 0x0c_0320);
        bus.set(EHCI, PLACE, semaphore);
        bus
    }

    fn ticking() -> impl Fn() -> u64 {
        let time = Cell::new(0);
        move || time.replace(time.get() + 1_000)
    }

    #[test]
    fn a_controller_without_the_capability_is_free() {
        assert_eq!(handoff(&bus(FIRMWARE | 1), 0, ticking()), Handoff::Free);
    }

    #[test]
    fn a_controller_that_nobody_owns_is_free() {
        assert_eq!(handoff(&bus(1), 0x6800, ticking()), Handoff::Free);
    }

    #[test]
    fn firmware_that_answers_gives_it_up() {
        let bus = bus(FIRMWARE | 1);
        // Firmware answers at the second look at the clock.
        let clock = ticking();
        let result = handoff(&bus, 0x6800, || {
            if bus.word(EHCI, PLACE) & SYSTEM != 0 {
                bus.set(EHCI, PLACE, SYSTEM | 1);
            }
            clock()
        });
        assert_eq!(result, Handoff::Given);
    }

    #[test]
    fn firmware_that_does_not_answer_loses_it_and_its_interrupts() {
        let bus = bus(FIRMWARE | 1);
        bus.set(EHCI, PLACE + 4, 0xe03f);
        assert_eq!(handoff(&bus, 0x6800, ticking()), Handoff::Taken);
        assert_eq!(bus.word(EHCI, PLACE) & (FIRMWARE | SYSTEM), SYSTEM);
        assert_eq!(bus.word(EHCI, PLACE + 4), 0);
    }

    #[test]
    fn a_chain_that_bites_its_tail_ends() {
        let bus = bus(0x6802);
        assert_eq!(handoff(&bus, 0x6800, ticking()), Handoff::Free);
    }
}
