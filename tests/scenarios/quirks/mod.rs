//! Devices that need a policy, and their neighbours that must not get it.
//!
//! Each device is modelled with the fault that its policy is for: without the policy it would not
//! work, or not well. Its neighbour has another product id or release, and what the policy does must
//! not be seen on it.

mod attached;
mod bus;
mod capacity;
mod identity;
mod overrides;
mod questions;
mod rare;
mod sense;
mod transfers;
mod wrappers;

use rootport::storage::quirks::Quirks;
use rootport_models::device::{Disk, Script};

use crate::rig::{HIGH_PORT, Rig, with_disk};

/// A stick with these ids and this release.
fn stick(vendor: u16, product: u16, release: u16) -> Script {
    Script::new().ids(vendor, product).release(release)
}

/// What is honoured for a device at high speed, once it is a disk.
fn honoured(device: &Disk) -> Quirks {
    let (rig, _) = with_disk(device);
    rig.units_at(HIGH_PORT)[0].quirks
}

/// A read, a write and a flush succeed.
fn works(rig: &mut Rig, disk: rootport::block::queue::DiskId) {
    rig.check(disk, 3, 4);
    rig.write(disk, 9, &[0x5a; 512]).unwrap();
    rig.flush(disk).unwrap();
    assert_eq!(rig.read(disk, 9, 512).unwrap(), [0x5a; 512]);
}
