//! In place of [`streams`](super::streams) where the library is built without UAS, which alone uses
//! them: no endpoint has streams, so that nothing of them is in the program.

use super::capability::Parameters;
use super::records::Records;
use super::transfer::{TransferRing, Verdict};
use super::trb::Trb;
use crate::dma::{Allocation, Owner, Pool};
use crate::host::{EndpointConfig, HostError, TransferEnd};

/// What a stream would be told by; there is none.
#[derive(Debug)]
pub struct StreamRecord(());

impl StreamRecord {
    /// An unused record.
    pub const EMPTY: Self = Self(());
}

/// Streams that nothing opens. Its methods are those of the one that it stands for.
#[derive(Debug)]
pub(super) struct StreamSet(core::convert::Infallible);

/// None.
pub(super) fn most_streams(_parameters: &Parameters) -> u16 {
    0
}

impl StreamSet {
    pub(super) fn open(
        _pool: &mut Pool<'_>,
        _owner: Owner,
        _config: &EndpointConfig,
        _parameters: &Parameters,
        _streams: &mut [StreamRecord],
        _records: &mut Records<'_>,
    ) -> Result<Self, HostError> {
        Err(HostError::Unsupported)
    }

    pub(super) fn close(self, _: &mut [StreamRecord], _: &mut Records<'_>) -> Allocation {
        match self.0 {}
    }

    pub(super) fn ring<'a>(
        &self,
        _streams: &'a mut [StreamRecord],
        _stream: u16,
    ) -> Option<&'a mut TransferRing> {
        match self.0 {}
    }

    pub(super) fn ring_at<'a>(
        &self,
        _streams: &'a mut [StreamRecord],
        _pointer: u64,
    ) -> Option<&'a mut TransferRing> {
        match self.0 {}
    }

    pub(super) fn take(&self, _: &mut [StreamRecord], _: &mut Records<'_>, _: &Trb) -> Verdict {
        match self.0 {}
    }

    pub(super) fn install(&self, _streams: &mut [StreamRecord]) -> (u64, u32) {
        match self.0 {}
    }

    pub(super) fn is_idle(&self, _streams: &[StreamRecord]) -> bool {
        match self.0 {}
    }

    pub(super) fn name(&self, _streams: &mut [StreamRecord], _stream: u16) {
        match self.0 {}
    }

    pub(super) fn forget_stop(&self, _: &mut [StreamRecord], _: &mut Records<'_>) {
        match self.0 {}
    }

    pub(super) fn settle_stop(&self, _: &mut [StreamRecord], _: &mut Records<'_>) {
        match self.0 {}
    }

    pub(super) fn drain(
        &self,
        _streams: &mut [StreamRecord],
        _records: &mut Records<'_>,
        _all: bool,
    ) -> Option<TransferEnd> {
        match self.0 {}
    }

    pub(super) fn take_named(&self, _streams: &mut [StreamRecord]) -> Option<(u16, u64)> {
        match self.0 {}
    }

    pub(super) fn busy(&self, _streams: &[StreamRecord]) -> core::iter::Empty<u16> {
        match self.0 {}
    }
}
