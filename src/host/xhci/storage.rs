//! The memory that a controller's driver keeps its own state in: slices of the caller's.
//!
//! Passed to [`Xhci::new`](super::Xhci::new). No device reaches it. How much there is limits how many
//! devices and endpoints can be open and how many transfers be in flight; one too many is a typed
//! error on that one request.

use super::device::DeviceRecord;
use super::endpoint::EndpointRecord;
use super::records::TransferRecord;
use super::streams::StreamRecord;

/// The slices of one controller.
#[derive(Debug)]
pub struct XhciStorage<'s> {
    /// One for each device, hubs included: at most 255 are used.
    pub devices: &'s mut [DeviceRecord],
    /// One for each endpoint, with endpoint 0 of each device: at most 255 are used.
    pub endpoints: &'s mut [EndpointRecord],
    /// One for each transfer in flight, with two for each endpoint 0.
    pub transfers: &'s mut [TransferRecord],
    /// One for each stream: three times as many for each UAS disk as it may use tags. May be empty:
    /// such disks are used over Bulk-Only then.
    pub streams: &'s mut [StreamRecord],
}

/// Storage for one controller as a value, with as many streams as transfers, for a `static` or a local variable.
#[derive(Debug)]
pub struct XhciMemory<const DEVICES: usize, const ENDPOINTS: usize, const TRANSFERS: usize> {
    devices: [DeviceRecord; DEVICES],
    endpoints: [EndpointRecord; ENDPOINTS],
    transfers: [TransferRecord; TRANSFERS],
    streams: [StreamRecord; TRANSFERS],
}

impl<const DEVICES: usize, const ENDPOINTS: usize, const TRANSFERS: usize>
    XhciMemory<DEVICES, ENDPOINTS, TRANSFERS>
{
    /// Unused storage.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            devices: [const { DeviceRecord::EMPTY }; DEVICES],
            endpoints: [const { EndpointRecord::EMPTY }; ENDPOINTS],
            transfers: [TransferRecord::EMPTY; TRANSFERS],
            streams: [const { StreamRecord::EMPTY }; TRANSFERS],
        }
    }

    /// The slices for a driver.
    pub fn slices(&mut self) -> XhciStorage<'_> {
        XhciStorage {
            devices: &mut self.devices,
            endpoints: &mut self.endpoints,
            transfers: &mut self.transfers,
            streams: &mut self.streams,
        }
    }
}

impl<const DEVICES: usize, const ENDPOINTS: usize, const TRANSFERS: usize> Default
    for XhciMemory<DEVICES, ENDPOINTS, TRANSFERS>
{
    fn default() -> Self {
        Self::new()
    }
}
