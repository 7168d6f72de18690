//! One device's storage interface, from its configuration to its removal.
//!
//! Called by the stack, which owns a table of them. A function opens the pipes that
//! [`choose`](super::choose) found, over Bulk-Only asks how many units there are, and then carries
//! commands: one at a time over Bulk-Only, several over UAS.

mod opening;
mod setting;

use opening::{open_bulk_only, transfer_limit};

use super::bot::transport::{CopyCount, Transport as BulkOnly};
use super::bot::wire::Lun;
use super::choose::{Choice, Way};
use super::quirks::{Decision, Quirks};
#[cfg(not(feature = "uas"))]
use super::uas::absent::Transport as Uas;
use super::uas::machine::Tried;
use super::uas::transport::Tools;
#[cfg(feature = "uas")]
use super::uas::transport::Transport as Uas;
use super::uas::{CommandSlot, release};
use crate::dma::{Dma, Owner};
use crate::host::TransferEnd;
use crate::policy::{Policy, Trust};
use crate::scsi::bring_up::{Manner, Search};
use crate::scsi::luns::Luns;
use crate::scsi::transport::{
    Client, ClientKind, Ended, Outcome, Progress, Request, TransportError,
};
use crate::time::Instant;
use crate::usb::bus::FunctionConfig;
use crate::usb::descriptor::CommandSet;
use crate::usb::operation::Operation;
use crate::usb::setup::SetupPacket;
use crate::usb::{Bus, DeviceId, Driver, UsbError, function_and_tag};

/// Bytes of the longest block there is: a command moves one at least, whatever its limit.
const LONGEST_BLOCK: u32 = 1 << 16;

/// The most bytes of one command, whatever the policy. Policy: every ring has room for that, and more
/// is no faster.
const LONGEST_TRANSFER: u32 = 16 << 20;

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

/// What carries the commands. Its tag is a number of its own, because it is looked at for every event.
#[derive(Debug)]
#[repr(u8)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is no heap, and the function is the place for either"
)]
enum Carrier {
    None,
    /// With whom the command under way is for.
    BulkOnly(BulkOnly, Option<Client>),
    Uas(Uas),
}

/// What the stack must know about a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FunctionEvent {
    /// It carries commands from now on, for units up to this one.
    Serving(Lun),
    /// Its device could not be configured: it is free again.
    Failed(UsbError),
    /// A command has ended. Others may have too: see [`Function::take_ended`].
    Ended(Ended),
}

