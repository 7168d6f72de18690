//! The whole stack on modelled hardware: what a user sees, with good devices and with odd ones.
//!
//! A field report becomes a test in `field_cases`, named after what the device does.

mod attempts;
mod field_cases;
mod good_disk;
mod leaving;
mod letting_go;
mod persistent;
mod recovery;
mod rig;
