//! What the controller holds of memory: linking, unlinking, the doorbell, live appends (EHCI 1.0
//! §3.6, §4.8, §4.10).

use rootport_models::controller::ehci::{Faults, Traits};
use rootport_models::device::{Link, MILLISECOND};

use crate::probe::{Habit, Probe};
use crate::raw::*;

fn running() -> Raw {
    Raw::running(Traits::default())
}

fn with_device() -> (Raw, Probe) {
    let probe = Probe::new(Link::High);
    (Raw::with_device(probe.clone()), probe)
}

#[test]
fn after_the_doorbells_answer_a_queue_head_is_softwares_again() {
    let (raw, probe) = with_device();
    probe.habit(0x81, Habit::Nak(None));
    let mut queue = raw.linked(bulk(0, 1));
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 512);
    raw.machine.advance(5 * MILLISECOND);
    raw.unlink(queue);
    raw.handshake();
    for at in [queue.at, queue.tail, read] {
        raw.machine.store(at, &[0xdead_beef; 8]);
    }
    raw.machine.advance(5 * MILLISECOND);
    let before = probe.seen(0x81).len();
    raw.machine.advance(5 * MILLISECOND);
    assert_eq!(probe.seen(0x81).len(), before);
}

#[test]
fn a_queue_head_that_was_unlinked_in_flight_goes_on_where_it_was_when_linked_again() {
    let (raw, probe) = with_device();
    let mut queue = raw.linked(bulk(0, 2));
    let buffer = raw.machine.coherent(5 * 4096);
    let sent = raw.submit(&mut queue, OUT, buffer, 0x5000);
    raw.machine.advance(100_000);
    raw.unlink(queue);
    raw.handshake();
    let so_far = probe.seen(2).len();
    assert!(so_far > 2 && so_far < 40);
    raw.link(queue);
    assert_eq!(raw.wait(sent) & STOPPED, 0);
    assert_eq!(probe.seen(2).len(), 40);
}

#[test]
fn a_halted_queue_is_mended_between_unlinking_and_linking() {
    use rootport_models::device::Reply;
    let (raw, probe) = with_device();
    let mut queue = raw.linked(bulk(0, 1));
    let buffer = raw.machine.coherent(4096);
    probe.answer(0x81, [Reply::Stall]);
    let stalled = raw.submit(&mut queue, IN, buffer, 512);
    assert_ne!(raw.wait(stalled) & STOPPED, 0);
    raw.unlink(queue);
    raw.handshake();
    raw.machine
        .store(queue.at + 16, &[queue.tail as u32, END, 0]);
    raw.machine.release();
    raw.link(queue);
    let read = raw.submit(&mut queue, IN, buffer, 512);
    assert_eq!(raw.wait(read) & STOPPED, 0);
}

#[test]
fn one_doorbell_serves_several_queue_heads() {
    let raw = running();
    let queues = [1, 2, 3].map(|endpoint| raw.linked(bulk(0, endpoint)));
    for queue in queues {
        raw.unlink(queue);
    }
    raw.handshake();
    for queue in queues {
        raw.machine.store(queue.at, &[0; 12]);
    }
}

#[test]
fn switching_the_schedule_off_gives_everything_back() {
    let raw = running();
    let queue = raw.linked(bulk(0, 1));
    raw.clear(USBCMD, ASE);
    raw.until(USBSTS, |status| status & ASYNC_STATUS == 0);
    raw.machine.store(queue.at, &[0; 12]);
}

#[test]
fn a_doorbell_that_never_answers_stays_set() {
    let faults = Faults {
        doorbell_hangs: true,
        ..Faults::none()
    };
    let raw = Raw::running_with(Traits::default(), faults);
    raw.set(USBCMD, IAAD);
    raw.machine.advance(1_000 * MILLISECOND);
    assert_ne!(raw.read(USBCMD) & IAAD, 0);
    assert_eq!(raw.read(USBSTS) & IAA, 0);
}

