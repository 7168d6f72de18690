//! [`Controller`]: whichever kind a board has, because one board mixes them in one host.
//!
//! Every method passes on to the driver; without any controller feature the type has no values.

use core::convert::Infallible;
use core::marker::PhantomData;

#[cfg(feature = "ehci")]
use super::ehci::Ehci;
use super::emergency::EmergencyStop;
use super::fault::HostError;
use super::traits::{Devices, Endpoints, HostController, Hubs, RootPorts};
use super::types::{
    Addressing, Attachment, Capabilities, DeviceHandle, EndpointConfig, EndpointHandle, Event,
    Exchange, Handling, HubInfo, PortProtocol, PortStatus, Requirement, RootPort, Sequence, Token,
    Transfer, TransferEnd,
};
#[cfg(feature = "xhci")]
use super::xhci::Xhci;
use crate::dma::{Pool, Segment};
use crate::mmio::Bus;
use crate::time::Instant;

/// A controller of any kind that was built in.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "the small variant is never made")]
pub enum Controller<'s, B: Bus> {
    /// An xHCI.
    #[cfg(feature = "xhci")]
    Xhci(Xhci<'s, B>),
    /// An EHCI.
    #[cfg(feature = "ehci")]
    Ehci(Ehci<'s, B>),
    /// None: cannot be made.
    #[doc(hidden)]
    Never(Infallible, PhantomData<&'s B>),
}

/// The interrupt half of a controller of any kind that was built in.
#[derive(Debug)]
pub enum InterruptHalf<'s, B> {
    /// An xHCI's.
    #[cfg(feature = "xhci")]
    Xhci(super::xhci::InterruptHalf<B>),
    /// An EHCI's.
    #[cfg(feature = "ehci")]
    Ehci(super::ehci::InterruptHalf<'s, B>),
    /// None: cannot be made.
    #[doc(hidden)]
    Never(Infallible, PhantomData<&'s B>),
}

impl<B: Bus> InterruptHalf<'_, B> {
    /// Called by the interrupt handler: quietens the controller. Returns whether the interrupt was
    /// this controller's, so that the host is to be polled.
    pub fn acknowledge(&self) -> bool {
        match self {
            #[cfg(feature = "xhci")]
            Self::Xhci(half) => half.acknowledge(),
            #[cfg(feature = "ehci")]
            Self::Ehci(half) => half.acknowledge(),
            Self::Never(never, _) => match *never {},
        }
    }
}

/// Passes a call on to the driver.
macro_rules! pass {
    ($controller:expr, $driver:ident => $call:expr) => {
        match $controller {
            #[cfg(feature = "xhci")]
            Controller::Xhci($driver) => $call,
            #[cfg(feature = "ehci")]
            Controller::Ehci($driver) => $call,
            Controller::Never(never, _) => match *never {},
        }
    };
}

impl<'s, B: Bus> Controller<'s, B> {
    /// The part for the interrupt handler. Ask for it once.
    pub fn interrupt_half(&self) -> InterruptHalf<'s, B> {
        match self {
            #[cfg(feature = "xhci")]
            Self::Xhci(driver) => InterruptHalf::Xhci(driver.interrupt_half()),
            #[cfg(feature = "ehci")]
            Self::Ehci(driver) => InterruptHalf::Ehci(driver.interrupt_half()),
            Self::Never(never, _) => match *never {},
        }
    }

    /// The part for a panic handler.
    pub fn emergency_stop(&self) -> EmergencyStop<B> {
        match self {
            #[cfg(feature = "xhci")]
            Self::Xhci(driver) => EmergencyStop::Xhci(driver.emergency_stop()),
            #[cfg(feature = "ehci")]
            Self::Ehci(driver) => EmergencyStop::Ehci(driver.emergency_stop()),
            Self::Never(never, _) => match *never {},
        }
    }
}

#[cfg_attr(not(any(feature = "xhci", feature = "ehci")), expect(unused_variables))]
impl<B: Bus> HostController for Controller<'_, B> {
    fn capabilities(&self) -> Capabilities {
        pass!(self, driver => driver.capabilities())
    }

    fn requirement(&self) -> Requirement {
        pass!(self, driver => driver.requirement())
    }

    fn start(&mut self, pool: &mut Pool<'_>, now: Instant) {
        pass!(self, driver => driver.start(pool, now))
    }

    fn stop(&mut self, now: Instant) {
        pass!(self, driver => driver.stop(now))
    }

    fn abandon(&mut self) {
        pass!(self, driver => driver.abandon())
    }

    #[inline]
    fn has_events(&self) -> bool {
        pass!(self, driver => driver.has_events())
    }

    #[inline]
    fn poll(&mut self, pool: &mut Pool<'_>, now: Instant) -> Option<Event> {
        pass!(self, driver => driver.poll(pool, now))
    }

    #[inline(always)]
    fn take_end(&mut self, end: &mut TransferEnd) -> bool {
        pass!(self, driver => driver.take_end(end))
    }

    #[inline]
    fn acknowledge_events(&mut self) {
        pass!(self, driver => driver.acknowledge_events())
    }

    fn check_alive(&mut self) -> bool {
        pass!(self, driver => driver.check_alive())
    }

    #[inline]
    fn next_deadline(&self) -> Instant {
        pass!(self, driver => driver.next_deadline())
    }
}

