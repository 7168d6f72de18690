//! Disks and controllers that go wrong at random, callers that do what they like, and what must hold
//! whatever happens: no wrong data, no silent loss, every call in time, the neighbour unharmed, no
//! memory lost.
//!
//! A trial is decided by its seed. `ROOTPORT_TRIALS=N` runs N seeds of each kind in place of the few of
//! every day; a failure names its seed, and `ROOTPORT_SEED=S` runs that one alone, or N from there on.

mod faults;
mod ledger;
mod trial;

use std::env;

use rootport_models::device::scsi::{CacheLoss, LogicalUnit};
use rootport_models::device::{BothScript, Link, Script, UasScript};
use rootport_models::random::Random;

use crate::controller::LINKS;
use crate::rig::port_for;
use faults::Plan;
use trial::{BLOCKS, Trial};

/// Seeds of every day, for each kind of disk and each link.
const SEEDS: u64 = 40;

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

fn seeds() -> core::ops::Range<u64> {
    let (first, count) = (number("ROOTPORT_SEED"), number("ROOTPORT_TRIALS"));
    let usual = if first.is_some() { 1 } else { SEEDS };
    let first = first.unwrap_or(0);
    first..first + count.unwrap_or(usual)
}

/// A disk with a cache that forgets, of one kind or the other.
fn unit(link: Link, random: &mut Random) -> LogicalUnit {
    let loss = match random.below(2) {
        0 => CacheLoss::BusReset,
        _ => CacheLoss::PowerCycle,
    };
    let unit = match link {
        Link::Super => LogicalUnit::disk(BLOCKS, ledger::BLOCK),
        _ => LogicalUnit::stick(BLOCKS),
    };
    unit.write_cache(loss)
}

#[test]
fn a_bulk_only_disk_that_goes_wrong_at_random_loses_nothing_in_silence() {
    for &link in LINKS {
        for seed in seeds() {
            let mut random = Random::new(seed << 8 | 1);
            let mut plan = Plan::new(&mut random, port_for(link), &[0x81, 0x02]);
            let script = Script::new().speed(link).unit(unit(link, &mut random));
            let script = plan
                .bulk_only(&mut random)
                .into_iter()
                .fold(script, |script, hook| script.on(hook.when, hook.action));
            Trial::new(link, seed, plan, script.build()).run(&mut random);
        }
    }
}

#[test]
fn a_uas_disk_that_goes_wrong_at_random_loses_nothing_in_silence() {
    for &link in LINKS {
        for seed in seeds() {
            let mut random = Random::new(seed << 8 | 2);
            let mut plan = Plan::new(&mut random, port_for(link), &[0x01, 0x82, 0x83, 0x04]);
            let unit = unit(Link::Super, &mut random);
            let script = UasScript::new().speed(link).unit(unit);
            let script = script.manners(Plan::manners(&mut random));
            let script = plan
                .uas(&mut random)
                .into_iter()
                .fold(script, |script, fault| script.fault(fault));
            Trial::new(link, seed, plan, script.build()).run(&mut random);
        }
    }
}

/// It falls back to Bulk-Only where UAS fails too often.
#[test]
fn a_bridge_that_goes_wrong_over_both_transports_loses_nothing_in_silence() {
    for &link in LINKS {
        for seed in seeds() {
            let mut random = Random::new(seed << 8 | 3);
            let pipes = [0x01, 0x82, 0x83, 0x04, 0x85, 0x06];
            let mut plan = Plan::new(&mut random, port_for(link), &pipes);
            let script = BothScript::new()
                .speed(link)
                .unit(unit(Link::Super, &mut random))
                .manners(Plan::manners(&mut random));
            let script = plan
                .uas(&mut random)
                .into_iter()
                .fold(script, |script, fault| script.fault(fault));
            let (bridge, hooks) = (script.build(), plan.bulk_only(&mut random));
            bridge.change(|device| device.function.bulk_only.hooks = hooks);
            Trial::new(link, seed, plan, bridge).run(&mut random);
        }
    }
}
