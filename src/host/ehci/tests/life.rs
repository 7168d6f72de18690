//! The controller from any state to running, to a stop, and its death.

use super::*;

#[test]
fn a_boot_loaders_running_schedules_are_stopped_before_the_reset() {
    with_options(Options::default(), |bench| {
        bench.bus.set(0x20, 0x0008_0031);
        bench.bus.set(0x24, 0xc000);
        bench.bus.set(0x30, 7);
        bench.start();
        assert_eq!(bench.bus.get(0x30), 0, "CTRLDSSEGMENT");
        let commands: Vec<u32> = bench
            .bus
            .written()
            .into_iter()
            .filter(|(offset, _)| *offset == 0x20)
            .map(|(_, value)| value)
            .collect();
        assert_eq!(
            commands,
            [
                0x0008_0001,
                0x0008_0000,
                0x0000_0002,
                0x0001_0001,
                0x0001_0021
            ]
        );
        assert_eq!(bench.bus.get(0x20 + 0x40), 1, "ports are ours");
    });
}

#[test]
fn a_reset_that_does_not_end_is_a_typed_fault() {
    with_options(Options::default(), |bench| {
        bench.bus.set_endless_reset();
        let begun = bench.now;
        bench.ehci.start(&mut bench.pool, bench.now);
        let fault = Event::Started(Err(ControllerFault::ResetTimeout));
        assert_eq!(bench.until_event(), fault);
        assert!(bench.now.since(begun) < Duration::from_millis(300));
        assert_eq!(bench.pool.usage().used, 0);
    });
}

#[test]
fn stop_and_start_leave_no_handle_and_no_memory_behind() {
    bench(|bench| {
        let (device, bulk_in, _) = bench.disk();
        bench.ehci.stop(bench.now);
        assert_eq!(bench.until_event(), Event::Stopped(Ok(())));
        assert_eq!(bench.bus.get(0x24) & 0x1000, 0x1000, "halted");
        assert_eq!(bench.ehci.next_deadline(), Instant::default());
        assert_eq!(bench.poll(), None);
        assert_eq!(bench.ehci.next_deadline(), Instant::NEVER);
        bench.start();
        assert_eq!(bench.pool.held_by(Owner::Device(1, 0)), 0);
        assert!(bench.ehci.endpoint0(device).is_none());
        let data = [segment(0x2000, 512)];
        let stale = bench
            .ehci
            .submit(bulk_in, &transfer(1, Direction::In, &data));
        assert_eq!(stale, Err(HostError::Stale));
        bench.disk();
    });
}

#[test]
fn a_host_system_error_is_found_within_the_look_interval() {
    bench(|bench| {
        bench.disk();
        bench.bus.set_status(0x1010);
        let begun = bench.now;
        let died = Event::Died(ControllerFault::HostSystemError);
        assert_eq!(bench.until_event(), died);
        assert!(bench.now.since(begun) <= Duration::from_millis(100));
        bench.start();
        bench.disk();
    });
}

#[test]
fn a_controller_that_vanishes_is_found_at_once_when_asked() {
    bench(|bench| {
        bench.bus.set_gone();
        assert_eq!(bench.poll(), None);
        assert!(!bench.ehci.check_alive());
        let died = Event::Died(ControllerFault::Absent);
        assert_eq!(bench.poll(), Some(died));
        bench.ehci.start(&mut bench.pool, bench.now);
        let absent = Event::Started(Err(ControllerFault::Absent));
        assert_eq!(bench.until_event(), absent);
    });
}
