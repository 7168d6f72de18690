//! One device's storage interface, from its configuration to its removal.
//!
//! Called by the stack, which owns a table of them. A function opens the pipes that
//! [`choose`](super::choose) picked, asks how many units there are, and then carries commands, one
//! at a time.

use super::bot::transport::{Pipes, Transport};
use super::bot::wire::Lun;
use super::choose::Choice;
use super::quirks::{Decision, Quirks};
use crate::dma::{Dma, Owner};
use crate::host::Outcome as TransferOutcome;
use crate::policy::Policy;
use crate::scsi::transport::{Outcome, Request, TransportError};
use crate::time::Instant;
use crate::usb::bus::FunctionConfig;
use crate::usb::descriptor::CommandSet;
use crate::usb::operation::Operation;
use crate::usb::setup::SetupPacket;
use crate::usb::speed::Speed;
use crate::usb::{Bus, DeviceId, Driver, UsbError};

/// Where a function is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    /// The device is being configured.
    Configuring,
    /// GET MAX LUN is under way.
    AskingUnits,
    /// It carries commands.
    Serving,
    /// The device has gone; the controller may still reach its memory.
    Leaving,
}

/// What the stack must know about a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FunctionEvent {
    /// It carries commands from now on, for units up to this one.
    Serving(Lun),
    /// Its device could not be configured: it is free again.
    Failed(UsbError),
    /// The command under way has ended.
    Ended(Outcome),
}

/// A storage function. The caller of the stack provides a slice of them.
#[derive(Debug)]
pub struct Function {
    state: State,
    device: Option<DeviceId>,
    interface: u8,
    transport: Option<Transport>,
    /// The most bytes of one command's data.
    transfer_bytes: u32,
    command_set: CommandSet,
    decision: Decision,
}

impl Function {
    /// An unused function.
    pub const EMPTY: Self = Self {
        state: State::Free,
        device: None,
        interface: 0,
        transport: None,
        transfer_bytes: 0,
        command_set: CommandSet::Scsi,
        decision: Decision::NONE,
    };

