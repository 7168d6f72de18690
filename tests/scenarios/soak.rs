//! Long runs: what is used again and again does not run out, and nothing is lost with each turn. The counts are
//! above 256, so that every number of eight bits has gone round.

use crate::controller::{self, Faults, HALTING, LINKS};
use crate::rig::{CALL_LIMIT, HIGH_PORT, OTHER_PORT, Rig, disk_at, port_for};
use rootport::time::Duration;
use rootport_models::device::field::good_stick;
use rootport_models::device::{BothScript, Link};
use rootport_models::machine::Options;

const TURNS: u64 = 300;

/// Plugs disks in and pulls them out, in two ports that take turns.
fn plug_again_and_again(link: Link, turns: u64) {
    let mut rig = Rig::default();
    let neighbour = rig.disk(OTHER_PORT, good_stick());
    rig.run(Duration::from_millis(1));
    let held = rig.host.pool_usage();
    for turn in 0..turns {
        let port = port_for(link);
        let disk = match turn % 2 {
            0 => rig.disk(port, disk_at(link).build()),
            _ => rig.disk(port, BothScript::new().speed(link).build()),
        };
        rig.check(disk, turn, 1 + turn % 5);
        rig.unplug(port);
        let now = rig.host.pool_usage();
        assert_eq!(
            (now.used, now.by_class),
            (held.used, held.by_class),
            "turn {turn}"
        );
    }
    rig.check(neighbour, 0, 8);
}

#[test]
fn a_port_may_be_used_as_often_as_one_likes() {
    for &link in LINKS {
        plug_again_and_again(link, TURNS);
    }
}

/// Reads while every few transfers end in an error that halts the endpoint.
fn recover_again_and_again(turns: u64) {
    let mut faults = Faults::none();
    for turn in 0..turns {
        faults.transfers.insert((0x81, 40 + 9 * turn), HALTING[1]);
    }
    let mut rig = Rig::faulty(Options::default(), controller::usual(), faults);
    let neighbour = rig.disk(OTHER_PORT, good_other());
    let device = good_stick();
    let disk = rig.disk(HIGH_PORT, device.clone());
    rig.check(disk, 0, 8);
    let held = rig.pool_used();
    for turn in 0..3 * turns {
        rig.within(CALL_LIMIT, |rig| rig.check(disk, turn % 1000, 1 + turn % 5));
        assert_eq!(rig.pool_used(), held, "turn {turn}");
    }
    rig.check(neighbour, 0, 8);
    let requests = device.requests().len() as u64;
    assert!(
        requests >= turns,
        "each recovery asks something: {requests}"
    );
}

/// A disk with other pipes, so that its transfers are not those that go wrong.
fn good_other() -> rootport_models::device::Disk {
    rootport_models::device::Script::new()
        .pipes(0, 0x85, 0x06)
        .build()
}

#[test]
fn a_disk_may_be_recovered_as_often_as_one_likes() {
    recover_again_and_again(TURNS);
}
