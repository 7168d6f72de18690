//! What every controller driver offers the USB core, in five parts.
//!
//! The rules, for all of them:
//! - nothing waits: an operation that takes time is begun, and its end is an [`Event`];
//! - at most one operation of a device, and one of an endpoint, is under way; the core sees to it;
//! - the core gives `now` along; a driver has deadlines of its own for what only the controller
//!   does (commands, halts, doorbells) and says by [`HostController::next_deadline`] when it wants to
//!   be polled again at the latest;
//! - everything that the controller writes is checked before it is believed.
//!
//! `docs/architecture.md` maps every method to xHCI, EHCI and OHCI.

use super::fault::HostError;
use super::types::{
    Addressing, Attachment, Capabilities, DeviceHandle, EndpointConfig, EndpointHandle, Event,
    Exchange, Handling, HubInfo, PortProtocol, PortStatus, Report, Requirement, RootPort, Sequence,
    StatusReading, Token, Transfer, TransferEnd,
};
use crate::dma::{Pool, Segment};
use crate::time::Instant;
use crate::usb::setup::Direction;

/// Part one: the controller as a whole.
pub trait HostController {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// What it needs, beyond what the caller passed in.
    fn requirement(&self) -> Requirement;

    /// Begins to take the controller from whatever state it is in, to running: firmware hand-off,
    /// halt, reset, memory, run. Ends with [`Event::Started`].
    fn start(&mut self, pool: &mut Pool<'_>, now: Instant);

    /// Begins to halt and reset it. Ends with [`Event::Stopped`]; all handles are stale then. The
    /// caller reclaims the controller's memory after that.
    fn stop(&mut self, now: Instant);

    /// The platform has cut the controller off, maybe by its clock: forgets everything, and touches neither
    /// its registers nor its memory until [`HostController::start`]. There is no event; all handles are stale.
    fn abandon(&mut self);

    /// Whether [`HostController::poll`] would find something before the driver's deadline, as far as
    /// memory tells. It is asked more often than anything else: a load or two. Asked right behind a look that
    /// found nothing, it may answer once as of that look.
    fn has_events(&self) -> bool;

    /// Takes the next thing that happened, if any. Bounded work; no register is read where memory
    /// tells as much. The pool is for what `start` allocates after the reset.
    fn poll(&mut self, pool: &mut Pool<'_>, now: Instant) -> Option<Event>;

    /// Takes the next event if it is the end of a bulk or interrupt transfer that went well and nothing else is
    /// to be told before it: what nearly all events are, by a shorter way than [`HostController::poll`]'s,
    /// which takes them too. Writes it to `end`, so that it is not moved from hand to hand; `false` says nothing,
    /// and then `end` means nothing.
    #[inline]
    fn take_end(&mut self, end: &mut TransferEnd) -> bool {
        let _ = end;
        false
    }

    /// Tells the controller how far events were taken, after a batch of [`HostController::poll`] calls
    /// that ended with `None`. Called once a batch.
    fn acknowledge_events(&mut self);

    /// Reads the controller's status and declares it dead if it says so: [`Event::Died`] follows.
    /// Returns whether it is alive. Called after a transfer that took too long, since a controller
    /// that died of a bus error reports nothing any more.
    fn check_alive(&mut self) -> bool;

    /// When the driver must be polled again at the latest, for its own deadlines. Transfers that are
    /// submitted or end do not bring it forward.
    fn next_deadline(&self) -> Instant;
}

/// Part two: devices.
pub trait Devices {
    /// Reserves what a device needs and opens its endpoint 0, with the packet size that the
    /// attachment names. Ends with [`Event::Device`].
    ///
    /// # Errors
    ///
    /// [`HostError::StorageFull`], [`HostError::PoolExhausted`], [`HostError::LedgerFull`]: nothing was reserved.
    fn open_device(
        &mut self,
        pool: &mut Pool<'_>,
        attachment: &Attachment,
        now: Instant,
    ) -> Result<DeviceHandle, HostError>;

    /// Makes the device answer requests at address 0, before it has one of its own. If the controller
    /// has to do something for it, ends with [`Event::Device`]; else the answer is
    /// [`Addressing::Software`].
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`], [`HostError::Busy`].
    fn reach_at_zero(
        &mut self,
        device: DeviceHandle,
        now: Instant,
    ) -> Result<Addressing, HostError>;

    /// Gives the device an address, or tells the core to. If by the controller, ends with
    /// [`Event::Device`].
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`], [`HostError::Busy`].
    fn address_device(
        &mut self,
        device: DeviceHandle,
        now: Instant,
    ) -> Result<Addressing, HostError>;

    /// The device has taken the address that [`Devices::address_device`] told the core to set.
    fn adopt_address(&mut self, device: DeviceHandle, address: u8);

    /// Changes the packet size of endpoint 0, which is idle, to `bytes` as the device descriptor
    /// says. Ends with [`Event::Device`].
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`], [`HostError::Busy`].
    fn set_max_packet0(
        &mut self,
        device: DeviceHandle,
        bytes: u16,
        now: Instant,
    ) -> Result<(), HostError>;

    /// Endpoint 0 of the device.
    fn endpoint0(&self, device: DeviceHandle) -> Option<EndpointHandle>;

    /// Makes all endpoints usable that were opened since the last call, and forgets those that
    /// were closed. Called after SET_CONFIGURATION or SET_INTERFACE was decided on, before it is
    /// sent. Ends with [`Event::Device`].
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`], [`HostError::Busy`].
    fn configure(&mut self, device: DeviceHandle, now: Instant) -> Result<(), HostError>;

