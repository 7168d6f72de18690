//! What a function is opened with: the pipes of Bulk-Only, and the longest transfer of its link.
//!
//! Called by [`function`](super) when its device is configured.

use super::LONGEST_TRANSFER;
use crate::policy::Policy;
use crate::storage::bot::transport::{Pipes, Transport as BulkOnly};
use crate::storage::quirks::Quirks;
use crate::usb::descriptor::BulkOnlyPipes;
use crate::usb::speed::Speed;
use crate::usb::{Bus, DeviceId, Driver, UsbError};

/// Opens both pipes for transfers of `longest` bytes at most, or none.
pub(super) fn open_bulk_only<C: Driver>(
    bus: &mut Bus<'_, C>,
    index: u8,
    device: DeviceId,
    interface: u8,
    pipes: &BulkOnlyPipes,
    longest: u32,
) -> Result<BulkOnly, UsbError> {
    let transfers = BulkOnly::TRANSFERS;
    let bulk_in = bus.open_pipe(device, &pipes.bulk_in, transfers, longest)?;
    let bulk_out = match bus.open_pipe(device, &pipes.bulk_out, transfers, longest) {
        Ok(pipe) => pipe,
        Err(error) => {
            bus.close_pipe(&bulk_in);
            return Err(error);
        }
    };
    let pipes = Pipes { bulk_in, bulk_out };
    BulkOnly::new(bus, index, interface, pipes).map_err(|error| {
        bus.close_pipe(&bulk_in);
        bus.close_pipe(&bulk_out);
        UsbError::Controller(error.into())
    })
}

/// The most bytes of one command's data on a link of this speed.
pub(super) fn transfer_limit(policy: &Policy, quirks: Quirks, speed: Speed) -> u32 {
    let limit = if speed.is_super() {
        policy.transfer_super
    } else {
        policy.transfer_high
    };
    let most = quirks.transfer_limit().unwrap_or(LONGEST_TRANSFER);
    limit.min(most).min(LONGEST_TRANSFER)
}
