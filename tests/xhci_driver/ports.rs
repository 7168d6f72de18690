//! Root ports: what they show, and that nothing is tripped on the way.

use rootport::host::{Event, RootPort, RootPorts};
use rootport::time::Duration;
use rootport::usb::speed::Speed;
use rootport_models::controller::xhci::{Faults, Traits};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Link, Script};

use crate::rig::{Rig, with_running};

const USB3: RootPort = RootPort(2);

fn stick(link: Link) -> Disk {
    Script::new()
        .speed(link)
        .unit(LogicalUnit::stick(65536).content(b"block zero"))
        .build()
}

/// Waits for a change of the port and acknowledges it.
fn change(rig: &mut Rig<'_>, port: RootPort) -> rootport::host::PortStatus {
    rig.find(|event| (*event == Event::Port(port)).then_some(()));
    let status = rig.driver.read_port(port);
    rig.driver.acknowledge(port, &status);
    status
}

#[test]
fn every_plug_and_every_pull_is_reported_however_often() {
    with_running(Traits::default(), |rig| {
        for port in [RootPort(0), RootPort(1), USB3] {
            let link = if port == USB3 {
                Link::Super
            } else {
                Link::High
            };
            for _ in 0..5 {
                rig.machine.plug(0, usize::from(port.0), stick(link));
                while !change(rig, port).connected {}
                rig.idle(Duration::from_millis(100));
                rig.machine.unplug(0, usize::from(port.0));
                while change(rig, port).connected {}
            }
        }
    });
}

#[test]
fn a_disabled_usb_2_port_stays_off_and_comes_back_by_a_reset() {
    with_running(Traits::default(), |rig| {
        rig.machine.plug(0, 0, stick(Link::High));
        let disk = rig.disk(0);
        rig.close(disk.device).unwrap();
        rig.driver.disable_port(RootPort(0));
        rig.idle(Duration::from_millis(100));
        let status = rig.driver.read_port(RootPort(0));
        assert!(status.connected && !status.enabled);
        let mut disk = rig.disk_again(0);
        assert_eq!(&rig.read_at(&mut disk, 0, 1)[..10], b"block zero");
    });
}

#[test]
fn a_disabled_usb_3_port_looks_for_its_device_again() {
    with_running(Traits::default(), |rig| {
        rig.machine.plug(0, 2, stick(Link::Super));
        let disk = rig.disk(2);
        rig.close(disk.device).unwrap();
        rig.driver.disable_port(USB3);
        rig.idle(Duration::from_millis(200));
        let mut disk = rig.disk(2);
        assert_eq!(&rig.read_at(&mut disk, 0, 1)[..10], b"block zero");
    });
}

#[test]
fn a_link_that_does_not_train_asks_for_a_warm_reset_and_gets_it() {
    let faults = Faults {
        training_fails: true,
        ..Faults::none()
    };
    with_running(faults, |rig| {
        rig.machine.plug(0, 2, stick(Link::Super));
        let stuck = |rig: &Rig<'_>| rig.driver.read_port(USB3).needs_warm_reset;
        for _ in 0..100 {
            rig.idle(Duration::from_millis(10));
            if stuck(rig) {
                break;
            }
        }
        assert!(stuck(rig));
        rig.driver.begin_warm_reset(USB3);
        let attachment = rig.connect(2);
        assert_eq!(attachment.speed, Speed::Super);
        assert!(!stuck(rig));
    });
}

#[test]
fn two_disks_are_read_side_by_side() {
    with_running(Traits::default(), |rig| {
        rig.machine.plug(0, 0, stick(Link::High));
        rig.machine.plug(0, 2, stick(Link::Super));
        let mut one = rig.disk(0);
        let mut two = rig.disk(2);
        for _ in 0..20 {
            assert_eq!(&rig.read_at(&mut one, 0, 3)[..10], b"block zero");
            assert_eq!(&rig.read_at(&mut two, 0, 5)[..10], b"block zero");
        }
        rig.close(one.device).unwrap();
        assert_eq!(&rig.read_at(&mut two, 0, 5)[..10], b"block zero");
    });
}

#[test]
fn a_port_that_does_not_exist_is_empty() {
    with_running(Traits::default(), |rig| {
        let port = RootPort(4);
        let status = rig.driver.read_port(port);
        assert!(!status.connected && !status.powered && status.speed.is_none());
        rig.driver.begin_reset(port);
        rig.driver.disable_port(port);
        rig.driver.acknowledge(port, &status);
        assert!(
            !rig.driver.hand_over(RootPort(0)),
            "there are no companions"
        );
    });
}
