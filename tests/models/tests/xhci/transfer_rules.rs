//! TDs: what no driver may queue, and doorbells that nothing answers.

use rootport_models::controller::xhci::{Faults, Traits};
use rootport_models::device::MILLISECOND;

use crate::raw::{
    CHAIN, DATA, IN, IOC, ISP, NORMAL, Raw, SETUP, STATUS, breaks, configured, with_disks,
};

const GET_DESCRIPTOR: [u8; 8] = [0x80, 6, 0, 1, 0, 0, 18, 0];
const SET_CONFIGURATION: [u8; 8] = [0, 9, 1, 0, 0, 0, 0, 0];

/// Rings endpoint 0 and lets the controller work.
#[track_caller]
fn control_breaks(section: &str, queue: impl FnOnce(&mut Raw, u32)) {
    let (mut raw, slot) = configured(0);
    breaks(section, || {
        queue(&mut raw, slot);
        raw.kick(slot, 1);
        raw.machine.advance(10 * MILLISECOND);
    });
}

#[test]
fn a_setup_stage_has_eight_immediate_bytes() {
    control_breaks("xHCI 1.2 §6.4.1.2.1", |raw, slot| {
        raw.push(slot, 1, [0x0001_0900, 0, 8, SETUP << 10]);
    });
    control_breaks("xHCI 1.2 §6.4.1.2.1", |raw, slot| {
        raw.push(slot, 1, [0x0001_0900, 0, 7, SETUP << 10 | 1 << 6]);
    });
}

#[test]
fn the_transfer_type_fits_the_request() {
    control_breaks("xHCI 1.2 §6.4.1.2.1", |raw, slot| {
        raw.push_setup(slot, GET_DESCRIPTOR, 2)
    });
    control_breaks("xHCI 1.2 §6.4.1.2.1", |raw, slot| {
        raw.push_setup(slot, SET_CONFIGURATION, 3)
    });
}

#[test]
fn set_address_is_not_sent_on_the_ring() {
    control_breaks("xHCI 1.2 §4.6.5", |raw, slot| {
        raw.push_setup(slot, [0, 5, 9, 0, 0, 0, 0, 0], 0);
    });
}

#[test]
fn the_stages_come_in_order() {
    control_breaks("xHCI 1.2 §4.11.2.2", |raw, slot| {
        raw.push(slot, 1, [0, 0, 0, IN | STATUS << 10 | IOC]);
    });
    control_breaks("xHCI 1.2 §4.11.2.2", |raw, slot| {
        raw.push_setup(slot, GET_DESCRIPTOR, 3);
        raw.push(slot, 1, [0, 0, 0, STATUS << 10 | IOC]);
    });
    control_breaks("xHCI 1.2 §4.11.2.2", |raw, slot| {
        raw.push_setup(slot, SET_CONFIGURATION, 0);
        raw.push_setup(slot, SET_CONFIGURATION, 0);
    });
    control_breaks("xHCI 1.2 §4.11.2.2", |raw, slot| {
        raw.push_setup(slot, SET_CONFIGURATION, 0);
        let data = raw.machine.coherent(64);
        raw.push(
            slot,
            1,
            [data as u32, (data >> 32) as u32, 18, IN | DATA << 10],
        );
    });
}

#[test]
fn the_data_stage_fits_its_request() {
    control_breaks("xHCI 1.2 §6.4.1.2.2", |raw, slot| {
        let data = raw.machine.coherent(64);
        raw.push_setup(slot, GET_DESCRIPTOR, 3);
        raw.push(slot, 1, [data as u32, (data >> 32) as u32, 18, DATA << 10]);
    });
    control_breaks("xHCI 1.2 §4.11.2.2", |raw, slot| {
        let data = raw.machine.coherent(64);
        raw.push_setup(slot, GET_DESCRIPTOR, 3);
        raw.push(
            slot,
            1,
            [data as u32, (data >> 32) as u32, 64, IN | DATA << 10],
        );
    });
}