#[cfg_attr(not(any(feature = "xhci", feature = "ehci")), expect(unused_variables))]
impl<B: Bus> Devices for Controller<'_, B> {
    fn open_device(
        &mut self,
        pool: &mut Pool<'_>,
        attachment: &Attachment,
        now: Instant,
    ) -> Result<DeviceHandle, HostError> {
        pass!(self, driver => driver.open_device(pool, attachment, now))
    }

    fn reach_at_zero(
        &mut self,
        device: DeviceHandle,
        now: Instant,
    ) -> Result<Addressing, HostError> {
        pass!(self, driver => driver.reach_at_zero(device, now))
    }

    fn address_device(
        &mut self,
        device: DeviceHandle,
        now: Instant,
    ) -> Result<Addressing, HostError> {
        pass!(self, driver => driver.address_device(device, now))
    }

    fn adopt_address(&mut self, device: DeviceHandle, address: u8) {
        pass!(self, driver => driver.adopt_address(device, address))
    }

    fn set_max_packet0(
        &mut self,
        device: DeviceHandle,
        bytes: u16,
        now: Instant,
    ) -> Result<(), HostError> {
        pass!(self, driver => driver.set_max_packet0(device, bytes, now))
    }

    fn endpoint0(&self, device: DeviceHandle) -> Option<EndpointHandle> {
        pass!(self, driver => driver.endpoint0(device))
    }

    fn configure(&mut self, device: DeviceHandle, now: Instant) -> Result<(), HostError> {
        pass!(self, driver => driver.configure(device, now))
    }

    fn close_device(&mut self, device: DeviceHandle, now: Instant) -> Result<(), HostError> {
        pass!(self, driver => driver.close_device(device, now))
    }
}

