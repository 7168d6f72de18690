//! In place of [`transport`](super::transport) where the library is built without UAS: there is no such
//! transport, so that nothing of it is in the program.
//!
//! [`choose`](crate::storage::choose) passes UAS settings over then; a device that has no other is not used.

use super::CommandSlot;
use super::machine::{Counters, Mode, Tried};
use super::transport::Tools;
use crate::dma::Dma;
use crate::host::{HostError, Outcome, TransferEnd};
use crate::policy::Policy;
use crate::scsi::luns::Luns;
use crate::scsi::transport::{Client, Ended, Progress, Request, TransportError};
use crate::storage::bot::transport::CopyCount;
use crate::time::Instant;
use crate::usb::descriptor::UasPipes;
use crate::usb::{Bus, DeviceId, Driver, UsbError};

/// A transport that nothing makes. Its methods are those of the one that it stands for.
#[derive(Debug)]
pub struct Transport(core::convert::Infallible);
impl Transport {
    /// Nothing is opened.
    ///
    /// # Errors
    ///
    /// [`HostError::Unsupported`], always.
    pub fn open<C: Driver>(
        _bus: &mut Bus<'_, C>,
        _commands: &mut [CommandSlot],
        _function: u8,
        _device: DeviceId,
        _pipes: &UasPipes,
        _policy: &Policy,
        _longest: u32,
    ) -> Result<Self, UsbError> {
        Err(UsbError::Controller(HostError::Unsupported))
    }

    /// Never called.
    pub fn kick<C: Driver, D: Dma>(&mut self, _tools: &mut Tools<'_, '_, C, D>) {
        match self.0 {}
    }

    /// Never called.
    #[must_use]
    pub fn takes_commands(&self) -> bool {
        match self.0 {}
    }

    /// Never called.
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        match self.0 {}
    }

    /// Never called.
    #[must_use]
    pub fn tried(&self) -> Tried {
        match self.0 {}
    }

    /// Never called.
    pub fn starts_anew(&mut self) -> bool {
        match self.0 {}
    }

    /// Never called.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self.0 {}
    }

    /// Never called.
    #[must_use]
    pub fn depth(&self) -> u8 {
        match self.0 {}
    }

    /// Never called.
    #[must_use]
    pub fn shortage(&self) -> Option<UsbError> {
        match self.0 {}
    }

    /// Never called.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        match self.0 {}
    }

    /// Never called.
    #[must_use]
    pub fn copies(&self) -> CopyCount {
        match self.0 {}
    }

    /// Never called.
    #[must_use]
    pub fn counters(&self) -> Counters {
        match self.0 {}
    }

    /// Never called.
    pub fn read_scratch(&self, _bytes: &mut [u8]) {
        match self.0 {}
    }

    /// Never called.
    pub fn take_resumed(&mut self) -> bool {
        match self.0 {}
    }

    /// Never called.
    pub fn take_reset_units(&mut self) -> Luns {
        match self.0 {}
    }

    /// Never called.
    pub fn take_stuck(&mut self) -> bool {
        match self.0 {}
    }

    /// Never called.
    pub fn gone(&mut self) {
        match self.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    ///
    /// None.
    pub fn begin<C: Driver, D: Dma>(
        &mut self,
        _tools: &mut Tools<'_, '_, C, D>,
        _request: &Request,
        _client: Client,
    ) -> Result<(), TransportError> {
        match self.0 {}
    }

    /// Never called.
    pub fn is_calm_for(&self, _request: &Request) -> bool {
        match self.0 {}
    }

    /// Never called.
    ///
    /// # Errors
    ///
    /// None.
    pub fn begin_calmly<C: Driver, D: Dma>(
        &mut self,
        _tools: Tools<'_, '_, C, D>,
        _request: &Request,
        _client: Client,
    ) -> Result<(), TransportError> {
        match self.0 {}
    }

    /// Never called.
    pub fn take_ended<C: Driver, D: Dma>(
        &mut self,
        _tools: &mut Tools<'_, '_, C, D>,
    ) -> Option<Ended> {
        match self.0 {}
    }

    /// Never called.
    pub fn abandon(&mut self, _commands: &mut [CommandSlot], _dma: &impl Dma) -> Option<Client> {
        match self.0 {}
    }

    /// Never called.
    pub fn ended_well<C: Driver>(
        &mut self,
        _bus: &mut Bus<'_, C>,
        _dma: &impl Dma,
        _commands: &mut [CommandSlot],
        _end: &TransferEnd,
    ) -> Progress {
        match self.0 {}
    }

    /// Never called.
    pub fn transfer_ended<C: Driver, D: Dma>(
        &mut self,
        _tools: &mut Tools<'_, '_, C, D>,
        _tag: u16,
        _outcome: Outcome,
        _actual: u32,
    ) {
        match self.0 {}
    }

    /// Never called.
    pub fn operated<C: Driver, D: Dma>(
        &mut self,
        _tools: &mut Tools<'_, '_, C, D>,
        _result: Result<(), UsbError>,
    ) {
        match self.0 {}
    }

    /// Never called.
    pub fn deadline_passed<C: Driver, D: Dma>(
        &mut self,
        _tools: &mut Tools<'_, '_, C, D>,
        _end: Instant,
    ) {
        match self.0 {}
    }
}
