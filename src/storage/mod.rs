//! How SCSI rides on USB: Bulk-Only Transport, and USB Attached SCSI beside it.

pub mod bot;
