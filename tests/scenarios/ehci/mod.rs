//! An EHCI under the scenarios, and what is about EHCI alone: the doorbell, companions, a schedule
//! that a boot loader has left.

mod companion;
mod costs;
mod doorbell;
mod errors;
mod left_running;
mod shapes;

use rootport::host::ehci::{Ehci, EhciMemory, Interrupts};
use rootport::host::{Controller, ControllerFault};
use rootport_models::adapter::ModelPlatform;
use rootport_models::device::{Link, MICROSECOND};
use rootport_models::machine::Machine;

use crate::rig::ModelController;

pub(crate) use rootport::host::ehci::Options as Driver;
pub(crate) use rootport_models::controller::ehci::{Death, Faults, Traits, TransferFault};

/// The links of its ports.
pub(crate) const LINKS: &[Link] = &[Link::High];

/// A transfer that never ends.
pub(crate) const NEVER_ENDS: TransferFault = TransferFault::Never;

/// Errors that halt a queue (EHCI 1.0 §4.10.3, §4.15.1): babble, transaction error, stall.
pub(crate) const HALTING: &[TransferFault] = &[
    TransferFault::Babble,
    TransferFault::Transaction,
    TransferFault::Stall,
];

/// Everything that a transfer may end badly with.
pub(crate) const BAD_ENDS: &[TransferFault] = &[
    TransferFault::DataBuffer,
    TransferFault::Babble,
    TransferFault::Transaction,
    TransferFault::Stall,
];

/// Ways to die that a start of the controller mends.
pub(crate) const MENDABLE: &[Death] = &[Death::HostSystemError, Death::Silent];

/// The usual controller: four ports.
pub(crate) fn usual() -> Traits {
    Traits {
        ports: 4,
        ..Traits::default()
    }
}

/// The same controller in another shape for each number: what a driver must read from the chip, and
/// how long a chip takes. What a test relies on stays: its ports and the width of its addresses.
pub(crate) fn shaped(traits: Traits, number: u64) -> Traits {
    let bit = |index: u64| number >> index & 1 == 1;
    let third = number as usize % 3;
    Traits {
        park: bit(0),
        programmable_frame_list: bit(1),
        port_power_control: bit(2),
        companions: [1, 0, 3][third],
        capability_length: [0x20, 0x10, 0x40][third],
        isochronous_threshold: [1, 7, 8][third],
        halt_time: [300, 1_900, 10][third] * MICROSECOND,
        follow_time: [200, 2_000, 10][third] * MICROSECOND,
        advance_time: [250, 2_000, 10][third] * MICROSECOND,
        ..traits
    }
}

/// One whose addresses have 32 bits.
pub(crate) fn addresses_32() -> Traits {
    usual()
}

/// One whose addresses have 64 bits.
pub(crate) fn addresses_64() -> Traits {
    Traits {
        addresses_64: true,
        ..usual()
    }
}

/// One that can switch the power of each port.
pub(crate) fn switching_power() -> Traits {
    Traits {
        port_power_control: true,
        ..usual()
    }
}

/// Over-current on a port, between two moments in nanoseconds: its power is gone.
pub(crate) fn over_current(port: usize, from: u64, to: u64) -> Faults {
    let mut faults = Faults::none();
    faults.over_current.push((port, from, to));
    faults
}

/// All ways to be interrupted, as the hardware and as the driver have it.
pub(crate) fn interrupting() -> Vec<(Traits, Driver)> {
    let driver = Driver {
        interrupts: Interrupts::Wired,
        ..Driver::default()
    };
    vec![(usual(), driver)]
}

/// Puts a controller into the machine; its index.
pub(crate) fn add(machine: &Machine, traits: Traits, faults: Faults) -> usize {
    machine.add_faulty_ehci(traits, faults)
}

/// Puts a controller into the machine that runs as a boot loader has left it; its index.
pub(crate) fn add_running(machine: &Machine, faults: Faults) -> usize {
    machine.add_ehci_left_running(usual(), faults).0
}

/// The driver of a controller, with its interrupt half in the machine's table.
pub(crate) fn drive(
    machine: &Machine,
    platform: &ModelPlatform,
    index: usize,
    driver: Driver,
) -> ModelController {
    try_drive(machine, platform, index, driver).expect("the model is a plausible controller")
}

/// The same for a controller whose driver may refuse it.
pub(crate) fn try_drive(
    machine: &Machine,
    platform: &ModelPlatform,
    index: usize,
    driver: Driver,
) -> Result<ModelController, ControllerFault> {
    let memory: &'static mut EhciMemory<8, 32, 64> = Box::leak(Box::new(EhciMemory::new()));
    let ehci = Ehci::new(platform.bus(index), index as u8, memory.slices(), driver)?;
    if driver.interrupts != Interrupts::Polled {
        let half = ehci.interrupt_half();
        machine.on_interrupt(index, move || {
            half.acknowledge();
        });
    }
    Ok(Controller::Ehci(ehci))
}