    /// Closes the device and all its endpoints, whatever is in flight: after [`Event::Device`] its
    /// memory is not reached any more. Transfers in flight are reported as cancelled before that.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`].
    fn close_device(&mut self, device: DeviceHandle, now: Instant) -> Result<(), HostError>;
}

/// Part three: endpoints and transfers.
pub trait Endpoints {
    /// Reserves what an endpoint needs. It is usable after [`Devices::configure`].
    ///
    /// # Errors
    ///
    /// [`HostError::StorageFull`], [`HostError::PoolExhausted`], [`HostError::LedgerFull`], [`HostError::Stale`],
    /// [`HostError::Unsupported`] for streams: nothing was reserved.
    fn open_endpoint(
        &mut self,
        pool: &mut Pool<'_>,
        device: DeviceHandle,
        config: &EndpointConfig,
    ) -> Result<EndpointHandle, HostError>;

    /// Drops an idle endpoint at the next [`Devices::configure`]. One that the controller does not know yet gives
    /// its memory back at once.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`].
    fn close_endpoint(
        &mut self,
        pool: &mut Pool<'_>,
        endpoint: EndpointHandle,
    ) -> Result<(), HostError>;

    /// Queues a transfer behind those in flight. The controller may not see it before
    /// [`Endpoints::kick`].
    ///
    /// # Errors
    ///
    /// [`HostError::QueueFull`], [`HostError::TooLong`], [`HostError::Halted`],
    /// [`HostError::Stale`]: nothing was queued.
    fn submit(
        &mut self,
        endpoint: EndpointHandle,
        transfer: &Transfer<'_>,
    ) -> Result<(), HostError>;

    /// Queues a transfer as [`Endpoints::submit`] does, and tells the controller as
    /// [`Endpoints::kick`] does.
    ///
    /// # Errors
    ///
    /// As [`Endpoints::submit`]: nothing was queued.
    #[inline]
    fn send(&mut self, endpoint: EndpointHandle, transfer: &Transfer<'_>) -> Result<(), HostError> {
        self.submit(endpoint, transfer)?;
        self.kick(endpoint, transfer.stream);
        Ok(())
    }

    /// Queues one segment of memory as a transfer of a bulk or interrupt endpoint and tells the controller:
    /// as [`Endpoints::send`] does, for what most transfers are.
    ///
    /// # Errors
    ///
    /// As [`Endpoints::submit`]: nothing was queued.
    #[inline(never)]
    fn send_segment(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
        handling: Handling,
    ) -> Result<(), HostError> {
        self.send(endpoint, &handling.of(token, &segment))
    }

    /// The same, but the controller may not see it before [`Endpoints::kick`].
    ///
    /// # Errors
    ///
    /// As [`Endpoints::submit`]: nothing was queued.
    #[inline(never)]
    fn submit_segment(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
        handling: Handling,
    ) -> Result<(), HostError> {
        self.submit(endpoint, &handling.of(token, &segment))
    }

    /// Queues one segment behind the newest transfer of a bulk endpoint, but keeps it from the controller
    /// until that one has ended well, whose end is not told then if all its bytes were moved. For devices
    /// that cannot hold a transfer which waits behind another. Nothing else is queued meanwhile. Only
    /// where [`Capabilities::holds`] says so.
    ///
    /// # Errors
    ///
    /// As [`Endpoints::submit`]: nothing was queued.
    fn hold_segment(
        &mut self,
        endpoint: EndpointHandle,
        token: Token,
        segment: Segment,
    ) -> Result<(), HostError> {
        let _ = (endpoint, token, segment);
        Err(HostError::Unsupported)
    }

