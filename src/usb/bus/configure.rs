//! Configuring a device for a driver: endpoints on the controller, then the device's own setting.

use super::{Bus, BusEvent, Driver, Pipe};
use crate::host::{EndpointConfig, EndpointKind};
use crate::time::Instant;
use crate::usb::descriptor::{Endpoint, EndpointKind as DescribedKind};
use crate::usb::device::{DeviceId, DeviceState, Requester};
use crate::usb::enumerate::REQUEST_TIMEOUT;
use crate::usb::error::UsbError;
use crate::usb::operation::Operation;
use crate::usb::setup::SetupPacket;

/// Which setting of a device a driver wants.
#[derive(Clone, Copy, Debug)]
pub struct FunctionConfig {
    /// `bConfigurationValue`.
    pub configuration: u8,
    /// The interface.
    pub interface: u8,
    /// Its alternate setting.
    pub alternate: u8,
}

/// How far the configuration of a device has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Configuring {
    /// The controller makes the endpoints usable.
    Controller {
        configuration: u8,
        interface: u8,
        alternate: u8,
    },
    /// SET_CONFIGURATION is under way.
    Configuration { interface: u8, alternate: u8 },
    /// SET_INTERFACE is under way.
    Interface,
}

impl<C: Driver> Bus<'_, C> {
    /// Opens an endpoint of a described device, for [`Bus::configure`].
    ///
    /// # Errors
    ///
    /// [`UsbError::Controller`] with what is short.
    pub fn open_pipe(
        &mut self,
        device: DeviceId,
        endpoint: &Endpoint,
        transfers: u8,
        longest: u32,
    ) -> Result<Pipe, UsbError> {
        self.open_stream_pipe(device, endpoint, 0, transfers, longest)
    }

    /// The same with streams 1 to `streams`, each with as many transfers; 0 for none.
    ///
    /// # Errors
    ///
    /// [`UsbError::Controller`] with what is short.
    pub fn open_stream_pipe(
        &mut self,
        device: DeviceId,
        endpoint: &Endpoint,
        streams: u16,
        transfers: u8,
        longest: u32,
    ) -> Result<Pipe, UsbError> {
        let entry = self.device(device).ok_or(UsbError::Disconnected)?;
        let (controller, handle) = (entry.controller, entry.handle);
        let config = EndpointConfig {
            number: endpoint.address().number(),
            direction: endpoint.direction(),
            kind: match endpoint.kind() {
                DescribedKind::Interrupt => EndpointKind::Interrupt,
                _ => EndpointKind::Bulk,
            },
            max_packet: endpoint.max_packet_size(),
            max_burst: endpoint.max_burst(),
            interval: endpoint.interval(),
            transfers,
            longest,
            streams,
        };
        let slot = self.controllers.get_mut(usize::from(controller.0));
        let driver = slot
            .and_then(|slot| slot.driver.as_mut())
            .ok_or(UsbError::Disconnected)?;
        let handle = driver.open_endpoint(&mut self.pool, handle, &config)?;
        Ok(Pipe {
            device,
            address: endpoint.address(),
            controller,
            handle,
        })
    }

    /// Closes a pipe that was opened and is not wanted after all, before [`Bus::configure`].
    pub fn close_pipe(&mut self, pipe: &Pipe) {
        let slot = self.controllers.get_mut(usize::from(pipe.controller.0));
        if let Some(driver) = slot.and_then(|slot| slot.driver.as_mut()) {
            // One that is not known any more is closed.
            let _ = driver.close_endpoint(&mut self.pool, pipe.handle);
        }
    }

    /// Begins to configure a described device whose pipes were opened;
    /// [`BusEvent::Configured`] ends it.
    ///
    /// # Errors
    ///
    /// [`UsbError::Disconnected`], or what the controller says.
    pub fn configure(
        &mut self,
        device: DeviceId,
        config: FunctionConfig,
        now: Instant,
    ) -> Result<(), UsbError> {
        let entry = self.device_mut(device).ok_or(UsbError::Disconnected)?;
        let FunctionConfig {
            configuration,
            interface,
            alternate,
        } = config;
        entry.state = DeviceState::Configuring;
        entry.configuring = Some(Configuring::Controller {
            configuration,
            interface,
            alternate,
        });
        let (controller, handle) = (entry.controller, entry.handle);
        let driver = self.driver(controller).ok_or(UsbError::Disconnected)?;
        let begun = driver.configure(handle, now).map_err(UsbError::from);
        match begun {
            Ok(()) => self.await_controller(device, now),
            Err(error) => {
                self.configured(device, Err(error));
            }
        }
        begun
    }

    /// The controller has made the endpoints usable, or not.
    pub(super) fn controller_configured(
        &mut self,
        device: DeviceId,
        result: Result<(), UsbError>,
        now: Instant,
    ) -> Option<BusEvent> {
        let entry = self.device_mut(device)?;
        let Some(Configuring::Controller {
            configuration,
            interface,
            alternate,
        }) = entry.configuring
        else {
            return None;
        };
        entry.configuring = Some(Configuring::Configuration {
            interface,
            alternate,
        });
        let setup = SetupPacket::set_configuration(configuration);
        let begun = result.and_then(|()| self.ask(device, setup, now));
        begun
            .err()
            .and_then(|error| self.configured(device, Err(error)))
    }

    /// SET_CONFIGURATION or SET_INTERFACE has ended.
    pub(super) fn configuration_request(
        &mut self,
        device: DeviceId,
        result: Result<u32, UsbError>,
        now: Instant,
    ) -> Option<BusEvent> {
        let phase = self.device(device)?.configuring?;
        match (phase, result) {
            // A device with one setting may refuse to be told so (USB 2.0 §9.4.10).
            (
                Configuring::Configuration {
                    interface,
                    alternate,
                },
                Ok(_),
            ) if alternate != 0 => {
                self.device_mut(device)?.configuring = Some(Configuring::Interface);
                let setup = SetupPacket::set_interface(interface, alternate);
                let begun = self.ask(device, setup, now);
                begun
                    .err()
                    .and_then(|error| self.configured(device, Err(error)))
            }
            (_, result) => self.configured(device, result.map(|_| ())),
        }
    }

    fn ask(&mut self, device: DeviceId, setup: SetupPacket, now: Instant) -> Result<(), UsbError> {
        let operation = Operation::Request(setup, REQUEST_TIMEOUT);
        self.begin(device, Requester::Configuration, operation, now)
    }

    fn configured(&mut self, device: DeviceId, result: Result<(), UsbError>) -> Option<BusEvent> {
        let entry = self.device_mut(device)?;
        entry.configuring = None;
        entry.state = match result {
            Ok(()) => DeviceState::Configured,
            Err(error) => DeviceState::Failed(error),
        };
        Some(BusEvent::Configured(device, result))
    }
}
