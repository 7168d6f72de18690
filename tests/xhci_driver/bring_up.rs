//! Controllers of every shape are taken over, run, and given back.

use rootport::host::CapabilityField::AddressWidth;
use rootport::host::xhci::{Interrupts, Options};
use rootport::host::{ControllerFault, HostController, PortProtocol, RootPort, RootPorts};
use rootport::mmio::Bus;
use rootport::time::Duration;
use rootport_models::controller::xhci::{Faults, Firmware, Traits};
use rootport_models::device::{MILLISECOND, SECOND};
use rootport_models::machine;

use crate::rig::{Setting, moments_of_a_start, with_rig, with_running};

fn shapes() -> Vec<(&'static str, Setting)> {
    let above = machine::Options::above_4_gib();
    vec![
        ("default", Traits::default().into()),
        ("rk3328", Traits::rk3328().into()),
        ("32 bits", Traits::addresses_32().into()),
        ("odd", Traits::odd().into()),
        (
            "above 4 GiB",
            Setting {
                machine: above,
                ..Setting::default()
            },
        ),
    ]
}

/// Some of what the controller must reach would lie where it does not.
#[test]
fn a_pool_on_both_sides_of_4_gib_is_refused_by_a_controller_of_32_bits() {
    for (traits, width) in [
        (Traits::addresses_32(), Err(AddressWidth)),
        (Traits::default(), Ok(())),
    ] {
        let setting = Setting {
            traits,
            machine: machine::Options::around_4_gib(),
            ..Setting::default()
        };
        with_rig(setting, |rig| {
            let wanted = width.map_err(ControllerFault::Implausible);
            assert_eq!(rig.start(), wanted);
        });
    }
}

#[test]
fn controllers_of_every_shape_start_and_stop_twice() {
    for (name, setting) in shapes() {
        with_rig(setting, |rig| {
            for _ in 0..2 {
                assert_eq!(rig.start(), Ok(()), "{name}");
                assert_eq!(rig.stop(), Ok(()), "{name}");
                rig.pool.reclaim_controller(0);
            }
        });
    }
}

#[test]
fn what_was_said_to_be_needed_is_enough() {
    for (name, setting) in shapes() {
        with_rig(setting, |rig| {
            let before = rig.pool.usage().used;
            let requirement = rig.driver.requirement();
            assert_eq!(rig.start(), Ok(()), "{name}");
            let used = rig.pool.usage().used - before;
            assert!(
                used <= requirement.pool,
                "{name}: {used} of {requirement:?}"
            );
            assert!(
                used + 8192 >= requirement.pool,
                "{name}: {used} of {requirement:?}"
            );
        });
    }
}

#[test]
fn ports_are_of_the_protocol_that_the_chip_says() {
    with_running(Traits::odd(), |rig| {
        let protocols = [0, 1, 2].map(|port| rig.driver.port_protocol(RootPort(port)));
        use PortProtocol::{Usb2, Usb3};
        assert_eq!(protocols, [Usb3, Usb2, Usb2]);
    });
}

#[test]
fn a_firmware_that_keeps_the_controller_is_a_typed_error_after_a_second() {
    let traits = Traits {
        firmware: Firmware::Keeps,
        ..Traits::default()
    };
    with_rig(traits, |rig| {
        use rootport::host::ControllerFault::FirmwareHolds;
        assert_eq!(rig.start(), Err(FirmwareHolds));
        let took = rig.now().as_micros();
        assert!((1_000_000..1_010_000).contains(&took), "{took} us");
    });
}

#[test]
fn a_controller_that_was_taken_from_its_firmware_is_given_back_at_the_end() {
    with_rig(Traits::odd(), |rig| {
        let bus = rig.platform.bus(0);
        let legacy = (bus.read32(0x10) >> 16) as usize * 4;
        let owners = || bus.read32(legacy) >> 16 & 0x101;
        assert_eq!(owners(), 1, "the firmware's");
        assert_eq!(rig.start(), Ok(()));
        assert_eq!(owners(), 0x100, "ours");
        assert_eq!(rig.stop(), Ok(()));
        assert_eq!(owners(), 0, "nobody's");
    });
}

/// As one that loads its firmware first: until then nothing may be written to it (xHCI 1.2 §5.4.2, CNR).
#[test]
fn a_controller_that_is_not_ready_yet_is_waited_for_before_anything_is_written() {
    let slow = |time| Traits {
        not_ready_at_start: time,
        ..Traits::default()
    };
    with_rig(slow(300 * MILLISECOND), |rig| {
        assert_eq!(rig.start(), Ok(()));
        assert!(rig.now().as_micros() > 300_000);
    });
    let never = Setting {
        traits: slow(SECOND),
        faults: Faults {
            never_ready: true,
            ..Faults::none()
        },
        ..Setting::default()
    };
    with_rig(never, |rig| {
        assert_eq!(rig.start(), Err(ControllerFault::ResetTimeout));
        let took = rig.now().as_micros();
        assert!((1_000_000..1_100_000).contains(&took), "{took} us");
    });
}

#[test]
fn an_interval_between_interrupts_that_no_register_holds_is_the_longest_there_is() {
    let options = Options {
        interrupts: Interrupts::Wired,
        moderation: Duration::MAX,
        ..Options::default()
    };
    let setting = Setting {
        options,
        ..Setting::default()
    };
    with_rig(setting, |rig| assert_eq!(rig.start(), Ok(())));
}

#[test]
fn a_controller_may_be_stopped_at_any_moment_of_its_start() {
    for (name, setting) in shapes() {
        let ran = moments_of_a_start()
            .find(|after| with_rig(setting.clone(), |rig| rig.stop_while_starting(*after)));
        assert!(ran.is_some(), "{name}");
    }
}
