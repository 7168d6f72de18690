//! What a disk speaks: commands, their answers, and what a failure means.
//!
//! `storage` carries the commands; `block` is what callers see of the disk. Everything on the wire
//! is big-endian. Read SPC-4 for what all devices have in common, SBC-3 for disks.

pub mod ata;
pub mod bring_up;
pub mod capacity;
pub mod cdb;
pub mod details;
pub mod inquiry;
pub mod luns;
pub mod mode;
pub mod sense;
pub mod transport;
pub mod unit;
pub mod vpd;
