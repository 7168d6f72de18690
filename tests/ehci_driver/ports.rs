//! Root ports: who a device belongs to.

use rootport::host::{Event, PortProtocol, RootPort, RootPorts};
use rootport::time::Duration;
use rootport::usb::speed::Speed;
use rootport_models::controller::ehci::{Faults, Traits};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Link, Script};

use crate::rig::{Rig, with_running};

const PORT: RootPort = RootPort(0);

fn stick(link: Link) -> Disk {
    Script::new()
        .speed(link)
        .unit(LogicalUnit::stick(4096))
        .build()
}

fn appear(rig: &mut Rig<'_>) {
    rig.find(|event| (*event == Event::Port(PORT)).then_some(()));
    let status = rig.driver.read_port(PORT);
    assert!(status.connected && status.connect_changed, "{status:?}");
    rig.driver.acknowledge(PORT, &status);
    assert!(!rig.driver.read_port(PORT).connect_changed);
    rig.idle(Duration::from_millis(100));
}

#[test]
fn a_full_speed_device_is_known_by_its_reset_and_handed_over() {
    with_running(Traits::default(), |rig| {
        assert_eq!(rig.driver.port_protocol(PORT), PortProtocol::Usb2);
        rig.machine.plug(0, 0, stick(Link::Full));
        appear(rig);
        rig.reset(PORT);
        let status = rig.driver.read_port(PORT);
        assert!(status.connected && !status.enabled, "{status:?}");
        assert_eq!(status.speed, Some(Speed::Full));
        assert!(rig.driver.hand_over(PORT));
        rig.idle(Duration::from_millis(10));
        assert!(!rig.driver.read_port(PORT).connected);
    });
}

#[test]
fn a_low_speed_device_is_known_before_its_reset() {
    with_running(Traits::default(), |rig| {
        rig.machine.plug(0, 0, stick(Link::Low));
        appear(rig);
        assert_eq!(rig.driver.read_port(PORT).speed, Some(Speed::Low));
        assert!(rig.driver.hand_over(PORT));
    });
}

#[test]
fn a_port_that_nobody_takes_and_one_without_companion_stay_visible() {
    let refuses = Faults {
        companion_refuses: true,
        ..Faults::none()
    };
    with_running(refuses, |rig| {
        rig.machine.plug(0, 0, stick(Link::Full));
        appear(rig);
        rig.reset(PORT);
        rig.driver.hand_over(PORT);
        rig.idle(Duration::from_millis(10));
        assert!(rig.driver.read_port(PORT).connected);
    });
    with_running(Traits::allwinner(), |rig| {
        rig.machine.plug(0, 0, stick(Link::Full));
        appear(rig);
        rig.reset(PORT);
        assert!(!rig.driver.hand_over(PORT), "no companion");
        assert!(rig.driver.read_port(PORT).connected);
    });
}

#[test]
fn a_reset_that_does_not_end_is_shown_as_one_under_way() {
    let faults = Faults {
        port_reset_hangs: true,
        ..Faults::none()
    };
    with_running(faults, |rig| {
        rig.machine.plug(0, 0, stick(Link::High));
        appear(rig);
        rig.driver.begin_reset(PORT);
        rig.idle(Duration::from_millis(60));
        rig.driver.end_reset(PORT);
        rig.find(|event| (*event == Event::Port(PORT)).then_some(()));
        assert!(rig.driver.read_port(PORT).resetting);
    });
}

#[test]
fn too_much_current_is_reported() {
    let faults = Faults {
        over_current: vec![(0, 300_000_000, 400_000_000)],
        ..Faults::none()
    };
    with_running(faults, |rig| {
        rig.find(|event| (*event == Event::Port(PORT)).then_some(()));
        let status = rig.driver.read_port(PORT);
        assert!(status.over_current);
        rig.driver.acknowledge(PORT, &status);
        rig.find(|event| (*event == Event::Port(PORT)).then_some(()));
        assert!(!rig.driver.read_port(PORT).over_current);
    });
}
