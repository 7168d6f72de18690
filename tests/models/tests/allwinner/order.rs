//! Steps that come before what they stand on: the model names what should have come first.

use rootport::soc::allwinner::{Action, Step};
use rootport::time::Duration;

use super::rig::{CHIP_H3, KINDS, Kind, all_steps, broken_by, cold, go_through, touch};

/// `second` needs `first`: with `second` moved to just before it, `first` is named.
const NEEDS: &[(&str, &str)] = &[
    ("bus resets", "bus gates"),
    ("PHY power", "bus resets"),
    ("PHY power", "bus gates"),
    ("passby", "bus resets"),
    ("passby", "bus gates"),
    ("PHY calibration", "PHY reset"),
    ("PHY amplitude", "PHY clock"),
    ("PHY amplitude", "PHY reset"),
    ("PHY disconnect threshold", "PHY clock"),
    ("input pull", "pin gate"),
    ("input direction", "pin gate"),
    ("input settling", "input pull"),
    ("input settling", "input direction"),
    ("VBUS level", "pin gate"),
    ("VBUS direction", "pin gate"),
    ("VBUS direction", "VBUS level"),
    ("VBUS settling", "VBUS direction"),
];

/// The steps with `second` just before `first`.
fn swapped(kind: Kind, port: u8, second: &str, first: &str) -> Option<Vec<Step>> {
    let mut steps = all_steps(kind, port);
    let place = |steps: &[Step], name| steps.iter().position(|step| step.name == name);
    let moved = steps.remove(place(&steps, second)?);
    steps.insert(place(&steps, first)?, moved);
    Some(steps)
}

#[test]
fn a_step_before_what_it_stands_on_is_caught() {
    for &(second, first) in NEEDS {
        let ports = |kind: Kind| kind.ports().map(move |port| (kind, port));
        let places = KINDS.into_iter().flat_map(ports);
        let orders: Vec<_> = places
            .filter_map(|(kind, port)| Some((kind, port, swapped(kind, port, second, first)?)))
            .collect();
        assert!(!orders.is_empty(), "no port has {second:?} and {first:?}");
        for (kind, port, steps) in orders {
            let board = cold(kind, port);
            let named = broken_by(|| {
                go_through(kind, &board, steps);
                touch(kind, &board, port);
            });
            // What comes too late to settle is the settling's own fault.
            let expected = if second.ends_with("settling") {
                second
            } else {
                first
            };
            let place = format!("{} port {port}", kind.name);
            assert_eq!(named, expected, "{place}: {second} before {first}");
        }
    }
}

#[test]
fn a_millisecond_too_little_for_vbus_is_caught() {
    let mut steps = all_steps(CHIP_H3, 0);
    let last = steps.last_mut().unwrap();
    let Action::Wait(time) = last.action else {
        panic!("the last step waits");
    };
    last.action = Action::Wait(Duration::from_micros(time.as_micros() - 1_000));
    let board = cold(CHIP_H3, 0);
    let named = broken_by(|| {
        go_through(CHIP_H3, &board, steps);
        touch(CHIP_H3, &board, 0);
    });
    assert_eq!(named, "VBUS settling");
}

#[test]
fn a_wrong_setting_is_caught_by_its_name() {
    for name in [
        "PHY calibration",
        "PHY amplitude",
        "PHY disconnect threshold",
    ] {
        let mut steps = all_steps(CHIP_H3, 0);
        for step in &mut steps {
            if let Action::Shift { value, .. } = &mut step.action
                && step.name == name
            {
                *value ^= 1;
            }
        }
        let board = cold(CHIP_H3, 0);
        let named = broken_by(|| {
            go_through(CHIP_H3, &board, steps);
            touch(CHIP_H3, &board, 0);
        });
        assert_eq!(named, name);
    }
}
