//! The scenarios of the whole stack on a strict EHCI, and those that are about EHCI itself.

#[path = "scenarios/ehci/mod.rs"]
mod controller;
mod scenarios;

use scenarios::rig;