    /// Whether the entry is unused.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.state == State::Free
    }

    /// The device, while there is one.
    #[must_use]
    pub fn device(&self) -> Option<DeviceId> {
        self.device
    }

    /// The most bytes of one command's data.
    #[must_use]
    pub fn transfer_bytes(&self) -> u32 {
        self.transfer_bytes
    }

    /// The command set that its interface announces.
    #[must_use]
    pub fn command_set(&self) -> CommandSet {
        self.command_set
    }

    /// The policies that were decided for its device, and why. What was learnt since is in
    /// [`Function::quirks`].
    #[must_use]
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// The policies that are honoured, with what was learnt in use.
    #[must_use]
    pub fn quirks(&self) -> Quirks {
        let transport = self.transport.as_ref();
        transport.map_or(self.decision.quirks, Transport::quirks)
    }

    /// The transport, once the pipes are open.
    #[must_use]
    pub fn transport(&self) -> Option<&Transport> {
        self.transport.as_ref()
    }

    /// Whether it takes a command now.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.state == State::Serving
            && self
                .transport
                .as_ref()
                .is_some_and(|transport| !transport.is_busy())
    }

    /// When [`Function::deadline_passed`] is due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.transport
            .as_ref()
            .map_or(Instant::NEVER, Transport::deadline)
    }

    /// Opens the pipes of a choice and begins to configure the device. The function is free, and
    /// `index` is its place in the stack's table.
    ///
    /// # Errors
    ///
    /// What is short, or what the controller says: the function is still free.
    pub fn attach<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        policy: &Policy,
        index: u8,
        device: DeviceId,
        (choice, decision): (&Choice, Decision),
        now: Instant,
    ) -> Result<(), UsbError> {
        let speed = bus.info(device).ok_or(UsbError::Disconnected)?.speed();
        let longest = transfer_limit(policy, decision.quirks, speed);
        let transfers = Transport::TRANSFERS;
        let pipes = Pipes {
            bulk_in: bus.open_pipe(device, &choice.pipes.bulk_in, transfers, longest)?,
            bulk_out: bus.open_pipe(device, &choice.pipes.bulk_out, transfers, longest)?,
        };
        let transport = Transport::new(bus, index, choice.interface, pipes);
        let mut transport = transport.map_err(|error| UsbError::Controller(error.into()))?;
        transport.set_queueing(policy.queueing);
        transport.set_quirks(decision.quirks, speed);
        let config = FunctionConfig {
            configuration: choice.configuration,
            interface: choice.interface,
            alternate: choice.alternate,
        };
        bus.configure(device, config, now)
            .inspect_err(|_| bus.pool().reclaim(Owner::Function(index)))?;
        *self = Self {
            state: State::Configuring,
            device: Some(device),
            interface: choice.interface,
            transport: Some(transport),
            transfer_bytes: longest,
            command_set: choice.command_set,
            decision,
        };
        Ok(())
    }

    /// The device was configured, or not.
    pub fn configured<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        policy: &Policy,
        result: Result<(), UsbError>,
        now: Instant,
    ) -> Option<FunctionEvent> {
        let device = self.device?;
        if let Err(error) = result {
            return Some(FunctionEvent::Failed(error));
        }
        if self.decision.quirks.contains(Quirks::SINGLE_LUN) {
            self.state = State::Serving;
            return Some(FunctionEvent::Serving(Lun::ZERO));
        }
        self.state = State::AskingUnits;
        let setup = SetupPacket::bulk_only_max_lun(self.interface);
        match bus.operate(device, Operation::Request(setup, policy.optional), now) {
            Ok(()) => None,
            Err(error) => Some(FunctionEvent::Failed(error)),
        }
    }

    /// The operation that the function began on its device has ended.
    pub fn operated<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        result: Result<u32, UsbError>,
        now: Instant,
    ) -> Option<FunctionEvent> {
        if self.state == State::AskingUnits {
            return self.asked(bus, result);
        }
        let transport = self.transport.as_mut()?;
        let ended = transport.operated(bus, dma, result.map(|_| ()), now);
        ended.map(FunctionEvent::Ended)
    }

    /// Every answer but a good one means a single unit (BOT 1.0 §3.2).
    fn asked<C: Driver>(
        &mut self,
        bus: &Bus<'_, C>,
        result: Result<u32, UsbError>,
    ) -> Option<FunctionEvent> {
        let mut byte = [0];
        let answer = match result {
            Ok(1..) => {
                bus.read_control(self.device?, &mut byte);
                &byte[..]
            }
            _ => &[],
        };
        self.state = State::Serving;
        Some(FunctionEvent::Serving(Lun::highest(answer)))
    }

    /// A transfer of the function has ended.
    #[inline]
    pub fn transfer_ended<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        tag: u16,
        outcome: TransferOutcome,
        actual: u32,
        now: Instant,
    ) -> Option<Outcome> {
        self.transport
            .as_mut()?
            .transfer_ended(bus, dma, tag, outcome, actual, now)
    }

    /// The deadline has passed.
    pub fn deadline_passed<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        now: Instant,
    ) -> Option<Outcome> {
        self.transport.as_mut()?.deadline_passed(bus, dma, now)
    }

    /// Whether the device must be closed for the command under way to end: `true` once.
    pub fn take_stuck(&mut self) -> bool {
        let transport = self.transport.as_mut();
        transport.is_some_and(Transport::take_stuck)
    }

    /// Begins a command. The function is idle.
    ///
    /// # Errors
    ///
    /// [`TransportError`]: nothing was begun.
    #[inline]
    pub fn begin<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        request: &Request,
        now: Instant,
    ) -> Result<(), TransportError> {
        let transport = self
            .transport
            .as_mut()
            .ok_or(TransportError::Disconnected)?;
        transport.begin(bus, dma, request, now)
    }

    /// The device has gone: no more commands; what is under way ends with [`Function::closed`].
    pub fn gone(&mut self) {
        if self.is_free() {
            return;
        }
        self.state = State::Leaving;
        if let Some(transport) = self.transport.as_mut() {
            transport.gone();
        }
    }

    /// The controller has let go of the device: the command under way ends, the memory goes back.
    pub fn closed<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        index: u8,
    ) -> Option<Outcome> {
        let ended = self
            .transport
            .as_mut()
            .and_then(|transport| transport.closed(dma));
        *self = Self::EMPTY;
        bus.pool().reclaim(Owner::Function(index));
        ended
    }
}

/// The most bytes of one command's data on a link of this speed.
fn transfer_limit(policy: &Policy, quirks: Quirks, speed: Speed) -> u32 {
    let limit = if speed.is_super() {
        policy.transfer_super
    } else {
        policy.transfer_high
    };
    quirks
        .transfer_limit()
        .map_or(limit, |most| most.min(limit))
}
