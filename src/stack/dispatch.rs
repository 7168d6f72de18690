//! What the bus reports, carried to functions and units.

use super::neighbours::NewUnit;
use super::recover::{is_same_unit, replace};
use super::{FunctionSlot, Host};
use crate::block::BlockError;
use crate::block::queue::REISSUES;
use crate::host::{ControllerFault, TransferEnd};
use crate::platform::{ControllerId, Platform};
use crate::scsi::bring_up::{Action, BringUp, BringUpError, Input, ModeForm, Search};
use crate::scsi::inquiry::Inquiry;
use crate::scsi::transport::{Outcome, Progress, SCRATCH, TransportError};
use crate::scsi::unit::{Next, UnitEntry, UnitState};
use crate::storage::bot::wire::Lun;
use crate::storage::function::{Function, FunctionEvent};
use crate::storage::ladder::Failure;
use crate::storage::quirks::Quirks;
use crate::storage::uas::transport::Tools;
use crate::time::Instant;
use crate::usb::descriptor::CommandSet;
use crate::usb::{BusEvent, DeviceId, Driver, function_and_tag};

/// Bytes of a unit's answer that are looked at: the longest, MODE SENSE, is asked for 192.
const ANSWER: usize = 256;
const _: () = assert!(ANSWER <= SCRATCH);

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Takes the good end of a transfer. It ends a command, as a rule, and with it a request.
    #[inline]
    pub(super) fn transfer_ended(&mut self, end: &TransferEnd, now: Instant) {
        let (function, _) = function_and_tag(end.token);
        let Some(slot) = self.functions.get_mut(usize::from(function)) else {
            return;
        };
        let (bus, dma) = (&mut self.bus, &self.platform);
        match slot.function.ended_well(bus, dma, self.commands, end) {
            Progress::Step => {}
            Progress::Done {
                request,
                piece,
                moved,
            } => {
                slot.ladder.succeeded();
                self.request_done(function, request, piece, moved, now);
            }
            Progress::Unknown => self.transfer_ended_otherwise(end, now),
        }
    }

    /// Takes the end of a transfer, whatever it means.
    #[inline(never)]
    fn transfer_ended_otherwise(&mut self, end: &TransferEnd, now: Instant) {
        let (function, _) = function_and_tag(end.token);
        let Some(slot) = self.functions.get_mut(usize::from(function)) else {
            return;
        };
        let mut tools = Tools {
            bus: &mut self.bus,
            dma: &self.platform,
            commands: self.commands,
            now,
        };
        match slot.function.transfer_ended(&mut tools, end) {
            Some(ended) => self.commands_ended(function, ended, now),
            None => self.nothing_ended(function, now),
        }
    }

    /// Carries one thing that the bus reports to whom it concerns.
    #[cold]
    #[inline(never)]
    pub(super) fn dispatch(&mut self, event: BusEvent, now: Instant) {
        match event {
            BusEvent::Transfer(end) => self.transfer_ended_otherwise(&end, now),
            BusEvent::Described(device) => self.described(device, now),
            BusEvent::Configured(device, result) => {
                let Some(index) = self.function_of(device) else {
                    return;
                };
                let Some(slot) = self.functions.get_mut(usize::from(index)) else {
                    return;
                };
                let event = slot
                    .function
                    .configured(&mut self.bus, &self.policy, result, now);
                self.function_event(index, event, now);
            }
            BusEvent::Operated(device, result) => {
                let Some(index) = self.function_of(device) else {
                    return;
                };
                let Some(slot) = self.functions.get_mut(usize::from(index)) else {
                    return;
                };
                let mut tools = Tools {
                    bus: &mut self.bus,
                    dma: &self.platform,
                    commands: self.commands,
                    now,
                };
                let event = slot.function.operated(&mut tools, result);
                self.function_event(index, event, now);
            }
            BusEvent::Gone(device) => self.gone(device),
            BusEvent::Closed(device, fate) => self.closed(device, fate, now),
            BusEvent::Vacated(controller, port) => self.vacated(controller, port),
            BusEvent::Runaway(controller, fault) => self.runaway(controller, fault, now),
        }
    }

    #[inline(never)]
    pub(super) fn function_of(&self, device: DeviceId) -> Option<u8> {
        let is_it = |slot: &FunctionSlot| slot.function.device() == Some(device);
        self.functions
            .iter()
            .position(is_it)
            .map(|index| index as u8)
    }

    pub(super) fn function_event(&mut self, index: u8, event: Option<FunctionEvent>, now: Instant) {
        match event {
            None => self.nothing_ended(index, now),
            Some(FunctionEvent::Ended(ended)) => self.commands_ended_rarely(index, ended, now),
            Some(FunctionEvent::Serving(highest)) => self.serving(index, highest, now),
            Some(FunctionEvent::Failed(error)) => {
                self.tell_failure("storage not configured", error);
                if self.leave_unopened_uas(index, error, now) {
                    return;
                }
                let slot = self.functions.get(usize::from(index));
                let device = slot.and_then(|slot| slot.function.device());
                let is_awaited = slot.is_some_and(|slot| slot.absent_until.is_some());
                self.close_function(index, now);
                if let Some(device) = device {
                    self.bus.try_again(device, error, now);
                }
                if !is_awaited {
                    self.free_function(index);
                }
            }
        }
    }

    /// A function carries commands: its units are brought up.
    fn serving(&mut self, function: u8, highest: Lun, now: Instant) {
        let slot = self.functions.get(usize::from(function));
        let transfer_bytes = slot.map_or(0, |slot| slot.function.transfer_bytes());
        let device = slot.and_then(|slot| slot.function.device());
        let Some(controller) = device.and_then(|device| self.bus.controller_of(device)) else {
            return;
        };
        let was_absent = match self.functions.get_mut(usize::from(function)) {
            Some(slot) => slot.absent_until.take().is_some(),
            None => return,
        };
        // One that left before it served has no units to bring back.
        let is_its = |entry: &UnitEntry| !entry.is_free() && entry.function == function;
        if was_absent && self.units.iter().any(is_its) {
            self.bring_back_units(function, transfer_bytes, now);
        } else {
            self.add_units(function, controller, transfer_bytes, highest, now);
        }
        self.schedule(function, now);
    }

    fn add_units(
        &mut self,
        function: u8,
        controller: ControllerId,
        transfer_bytes: u32,
        highest: Lun,
        now: Instant,
    ) {
        let slot = self.functions.get(usize::from(function));
        let manner = slot.map(|slot| slot.function.manner(self.policy.trust));
        let (manner, search) = manner.unwrap_or_default();
        for lun in highest.up_to() {
            let search = search.from(lun.number());
            let unit = NewUnit {
                function,
                controller,
                lun: lun.number(),
                transfer_bytes,
                manner,
                search,
            };
            self.add_unit(&unit, now);
        }
    }

    /// The units of a function whose device is back are brought up again, as freely as it is used now: it may
    /// have fallen back to Bulk-Only.
    fn bring_back_units(&mut self, function: u8, transfer_bytes: u32, now: Instant) {
        let slot = self.functions.get(usize::from(function));
        let manner = slot.map(|slot| slot.function.manner(self.policy.trust));
        let (manner, search) = manner.unwrap_or_default();
        for unit in 0..self.units.len() {
            let Some(entry) = self.units.get_mut(unit) else {
                break;
            };
            if !entry.is_free() && entry.function == function {
                entry.transfer_bytes = transfer_bytes;
                entry.manner = manner;
                if search != Search::List || entry.lun == Lun::ZERO.number() {
                    entry.search = search.from(entry.lun);
                }
                self.bring_up(unit as u8, now);
            }
        }
    }

    /// Begins to bring a unit up, anew or again.
    pub(super) fn bring_up(&mut self, unit: u8, now: Instant) {
        self.bring_up_from(unit, None, now);
    }

    /// The same; for a unit without a medium, what it said of itself.
    fn bring_up_from(&mut self, unit: u8, empty: Option<Inquiry>, now: Instant) {
        let Some(entry) = self.units.get_mut(usize::from(unit)) else {
            return;
        };
        let slot = self.functions.get(usize::from(entry.function));
        let function = slot.map(|slot| &slot.function);
        let quirks = function.map_or(Quirks::empty(), Function::quirks);
        // Policy: floppies need the long form, some sticks die of it.
        let mode_form = match function.map(Function::command_set) {
            None | Some(CommandSet::Scsi) => ModeForm::Six,
            Some(_) => ModeForm::Ten,
        };
        entry.quirks = quirks;
        if entry.interruptions > REISSUES {
            let trouble = slot.map_or(TransportError::Disconnected, |slot| slot.trouble);
            entry.state = UnitState::Failed(BringUpError::Transport(trouble));
            return self.compare_with_before(unit);
        }
        let bring_up = BringUp::new(now + self.policy.readiness);
        entry.state = UnitState::BringUp(bring_up, Next::Ended);
        let UnitState::BringUp(bring_up, _) = &mut entry.state else {
            return;
        };
        bring_up.mind(quirks, mode_form);
        bring_up.ask(entry.manner, entry.search);
        if let Some(before) = &entry.before {
            bring_up.prove(before);
        }
        if let Some(inquiry) = empty {
            bring_up.look(inquiry);
        }
        if entry.interruptions != 0 {
            bring_up.keep_to_essentials();
        }
        self.bring_up_step(unit, Input::Begin, now);
    }

    /// Takes what happened to a bring-up, which goes on where it is or gives way to its end.
    fn bring_up_step(&mut self, unit: u8, input: Input<'_>, now: Instant) {
        let Some(entry) = self.units.get_mut(usize::from(unit)) else {
            return;
        };
        let UnitState::BringUp(machine, next) = &mut entry.state else {
            return;
        };
        let action = machine.step(input, now);
        let neighbours = machine.take_neighbours();
        match action {
            Action::Issue(command) => {
                self.bring_ups = true;
                *next = Next::Issue(command);
            }
            Action::Wait(until) => {
                self.next_timer = self.next_timer.min(until);
                *next = Next::Time(until);
            }
            Action::Ready(mut found) => {
                if let Some(before) = &entry.before
                    && is_same_unit(before, &found)
                {
                    found.recall(before);
                }
                // That something upsets the device is kept in mind.
                entry.interruptions = entry.interruptions.min(1);
                let device = self.functions.get(usize::from(entry.function));
                let most = device.map_or(0, |slot| slot.function.transfer_bytes());
                entry.limit_transfers(&found, most);
                entry.state = UnitState::Ready(found);
            }
            Action::Empty(inquiry) => {
                entry.next_look = now + self.policy.medium_poll;
                self.next_timer = self.next_timer.min(entry.next_look);
                entry.state = UnitState::Empty(inquiry);
            }
            Action::Skip => entry.state = UnitState::Free,
            Action::Fail(error) => entry.state = UnitState::Failed(error),
        }
        self.compare_with_before(unit);
        if let Some(neighbours) = neighbours {
            self.add_neighbours(unit, neighbours, now);
        }
    }

    /// A unit whose device was opened again has an end: is it what it was?
    fn compare_with_before(&mut self, unit: u8) {
        let Some(entry) = self.units.get_mut(usize::from(unit)) else {
            return;
        };
        let end = match (&entry.state, &entry.before) {
            (_, None) | (UnitState::BringUp(..) | UnitState::Away, _) => return,
            (UnitState::Ready(found), Some(before)) if is_same_unit(before, found) => None,
            (UnitState::Failed(BringUpError::NotReady(_)), _) => Some(BlockError::NotReady),
            (UnitState::Empty(_), _) => Some(BlockError::NoMedium),
            _ => Some(BlockError::Disconnected),
        };
        entry.before = None;
        entry.relapsed = false;
        if let Some(error) = end {
            replace(entry);
            self.end_requests_of(unit, error);
        }
    }

    /// A command of a unit's bring-up has ended.
    #[cold]
    #[inline(never)]
    pub(super) fn bring_up_ended(
        &mut self,
        function: u8,
        unit: u8,
        outcome: Outcome,
        now: Instant,
    ) {
        self.weigh_attention(unit, &outcome);
        let mut bytes = [0; ANSWER];
        let moved = outcome
            .map_or(0, |completion| completion.moved as usize)
            .min(ANSWER);
        let slot = self.functions.get(usize::from(function));
        if let Some(slot) = slot {
            slot.function.read_scratch(&mut bytes);
        }
        let answer = bytes.get(..moved).unwrap_or_default();
        self.bring_up_step(unit, Input::Ended(outcome, answer), now);
    }

    /// What a failed request says about its unit.
    #[cold]
    #[inline(never)]
    pub(super) fn weigh_failure(&mut self, unit: u8, error: BlockError, now: Instant) {
        if !matches!(error, BlockError::MediumChanged | BlockError::NoMedium) {
            return;
        }
        let Some(entry) = self.units.get_mut(usize::from(unit)) else {
            return;
        };
        if let UnitState::Ready(found) = entry.state {
            if found.inquiry.removable {
                // Nothing proves that a medium is the one before: it is another disk.
                replace(entry);
            } else {
                entry.before = Some(found);
            }
            // What waits was meant for the medium that has gone.
            self.end_requests_of(unit, error);
            self.bring_up(unit, now);
        }
    }

    /// A unit has stopped, or is of another size, since it was brought up: it is brought up again, and
    /// its requests wait for that.
    #[cold]
    #[inline(never)]
    pub(super) fn relapsed(&mut self, unit: u8, now: Instant) {
        let Some(entry) = self.units.get_mut(usize::from(unit)) else {
            return;
        };
        if let UnitState::Ready(found) = entry.state {
            entry.before = Some(found);
            entry.relapsed = true;
            self.bring_up(unit, now);
        }
    }

    /// Asks a unit without a medium again, when it is time.
    fn look_again(&mut self, unit: u8, now: Instant) {
        let Some(entry) = self.units.get(usize::from(unit)) else {
            return;
        };
        let UnitState::Empty(inquiry) = entry.state else {
            return;
        };
        let (function, next_look) = (entry.function, entry.next_look);
        if now >= next_look {
            self.bring_up_from(unit, Some(inquiry), now);
            self.schedule(function, now);
        } else {
            self.wake_at(next_look);
        }
    }

    fn gone(&mut self, device: DeviceId) {
        let Some(index) = self.function_of(device) else {
            return;
        };
        if let Some(slot) = self.functions.get_mut(usize::from(index)) {
            slot.function.gone();
        }
    }

    /// A controller does not stop. Where the platform can cut it off from memory, its devices can
    /// be closed all the same; else what it may reach is never given back.
    fn runaway(&mut self, controller: ControllerId, fault: ControllerFault, now: Instant) {
        let cut = self.platform.cut_dma(controller);
        self.platform.log(format_args!(
            "usb: controller {} does not stop ({fault:?}); its DMA {} cut off",
            controller.0,
            if cut { "was" } else { "could not be" },
        ));
        if cut {
            self.bus.confirm_cut(controller, now);
        } else {
            self.quarantine(controller);
        }
    }

    /// Ends the disks of a controller that may reach their memory for ever, and their requests. Queued
    /// buffers stay where they are; nobody gets them back. The functions keep their places and memory.
    pub(super) fn quarantine(&mut self, controller: ControllerId) {
        self.end_units_of(controller, BlockError::Quarantined);
        for function in 0..self.functions.len() as u8 {
            if self.controller_of(function) == Some(controller) {
                self.disown(function);
            }
        }
    }

    /// The disks of a controller are gone, and what was asked of them ends with `error`. Buffers come back, but
    /// not from a controller that may still reach them.
    pub(super) fn end_units_of(&mut self, controller: ControllerId, error: BlockError) {
        for unit in 0..self.units.len() {
            let Some(entry) = self.units.get_mut(unit) else {
                break;
            };
            if entry.is_free() || entry.controller != controller {
                continue;
            }
            entry.state = UnitState::Free;
            entry.before = None;
            if error == BlockError::Quarantined {
                self.withhold_buffers_of(unit as u8);
            }
            self.end_requests_of(unit as u8, error);
        }
    }

    /// A function's device is out of reach for good, and whatever still comes from it is nobody's.
    pub(super) fn disown(&mut self, function: u8) {
        let Some(slot) = self.functions.get_mut(usize::from(function)) else {
            return;
        };
        // Its device was away: nothing comes from it, and another may have the place.
        if slot.function.is_free() {
            *slot = FunctionSlot::EMPTY;
            return;
        }
        slot.function.gone();
        slot.absent_until = None;
        slot.is_disowned = true;
    }

    /// Looks at the deadlines of functions and the pauses of units.
    #[cold]
    #[inline(never)]
    pub(super) fn run_timers(&mut self, now: Instant) {
        self.next_timer = Instant::NEVER;
        for index in 0..self.functions.len() {
            let Some(slot) = self.functions.get_mut(index) else {
                break;
            };
            if slot.is_disowned {
                continue;
            }
            if slot.function.take_stuck() {
                self.climb(index as u8, Failure::Broken, now);
            } else if now >= slot.function.deadline() {
                let mut tools = Tools {
                    bus: &mut self.bus,
                    dma: &self.platform,
                    commands: self.commands,
                    now,
                };
                let end = slot.ladder.end(self.policy.episode, now);
                let ended = slot.function.deadline_passed(&mut tools, end);
                if slot.function.is_recovering_uas() {
                    slot.ladder.begin(now);
                }
                match ended {
                    Some(ended) => self.commands_ended_rarely(index as u8, ended, now),
                    None => self.nothing_ended(index as u8, now),
                }
            }
            self.note_deadline(index as u8);
            self.run_absence(index as u8, now);
        }
        self.run_rails(now);
        for unit in 0..self.units.len() {
            let Some(entry) = self.units.get(unit) else {
                break;
            };
            let UnitState::BringUp(_, Next::Time(until)) = entry.state else {
                self.look_again(unit as u8, now);
                continue;
            };
            let function = entry.function;
            if now >= until {
                self.bring_up_step(unit as u8, Input::Time, now);
                self.schedule(function, now);
            } else {
                self.wake_at(until);
            }
        }
    }

    /// Something happened to a function that ended no command of it.
    #[inline]
    fn nothing_ended(&mut self, function: u8, now: Instant) {
        self.weigh_resets(function);
        let slot = self.functions.get_mut(usize::from(function));
        if slot.is_some_and(|slot| slot.function.take_resumed()) {
            self.schedule(function, now);
        }
        self.note_deadline(function);
    }

    #[inline]
    pub(super) fn note_deadline(&mut self, function: u8) {
        let slot = self.functions.get(usize::from(function));
        let deadline = slot.map_or(Instant::NEVER, |slot| Function::deadline(&slot.function));
        self.wake_at(deadline);
    }
}
