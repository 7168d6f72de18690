//! What few callers ask of a disk: blocks given back and written alike, writes to the medium, the
//! write cache, further units, SMART. Each over Bulk-Only and over UAS.

mod discards;
mod forced_writes;
mod smart;
mod units;

use rootport::block::queue::DiskId;
use rootport::policy::{Policy, Trust};
use rootport::scsi::details::Details;
use rootport_models::device::scsi::{Command, LogicalUnit};
use rootport_models::device::{Disk, Link, Script, UasDisk, UasScript};

use crate::controller::LINKS;
use crate::rig::{HIGH_PORT, Rig, port_for};

/// The test's handle on a disk, whichever transport carries it.
pub(crate) enum Handle {
    BulkOnly(Disk),
    Uas(UasDisk),
}

impl Handle {
    /// All commands that came.
    pub(crate) fn commands(&self) -> Vec<Command> {
        match self {
            Self::BulkOnly(disk) => disk.commands(),
            Self::Uas(disk) => disk.change(|device| device.function.target.commands.clone()),
        }
    }

    /// The bytes of the commands with an operation code.
    pub(crate) fn sent(&self, opcode: u8) -> Vec<Vec<u8>> {
        let mut commands = self.commands();
        commands.retain(|command| command.opcode() == opcode);
        commands.into_iter().map(|command| command.cdb).collect()
    }

    /// Looks at unit 0, or changes it.
    pub(crate) fn unit<R>(&self, work: impl FnOnce(&mut LogicalUnit) -> R) -> R {
        match self {
            Self::BulkOnly(disk) => disk.unit(0, work),
            Self::Uas(disk) => disk.change(|device| work(&mut device.function.target.units[0])),
        }
    }

    /// A block as the host would read it.
    pub(crate) fn block(&self, lba: u64) -> Vec<u8> {
        self.unit(|unit| unit.image.block(lba))
    }

    /// A block as it would be after a power cut.
    pub(crate) fn durable(&self, lba: u64) -> Vec<u8> {
        self.unit(|unit| unit.image.durable(lba))
    }
}

/// A rig whose policy trusts everyone, so that Bulk-Only disks are asked what UAS disks are.
pub(crate) fn trusting() -> Rig {
    let mut rig = Rig::default();
    rig.host.set_policy(Policy {
        trust: Trust::Everyone,
        ..Policy::DEFAULT
    });
    rig
}

/// A unit over Bulk-Only, in a trusting rig or not.
pub(crate) fn bulk_only(mut rig: Rig, unit: LogicalUnit) -> (Rig, DiskId, Handle) {
    let device = Script::new().unit(unit).build();
    let disk = rig.disk(HIGH_PORT, device.clone());
    (rig, disk, Handle::BulkOnly(device))
}

/// A unit over UAS.
pub(crate) fn uas(rig: Rig, unit: LogicalUnit) -> (Rig, DiskId, Handle) {
    uas_at(Link::High, rig, unit)
}

fn uas_at(link: Link, mut rig: Rig, unit: LogicalUnit) -> (Rig, DiskId, Handle) {
    let device = UasScript::new().speed(link).unit(unit).build();
    let disk = rig.disk(port_for(link), device.clone());
    (rig, disk, Handle::Uas(device))
}

/// The same unit over Bulk-Only, trusted, and over UAS at each speed of the controller's ports, one
/// after the other.
pub(crate) fn over_both(unit: &LogicalUnit, test: impl Fn(Rig, DiskId, Handle)) {
    let (rig, disk, handle) = bulk_only(trusting(), unit.clone());
    test(rig, disk, handle);
    for link in LINKS {
        let (rig, disk, handle) = uas_at(*link, Rig::default(), unit.clone());
        test(rig, disk, handle);
    }
}

/// What a disk says of itself.
pub(crate) fn details(rig: &Rig, disk: DiskId) -> Details {
    let found = rig.host.disks().find(|found| found.id == disk);
    found.and_then(|found| found.details).expect("it is ready")
}
