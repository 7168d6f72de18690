use std::sync::{Arc, Mutex};

use super::*;
use crate::controller::xhci::Traits;
use crate::device::MILLISECOND;

#[test]
fn a_register_access_takes_time() {
    let machine = Machine::default();
    let controller = machine.add_xhci(Traits::default());
    for _ in 0..10 {
        machine.read(controller, 4, 4);
    }
    assert_eq!(machine.now(), 2_000);
    assert_eq!(machine.statistics(controller).reads, 10);
}

#[test]
fn a_loop_that_only_looks_at_the_clock_ends() {
    let machine = Machine::default();
    while machine.read_clock() < MILLISECOND {}
}

#[test]
fn a_wait_ends_at_its_time_if_nothing_happens() {
    let machine = Machine::default();
    machine.wait(5 * MILLISECOND);
    assert_eq!(machine.now(), 5 * MILLISECOND);
}

#[test]
fn a_wait_ends_when_something_happens() {
    let machine = Machine::default();
    let controller = machine.add_xhci(Traits::default());
    let command = 0x40;
    machine.write(controller, command, 4, 1 << 12 | 2);
    machine.wait(MILLISECOND * 100);
    assert!(machine.now() < MILLISECOND, "HCRST has cleared");
    machine.wait(MILLISECOND * 100);
    assert!(machine.now() < 3 * MILLISECOND, "CNR has cleared");
    machine.wait(MILLISECOND * 100);
    assert_eq!(machine.now(), 100 * MILLISECOND);
}

#[test]
fn what_happened_before_the_wait_ends_it_at_once() {
    let machine = Machine::default();
    let controller = machine.add_xhci(Traits::default());
    machine.write(controller, 0x40, 4, 1 << 12 | 2);
    machine.advance(50 * MILLISECOND);
    machine.wait(MILLISECOND * 100);
    assert!(machine.now() < 51 * MILLISECOND);
}

#[test]
fn a_sleeper_for_interrupts_sleeps_through_everything_else() {
    let machine = Machine::new(Options {
        sleep: Sleep::UntilInterrupt,
        ..Options::default()
    });
    let controller = machine.add_xhci(Traits::default());
    machine.write(controller, 0x40, 4, 1 << 12 | 2);
    machine.wait(MILLISECOND * 100);
    assert_eq!(machine.now(), 100 * MILLISECOND);
}

#[test]
#[should_panic(expected = "waits for ever")]
fn waiting_for_ever_for_nothing_is_a_mistake() {
    Machine::default().wait(Nanoseconds::MAX);
}

#[test]
fn an_access_outside_the_window_reads_ones() {
    let machine = Machine::default();
    let controller = machine.add_xhci(Traits::default());
    assert_eq!(machine.read(controller, 1 << 20, 4), u32::MAX);
    machine.write(controller, 1 << 20, 4, 0);
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = |seed| {
        let machine = Machine::new(Options {
            seed,
            ..Options::default()
        });
        (
            machine.coherent(64),
            machine.coherent(64),
            machine.coherent(64),
        )
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn a_buffer_is_ordinary_memory_for_the_cpu() {
    let machine = Machine::default();
    let mut buffer = machine.buffer(100, 3);
    buffer[99] = 7;
    assert_eq!((buffer.len(), buffer[0], buffer[99]), (100, 0, 7));
    assert_eq!(buffer.as_ptr().addr() % 4096, 3);
    drop(machine);
    assert_eq!(buffer[99], 7, "it keeps the machine alive");
}

/// A machine with a controller that runs, whose events interrupt.
fn interrupting(traits: Traits) -> (Machine, u64) {
    let machine = Machine::default();
    let controller = machine.add_xhci(traits);
    assert_eq!(controller, 0);
    let memory = machine.coherent(0x4000);
    machine.store(memory + 0x1000, &[memory as u32 + 0x2000, 0, 64, 0]);
    machine.release();
    let write = |offset, value: u64| {
        machine.write(0, offset, 4, value as u32);
        machine.write(0, offset + 4, 4, (value >> 32) as u32);
    };
    machine.write(0, 0x78, 4, 1 << 16 | 8);
    write(0x70, memory);
    write(0x58, (memory + 0x3000) | 1);
    machine.write(0, 0x1028, 4, 1);
    write(0x1038, memory + 0x2000);
    write(0x1030, memory + 0x1000);
    machine.write(0, 0x1020, 4, 2);
    machine.write(0, 0x40, 4, 1 << 12 | 0b101);
    (machine, memory)
}

fn no_op(machine: &Machine, memory: u64) {
    machine.store(memory + 0x300c, &[23 << 10 | 1]);
    machine.release();
    machine.write(0, 0x2000, 4, 0);
}

fn without_scratchpads() -> Traits {
    Traits {
        scratchpads: 0,
        ..Traits::default()
    }
}

#[test]
fn a_handler_runs_on_top_of_whatever_the_driver_does() {
    let (machine, memory) = interrupting(without_scratchpads());
    let handler = machine.clone();
    let calls = Arc::new(Mutex::new(0));
    let counter = calls.clone();
    machine.on_interrupt(0, move || {
        *counter.lock().unwrap() += 1;
        handler.write(0, 0x44, 4, 8);
        handler.write(0, 0x1020, 4, 3);
    });
    no_op(&machine, memory);
    assert_eq!(*calls.lock().unwrap(), 0);
    while *calls.lock().unwrap() == 0 {
        machine.read(0, 4, 4);
    }
    assert!(!machine.interrupt_line(0));
}

#[test]
#[should_panic(expected = "interrupts for ever")]
fn a_handler_that_does_not_quieten_its_line_is_a_storm() {
    let (machine, memory) = interrupting(without_scratchpads());
    machine.on_interrupt(0, || {});
    no_op(&machine, memory);
    machine.advance(MILLISECOND);
}

#[test]
fn a_sleeper_wakes_by_its_interrupt() {
    let (machine, memory) = interrupting(without_scratchpads());
    no_op(&machine, memory);
    machine.wait(MILLISECOND * 100);
    assert!(machine.now() < MILLISECOND);
}
