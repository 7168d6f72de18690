//! An xHCI under the scenarios, and what is about xHCI alone: commands, event rings, SuperSpeed,
//! streams.

mod codes;
mod commands;
mod costs;
mod full_speed;
mod hangs;
mod interrupts;
mod shapes;
mod stray_events;
mod streams;
mod super_speed;

use rootport::host::xhci::{Interrupts, Xhci, XhciMemory};
use rootport::host::{Controller, ControllerFault};
use rootport_models::adapter::ModelPlatform;
use rootport_models::controller::xhci::{
    AfterShort, CompletionFault, IdleStop, Signal, StreamStop,
};
use rootport_models::device::Link;
use rootport_models::machine::Machine;

use crate::rig::ModelController;

pub(crate) use rootport::host::xhci::Options as Driver;
pub(crate) use rootport_models::controller::xhci::{Death, Faults, Traits};

/// What a transfer may be made to end with.
pub(crate) type TransferFault = CompletionFault;

/// The links of its ports, the slowest first.
pub(crate) const LINKS: &[Link] = &[Link::High, Link::Super];

/// A transfer that never ends.
pub(crate) const NEVER_ENDS: TransferFault = CompletionFault::Never;

/// Errors that halt an endpoint (xHCI 1.2 table 6-90): babble, transaction error, stall.
pub(crate) const HALTING: &[TransferFault] = &[
    CompletionFault::Code(3),
    CompletionFault::Code(4),
    CompletionFault::Code(6),
];

/// Codes that a transfer may end with (xHCI 1.2 table 6-90): data buffer error, babble, transaction
/// error, TRB error, stall, split error, and a vendor's own.
pub(crate) const BAD_ENDS: &[TransferFault] = &[
    CompletionFault::Code(2),
    CompletionFault::Code(3),
    CompletionFault::Code(4),
    CompletionFault::Code(5),
    CompletionFault::Code(6),
    CompletionFault::Code(36),
    CompletionFault::Code(200),
];

/// Ways to die that a start of the controller mends.
pub(crate) const MENDABLE: &[Death] = &[
    Death::HostSystemError,
    Death::ControllerError,
    Death::Silent,
];

/// The usual controller: two USB 2 ports, then two SuperSpeed ports.
pub(crate) fn usual() -> Traits {
    Traits::default()
}

/// The same controller in another shape for each number: what a driver must read from the chip, and
/// what chips do each in their own way. What a test relies on stays: its ports, the width of its
/// addresses, how it interrupts.
pub(crate) fn shaped(traits: Traits, number: u64) -> Traits {
    let bit = |index: u64| number >> index & 1 == 1;
    let third = number as usize % 3;
    Traits {
        large_contexts: bit(0),
        no_dequeue_at_link: bit(1),
        fetches: bit(1).then_some(4),
        port_power_control: bit(2),
        speed_after_reset: bit(3),
        slot_types: if bit(0) { [0, 3] } else { [0, 0] },
        scratchpads: [0, 2, 5][third],
        capability_length: [0x20, 0x40, 0x80][third],
        event_segments_log2: [0, 1, 4][third],
        idle_stop: [IdleStop::Silent, IdleStop::Event, IdleStop::Either][third],
        after_short: AFTER_SHORT[number as usize / 3 % 3],
        stream_stop: STREAM_STOPS[number as usize / 3 % 3],
        ..traits
    }
}

const AFTER_SHORT: [AfterShort; 3] = [
    AfterShort::ShortAgain,
    AfterShort::Success,
    AfterShort::Nothing,
];

const STREAM_STOPS: [StreamStop; 3] = [
    StreamStop::Moving,
    StreamStop::EachWithWork,
    StreamStop::NullPointers,
];

/// One whose addresses have 32 bits.
pub(crate) fn addresses_32() -> Traits {
    Traits::addresses_32()
}

/// One whose addresses have 64 bits.
pub(crate) fn addresses_64() -> Traits {
    Traits::default()
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
    let kinds = [
        (Interrupts::Wired, Signal::Wired),
        (Interrupts::Message, Signal::Message),
    ];
    kinds.map(interrupting_by).to_vec()
}

fn interrupting_by((interrupts, signal): (Interrupts, Signal)) -> (Traits, Driver) {
    let traits = Traits {
        signal,
        ..Traits::default()
    };
    let driver = Driver {
        interrupts,
        ..Driver::default()
    };
    (traits, driver)
}

/// Puts a controller into the machine; its index.
pub(crate) fn add(machine: &Machine, traits: Traits, faults: Faults) -> usize {
    machine.add_faulty_xhci(traits, faults)
}

/// Puts a controller into the machine that runs as a boot loader has left it; its index.
pub(crate) fn add_running(machine: &Machine, faults: Faults) -> usize {
    let traits = Traits {
        running_at_start: true,
        ..usual()
    };
    add(machine, traits, faults)
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
    let memory: &'static mut XhciMemory<8, 32, 64> = Box::leak(Box::new(XhciMemory::new()));
    let xhci = Xhci::new(platform.bus(index), index as u8, memory.slices(), driver)?;
    if driver.interrupts != Interrupts::Polled {
        let half = xhci.interrupt_half();
        machine.on_interrupt(index, move || {
            half.acknowledge();
        });
    }
    Ok(Controller::Xhci(xhci))
}
