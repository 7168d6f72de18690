//! The n-th piece of the pool that is asked for is refused, for every n: the ledger has no line for it. What
//! does not fit fails with that reason, keeps nothing, and its neighbour lives.

use crate::controller::LINKS;
use crate::rig::{CALL_LIMIT, HIGH_PORT, OTHER_PORT, Rig, disk_at, port_for};
use rootport::host::{ControllerFault, HostError};
use rootport::time::Duration;
use rootport::usb::{ControllerState, DeviceState, PortState, UsbError};
use rootport_models::device::field::good_stick;
use rootport_models::device::{BothScript, UsbDevice};
use rootport_models::machine::Options;

/// More lines than a controller, a neighbour and any disk need.
const AMPLE: usize = 40;

fn rig(lines: usize) -> Rig {
    let options = Options {
        seed: lines as u64 + 1,
        ..Options::default()
    };
    Rig::with_ledger(options, lines)
}

fn is_ledger_error(error: UsbError) -> bool {
    matches!(error, UsbError::Controller(HostError::LedgerFull))
}

#[test]
fn a_controller_without_a_line_for_each_of_its_pieces_says_so() {
    for lines in 0.. {
        let mut rig = rig(lines);
        rig.run(Duration::from_secs(2));
        match rig.controller_state() {
            ControllerState::Failed(ControllerFault::LedgerFull) => {
                assert_eq!(rig.pool_used(), 0, "{lines} lines");
            }
            ControllerState::Running => {
                assert!(lines > 1);
                return;
            }
            other => panic!("{lines} lines: {other:?}"),
        }
    }
}

/// Plugs a device in beside a neighbour, with every number of lines for which both are not served.
fn is_refused_and_keeps_nothing(port: usize, device: impl Fn() -> Box<dyn UsbDevice>) {
    let mut refused = 0;
    for lines in 0..AMPLE {
        let mut rig = rig(lines);
        rig.run(Duration::from_millis(500));
        if rig.controller_state() != ControllerState::Running {
            continue;
        }
        rig.plug(OTHER_PORT, good_stick());
        if !matches!(rig.settle_port(OTHER_PORT), PortState::Occupied(_))
            || rig.units_at(OTHER_PORT).is_empty()
        {
            continue;
        }
        let neighbour = rig.wait_for_disk(OTHER_PORT);
        rig.run(Duration::from_millis(10));
        let before = rig.pool_used();
        rig.machine.plug_boxed(0, port, device());
        rig.run(Duration::from_secs(8));
        rig.within(CALL_LIMIT, |rig| rig.check(neighbour, 3, 40));
        let failed = rig
            .host
            .bus()
            .devices()
            .find_map(|device| match device.state {
                DeviceState::Failed(error) => Some(error),
                _ => None,
            });
        let error = match rig.port_state(port) {
            PortState::Failed(error) => Some(error),
            _ => failed,
        };
        match error {
            Some(error) => {
                assert!(is_ledger_error(error), "{lines} lines: {error:?}");
                refused += 1;
            }
            None => {
                let disk = rig.wait_for_disk(port);
                rig.check(disk, 1, 20);
            }
        }
        rig.unplug(port);
        assert_eq!(rig.pool_used(), before, "{lines} lines");
        // What finds no line beside another finds one alone.
        rig.unplug(OTHER_PORT);
        rig.machine.plug_boxed(0, port, device());
        let disk = rig.wait_for_disk(port);
        rig.check(disk, 0, 8);
    }
    assert!(refused >= 3, "{refused}");
}

#[test]
fn a_disk_without_a_line_for_each_of_its_pieces_is_refused_and_its_neighbour_lives() {
    is_refused_and_keeps_nothing(HIGH_PORT, || Box::new(good_stick()));
    for link in LINKS {
        is_refused_and_keeps_nothing(port_for(*link), || Box::new(disk_at(*link).build()));
    }
}

#[test]
fn a_uas_disk_without_a_line_for_each_of_its_pieces_is_refused_and_its_neighbour_lives() {
    for link in LINKS {
        is_refused_and_keeps_nothing(port_for(*link), || {
            Box::new(BothScript::new().speed(*link).build())
        });
    }
}
