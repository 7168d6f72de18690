//! The memory, pipes, mappings and deadlines of one UAS function: begins commands and
//! gives their ends back. What happens meanwhile is taken to the [`Machine`] in `inputs`; what that answers
//! is carried out in `act`.
//!
//! Called by [`function`](crate::storage::function), with the same face as Bulk-Only's transport but
//! for two things: several commands may be under way, each for a [`Client`] that is given back with
//! its end; and what must be remembered of each lies in [`CommandSlot`]s of the caller's storage, of
//! which a function reserves as many in a row as it may have commands in flight.
//!
//! Everything that the device writes lands in memory that is checked before it is used. A command
//! costs one interrupt, that of its status: its data end with an event and no interrupt, and the
//! command unit quietly, but for one in `QUIET` that tells the controller's driver how far it is. While
//! others are in flight the controller is told of some commands at once, by [`Transport::kick`].

use super::machine::{Counters, Machine, Mode, Tried};
use super::memory::{CommandSlot, Layout, slot_mut};
use super::tags::{MAX_TAGS, TagSet, Tags};
use super::wire::{Attribute, CommandUnit, Tag};
use crate::dma::{Allocation, DataDirection, Dma, Mapping, Segment, SegmentRules};
use crate::host::HostError;
use crate::scsi::cdb::DataPhase;
use crate::scsi::luns::Luns;
use crate::scsi::transport::{Client, DataPlace, Ended, Request, SCRATCH, TransportError};
use crate::storage::bot::transport::CopyCount;
use crate::time::{Duration, Instant};
use crate::usb::operation::Operation;
use crate::usb::{Bus, Driver, Pipe, UsbError};

/// Command units in a row that are sent without an event.
pub(super) const QUIET: u8 = 7;

/// What a transfer of the transport carries: the low bits of its tag. The tag of the command is above.
pub(super) mod part {
    pub(in super::super) const COMMAND: u16 = 0;
    pub(in super::super) const DATA: u16 = 1;
    pub(in super::super) const STATUS: u16 = 2;
    pub(in super::super) const BITS: u32 = 2;
}

/// How long commands may wait for [`Transport::kick`] without getting more time. Policy: far below any
/// command's own deadline.
const PAUSE: Duration = Duration::from_millis(100);

/// What a transport works with in every call.
#[derive(Debug)]
pub struct Tools<'t, 's, C, D> {
    /// The bus.
    pub bus: &'t mut Bus<'s, C>,
    /// What the platform knows about DMA.
    pub dma: &'t D,
    /// The commands of all functions.
    pub commands: &'t mut [CommandSlot],
    /// The time.
    pub now: Instant,
}

/// The open pipes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipes {
    pub(super) command: Pipe,
    pub(super) status: Pipe,
    pub(super) data_in: Pipe,
    pub(super) data_out: Pipe,
}

/// One UAS device.
#[derive(Debug)]
pub struct Transport {
    pub(super) function: u8,
    pub(super) pipes: Pipes,
    pub(super) rules: SegmentRules,
    pub(super) memory: Allocation,
    pub(super) layout: Layout,
    pub(super) machine: Machine,
    pub(super) tags: Tags,
    /// Tags that have a bounce area of their own.
    pub(super) bouncing: TagSet,
    /// Place of the first tag's slot.
    pub(super) base: u16,
    /// Commands in flight.
    pub(super) flying: TagSet,
    /// Commands that ended without a status: their tags rest.
    pub(super) marked: TagSet,
    /// Commands that the device had no room for, and when they are sent again.
    pub(super) put_off: TagSet,
    pub(super) put_off_until: Instant,
    /// Commands that have ended, and whose end was not taken yet.
    pub(super) ended: TagSet,
    /// Commands that were in flight when another one was given up because it was late: if they are
    /// late too, it is of the same fault.
    pub(super) overtaken: TagSet,
    /// The command that has the small memory.
    pub(super) scratch: Option<Tag>,
    /// Command units sent without an event since the last one with.
    pub(super) quiet: u8,
    /// Commands whose unit is queued, and of which the controller was not told yet.
    pub(super) unsent: TagSet,
    /// Since when there is one.
    pub(super) unsent_since: Instant,
    /// Not later than any deadline.
    pub(super) deadline: Instant,
    pub(super) task: Option<(Tag, Instant)>,
    pub(super) task_timeout: Duration,
    /// No function has longer than that, until all is calm again.
    pub(super) recovery_end: Instant,
    pub(super) operation: Instant,
    /// An operation that waits for an earlier one to end.
    pub(super) waiting: Option<Operation>,
    /// The device has gone, or must be closed: nothing is done on it any more.
    pub(super) quiescent: bool,
    /// Nothing is out of the ordinary: commands begin and end by the shortest way.
    pub(super) calm: bool,
    /// No command may begin, until the device is back in step.
    pub(super) held_up: bool,
    /// It is back in step, and nobody was told yet.
    pub(super) resumed: bool,
    pub(super) stuck: bool,
    pub(super) copies: CopyCount,
    /// What was short for more commands in flight.
    pub(super) shortage: Option<UsbError>,
}

