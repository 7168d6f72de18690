//! [`Shared`]: a modelled device to plug in, and at the same time the test's handle on it.
//!
//! Clones are the same device: one goes into the machine, the other stays with the test, which asks
//! what the host did and changes the device while it runs. What only one kind of device can be asked
//! is with that kind.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::base::{Device, Function};
use super::{Link, Nanoseconds, Packet, Reply, UsbDevice, Violation, Violations};

/// A device that does `F`.
pub struct Shared<F>(Arc<Mutex<Device<F>>>);

impl<F> Clone for Shared<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F> Shared<F> {
    pub(super) fn new(device: Device<F>) -> Self {
        Self(Arc::new(Mutex::new(device)))
    }

    /// The ends of all bus resets.
    #[must_use]
    pub fn bus_resets(&self) -> Vec<Nanoseconds> {
        self.lock().trace.resets.clone()
    }

    /// Changes anything while it runs: hooks, control table, recovery times.
    pub fn change<R>(&self, work: impl FnOnce(&mut Device<F>) -> R) -> R {
        work(&mut self.lock())
    }

    /// Pulls the plug at the transaction with this number from now on, counted from 1. That one gets
    /// no answer any more.
    pub fn pull_at(&self, transaction: u64) {
        self.lock().pulled_after = Some(transaction);
    }

    /// Puts the plug back in after [`Self::pull_at`]: the next power-on finds the device.
    pub fn put_back(&self) {
        self.lock().pulled_after = None;
    }

    /// What the host did wrong; a test that provokes it must take it.
    #[must_use]
    pub fn faults(&self) -> Violations {
        self.lock().violations.clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Device<F>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Function> UsbDevice for Shared<F> {
    fn link(&self, now: Nanoseconds) -> Option<Link> {
        self.lock().link(now)
    }

    fn link_changes_at(&self, now: Nanoseconds) -> Option<Nanoseconds> {
        self.lock().link_changes_at(now)
    }

    fn power_on(&mut self, now: Nanoseconds) {
        self.lock().power_on(now);
    }

    fn power_off(&mut self, now: Nanoseconds) {
        self.lock().power_off(now);
    }

    fn bus_reset(&mut self, now: Nanoseconds, link: Link) {
        self.lock().bus_reset(now, link);
    }

    fn transact(
        &mut self,
        now: Nanoseconds,
        address: u8,
        endpoint: u8,
        packet: Packet<'_>,
    ) -> Reply {
        self.lock().transact(now, address, endpoint, packet)
    }

    fn ready_at(&self, endpoint: u8, stream: u16) -> Option<Nanoseconds> {
        self.lock().ready_at(endpoint, stream)
    }

    fn streams_ready(&self, now: Nanoseconds, endpoint: u8) -> Vec<(Nanoseconds, u16)> {
        self.lock().streams_ready(now, endpoint)
    }

    fn packets_at_once(&self, endpoint: u8) -> Option<u32> {
        self.lock().packets_at_once(endpoint)
    }

    fn violations(&self) -> Vec<Violation> {
        UsbDevice::violations(&*self.lock())
    }
}