    /// Queues the transfers of a command, and tells the controller: as the methods above do one by one.
    ///
    /// # Errors
    ///
    /// As [`Endpoints::submit`]: some of them may have been queued.
    #[inline]
    fn send_exchange(&mut self, exchange: &Exchange) -> Result<(), HostError> {
        let Exchange {
            outward, inward, ..
        } = *exchange;
        let [wrapper, data, status] = exchange.tokens;
        let quiet = Handling::outward(Report::Unexpected);
        self.send_segment(outward, wrapper, exchange.wrapper, quiet)?;
        let report = exchange.report;
        match (exchange.direction, exchange.reading) {
            (Direction::In, StatusReading::Behind) => {
                self.submit_segment(inward, data, exchange.data, Handling::inward(report))?;
            }
            (Direction::In, _) => {
                self.send_segment(inward, data, exchange.data, Handling::inward(report))?;
            }
            (Direction::Out, _) => {
                self.send_segment(outward, data, exchange.data, Handling::outward(report))?;
            }
        }
        match exchange.reading {
            StatusReading::Behind => {
                let told = Handling::inward(Report::Always);
                self.send_segment(inward, status, exchange.status, told)
            }
            StatusReading::Held => self.hold_segment(inward, status, exchange.status),
            StatusReading::Later => Ok(()),
        }
    }

    /// Tells the controller that transfers were queued: once for any number of them.
    fn kick(&mut self, endpoint: EndpointHandle, stream: u16);

    /// Counts all transfers of the endpoint up to the newest quiet one as done, because its owner
    /// knows so from elsewhere (a command wrapper is done when its status has come).
    fn retire(&mut self, endpoint: EndpointHandle);

    /// Names a stream whose transfers are to be taken back by the next [`Endpoints::quiesce`]. Those of
    /// the others stay where they are, and go on after [`Endpoints::restart`]. If none is named, all
    /// are taken back. Nothing on endpoints without streams.
    fn name_stream(&mut self, endpoint: EndpointHandle, stream: u16) {
        let _ = (endpoint, stream);
    }

    /// Stops the endpoint, running or halted, and takes its transfers back: each is reported as
    /// [`Outcome::Cancelled`](super::Outcome::Cancelled) with the bytes that were moved, or as it
    /// ended after all (not at all if it is quiet and ended well), and then [`Event::Endpoint`] comes.
    /// Nothing reaches their memory then.
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`], [`HostError::Busy`].
    fn quiesce(&mut self, endpoint: EndpointHandle, now: Instant) -> Result<(), HostError>;

    /// Makes a quiesced endpoint usable again, after the device's own halt was cleared if it had
    /// one. Ends with [`Event::Endpoint`].
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`], [`HostError::Busy`]; [`HostError::Halted`] with [`Sequence::Keep`] if the
    /// endpoint was found halted, and the controller counts from zero again: clear the device's halt
    /// and restart with [`Sequence::Reset`].
    fn restart(
        &mut self,
        endpoint: EndpointHandle,
        sequence: Sequence,
        now: Instant,
    ) -> Result<(), HostError>;
}

/// Part four: hubs, as far as a controller must know them.
pub trait Hubs {
    /// Tells the controller that a device is a hub, before anything behind it is opened. Ends with
    /// [`Event::Device`].
    ///
    /// # Errors
    ///
    /// [`HostError::Stale`], [`HostError::Busy`].
    fn update_hub(
        &mut self,
        device: DeviceHandle,
        hub: &HubInfo,
        now: Instant,
    ) -> Result<(), HostError>;
}

/// Part five: root ports. The core times power, debounce, reset and recovery.
pub trait RootPorts {
    /// Which bus the port belongs to.
    fn port_protocol(&self, port: RootPort) -> PortProtocol;

    /// Reads what the port shows.
    fn read_port(&self, port: RootPort) -> PortStatus;

    /// Clears the change bits that `status` shows.
    fn acknowledge(&mut self, port: RootPort, status: &PortStatus);

    /// Switches the port's power, where it can be switched.
    fn power_port(&mut self, port: RootPort, on: bool);

    /// Begins a reset. Where [`Capabilities::reset_hold`] is `None` it ends by itself, else with
    /// [`RootPorts::end_reset`].
    fn begin_reset(&mut self, port: RootPort);

    /// Ends a reset that the core has timed.
    fn end_reset(&mut self, port: RootPort);

    /// Begins a warm reset of a SuperSpeed port; a plain one elsewhere.
    fn begin_warm_reset(&mut self, port: RootPort);

    /// Disables the port: the device on it is not talked to any more.
    fn disable_port(&mut self, port: RootPort);

    /// Gives the port to the companion controller. Returns `false` where there is none.
    fn hand_over(&mut self, port: RootPort) -> bool;
}
