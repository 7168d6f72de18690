//! [`Translators`]: what hubs do with split transactions (USB 2.0 §11.14 to §11.18).
//!
//! A hub's transaction translator takes a start-split, makes the transaction on the slow bus below,
//! and gives the result to a later complete-split. It keeps two control or bulk transactions at a
//! time, and its slow bus does one after the other.
//!
//! It lives in the controller's model for now: any hub address has one translator
//! ([`Traits::translators`](super::Traits::translators) can say which a test expects), and the device is reached through [`Ehci::transact`] as the hub device passes it on. What a hub device will add: that
//! it *is* a hub of this address at high speed, one translator per port where it says so, and
//! CLEAR_TT_BUFFER (here a new start-split of the same endpoint replaces an abandoned one).

use std::collections::BTreeMap;

use super::execute::{Outgoing, Went};
use super::timing;
use crate::device::Nanoseconds;

/// Control and bulk transactions that a translator keeps (USB 2.0 §11.17).
const BUFFERS: usize = 2;

/// A transaction on its way through a translator.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) device: u8,
    pub(super) endpoint: u8,
    pub(super) outgoing: Outgoing,
    pub(super) periodic: bool,
    done_at: Nanoseconds,
}

impl Job {
    pub(super) fn new(device: u8, endpoint: u8, outgoing: Outgoing, periodic: bool) -> Self {
        Self {
            device,
            endpoint,
            outgoing,
            periodic,
            done_at: 0,
        }
    }

    fn is_of(&self, device: u8, endpoint: u8) -> bool {
        (self.device, self.endpoint) == (device, endpoint)
    }
}

/// The translator of one hub.
#[derive(Debug, Default)]
struct Translator {
    jobs: Vec<Job>,
    free_at: Nanoseconds,
}

/// All translators, by the hub's address.
#[derive(Debug, Default)]
pub(super) struct Translators {
    hubs: BTreeMap<u8, Translator>,
}

impl Translators {
    pub(super) fn reset(&mut self) {
        self.hubs.clear();
    }

    /// A start-split: whether the translator takes it.
    pub(super) fn start(
        &mut self,
        now: Nanoseconds,
        hub: u8,
        low_speed: bool,
        mut job: Job,
    ) -> bool {
        let translator = self.hubs.entry(hub).or_default();
        translator
            .jobs
            .retain(|other| !other.is_of(job.device, job.endpoint));
        let busy = translator.jobs.iter().filter(|job| !job.periodic).count();
        if !job.periodic && busy >= BUFFERS {
            return false;
        }
        let begins = translator.free_at.max(now);
        let bytes = job.outgoing.room.max(job.outgoing.data.len());
        job.done_at = begins + timing::slow(bytes, low_speed);
        translator.free_at = job.done_at;
        translator.jobs.push(job);
        true
    }

    /// A complete-split: the transaction if the slow bus is done with it, `Ok(None)` while it is
    /// not, an error if the translator knows of none.
    pub(super) fn complete(
        &mut self,
        now: Nanoseconds,
        hub: u8,
        device: u8,
        endpoint: u8,
    ) -> Result<Option<Job>, Went> {
        let jobs = &mut self.hubs.entry(hub).or_default().jobs;
        let index = jobs.iter().position(|job| job.is_of(device, endpoint));
        // USB 2.0 §11.17.1: STALL where no start-split matches.
        let index = index.ok_or(Went::Halts(0))?;
        if jobs[index].done_at > now {
            return Ok(None);
        }
        Ok(Some(jobs.remove(index)))
    }
}
