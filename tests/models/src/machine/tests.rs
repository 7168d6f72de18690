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
