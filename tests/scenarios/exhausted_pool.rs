//! A pool that is too small by any amount: what does not fit fails with a reason, leaks nothing, and
//! its neighbour lives.

use std::collections::BTreeSet;

use crate::controller::{self, Faults};
use crate::rig::{HIGH_PORT, OTHER_PORT, POOL, Rig};
use rootport::host::{ControllerFault, HostError};
use rootport::time::Duration;
use rootport::usb::{ControllerState, DeviceInfo, DeviceState, PortState, UsbError};
use rootport_models::device::field::good_stick;
use rootport_models::machine::Options;

/// The granule of the pool: each step takes one more piece's worth away.
const GRANULE: usize = 128;

fn with_pool(bytes: usize) -> Rig {
    Rig::with_pool(
        Options::default(),
        controller::usual(),
        Faults::none(),
        bytes,
    )
}

/// Bytes of the pool with a controller alone, with one disk, and with two.
fn needs() -> [usize; 3] {
    let mut rig = with_pool(POOL);
    rig.run(Duration::from_millis(500));
    let alone = rig.pool_used();
    rig.disk(HIGH_PORT, good_stick());
    let one = rig.host.pool_usage().high_water;
    rig.disk(OTHER_PORT, good_stick());
    // A pool that is all used leaves gaps in front of what must be aligned.
    let mut sizes = (one.next_multiple_of(GRANULE)..).step_by(GRANULE);
    let fits = sizes.find(|bytes| has_room_for_a_disk(*bytes));
    let one = fits.expect("there is such a size");
    [alone, one, rig.host.pool_usage().high_water]
}

fn has_room_for_a_disk(bytes: usize) -> bool {
    let mut rig = with_pool(bytes);
    !rig.settle(HIGH_PORT, good_stick()).is_empty()
}

fn is_pool_error(error: UsbError) -> bool {
    matches!(error, UsbError::Controller(HostError::PoolExhausted))
}

#[test]
fn a_controller_that_does_not_fit_fails_with_the_reason() {
    let [alone, ..] = needs();
    for bytes in (4096..alone).step_by(4096) {
        let mut rig = with_pool(bytes);
        rig.run(Duration::from_secs(2));
        let (_, state, _) = rig.host.bus().controllers().next().unwrap();
        assert!(
            matches!(
                state,
                ControllerState::Failed(ControllerFault::PoolExhausted)
            ),
            "{bytes} bytes: {state:?}"
        );
    }
}

#[test]
fn a_disk_that_does_not_fit_is_refused_with_the_reason_and_its_neighbour_lives() {
    let [_, one, two] = needs();
    let mut refused = 0;
    let mut held = BTreeSet::new();
    for bytes in (one..two).step_by(GRANULE) {
        let mut rig = with_pool(bytes);
        rig.run(Duration::from_millis(500));
        let neighbour = rig.disk(OTHER_PORT, good_stick());
        rig.run(Duration::from_millis(10));
        let before = rig.pool_used();
        rig.plug(HIGH_PORT, good_stick());
        rig.run(Duration::from_secs(8));
        rig.check(neighbour, 3, 40);
        match rig.port_state(HIGH_PORT) {
            PortState::Failed(error) => {
                assert!(is_pool_error(error), "{bytes} bytes: {error:?}");
                refused += 1;
            }
            PortState::Occupied(_) if rig.units_at(HIGH_PORT).is_empty() => {
                let of = |device: DeviceInfo| match device.state {
                    DeviceState::Failed(error) => Some(error),
                    _ => None,
                };
                let failed = rig.host.bus().devices().find_map(of);
                assert!(
                    failed.is_some_and(is_pool_error),
                    "{bytes} bytes: {failed:?}"
                );
                let log = rig.machine.log();
                let of = format!(" bytes in one piece, of {bytes} there are ");
                assert!(log.iter().any(|line| line.contains(&of)), "{log:?}");
                held.insert(rig.pool_used() - before);
                refused += 1;
            }
            PortState::Occupied(_) => {}
            other => panic!("{bytes} bytes: {other:?}"),
        }
        rig.unplug(HIGH_PORT);
        assert_eq!(rig.pool_used(), before, "{bytes} bytes");
        // What does not fit beside another fits alone.
        rig.unplug(OTHER_PORT);
        let disk = rig.disk(HIGH_PORT, good_stick());
        rig.check(disk, 0, 8);
    }
    assert!(
        refused > 20,
        "{refused} of the sizes from {one} to {two} were too small"
    );
    assert!(
        held.len() <= 1,
        "a device that waits for more holds what it needs itself, and no pipe: {held:?}"
    );
}
