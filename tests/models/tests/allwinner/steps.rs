//! One test per step: without it, and with it after the controller was touched, the run fails and
//! the model names that very step.

use super::rig::{all_steps, broken_by, carry, cold, touch};

/// The ports that have the step.
fn ports_with(name: &str) -> Vec<u8> {
    let has = |port: &u8| all_steps(*port).iter().any(|step| step.name == name);
    (0..4).filter(has).collect()
}

fn is_missed(name: &str) {
    let ports = ports_with(name);
    assert!(!ports.is_empty(), "no port has the step {name:?}");
    for port in ports {
        let rest = all_steps(port).into_iter().filter(|step| step.name != name);
        let board = cold(port);
        let named = broken_by(|| {
            carry(&board, rest);
            touch(&board, port);
        });
        assert_eq!(named, name, "port {port}");
    }
}

fn is_late_after_the_first_touch(name: &str) {
    for port in ports_with(name) {
        let (late, rest): (Vec<_>, Vec<_>) = all_steps(port)
            .into_iter()
            .partition(|step| step.name == name);
        let board = cold(port);
        let named = broken_by(|| {
            carry(&board, rest);
            touch(&board, port);
            carry(&board, late);
        });
        assert_eq!(named, name, "port {port}");
    }
}

macro_rules! steps {
    ($($test:ident: $name:literal,)+) => {
        /// The steps that have a test here.
        const TESTED: &[&str] = &[$($name),+];

        $(mod $test {
            #[test]
            fn is_missed_where_it_is_left_out() {
                super::is_missed($name);
            }

            #[test]
            fn is_missed_where_it_comes_after_the_first_touch() {
                super::is_late_after_the_first_touch($name);
            }
        })+
    };
}

steps! {
    bus_gates: "bus gates",
    ohci_clock: "OHCI clock",
    bus_resets: "bus resets",
    phy_clock: "PHY clock",
    phy_reset: "PHY reset",
    phy_power: "PHY power",
    phy_calibration: "PHY calibration",
    phy_amplitude: "PHY amplitude",
    phy_disconnect_threshold: "PHY disconnect threshold",
    passby: "passby",
    phy_0_route: "PHY 0 route",
    pin_gate: "pin gate",
    vbus_level: "VBUS level",
    vbus_direction: "VBUS direction",
    vbus_settling: "VBUS settling",
}

#[test]
fn every_step_of_every_port_has_its_tests() {
    for port in 0..4 {
        for step in all_steps(port) {
            assert!(TESTED.contains(&step.name), "{:?} has no test", step.name);
        }
    }
}