/// A storage function. The caller of the stack provides a slice of them.
#[derive(Debug)]
pub struct Function {
    state: State,
    device: Option<DeviceId>,
    interface: u8,
    /// The alternate setting of its interface.
    alternate: u8,
    carrier: Carrier,
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
        alternate: 0,
        carrier: Carrier::None,
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
        match &self.carrier {
            Carrier::BulkOnly(transport, _) => transport.quirks(),
            Carrier::None | Carrier::Uas(_) => self.decision.quirks,
        }
    }

    /// How freely its units may be asked, and how they are found beginning with the first.
    #[must_use]
    pub fn manner(&self, trust: Trust) -> (Manner, Search) {
        match (&self.carrier, trust) {
            (Carrier::Uas(_), _) => (Manner::Free, Search::List),
            (_, Trust::ByTransport) => (Manner::Cautious, Search::None),
            (_, Trust::Everyone) => (Manner::Free, Search::ListAlone),
        }
    }

    /// The device has carried out an ATA command. Over UAS sense data come as long as they are.
    pub fn learn_long_sense(&mut self) {
        if let Carrier::BulkOnly(transport, _) = &mut self.carrier {
            transport.learn_long_sense();
        }
    }

    /// How much was copied since the device was configured.
    #[must_use]
    pub fn copies(&self) -> CopyCount {
        match &self.carrier {
            Carrier::None => CopyCount::default(),
            Carrier::BulkOnly(transport, _) => transport.copies(),
            Carrier::Uas(transport) => transport.copies(),
        }
    }

    /// The UAS transport, if that carries the commands.
    #[must_use]
    pub fn uas(&self) -> Option<&Uas> {
        match &self.carrier {
            Carrier::Uas(transport) => Some(transport),
            Carrier::None | Carrier::BulkOnly(..) => None,
        }
    }

    /// The first bytes that the last small command brought.
    pub fn read_scratch(&self, bytes: &mut [u8]) {
        match &self.carrier {
            Carrier::None => {}
            Carrier::BulkOnly(transport, _) => transport.read_scratch(bytes),
            Carrier::Uas(transport) => transport.read_scratch(bytes),
        }
    }

    /// Whether it takes a command now.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.state == State::Serving
            && match &self.carrier {
                Carrier::None => false,
                Carrier::BulkOnly(transport, _) => !transport.is_busy(),
                Carrier::Uas(transport) => transport.takes_commands(),
            }
    }

    /// Whether several commands may be under way.
    #[inline]
    #[must_use]
    pub fn takes_several(&self) -> bool {
        matches!(self.carrier, Carrier::Uas(_))
    }

    /// Whether its device speaks UAS and is being brought back in step.
    #[must_use]
    pub fn is_recovering_uas(&self) -> bool {
        self.uas().is_some_and(Uas::is_recovering)
    }

    /// What of UAS's own has brought its device back in step, if it has ended no command since.
    #[must_use]
    pub fn tried(&self) -> Tried {
        self.uas().map_or(Tried::Nothing, Uas::tried)
    }

    /// Whether a command that begins now has the device for itself: then it has nothing to do with what went wrong
    /// before, however that ended.
    pub fn starts_anew(&mut self) -> bool {
        match &mut self.carrier {
            Carrier::Uas(transport) => transport.starts_anew(),
            Carrier::BulkOnly(..) | Carrier::None => true,
        }
    }

    /// When [`Function::deadline_passed`] is due.
    #[inline]
    #[must_use]
    pub fn deadline(&self) -> Instant {
        match &self.carrier {
            Carrier::None => Instant::NEVER,
            Carrier::BulkOnly(transport, _) => transport.deadline(),
            Carrier::Uas(transport) => transport.deadline(),
        }
    }

    /// Opens the pipes of a choice and begins to configure the device. The function is free, and
    /// `index` is its place in the stack's table.
    ///
    /// # Errors
    ///
    /// What is short, or what the controller says: the function is still free.
    pub fn attach<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        policy: &Policy,
        index: u8,
        device: DeviceId,
        (choice, decision): (&Choice, Decision),
    ) -> Result<(), UsbError> {
        let speed = tools.bus.speed(device).ok_or(UsbError::Disconnected)?;
        let limit = transfer_limit(policy, decision.quirks, speed);
        let longest = limit.max(LONGEST_BLOCK);
        self.carrier = match &choice.way {
            Way::BulkOnly(pipes) => Carrier::BulkOnly(
                open_bulk_only(tools.bus, index, device, choice.interface, pipes, longest)?,
                None,
            ),
            Way::Uas(pipes) => Carrier::Uas(Uas::open(
                tools.bus,
                tools.commands,
                index,
                device,
                pipes,
                policy,
                longest,
            )?),
        };
        if let Carrier::BulkOnly(transport, _) = &mut self.carrier {
            transport.set_queueing(policy.queueing);
            transport.set_quirks(decision.quirks, speed);
        }
        let config = FunctionConfig {
            configuration: choice.configuration,
            interface: choice.interface,
            alternate: choice.alternate,
        };
        let begun = tools.bus.configure(device, config, tools.now);
        begun.inspect_err(|_| self.closed(tools, index))?;
        self.state = State::Configuring;
        self.device = Some(device);
        self.interface = choice.interface;
        self.alternate = choice.alternate;
        self.transfer_bytes = limit;
        self.command_set = choice.command_set;
        self.decision = decision;
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
        if self.takes_several() || self.decision.quirks.contains(Quirks::SINGLE_LUN) {
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
    pub fn operated<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        result: Result<u32, UsbError>,
    ) -> Option<FunctionEvent> {
        if self.state == State::AskingUnits {
            return self.asked(tools.bus, result);
        }
        let result = result.map(|_| ());
        let ended = match &mut self.carrier {
            Carrier::None => None,
            Carrier::BulkOnly(transport, client) => {
                let ended = transport.operated(tools.bus, tools.dma, result, tools.now);
                of(client, ended)
            }
            Carrier::Uas(transport) => {
                transport.operated(tools, result);
                transport.take_ended(tools)
            }
        }?;
        Some(FunctionEvent::Ended(ended))
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

    /// Takes the good end of a transfer, where that is all there is to it: see [`Progress`]. If not,
    /// [`Function::transfer_ended`] finds out what it means.
    #[inline]
    pub fn ended_well<C: Driver>(
        &mut self,
        bus: &mut Bus<'_, C>,
        dma: &impl Dma,
        commands: &mut [CommandSlot],
        end: &TransferEnd,
    ) -> Progress {
        match &mut self.carrier {
            Carrier::None => Progress::Unknown,
            Carrier::BulkOnly(transport, place) => {
                let Some(Client { kind, index, piece }) = *place else {
                    return Progress::Unknown;
                };
                if kind != ClientKind::Request || !transport.ended_well(bus, dma, end) {
                    return match transport.data_sent(bus, end) {
                        true => Progress::Step,
                        false => Progress::Unknown,
                    };
                }
                *place = None;
                Progress::Done {
                    request: index,
                    piece,
                    moved: transport.announced(),
                }
            }
            Carrier::Uas(transport) => transport.ended_well(bus, dma, commands, end),
        }
    }

    /// A transfer of the function has ended.
    #[inline(never)]
    pub fn transfer_ended<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        end: &TransferEnd,
    ) -> Option<Ended> {
        let (_, tag) = function_and_tag(end.token);
        let (outcome, actual) = (end.outcome, end.actual);
        match &mut self.carrier {
            Carrier::None => None,
            Carrier::BulkOnly(transport, client) => {
                let (bus, dma) = (&mut *tools.bus, tools.dma);
                let ended = transport.transfer_ended(bus, dma, tag, outcome, actual, tools.now);
                of(client, ended)
            }
            Carrier::Uas(transport) => {
                transport.transfer_ended(tools, tag, outcome, actual);
                transport.take_ended(tools)
            }
        }
    }

    /// One more command that has ended by what happened last.
    #[inline]
    pub fn take_ended<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
    ) -> Option<Ended> {
        match &mut self.carrier {
            Carrier::None | Carrier::BulkOnly(..) => None,
            Carrier::Uas(transport) => transport.take_ended(tools),
        }
    }

    /// The deadline has passed. What UAS has of its own to bring the device back in step takes no longer than
    /// until `end`.
    pub fn deadline_passed<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        end: Instant,
    ) -> Option<Ended> {
        match &mut self.carrier {
            Carrier::None => None,
            Carrier::BulkOnly(transport, client) => {
                let ended = transport.deadline_passed(tools.bus, tools.dma, tools.now);
                of(client, ended)
            }
            Carrier::Uas(transport) => {
                transport.deadline_passed(tools, end);
                transport.take_ended(tools)
            }
        }
    }

    /// Whether commands may begin again that could not before, although none has ended: `true` once.
    #[inline]
    pub fn take_resumed(&mut self) -> bool {
        match &mut self.carrier {
            Carrier::None | Carrier::BulkOnly(..) => false,
            Carrier::Uas(transport) => transport.take_resumed(),
        }
    }

    /// The units that were reset, since it was asked last, because of commands that did not end.
    #[inline]
    pub fn take_reset_units(&mut self) -> Luns {
        match &mut self.carrier {
            Carrier::None | Carrier::BulkOnly(..) => Luns::NONE,
            Carrier::Uas(transport) => transport.take_reset_units(),
        }
    }

    /// Whether the device must be closed for the commands under way to end: `true` once.
    pub fn take_stuck(&mut self) -> bool {
        match &mut self.carrier {
            Carrier::None => false,
            Carrier::BulkOnly(transport, _) => transport.take_stuck(),
            Carrier::Uas(transport) => transport.take_stuck(),
        }
    }

    /// Tells the controller of commands that were begun and that it was not told of yet.
    pub fn kick<C: Driver, D: Dma>(&mut self, tools: &mut Tools<'_, '_, C, D>) {
        if let Carrier::Uas(transport) = &mut self.carrier {
            transport.kick(tools);
        }
    }

    /// Begins a command. The function is idle.
    ///
    /// # Errors
    ///
    /// [`TransportError`]: nothing was begun.
    #[inline(always)]
    pub fn begin<C: Driver, D: Dma>(
        &mut self,
        tools: Tools<'_, '_, C, D>,
        request: &Request,
        client: Client,
    ) -> Result<(), TransportError> {
        match &mut self.carrier {
            Carrier::None => Err(TransportError::Disconnected),
            Carrier::BulkOnly(transport, place) => {
                transport.begin(tools.bus, tools.dma, request, tools.now)?;
                *place = Some(client);
                Ok(())
            }
            Carrier::Uas(transport) if transport.is_calm_for(request) => {
                transport.begin_calmly(tools, request, client)
            }
            Carrier::Uas(transport) => {
                let (mut tools, request) = (tools, *request);
                transport.begin(&mut tools, &request, client)
            }
        }
    }

    /// Begins a command as [`Function::begin`] does, without haste.
    ///
    /// # Errors
    ///
    /// As [`Function::begin`].
    #[cold]
    pub fn begin_rarely<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        request: &Request,
        client: Client,
    ) -> Result<(), TransportError> {
        match &mut self.carrier {
            Carrier::None => Err(TransportError::Disconnected),
            Carrier::BulkOnly(transport, place) => {
                transport.begin_rarely(tools.bus, tools.dma, request, tools.now)?;
                *place = Some(client);
                Ok(())
            }
            Carrier::Uas(transport) => transport.begin(tools, request, client),
        }
    }

    /// The device has gone: no more commands; what is under way ends with [`Function::abandon`].
    #[inline(never)]
    pub fn gone(&mut self) {
        if self.is_free() {
            return;
        }
        self.state = State::Leaving;
        match &mut self.carrier {
            Carrier::None => {}
            Carrier::BulkOnly(transport, _) => transport.gone(),
            Carrier::Uas(transport) => transport.gone(),
        }
    }

    /// The controller has let go of the device: takes the next command that was under way, whose
    /// memory is its owner's again.
    pub fn abandon<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
    ) -> Option<Client> {
        match &mut self.carrier {
            Carrier::None => None,
            Carrier::BulkOnly(transport, client) => {
                transport.closed(tools.dma);
                client.take()
            }
            Carrier::Uas(transport) => transport.abandon(tools.commands, tools.dma),
        }
    }

    /// All commands were taken with [`Function::abandon`]: the function's own memory goes back.
    pub fn closed<C: Driver, D: Dma>(&mut self, tools: &mut Tools<'_, '_, C, D>, index: u8) {
        *self = Self::EMPTY;
        release(tools.commands, index);
        tools.bus.pool().reclaim(Owner::Function(index));
    }
}

/// The end of a Bulk-Only command, with whom it is for.
#[inline]
fn of(client: &mut Option<Client>, ended: Option<Outcome>) -> Option<Ended> {
    let outcome = ended?;
    Some(Ended {
        outcome,
        client: client.take()?,
    })
}
