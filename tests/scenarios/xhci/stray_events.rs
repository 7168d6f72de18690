//! Events that nothing caused: null pointers, slots that have gone, the wrong ring. Each is counted
//! and ignored, and the work goes on.

use rootport::block::{BlockDevice, Lba};
use rootport_models::device::MILLISECOND;
use rootport_models::device::field::good_stick;
use rootport_models::machine::Options;

use super::{Faults, Traits};
use crate::rig::{HIGH_PORT, Rig};

/// An event's words from its pointer, code, kind, slot and endpoint (xHCI 1.2 §6.4.2).
fn event(pointer: u64, code: u32, kind: u32, slot: u32, endpoint: u32) -> [u32; 4] {
    let place = slot << 24 | endpoint << 16 | kind << 10;
    [pointer as u32, (pointer >> 32) as u32, code << 24, place]
}

#[test]
fn events_of_every_kind_that_fit_nothing_are_ignored() {
    const TRANSFER: u32 = 32;
    const COMMAND: u32 = 33;
    let mut strays = Vec::new();
    for pointer in [0, 0x10, 0x4800_0000, 0x4800_1230, u64::MAX << 4] {
        for code in [1, 4, 6, 13, 26, 27, 28, 200] {
            for (slot, endpoint) in [(0, 0), (1, 1), (1, 3), (1, 31), (7, 4), (255, 31)] {
                strays.push(event(pointer, code, TRANSFER, slot, endpoint));
            }
            strays.push(event(pointer, code, COMMAND, 1, 0));
        }
    }
    // Device notification, bandwidth request, doorbell, host controller, MFINDEX wrap, vendor's own.
    for kind in [35, 36, 37, 38, 39, 48, 63] {
        strays.push(event(0, 1, kind, 1, 0));
    }
    let mut faults = Faults::none();
    faults.stray_events = strays
        .iter()
        .enumerate()
        .map(|(index, words)| (500 * MILLISECOND + index as u64 * 100_000, *words))
        .collect();
    let mut rig = Rig::faulty(Options::default(), Traits::default(), faults);
    let disk = rig.disk(HIGH_PORT, good_stick());
    let mut buffer = rig.machine.buffer(64 * 1024, 0);
    while rig.age() < rootport::time::Duration::from_millis(560) {
        rig.host.disk(disk).read(Lba(0), &mut buffer).unwrap();
        rig.check(disk, 9, 3);
    }
}

#[test]
fn port_events_of_ports_that_do_not_exist_are_ignored() {
    let mut faults = Faults::none();
    for (index, port) in [0_u32, 5, 100, 255].into_iter().enumerate() {
        let words = [port << 24, 0, 1 << 24, 34 << 10];
        faults
            .stray_events
            .push((500 * MILLISECOND + index as u64 * 100_000, words));
    }
    let mut rig = Rig::faulty(Options::default(), Traits::default(), faults);
    let disk = rig.disk(HIGH_PORT, good_stick());
    rig.run(rootport::time::Duration::from_secs(1));
    rig.check(disk, 0, 8);
}
