//! [`Disk`]: what a test may ask a Bulk-Only disk. Made by a [`Script`](super::Script).

use super::base::Request;
use super::bot::{BulkOnly, Exchange};
use super::scsi::{Command, LogicalUnit};
use super::setup::Setup;
use super::{Nanoseconds, Shared};

/// A Bulk-Only disk.
pub type Disk = Shared<BulkOnly>;

impl Disk {
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
}