#[test]
fn the_status_stage_goes_the_other_way() {
    control_breaks("xHCI 1.2 §4.11.2.2", |raw, slot| {
        raw.push_setup(slot, SET_CONFIGURATION, 0);
        raw.push(slot, 1, [0, 0, 0, STATUS << 10 | IOC]);
    });
}

#[track_caller]
fn bulk_breaks(section: &str, index: u32, queue: impl FnOnce(&mut Raw, u32)) {
    let (mut raw, slot) = configured(0);
    breaks(section, || {
        queue(&mut raw, slot);
        raw.kick(slot, index);
        raw.machine.advance(10 * MILLISECOND);
    });
}

#[test]
fn a_buffer_does_not_cross_64_kib() {
    bulk_breaks("xHCI 1.2 table 6-1", 3, |raw, slot| {
        let memory = raw.machine.coherent(0x2_0000);
        let boundary = (memory + 512).next_multiple_of(0x1_0000);
        raw.push_normal(slot, 3, boundary - 512, 1024, IOC);
    });
}

#[test]
fn a_trb_has_at_most_64_kib() {
    bulk_breaks("xHCI 1.2 §6.4.1.1", 3, |raw, slot| {
        let memory = raw.machine.coherent(0x2_0000);
        raw.push_normal(slot, 3, memory, 0x1_0001, IOC);
    });
}

#[test]
fn the_interrupter_exists() {
    bulk_breaks("xHCI 1.2 §6.4.1", 3, |raw, slot| {
        let memory = raw.machine.coherent(512);
        raw.push_normal(slot, 3, memory, 512 | 8 << 22, IOC);
    });
}

/// Hands over a TD of two TRBs, the first one last.
fn push_pair(raw: &mut Raw, slot: u32, first: [u32; 2], second: [u32; 2]) {
    let data = raw.machine.coherent(8192);
    let at = raw.rings[&(slot, 3)].place();
    let low = data as u32;
    raw.machine.store(
        at + 16,
        &[low + 4096, 0, second[0], NORMAL << 10 | IOC | second[1] | 1],
    );
    raw.machine.store(at, &[low, 0, first[0]]);
    raw.machine.release();
    raw.machine
        .store(at + 12, &[NORMAL << 10 | CHAIN | first[1] | 1]);
    raw.machine.release();
}

#[test]
fn td_size_counts_the_packets_that_remain() {
    bulk_breaks("xHCI 1.2 §4.11.2.4", 3, |raw, slot| {
        push_pair(raw, slot, [1024, 0], [1024, 0]);
    });
    bulk_breaks("xHCI 1.2 §4.11.2.4", 3, |raw, slot| {
        push_pair(raw, slot, [1024 | 2 << 17, 0], [1024 | 1 << 17, 0]);
    });
}

#[test]
fn a_right_td_size_is_taken() {
    let (mut raw, slot) = configured(0);
    push_pair(&mut raw, slot, [1024 | 2 << 17, 0], [1024, 0]);
    raw.kick(slot, 3);
    raw.machine.advance(10 * MILLISECOND);
}

#[test]
fn before_version_1_td_size_counts_kib() {
    let traits = Traits {
        version: 0x0096,
        ..Traits::default()
    };
    let mut raw = with_disks(traits, Faults::none());
    let slot = raw.address(0);
    raw.configure_bulk(slot, 0);
    push_pair(&mut raw, slot, [1024 | 2 << 17, 0], [1024 | 1 << 17, 0]);
    raw.kick(slot, 3);
    raw.machine.advance(10 * MILLISECOND);
}

/// Hands over a TD of these pieces, the first one last, with a TD Size that is right.
fn push_pieces(raw: &mut Raw, slot: u32, lengths: &[u32]) {
    let data = raw.machine.coherent(8192) as u32;
    let ring = raw.rings[&(slot, 3)].place();
    for (index, length) in lengths.iter().enumerate().rev() {
        let behind: u32 = lengths[index + 1..].iter().sum();
        let end = if behind == 0 { IOC } else { CHAIN };
        let at = ring + 16 * index as u64;
        let size = length | behind.div_ceil(512) << 17;
        raw.machine.store(at, &[data + 512 * index as u32, 0, size]);
        raw.machine.release();
        raw.machine.store(at + 12, &[NORMAL << 10 | end | 1]);
        raw.machine.release();
    }
}

