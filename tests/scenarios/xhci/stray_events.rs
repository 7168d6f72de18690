//! Events that nothing caused: null pointers, slots that have gone, the wrong ring. Each is counted
//! and ignored, and the work goes on.

use rootport::block::queue::Operation;
use rootport::block::{BlockDevice, Lba};
use rootport::dma::DmaBuffer;
use rootport::host::Controller;
use rootport::platform::ControllerId;
use rootport::time::Duration;
use rootport_models::device::MILLISECOND;
use rootport_models::device::field::good_stick;
use rootport_models::device::scsi::pattern;
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
    while rig.age() < Duration::from_millis(560) {
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

/// A read that ends while so many other events have come at once, and nobody looks. Whether the
/// controller said that its event ring was full.
fn read_behind(strays: usize) -> bool {
    const MFINDEX_WRAP: u32 = 39;
    let mut faults = Faults::none();
    let stray = event(0, 1, MFINDEX_WRAP, 0, 0);
    faults.stray_events = vec![(1_000 * MILLISECOND, stray); strays];
    let mut rig = Rig::faulty(Options::default(), Traits::default(), faults);
    let disk = rig.disk(HIGH_PORT, good_stick());
    let left = 999_000 - rig.age().as_micros();
    rig.run(Duration::from_micros(left));
    assert!(rig.age() < Duration::from_millis(1_000));
    let buffer = DmaBuffer::from_static(vec![0; 4096].leak());
    let read = Operation::Read(Lba(9));
    rig.host
        .submit(disk, read, Some(buffer))
        .expect("there is a slot");
    rig.machine.advance(100 * MILLISECOND);
    rig.run(Duration::from_secs(1));
    let completion = rig.host.take_completion().expect("it has ended");
    assert_eq!(completion.result, Ok(()), "behind {strays} events");
    let wanted: Vec<u8> = (9..17).flat_map(|lba| pattern(lba, 512)).collect();
    let buffer = completion.buffer.expect("it comes back");
    assert!(buffer.as_slice() == &wanted[..]);
    rig.check(disk, 40, 8);
    match rig.host.controller_mut(ControllerId(0)) {
        Some(Controller::Xhci(driver)) => driver.statistics().event_ring_full != 0,
        _ => panic!("there is an xHCI"),
    }
}

#[test]
fn case_34_an_event_ring_that_is_exactly_full_costs_no_event() {
    assert!(!read_behind(1));
    // Around every length that the ring may have: one block less, all of them, and more.
    let mut was_full = 0;
    for length in [128, 192, 256, 320, 384, 512] {
        for strays in length - 3..=length + 2 {
            was_full += usize::from(read_behind(strays));
        }
    }
    assert!(was_full > 6, "{was_full}");
}