/// What the function asks.
impl Transport {
    /// Whether one more command may begin.
    #[inline]
    #[must_use]
    pub fn takes_commands(&self) -> bool {
        self.tags.is_available() && (self.calm || !self.quiescent && self.machine.takes_commands())
    }

    /// Whether the device is being brought back in step, or must be closed for that.
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        !self.machine.takes_commands()
    }

    /// What has brought the device back in step, if it has ended no command since.
    #[must_use]
    pub fn tried(&self) -> Tried {
        self.machine.tried()
    }

    /// Whether a command that begins now has the device for itself; then nothing was tried on the device for it.
    #[cold]
    pub fn starts_anew(&mut self) -> bool {
        let is_free = self.flying.is_empty() && self.takes_commands();
        if is_free {
            self.machine.forget_tried();
            self.note_calm();
        }
        is_free
    }

    /// Whether the pipes have streams.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.machine.mode()
    }

    /// The most commands in flight.
    #[must_use]
    pub fn depth(&self) -> u8 {
        self.tags.depth()
    }

    /// What was short when it was opened, where more commands in flight would have been allowed.
    #[must_use]
    pub fn shortage(&self) -> Option<UsbError> {
        self.shortage
    }

    /// When [`Transport::deadline_passed`] is due.
    #[inline]
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// How much was copied since the device was configured.
    #[must_use]
    pub fn copies(&self) -> CopyCount {
        self.copies
    }

    /// What was odd since the device was configured.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.machine.counters()
    }

    /// The first bytes of the transport's own memory: what the last small command brought.
    pub fn read_scratch(&self, bytes: &mut [u8]) {
        let length = bytes.len().min(SCRATCH);
        if let Some(bytes) = bytes.get_mut(..length) {
            self.memory.read_bytes(self.layout.scratch(), bytes);
        }
    }

    /// Begins a command.
    ///
    /// # Errors
    ///
    /// [`TransportError::Busy`]: not now, but when another command has ended.
    /// [`TransportError::Memory`]: the controller cannot reach the data. Nothing was begun.
    #[inline(never)]
    pub fn begin<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        request: &Request,
        client: Client,
    ) -> Result<(), TransportError> {
        let data = request.command.data;
        let is_small = matches!(request.data, DataPlace::Scratch | DataPlace::List(_));
        let small = is_small && data != DataPhase::None;
        let takes = self.calm || self.takes_commands();
        if !takes || small && self.scratch.is_some() {
            return Err(TransportError::Busy);
        }
        let entered = self.enter(tools.dma, tools.commands, tools.now, request, client)?;
        let tag = entered.tag;
        if small {
            self.scratch = Some(tag);
            self.place_list(request);
        }
        if self.calm {
            self.machine.begin_at_once(tag, request.lun, data);
            if self.send_all(tools, tag, data).is_err() {
                self.get_stuck(tools.bus);
            }
        } else {
            self.machine.begin(tag, request.lun, data);
            self.run(tools);
        }
        Ok(())
    }

    /// Whether a command can begin with [`Transport::begin_calmly`]: nothing is out of the ordinary, and its
    /// data is the caller's.
    #[inline(always)]
    pub fn is_calm_for(&self, request: &Request) -> bool {
        self.calm && matches!(request.data, DataPlace::Caller(_))
    }

    /// Begins a command as [`Transport::begin`] does, where it is known that nothing is in its way.
    ///
    /// # Errors
    ///
    /// As [`Transport::begin`].
    #[inline(always)]
    pub fn begin_calmly<C: Driver, D: Dma>(
        &mut self,
        tools: Tools<'_, '_, C, D>,
        request: &Request,
        client: Client,
    ) -> Result<(), TransportError> {
        let entered = self.enter(tools.dma, tools.commands, tools.now, request, client)?;
        let (tag, data) = (entered.tag, request.command.data);
        self.machine.begin_at_once(tag, request.lun, data);
        let mut tools = tools;
        let sent = match (self.machine.mode(), entered.whole) {
            (Mode::Streams, Some(whole)) => self.send_whole(&mut tools, tag, data, whole),
            (Mode::Streams, None) => self.send_all(&mut tools, tag, data),
            (Mode::Ready, _) => self.send(tools.bus, tag, CommandUnit::LENGTH),
        };
        if sent.is_err() {
            self.get_stuck(tools.bus);
        }
        Ok(())
    }

    /// Tells the controller of the commands that it was not told of yet. They have no less time than others
    /// because the caller took long to come by.
    #[inline(never)]
    pub fn kick<C: Driver, D: Dma>(&mut self, tools: &mut Tools<'_, '_, C, D>) {
        if self.unsent.is_empty() {
            return;
        }
        let waited = tools.now.since(self.unsent_since);
        if waited > PAUSE {
            for tag in self.unsent {
                if let Some(slot) = slot_mut(tools.commands, self.base, tag) {
                    slot.deadline = slot.deadline + waited;
                }
            }
        }
        self.unsent = TagSet::EMPTY;
        if !self.quiescent {
            tools.bus.kick(&self.pipes.command);
        }
    }

    /// Gives a command a tag, maps its data, remembers whose it is and writes its unit.
    #[inline(always)]
    fn enter(
        &mut self,
        dma: &impl Dma,
        commands: &mut [CommandSlot],
        now: Instant,
        request: &Request,
        client: Client,
    ) -> Result<Entered, TransportError> {
        let allowed = self.tags_for(dma, request);
        let tag = self.tags.take(allowed).ok_or(TransportError::Busy)?;
        let Some(slot) = slot_mut(commands, self.base, tag) else {
            return Err(TransportError::Busy);
        };
        let copied = map(slot, dma, self.rules, request);
        let copied = copied.inspect_err(|_| self.tags.give_back(tag))?;
        let deadline = now + request.timeout;
        slot.client = Some(client);
        slot.deadline = deadline;
        slot.outcome = None;
        let whole = slot.mapping.as_ref().and_then(Mapping::whole);
        if copied != 0 {
            self.count_copy(copied);
        }
        self.deadline = self.deadline.min(deadline);
        self.flying.insert(tag);
        self.overtaken.remove(tag);
        let unit = CommandUnit {
            tag,
            lun: request.lun,
            attribute: Attribute::Simple,
            priority: 0,
            cdb: request.command.cdb,
        };
        let at = self.layout.unit(tag);
        if let Some(room) = self.memory.block::<{ CommandUnit::LENGTH }>(at) {
            room.write(unit.to_words());
        }
        Ok(Entered { tag, whole })
    }

    /// Sends a command; with streams, behind its own transfers.
    #[inline(never)]
    fn send_all<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
        tag: Tag,
        data: DataPhase,
    ) -> Result<(), HostError> {
        if self.machine.mode() == Mode::Streams {
            self.read_status(tools.bus, Some(tag))?;
            if data != DataPhase::None {
                self.queue_data(tools.bus, tools.commands, tag, 0)?;
            }
        }
        self.send(tools.bus, tag, CommandUnit::LENGTH)
    }

    /// Puts a command's list into the transport's own memory.
    #[cold]
    fn place_list(&self, request: &Request) {
        let (at, length) = (self.layout.scratch(), request.command.data.length());
        request.data.list(length, |offset, bytes| {
            self.memory.write_bytes(at + offset, bytes)
        });
    }

    /// Tags that a command may have: a read whose ends must be bounced needs one with an area for it.
    #[inline]
    fn tags_for(&self, dma: &impl Dma, request: &Request) -> TagSet {
        let all = TagSet::first(MAX_TAGS);
        match (request.data, request.command.data) {
            (DataPlace::Caller(buffer), DataPhase::In(_))
                if !dma.coherent() && !buffer.is_aligned(dma.cache_line()) =>
            {
                self.bouncing
            }
            _ => all,
        }
    }

    #[cold]
    fn count_copy(&mut self, bytes: usize) {
        self.copies.copied += 1;
        self.copies.bounced += bytes as u64;
    }

    /// A command that has ended, and for whom. To be asked after every call until there is none.
    #[inline]
    pub fn take_ended<C: Driver, D: Dma>(
        &mut self,
        tools: &mut Tools<'_, '_, C, D>,
    ) -> Option<Ended> {
        let tag = self.ended.next()?;
        let slot = slot_mut(tools.commands, self.base, tag)?;
        let (client, outcome) = (slot.client.take()?, slot.outcome.take()?);
        self.flying.remove(tag);
        self.tags.give_back(tag);
        if self.marked.contains(tag) {
            self.marked.remove(tag);
            self.tags.rest(tag, self.bouncing);
            self.note_calm();
        }
        if self.scratch == Some(tag) {
            self.scratch = None;
        }
        if self.flying.is_empty() {
            self.rest(tools.bus);
        }
        Some(Ended { outcome, client })
    }

    /// No command is in flight: every unit that was sent has arrived.
    pub(super) fn rest<C: Driver>(&mut self, bus: &mut Bus<'_, C>) {
        bus.retire(&self.pipes.command);
        self.quiet = 0;
        let task = self.task.map_or(Instant::NEVER, |(_, deadline)| deadline);
        self.deadline = self.operation.min(task);
    }

    /// Finds out whether anything is out of the ordinary.
    pub(super) fn note_calm(&mut self) {
        self.calm = !self.quiescent && self.marked.is_empty() && self.machine.is_calm();
        if self.calm {
            self.recovery_end = Instant::NEVER;
        }
    }

    /// Whether commands may begin again that could not before, although none has ended: `true` once.
    #[inline]
    pub fn take_resumed(&mut self) -> bool {
        core::mem::take(&mut self.resumed)
    }

    /// The units that were reset since it was asked last, for the sake of commands that did not end.
    #[inline]
    pub fn take_reset_units(&mut self) -> Luns {
        self.machine.take_reset_units()
    }

    /// Whether the device must be closed for the commands under way to end: `true` once.
    pub fn take_stuck(&mut self) -> bool {
        if self.stuck {
            self.deadline = Instant::NEVER;
        }
        core::mem::take(&mut self.stuck)
    }

    /// The device has gone: nothing is done on it any more. The commands under way keep their memory
    /// until [`Transport::abandon`], since the controller may still reach it.
    pub fn gone(&mut self) {
        self.quiescent = true;
        self.calm = false;
        self.deadline = Instant::NEVER;
        self.waiting = None;
        self.put_off = TagSet::EMPTY;
    }

    /// The controller has let go of the device: takes the next command that was under way, whose
    /// memory is its owner's again.
    pub fn abandon(&mut self, commands: &mut [CommandSlot], dma: &impl Dma) -> Option<Client> {
        self.gone();
        let tag = self.flying.next()?;
        self.ended.remove(tag);
        let slot = slot_mut(commands, self.base, tag)?;
        Mapping::end(&mut slot.mapping, dma, 0);
        slot.client.take()
    }
}

/// A command that has got a tag.
struct Entered {
    tag: Tag,
    /// Its data, if it is in one piece.
    whole: Option<Segment>,
}

/// Maps the data of a request, and returns how many bytes of it are copied.
#[inline(always)]
fn map(
    slot: &mut CommandSlot,
    dma: &impl Dma,
    rules: SegmentRules,
    request: &Request,
) -> Result<usize, TransportError> {
    slot.mapping = None;
    let buffer = match request.data {
        DataPlace::Caller(buffer) => buffer,
        DataPlace::Pool(memory) => {
            slot.mapping = Some(Mapping::of_pool(memory));
            return Ok(memory.length);
        }
        DataPlace::Scratch | DataPlace::List(_) => return Ok(0),
    };
    let direction = match request.command.data {
        DataPhase::In(_) => DataDirection::FromDevice,
        DataPhase::Out(_) => DataDirection::ToDevice,
        DataPhase::None => return Ok(0),
    };
    let (place, bounce) = (&mut slot.mapping, slot.bounce.as_ref());
    let mapping = Mapping::map(place, dma, rules, buffer, direction, bounce);
    Ok(mapping.map_err(TransportError::Memory)?.bounced())
}
