//! What an endpoint holds: its place in the table, records, and rings in the pool. Reserved when it is opened, given
//! back when it is closed.
//!
//! Called by [`endpoint`](super::endpoint) and, when a device goes, by [`slot`](super::slot). Invariant: a reservation
//! that fails half-way keeps nothing.

use super::device::{DeviceRecord, NO_ENDPOINT, Work};
use super::endpoint::{EndpointRecord, EndpointState};
use super::streams::StreamSet;
use super::transfer::TransferRing;
use super::{Xhci, context};
use crate::dma::Pool;
use crate::host::{EndpointConfig, EndpointHandle, HostError};
use crate::mmio::Bus;

impl<B: Bus> Xhci<'_, B> {
    /// Takes a place, records and a ring for an endpoint of the device at `index`.
    pub(super) fn reserve_endpoint(
        &mut self,
        pool: &mut Pool<'_>,
        index: usize,
        config: &EndpointConfig,
    ) -> Result<EndpointHandle, HostError> {
        let free = |endpoint: &EndpointRecord| endpoint.state == EndpointState::Free;
        let place = self.endpoints.iter().position(free);
        let place = place.ok_or(HostError::StorageFull)?;
        let (ring, set) = match config.streams {
            0 => (Some(self.reserve_ring(pool, index, config)?), None),
            _ => (None, Some(self.reserve_streams(pool, index, config)?)),
        };
        let slot = self.slot_of(index).unwrap_or(0);
        let device = self.devices.get_mut(index).ok_or(HostError::Stale)?;
        let endpoint = self
            .endpoints
            .get_mut(place)
            .ok_or(HostError::StorageFull)?;
        let dci = context::context_index(config);
        if let Some(entry) = device.endpoints.get_mut(usize::from(dci)) {
            *entry = place as u8;
        }
        *endpoint = EndpointRecord {
            generation: endpoint.generation,
            state: EndpointState::Staged,
            device: index as u8,
            slot,
            dci,
            config: *config,
            transfers: ring,
            streams: set,
            ..EndpointRecord::EMPTY
        };
        Ok(endpoint.handle(place))
    }

    fn reserve_ring(
        &mut self,
        pool: &mut Pool<'_>,
        index: usize,
        config: &EndpointConfig,
    ) -> Result<TransferRing, HostError> {
        let chain = self.records.reserve(usize::from(config.transfers));
        let chain = chain.ok_or(HostError::StorageFull)?;
        let owner = self.device_owner(index);
        let spare = self.quirks.ring_spare();
        let ring = TransferRing::allocate(pool, owner, config, &self.parameters, spare, chain);
        ring.map_err(|(error, chain)| {
            self.records.unreserve(chain);
            error
        })
    }

    fn reserve_streams(
        &mut self,
        pool: &mut Pool<'_>,
        index: usize,
        config: &EndpointConfig,
    ) -> Result<StreamSet, HostError> {
        let owner = self.device_owner(index);
        let (streams, records) = (&mut *self.streams, &mut self.records);
        StreamSet::open(pool, owner, config, &self.parameters, streams, records)
    }

    /// Gives back what those endpoints of a device held that were closed before the controller knew of
    /// them: one that is opened in their place may need it.
    pub(super) fn free_discarded(&mut self, pool: &mut Pool<'_>, index: usize) {
        let working = |device: &DeviceRecord| device.work == Work::Configuring;
        if self.devices.get(index).is_some_and(working) {
            return;
        }
        for place in 0..self.endpoints.len() {
            let is_unknown = |endpoint: &&EndpointRecord| {
                usize::from(endpoint.device) == index && endpoint.state == EndpointState::Discarded
            };
            if self.endpoints.get(place).filter(is_unknown).is_some() {
                self.free_endpoint(pool, place);
            }
        }
    }

    /// Gives an endpoint's place, records and ring back.
    pub(super) fn free_endpoint(&mut self, pool: &mut Pool<'_>, place: usize) {
        let Some(endpoint) = self.endpoints.get_mut(place) else {
            return;
        };
        let (index, dci) = (usize::from(endpoint.device), usize::from(endpoint.dci));
        if let Some(memory) = endpoint.vacate(self.streams, &mut self.records) {
            pool.free(memory);
        }
        let device = self.devices.get_mut(index);
        let entry = device.and_then(|device| device.endpoints.get_mut(dci));
        // The same index may belong to an endpoint that was opened since.
        if let Some(entry) = entry.filter(|entry| usize::from(**entry) == place) {
            *entry = NO_ENDPOINT;
        }
    }
}
