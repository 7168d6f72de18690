//! Root ports, and the interrupts about them.

use super::*;

#[test]
fn an_interrupt_about_a_port_reaches_poll() {
    let options = Options {
        interrupts: Interrupts::Wired,
        ..Options::default()
    };
    with_options(options, |bench| {
        bench.start();
        assert_eq!(bench.poll(), None);
        let half = bench.ehci.interrupt_half();
        bench.bus.set(PORTSC, 0x1020);
        bench.bus.set(PORTSC + 4, 0x1003);
        bench.bus.set_status(4);
        assert!(half.acknowledge());
        assert_eq!(bench.poll(), Some(Event::Port(RootPort(0))));
        assert_eq!(bench.poll(), Some(Event::Port(RootPort(1))));
        assert_eq!(bench.poll(), None);
    });
}

#[test]
fn a_high_speed_device_is_enabled_by_its_reset() {
    bench(|bench| {
        let port = RootPort(0);
        bench.bus.set(PORTSC, 0x1803);
        let status = bench.ehci.read_port(port);
        assert!(status.connected && status.powered && status.connect_changed);
        assert_eq!(status.speed, None);
        bench.ehci.acknowledge(port, &status);
        assert!(!bench.ehci.read_port(port).connect_changed);
        bench.ehci.begin_reset(port);
        assert!(bench.ehci.read_port(port).resetting);
        bench.ehci.end_reset(port);
        assert_eq!(bench.until_event(), Event::Port(port));
        let status = bench.ehci.read_port(port);
        assert!(status.enabled && status.reset_changed && !status.resetting);
        assert_eq!(status.speed, Some(Speed::High));
        bench.bus.set(PORTSC, bench.bus.get(PORTSC) | 0x20);
        bench.ehci.acknowledge(port, &status);
        assert_eq!(bench.bus.get(PORTSC) & 0x20, 0);
        let status = bench.ehci.read_port(port);
        assert!(status.enabled, "clearing changes must not disable");
        assert!(!status.reset_changed);
        bench.bus.written();
        bench.ehci.begin_reset(port);
        assert_eq!(bench.bus.written(), [(PORTSC, 0x1100)], "disabled with it");
        bench.ehci.end_reset(port);
        assert_eq!(bench.until_event(), Event::Port(port));
        bench.ehci.disable_port(port);
        assert!(!bench.ehci.read_port(port).enabled);
    });
}

#[test]
fn full_and_low_speed_go_to_the_companion() {
    bench(|bench| {
        let port = RootPort(0);
        bench.bus.set(PORTSC, 0x1401);
        assert_eq!(bench.ehci.read_port(port).speed, Some(Speed::Low));
        bench.bus.set(PORTSC, 0x1801);
        bench.bus.set_full_speed();
        bench.ehci.begin_reset(port);
        bench.ehci.end_reset(port);
        assert_eq!(bench.until_event(), Event::Port(port));
        let status = bench.ehci.read_port(port);
        assert!(status.connected && !status.enabled && !status.resetting);
        assert_eq!(status.speed, Some(Speed::Full));
        assert!(bench.ehci.hand_over(port));
        assert!(!bench.ehci.read_port(port).connected, "it is not ours");
        assert!(!bench.ehci.hand_over(RootPort(2)), "no such port");
    });
}