#[test]
fn a_controller_that_fetches_few_trbs_wants_a_packet_or_an_end_among_them() {
    let traits = Traits {
        fetches: Some(4),
        ..Traits::default()
    };
    let queue = |lengths: &[u32]| {
        let mut raw = with_disks(traits.clone(), Faults::none());
        let slot = raw.address(0);
        raw.configure_bulk(slot, 0);
        push_pieces(&mut raw, slot, lengths);
        raw.kick(slot, 3);
        raw.machine.advance(10 * MILLISECOND);
    };
    queue(&[100, 100, 100, 212, 512]);
    queue(&[100, 100, 100, 100]);
    breaks("Policy: no run of small pieces (Synopsys)", || {
        queue(&[100, 100, 100, 100, 624]);
    });
}

#[test]
fn an_empty_trb_is_a_td_of_its_own() {
    bulk_breaks("Policy: empty packets alone", 3, |raw, slot| {
        push_pair(raw, slot, [512, 0], [0, 0]);
    });
}

#[test]
fn immediate_data_goes_out() {
    bulk_breaks("xHCI 1.2 §4.11.7", 3, |raw, slot| {
        raw.push_normal(slot, 3, 0, 8, IOC | 1 << 6);
    });
}

#[test]
fn a_link_cuts_a_td_only_between_bursts() {
    bulk_breaks("xHCI 1.2 §4.11.7.1", 3, |raw, slot| {
        let ring = &raw.rings[&(slot, 3)];
        let (base, data) = (ring.base, raw.machine.coherent(8192) as u32);
        // 100 bytes, a chained link to the ring's sixth TRB, the rest.
        raw.machine
            .store(base + 16, &[base as u32 + 80, 0, 0, 6 << 10 | CHAIN | 1]);
        raw.machine
            .store(base + 80, &[data + 100, 0, 924, NORMAL << 10 | IOC | 1]);
        raw.machine.store(base, &[data, 0, 100 | 2 << 17]);
        raw.machine.release();
        raw.machine.store(base + 12, &[NORMAL << 10 | CHAIN | 1]);
        raw.machine.release();
    });
}

#[test]
fn dma_stays_in_what_was_mapped() {
    let (mut raw, slot) = configured(0);
    raw.push_normal(slot, 4, 0x1234_0000, 31, IOC);
    raw.kick(slot, 4);
    breaks("stray DMA", || raw.machine.advance(10 * MILLISECOND));
}

#[test]
fn a_disabled_slot_has_no_doorbell() {
    let raw = with_disks(Traits::default(), Faults::none());
    breaks("xHCI 1.2 §4.7", || raw.kick(1, 1));
}

#[test]
fn a_disabled_endpoint_has_no_doorbell() {
    let (raw, slot) = configured(0);
    breaks("xHCI 1.2 §4.7", || raw.kick(slot, 5));
    let (raw, slot) = configured(0);
    breaks("xHCI 1.2 §4.7", || raw.kick(slot, 0));
}

#[test]
fn a_doorbell_names_no_stream_without_streams() {
    let (raw, slot) = configured(0);
    breaks("xHCI 1.2 §5.6", || raw.kick(slot, 3 | 1 << 16));
    let (raw, slot) = configured(0);
    breaks("xHCI 1.2 §5.6", || raw.kick(slot, 3 | 1 << 8));
}

#[test]
fn an_address_in_a_trb_is_within_reach() {
    use crate::raw::{disk, machine};
    use rootport_models::device::Link;
    let machine = machine();
    let controller = machine.add_xhci(Traits::addresses_32());
    machine.plug(controller, 0, disk(Link::High));
    let mut raw = Raw::probe(&machine, controller);
    raw.bring_up();
    let slot = raw.address(0);
    raw.configure_bulk(slot, 0);
    raw.push_normal(slot, 4, 0x1_0000_0000, 31, IOC | ISP);
    raw.kick(slot, 4);
    breaks("xHCI 1.2 §5.3.6", || machine.advance(10 * MILLISECOND));
}
