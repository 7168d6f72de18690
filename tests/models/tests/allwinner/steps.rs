//! One test per step: without it, and with it after the controller was touched, the run fails and
//! the model names that very step.

use super::rig::{KINDS, Kind, all_steps, broken_by, carry, cold, touch};

/// The chips and ports that have the step.
fn places_with(name: &'static str) -> impl Iterator<Item = (Kind, u8)> {
    let ports = |kind: Kind| kind.ports().map(move |port| (kind, port));
    let all = KINDS.into_iter().flat_map(ports);
    all.filter(move |(kind, port)| all_steps(*kind, *port).iter().any(|step| step.name == name))
}

fn is_missed(name: &'static str) {
    assert!(
        places_with(name).next().is_some(),
        "no port has the step {name:?}"
    );
    for (kind, port) in places_with(name) {
        let steps = all_steps(kind, port).into_iter();
        let rest = steps.filter(|step| step.name != name);
        let board = cold(kind, port);
        let named = broken_by(|| {
            carry(kind, &board, rest);
            touch(kind, &board, port);
        });
        assert_eq!(named, name, "{} port {port}", kind.name);
    }
}

fn is_late_after_the_first_touch(name: &'static str) {
    for (kind, port) in places_with(name) {
        let (late, rest): (Vec<_>, Vec<_>) = all_steps(kind, port)
            .into_iter()
            .partition(|step| step.name == name);
        let board = cold(kind, port);
        let named = broken_by(|| {
            carry(kind, &board, rest);
            touch(kind, &board, port);
            carry(kind, &board, late);
        });
        assert_eq!(named, name, "{} port {port}", kind.name);
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
    for kind in KINDS {
        for step in kind.ports().flat_map(|port| all_steps(kind, port)) {
            assert!(TESTED.contains(&step.name), "{:?} has no test", step.name);
        }
    }
}
