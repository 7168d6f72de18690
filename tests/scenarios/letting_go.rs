//! Memory goes back to its owner only when no device can reach it, whatever goes wrong and whenever.
//!
//! The models panic when a controller reaches memory that was returned. So a test here runs whole
//! lives of a disk, each with one thing going wrong a little later than in the one before, and asks
//! for an end in time.

use crate::controller::{self, Death, Faults, MENDABLE};
use crate::rig::{HIGH_PORT, ModelHost, Rig};
use rootport::block::{BlockDevice, Lba};
use rootport::time::{Duration, Instant};
use rootport_models::device::Script;
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::machine::Options;

/// Longer than any call may take: a command and its retry, each with an episode of recovery, and a
/// controller that is started again.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of a life.
#[derive(Debug)]
pub(crate) struct Life {
    /// When the disk was found.
    found: Option<Instant>,
    /// When the last call ended.
    ended: Instant,
    /// Calls that went well, of 6.
    pub(crate) good: usize,
}

pub(crate) fn stick() -> Script {
    Script::new().unit(LogicalUnit::stick(4096))
}

/// A disk is found, then written and read with buffers that are gone after each call.
pub(crate) fn live(faults: Faults) -> Life {
    live_with(faults, stick())
}

pub(crate) fn live_with(faults: Faults, script: Script) -> Life {
    let mut rig = Rig::faulty(Options::default(), controller::usual(), faults);
    rig.plug(HIGH_PORT, script.build());
    let is_found = |host: &ModelHost| host.first_disk().is_ok();
    rig.host.poll_until(Duration::from_secs(20), is_found);
    let disk = rig.host.first_disk();
    let found = disk.is_ok().then(|| rig.now());
    let mut good = 0;
    for lba in [0, 64, 128] {
        let Ok(disk) = disk else { break };
        let mut buffer = rig.machine.buffer(64 * 512, 0);
        let before = rig.now();
        good += usize::from(rig.host.disk(disk).write(Lba(lba), &buffer).is_ok());
        good += usize::from(rig.host.disk(disk).read(Lba(lba), &mut buffer).is_ok());
        let took = rig.now().as_micros() - before.as_micros();
        assert!(took < 2 * PATIENCE.as_micros(), "{took} µs");
    }
    let ended = rig.now();
    // What still reaches for memory of the past does it now.
    rig.run(Duration::from_secs(20));
    Life { found, ended, good }
}

#[test]
fn a_life_without_faults_is_good() {
    let life = live(Faults::none());
    assert!(life.found.is_some());
    assert_eq!(life.good, 6);
}

#[test]
fn a_device_may_be_pulled_at_any_transaction() {
    for transaction in (0..60).chain((60..440).step_by(13)) {
        let mut faults = Faults::none();
        faults.unplug_at.insert(HIGH_PORT, transaction);
        let life = live(faults);
        assert!(life.good < 6, "{transaction}: {life:?}");
    }
}

#[test]
fn a_controller_may_die_at_any_moment() {
    let life = live(Faults::none());
    let found = life.found.map_or(0, Instant::as_micros);
    let enumeration = (1_000..found).step_by(30_000);
    let calls = (found..life.ended.as_micros()).step_by(400);
    let moments: Vec<_> = enumeration.chain(calls).collect();
    for death in [&[Death::AllOnes], MENDABLE].concat() {
        for moment in &moments {
            let mut faults = Faults::none();
            faults.death = Some((moment * 1_000, death));
            live(faults);
        }
    }
}