#[test]
fn a_lost_answer_clears_the_doorbell_and_sets_no_status() {
    let faults = Faults {
        lost_advances: 1,
        ..Faults::none()
    };
    let raw = Raw::running_with(Traits::default(), faults);
    raw.set(USBCMD, IAAD);
    raw.machine.advance(10 * MILLISECOND);
    assert_eq!(raw.read(USBCMD) & IAAD, 0);
    assert_eq!(raw.read(USBSTS) & IAA, 0);
    raw.handshake();
}

#[test]
#[should_panic(expected = "before Interrupt on Async Advance had followed the unlinking")]
fn an_unlinked_queue_head_is_not_reused_before_the_answer() {
    let raw = running();
    let queue = raw.linked(bulk(0, 1));
    raw.unlink(queue);
    raw.machine.store(queue.at + 4, &[0]);
}

#[test]
#[should_panic(expected = "before Interrupt on Async Advance had followed the unlinking")]
fn an_unlinked_queue_heads_link_stays_until_the_answer() {
    let raw = running();
    let queue = raw.linked(bulk(0, 1));
    raw.unlink(queue);
    raw.machine.store(queue.at, &[END]);
}

#[test]
#[should_panic(expected = "before Interrupt on Async Advance had followed the unlinking")]
fn an_unlinked_queues_qtds_are_not_reused_before_the_answer() {
    let (raw, probe) = with_device();
    probe.habit(0x81, Habit::Nak(None));
    let mut queue = raw.linked(bulk(0, 1));
    let buffer = raw.machine.coherent(4096);
    let read = raw.submit(&mut queue, IN, buffer, 512);
    raw.unlink(queue);
    raw.machine.store(read, &[0; 8]);
}

