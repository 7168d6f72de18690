//! Board images in QEMU, scenario by scenario. Each test starts its own machine.

mod demo;
mod discards;
mod hot_plug;
mod next_stage;
mod odd_disks;
mod orange_pi;
mod reach;
mod several_disks;
mod start;
mod uas;