#[cfg_attr(not(any(feature = "xhci", feature = "ehci")), expect(unused_variables))]
impl<B: Bus> Endpoints for Controller<'_, B> {
    fn open_endpoint(
        &mut self,
        pool: &mut Pool<'_>,
        device: DeviceHandle,
        config: &EndpointConfig,
    ) -> Result<EndpointHandle, HostError> {
        pass!(self, driver => driver.open_endpoint(pool, device, config))
    }

    fn close_endpoint(
        &mut self,
        pool: &mut Pool<'_>,
        endpoint: EndpointHandle,
    ) -> Result<(), HostError> {
        pass!(self, driver => driver.close_endpoint(pool, endpoint))
    }

    #[inline]
    fn submit(
        &mut self,
        endpoint: EndpointHandle,
        transfer: &Transfer<'_>,
    ) -> Result<(), HostError> {
        pass!(self, driver => driver.submit(endpoint, transfer))
    }

    #[inline]
    fn send(&mut self, endpoint: EndpointHandle, transfer: &Transfer<'_>) -> Result<(), HostError> {
        pass!(self, driver => driver.send(endpoint, transfer))
    }

    #[inline(always)]
    fn send_segment(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
        handling: Handling,
    ) -> Result<(), HostError> {
        pass!(self, driver => driver.send_segment(endpoint, token, segment, handling))
    }

    #[inline]
    fn submit_segment(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
        handling: Handling,
    ) -> Result<(), HostError> {
        pass!(self, driver => driver.submit_segment(endpoint, token, segment, handling))
    }

    #[inline(always)]
    fn hold_segment(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
    ) -> Result<(), HostError> {
        pass!(self, driver => driver.hold_segment(endpoint, token, segment))
    }

    #[inline(always)]
    fn send_exchange(&mut self, exchange: &Exchange) -> Result<(), HostError> {
        pass!(self, driver => driver.send_exchange(exchange))
    }

    #[inline]
    fn kick(&mut self, endpoint: EndpointHandle, stream: u16) {
        pass!(self, driver => driver.kick(endpoint, stream))
    }

    fn name_stream(&mut self, endpoint: EndpointHandle, stream: u16) {
        pass!(self, driver => driver.name_stream(endpoint, stream))
    }

    #[inline]
    fn retire(&mut self, endpoint: EndpointHandle) {
        pass!(self, driver => driver.retire(endpoint))
    }

    fn quiesce(&mut self, endpoint: EndpointHandle, now: Instant) -> Result<(), HostError> {
        pass!(self, driver => driver.quiesce(endpoint, now))
    }

    fn restart(
        &mut self,
        endpoint: EndpointHandle,
        sequence: Sequence,
        now: Instant,
    ) -> Result<(), HostError> {
        pass!(self, driver => driver.restart(endpoint, sequence, now))
    }
}

#[cfg_attr(not(any(feature = "xhci", feature = "ehci")), expect(unused_variables))]
impl<B: Bus> Hubs for Controller<'_, B> {
    fn update_hub(
        &mut self,
        device: DeviceHandle,
        hub: &HubInfo,
        now: Instant,
    ) -> Result<(), HostError> {
        pass!(self, driver => driver.update_hub(device, hub, now))
    }
}

#[cfg_attr(not(any(feature = "xhci", feature = "ehci")), expect(unused_variables))]
impl<B: Bus> RootPorts for Controller<'_, B> {
    fn port_protocol(&self, port: RootPort) -> PortProtocol {
        pass!(self, driver => driver.port_protocol(port))
    }

    fn read_port(&self, port: RootPort) -> PortStatus {
        pass!(self, driver => driver.read_port(port))
    }

    fn acknowledge(&mut self, port: RootPort, status: &PortStatus) {
        pass!(self, driver => driver.acknowledge(port, status))
    }

    fn power_port(&mut self, port: RootPort, on: bool) {
        pass!(self, driver => driver.power_port(port, on))
    }

    fn begin_reset(&mut self, port: RootPort) {
        pass!(self, driver => driver.begin_reset(port))
    }

    fn end_reset(&mut self, port: RootPort) {
        pass!(self, driver => driver.end_reset(port))
    }

    fn begin_warm_reset(&mut self, port: RootPort) {
        pass!(self, driver => driver.begin_warm_reset(port))
    }

    fn disable_port(&mut self, port: RootPort) {
        pass!(self, driver => driver.disable_port(port))
    }

    fn hand_over(&mut self, port: RootPort) -> bool {
        pass!(self, driver => driver.hand_over(port))
    }
}