#[test]
#[should_panic(expected = "before Interrupt on Async Advance had followed the unlinking")]
fn a_doorbell_rung_before_the_unlinking_does_not_count() {
    let raw = running();
    let queue = raw.linked(bulk(0, 1));
    raw.set(USBCMD, IAAD);
    raw.unlink(queue);
    raw.until(USBSTS, |status| status & IAA != 0);
    raw.machine.store(queue.at + 4, &[0]);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §4.8.2: word 1 of the queue head")]
fn the_static_words_of_a_linked_queue_head_stay() {
    let raw = running();
    let queue = raw.linked(bulk(0, 1));
    raw.machine.store(queue.at + 4, &[bulk(5, 1)[0]]);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §3.6.3: word 6 of the queue head")]
fn the_overlay_of_a_linked_queue_head_is_the_controllers() {
    let raw = running();
    let queue = raw.linked(bulk(0, 1));
    raw.machine.store(queue.at + 24, &[STOPPED]);
}

#[test]
#[should_panic(expected = "does not come back to it")]
fn the_head_of_the_list_is_never_unlinked() {
    let raw = running();
    let [one, two] = [1, 2].map(|endpoint| raw.linked(bulk(0, endpoint)));
    // From the second one back to the first, around the head.
    raw.machine.store(one.at, &[two.at as u32 | 2]);
}

#[test]
#[should_panic(expected = "2 queue heads of the asynchronous list have their H bit set")]
fn there_is_one_head_of_the_list() {
    let [one, two] = bulk(0, 1);
    running().linked([one | 1 << 15, two]);
}

#[test]
#[should_panic(expected = "0 queue heads of the asynchronous list have their H bit set")]
fn there_is_a_head_of_the_list() {
    let raw = running();
    raw.clear(USBCMD, ASE);
    raw.until(USBSTS, |status| status & ASYNC_STATUS == 0);
    raw.machine.store(raw.head + 4, &[2 << 12]);
    raw.machine.release();
    raw.set(USBCMD, ASE);
    raw.machine.advance(MILLISECOND);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §3.6.1")]
fn the_asynchronous_list_has_no_terminated_link() {
    let raw = running();
    raw.machine.store(raw.head, &[END]);
}

#[test]
#[should_panic(expected = "leads to no queue head")]
fn the_asynchronous_list_has_queue_heads_only() {
    let raw = running();
    raw.machine.store(raw.head, &[raw.head as u32]);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §3: the queue head")]
fn a_queue_head_does_not_cross_a_page() {
    let raw = running();
    let memory = raw.machine.coherent(8192) + 4096 - 32;
    let [one, two] = bulk(0, 1);
    let back = raw.head as u32 | 2;
    raw.store_head(memory, &[back, one, two, 0, END, END]);
    raw.machine.release();
    raw.machine.store(raw.head, &[memory as u32 | 2]);
}

#[test]
#[should_panic(expected = "which is no coherent memory")]
fn a_link_leads_to_memory() {
    let raw = running();
    raw.machine.store(raw.head, &[0x7000_0002]);
}

#[test]
#[should_panic(expected = "EPS of the queue head")]
fn the_reserved_speed_is_not_used() {
    let [one, two] = bulk(0, 1);
    running().linked([one | 3 << 12, two]);
}

#[test]
#[should_panic(expected = "has the I bit set")]
fn the_i_bit_is_not_for_high_speed() {
    let [one, two] = bulk(0, 1);
    running().linked([one | 1 << 7, two]);
}

#[test]
#[should_panic(expected = "has an S-mask in the asynchronous schedule")]
fn an_asynchronous_queue_head_has_no_s_mask() {
    let [one, two] = bulk(0, 1);
    running().linked([one, two | 1]);
}

#[test]
#[should_panic(expected = "is active without a current qTD")]
fn a_new_queue_heads_overlay_is_inactive() {
    let raw = running();
    let queue = raw.queue(bulk(0, 1));
    raw.machine.store(queue.at + 24, &[ACTIVE]);
    raw.machine.release();
    raw.link(queue);
}

#[test]
#[should_panic(expected = "Policy: release before linking")]
fn a_queue_head_is_released_before_it_is_linked() {
    let raw = running();
    let queue = raw.queue(bulk(0, 1));
    raw.machine.store(queue.at, &[raw.head as u32 | 2]);
    raw.machine.store(raw.head, &[queue.at as u32 | 2]);
}

#[test]
#[should_panic(expected = "Policy: release before the Active bit")]
fn the_active_bit_is_stored_behind_a_release() {
    let raw = running();
    let queue = raw.linked(bulk(0, 2));
    let words = raw.words(OUT | ACTIVE, raw.machine.coherent(4096), 512, END);
    raw.machine.store(queue.tail, &words[..2]);
    raw.machine.store(queue.tail + 12, &words[3..]);
    raw.machine.store(queue.tail + 8, &[words[2]]);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §4.10.2: the qTD at")]
fn a_qtd_is_not_changed_after_its_active_bit() {
    let (raw, probe) = with_device();
    probe.habit(2, Habit::Nak(None));
    let mut queue = raw.linked(bulk(0, 2));
    let buffer = raw.machine.coherent(4096);
    raw.submit(&mut queue, OUT, buffer, 512);
    let behind = raw.submit(&mut queue, OUT, buffer, 512);
    raw.machine.store(behind + 12, &[buffer as u32 + 1]);
}

#[test]
fn a_qtd_that_was_not_begun_may_be_deactivated() {
    let (raw, probe) = with_device();
    probe.habit(2, Habit::Nak(None));
    let mut queue = raw.linked(bulk(0, 2));
    let buffer = raw.machine.coherent(4096);
    raw.submit(&mut queue, OUT, buffer, 512);
    let behind = raw.submit(&mut queue, OUT, buffer, 512);
    raw.machine.advance(MILLISECOND);
    let [token] = raw.machine.load(behind + 8);
    raw.machine.store(behind + 8, &[token & !ACTIVE]);
    raw.machine.release();
    probe.habit(2, Habit::Stream);
    raw.machine.advance(5 * MILLISECOND);
    assert_eq!(
        probe
            .seen(2)
            .iter()
            .filter(|seen| **seen != crate::probe::Seen::Ping)
            .count(),
        2
    );
}

#[test]
#[should_panic(expected = "EHCI 1.0 §2.3.1: the doorbell was rung while the asynchronous schedule")]
fn the_doorbell_is_rung_while_the_schedule_is_on() {
    let raw = running();
    raw.clear(USBCMD, ASE);
    raw.until(USBSTS, |status| status & ASYNC_STATUS == 0);
    raw.set(USBCMD, IAAD);
}

#[test]
#[should_panic(expected = "Policy: acknowledge the last advance first")]
fn the_last_answer_is_acknowledged_before_the_next_doorbell() {
    let raw = running();
    raw.set(USBCMD, IAAD);
    raw.until(USBSTS, |status| status & IAA != 0);
    raw.set(USBCMD, IAAD);
}

#[test]
#[should_panic(expected = "Policy: release before the register: the doorbell")]
fn the_unlinking_is_released_before_the_doorbell() {
    let raw = running();
    let queue = raw.linked(bulk(0, 1));
    let [next] = raw.machine.load(queue.at);
    raw.machine.store(raw.head, &[next]);
    raw.set(USBCMD, IAAD);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §4.10.2: the qTD at")]
fn the_current_qtd_is_not_deactivated() {
    let (raw, probe) = with_device();
    probe.habit(2, Habit::Nak(None));
    let mut queue = raw.linked(bulk(0, 2));
    let sent = raw.submit(&mut queue, OUT, raw.machine.coherent(4096), 512);
    raw.machine.advance(MILLISECOND);
    let [token] = raw.machine.load(sent + 8);
    raw.machine.store(sent + 8, &[token & !ACTIVE]);
}

#[test]
#[should_panic(expected = "is active for the controller and not for the CPU")]
fn a_deactivation_is_released() {
    let (raw, probe) = with_device();
    probe.habit(2, Habit::Nak(None));
    let mut queue = raw.linked(bulk(0, 2));
    let buffer = raw.machine.coherent(4096);
    raw.submit(&mut queue, OUT, buffer, 512);
    let behind = raw.submit(&mut queue, OUT, buffer, 512);
    let [token] = raw.machine.load(behind + 8);
    probe.habit(2, Habit::Stream);
    // Much other memory, so that chance does not let just this store out early.
    for _ in 0..200 {
        let _ = raw.machine.coherent(64);
    }
    raw.machine.store(behind + 8, &[token & !ACTIVE]);
    raw.machine.advance(5 * MILLISECOND);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §3.5: a queue leads to 0x70000000")]
fn a_queue_leads_to_memory() {
    let raw = running();
    let queue = raw.queue(bulk(0, 1));
    raw.machine.store(queue.at + 16, &[0x7000_0000]);
    raw.machine.release();
    raw.link(queue);
}

#[test]
#[should_panic(expected = "EHCI 1.0 §3: the qTD")]
fn a_long_qtd_does_not_cross_a_page() {
    let raw = Raw::running(Traits::addresses_64());
    let queue = raw.queue(bulk(0, 1));
    let memory = raw.machine.coherent(8192) + 4096 - 32;
    let words = raw.words(IN | ACTIVE, raw.head, 0, END);
    raw.machine.store(memory, &words);
    raw.machine.store(queue.at + 16, &[memory as u32]);
    raw.machine.release();
    raw.link(queue);
}

#[test]
#[should_panic(expected = "reserved bits of the horizontal link")]
fn reserved_bits_of_a_link_are_zero() {
    let raw = running();
    let queue = raw.queue(bulk(0, 1));
    raw.machine.store(queue.at, &[raw.head as u32 | 0x1a]);
    raw.machine.release();
    raw.machine.store(raw.head, &[queue.at as u32 | 2]);
}

#[test]
#[should_panic(expected = "reserved bits of the current qTD pointer")]
fn reserved_bits_of_the_current_pointer_are_zero() {
    let raw = running();
    let queue = raw.queue(bulk(0, 1));
    raw.machine.store(queue.at + 12, &[1]);
    raw.machine.release();
    raw.link(queue);
}

#[test]
#[should_panic(expected = "a reserved PID code in the overlay")]
fn an_overlay_that_goes_on_has_a_direction() {
    let (raw, _probe) = with_device();
    let queue = raw.queue(bulk(0, 1));
    raw.machine.store(queue.at + 12, &[queue.tail as u32]);
    raw.machine
        .store(queue.at + 24, &[ACTIVE | 3 << 10 | 3 << 8]);
    raw.machine.release();
    raw.link(queue);
    raw.machine.advance(MILLISECOND);
}
