//! One test per step: without it the run fails and the model names that very step; and where it comes late, with all
//! of them gone through once more, the port works: no step minds what was left half done.

use super::rig::{KINDS, Kind, all_steps, broken_by, cold, go_through, touch};

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
        let rest: Vec<_> = steps.filter(|step| step.name != name).collect();
        let board = cold(kind, port);
        let named = broken_by(|| {
            go_through(kind, &board, rest);
            touch(kind, &board, port);
        });
        assert_eq!(named, name, "{} port {port}", kind.name);
    }
}

fn is_late_after_the_first_touch(name: &'static str) {
    for (kind, port) in places_with(name) {
        let steps = all_steps(kind, port).into_iter();
        let rest: Vec<_> = steps.filter(|step| step.name != name).collect();
        let board = cold(kind, port);
        let named = broken_by(|| {
            go_through(kind, &board, rest);
            touch(kind, &board, port);
        });
        assert_eq!(named, name, "{} port {port}", kind.name);
        go_through(kind, &board, all_steps(kind, port));
        touch(kind, &board, port);
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
            fn that_comes_after_the_first_touch_is_mended_by_going_through_all() {
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
    ohci_at_rest: "OHCI at rest",
    pin_gate: "pin gate",
    input_pull: "input pull",
    input_direction: "input direction",
    input_settling: "input settling",
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
