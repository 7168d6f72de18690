//! How SCSI rides on USB: Bulk-Only Transport, and USB Attached SCSI beside it.
//!
//! Called by the stack; calls the bus. [`choose`] picks the setting of a device, [`function`] is
//! one device's storage interface from its configuration to its removal, [`bot`] carries commands one
//! at a time and [`uas`] several, and `ladder` says what is tried when one does not end; [`fallback`], when
//! UAS is left for Bulk-Only. [`usage`] says how a device is used and why. [`quirks`] names what devices need.

pub mod bot;
pub mod choose;
pub mod fallback;
pub mod function;
pub(crate) mod ladder;
pub mod quirks;
pub mod uas;
pub mod usage;
