//! The EHCI driver on the strict model, driven through the controller traits.
//!
//! The model fails the run at the access that breaks a rule, so each test here also says that no
//! rule was broken on the way.
#![cfg(feature = "ehci")]

mod bring_up;
#[path = "../driver_rig/mod.rs"]
mod driver_rig;
mod handshake;
mod periodic;
mod ports;
#[path = "../models/tests/ehci/probe.rs"]
mod probe;
mod recovery;
mod rig;
mod transfers;
