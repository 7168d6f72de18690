//! [`Disk`]: a modelled Bulk-Only disk to plug in, and at the same time the test's handle on it.
//!
//! Clones are the same disk: one goes into the machine, the other stays with the test, which asks
//! what the host did and changes the disk while it runs. Made by a [`Script`](super::Script).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::base::{Device, Request};
use super::bot::{BulkOnly, Exchange};
use super::scsi::{Command, LogicalUnit};
use super::setup::Setup;
use super::{Link, Nanoseconds, Packet, Reply, UsbDevice, Violation, Violations};

/// A Bulk-Only disk.
#[derive(Clone)]
pub struct Disk {
    shared: Arc<Mutex<Device<BulkOnly>>>,
}

impl Disk {
    pub(super) fn new(device: Device<BulkOnly>) -> Self {
        Self {
            shared: Arc::new(Mutex::new(device)),
        }
    }

    /// Every SCSI command that came, oldest first.
    #[must_use]
    pub fn commands(&self) -> Vec<Command> {
        self.lock().function.target.commands.clone()
    }

    /// How many commands with this operation code came.
    #[must_use]
    pub fn count(&self, opcode: u8) -> usize {
        let device = self.lock();
        let commands = &device.function.target.commands;
        commands
            .iter()
            .filter(|command| command.opcode() == opcode)
            .count()
    }

    /// The operation codes of all commands, oldest first.
    #[must_use]
    pub fn opcodes(&self) -> Vec<u8> {
        self.lock()
            .function
            .target
            .commands
            .iter()
            .map(Command::opcode)
            .collect()
    }

    /// The most blocks that one READ, WRITE or VERIFY asked for.
    #[must_use]
    pub fn longest_transfer(&self) -> u32 {
        let device = self.lock();
        let commands = device.function.target.commands.iter();
        let moving = commands.filter(|command| !matches!(command.opcode(), 0x35 | 0x91 | 0x93));
        moving
            .filter_map(Command::extent)
            .map(|extent| extent.blocks)
            .max()
            .unwrap_or(0)
    }

    /// Every command as it travelled: wrapper, case, status.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.lock().function.exchanges.clone()
    }

    /// Every control request and its time, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<(Nanoseconds, Setup)> {
        self.lock().trace.requests.clone()
    }

    /// How many such control requests came.
    #[must_use]
    pub fn count_requests(&self, request: Request) -> usize {
        self.lock()
            .trace
            .requests
            .iter()
            .filter(|(_, setup)| request.matches(setup))
            .count()
    }

    /// Every STALL of a bulk pipe: when, and which (bit 7 set: IN). One for each halt is right.
    #[must_use]
    pub fn stalls(&self) -> Vec<(Nanoseconds, u8)> {
        self.lock().trace.stalls.clone()
    }

    /// The ends of all bus resets.
    #[must_use]
    pub fn bus_resets(&self) -> Vec<Nanoseconds> {
        self.lock().trace.resets.clone()
    }

    /// The moments at which power came.
    #[must_use]
    pub fn power_ons(&self) -> Vec<Nanoseconds> {
        self.lock().trace.power_ons.clone()
    }

    /// A block of unit 0 as the host would read it.
    #[must_use]
    pub fn block(&self, lba: u64) -> Vec<u8> {
        self.unit(0, |unit| unit.image.block(lba))
    }

    /// A block of unit 0 as it would be after a power cut.
    #[must_use]
    pub fn durable_block(&self, lba: u64) -> Vec<u8> {
        self.unit(0, |unit| unit.image.durable(lba))
    }

    /// Looks at a logical unit, or changes it.
    ///
    /// # Panics
    /// If there is no such unit.
    pub fn unit<R>(&self, lun: usize, work: impl FnOnce(&mut LogicalUnit) -> R) -> R {
        let mut device = self.lock();
        let unit = device
            .function
            .target
            .units
            .get_mut(lun)
            .expect("no such logical unit");
        work(unit)
    }

    /// Changes anything else: hooks, control table, recovery times.
    pub fn change<R>(&self, work: impl FnOnce(&mut Device<BulkOnly>) -> R) -> R {
        work(&mut self.lock())
    }

    /// Pulls the plug at the transaction with this number from now on, counted from 1. That one gets
    /// no answer any more.
    pub fn pull_at(&self, transaction: u64) {
        self.lock().pulled_after = Some(transaction);
    }

    /// Puts the plug back in after [`Self::pull_at`]: the next power-on finds the disk.
    pub fn put_back(&self) {
        self.lock().pulled_after = None;
    }

    /// What the host did wrong; a test that provokes it must take it.
    #[must_use]
    pub fn faults(&self) -> Violations {
        self.lock().violations.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Device<BulkOnly>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UsbDevice for Disk {
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

    fn violations(&self) -> Vec<Violation> {
        UsbDevice::violations(&*self.lock())
    }
}
