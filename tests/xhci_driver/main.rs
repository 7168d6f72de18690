//! The xHCI driver on the strict model, driven through the controller traits.
//!
//! The model fails the run at the access that breaks a rule, so each test here also says that no
//! rule was broken on the way.
#![cfg(feature = "xhci")]

mod bring_up;
mod controllers;
#[path = "../driver_rig/mod.rs"]
mod driver_rig;
mod ports;
mod recovery;
mod rig;
mod transfers;
