//! The whole stack on modelled hardware: what a user sees, with good devices and with odd ones.
//!
//! `every_step` makes one thing go wrong at every step there is. A field report becomes a test in
//! `field_cases`, named after what the device does.

mod attempts;
mod controllers;
mod events;
mod every_step;
mod exhausted_pool;
mod field_cases;
mod good_disk;
mod leaving;
mod letting_go;
mod medium;
mod persistent;
mod quirks;
mod recovery;
mod rig;
mod staging;
mod two_disks;
mod uas;
mod uas_choice;
