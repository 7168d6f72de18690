//! The scenarios of the whole stack on a strict xHCI, and those that are about xHCI itself.

#[path = "scenarios/xhci/mod.rs"]
mod controller;
mod scenarios;

use scenarios::rig;
