//! What the bus reports, carried to functions and units.

use super::recover::{Home, REISSUES, is_same_unit, replace};
use super::{FunctionSlot, Host};
use crate::block::BlockError;
use crate::host::ControllerFault;
use crate::platform::{ControllerId, Platform};
use crate::scsi::bring_up::{Action, BringUp, BringUpError, Input, ModeForm};
use crate::scsi::transport::{Outcome, SCRATCH, TransportError};
use crate::scsi::unit::{Next, UnitEntry, UnitState};
use crate::storage::bot::wire::Lun;
use crate::storage::choose::choose;
use crate::storage::function::{Function, FunctionEvent};
use crate::storage::ladder::Failure;
use crate::storage::quirks::{Decision, Identity, Quirks, bulk_only};
use crate::time::Instant;
use crate::usb::descriptor::CommandSet;
use crate::usb::enumerate::CONFIGURATION_LIMIT;
use crate::usb::quirks::bus_quirks;
use crate::usb::{BusEvent, DeviceId, DeviceInfo, Driver, UsbError};

/// Bytes of a unit's answer that are looked at: the longest, MODE SENSE, is asked for 192.
const ANSWER: usize = 256;
const _: () = assert!(ANSWER <= SCRATCH);

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// Carries one thing that the bus reports to whom it concerns.
    #[inline]
    pub(super) fn dispatch(&mut self, event: BusEvent, now: Instant) {
        if let BusEvent::Transfer {
            function,
            tag,
            outcome,
            actual,
        } = event
        {
            let Some(slot) = self.functions.get_mut(usize::from(function)) else {
                return;
            };
            let (bus, platform) = (&mut self.bus, &self.platform);
            let ended = slot
                .function
                .transfer_ended(bus, platform, tag, outcome, actual, now);
            match ended {
                Some(outcome) => self.command_ended(function, outcome, now),
                None => self.note_deadline(function),
            }
            return;
        }
        self.dispatch_rare(event, now);
    }

    #[cold]
    #[inline(never)]
    fn dispatch_rare(&mut self, event: BusEvent, now: Instant) {
        match event {
            BusEvent::Transfer { .. } => {}
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
                let (bus, platform) = (&mut self.bus, &self.platform);
                let event = slot.function.operated(bus, platform, result, now);
                self.function_event(index, event, now);
            }
            BusEvent::Gone(device) => self.gone(device),
            BusEvent::Closed(device, fate) => self.closed(device, fate, now),
            BusEvent::Vacated(controller, port) => self.vacated(controller, port),
            BusEvent::Runaway(controller, fault) => self.runaway(controller, fault, now),
        }
    }

    pub(super) fn function_of(&self, device: DeviceId) -> Option<u8> {
        let is_it = |slot: &FunctionSlot| slot.function.device() == Some(device);
        self.functions
            .iter()
            .position(is_it)
            .map(|index| index as u8)
    }

    /// A device's descriptors are known: if it has storage, a function takes it.
    fn described(&mut self, device: DeviceId, now: Instant) {
        let Some(info) = self.bus.info(device) else {
            return;
        };
        let mut bytes = [0; CONFIGURATION_LIMIT as usize];
        let configuration = self.bus.read_configuration(device, &mut bytes);
        self.advise_on_power(&info);
        let decision = self.decide(&info);
        let ids = info.descriptor.map(|it| bus_quirks(it.vendor, it.product));
        let (speed, bus_quirks) = (info.speed(), ids.unwrap_or_default());
        let Some(choice) = choose(configuration, speed, decision.quirks, bus_quirks) else {
            if decision.quirks.contains(Quirks::IGNORE_DEVICE) {
                self.bus.set_driver_name(device, "none (quirk i)");
            }
            return;
        };
        let place = match self.returning(&info) {
            Some(index) if self.is_same_device(index, &info) => Some(index),
            Some(index) => {
                // Another one was plugged in its place.
                self.free_function(index as u8);
                Some(index)
            }
            None => {
                let is_free =
                    |slot: &FunctionSlot| slot.function.is_free() && slot.absent_until.is_none();
                self.functions.iter().position(is_free)
            }
        };
        let slot = place.and_then(|index| self.functions.get_mut(index).zip(Some(index)));
        let attached = match slot {
            None => Err(UsbError::TableFull("functions")),
            Some((slot, index)) => {
                slot.home = Some(Home::of(&info));
                let (bus, policy) = (&mut self.bus, &self.policy);
                slot.function
                    .attach(bus, policy, index as u8, device, (&choice, decision), now)
            }
        };
        match attached {
            Ok(()) => self.bus.set_driver_name(device, "bot"),
            Err(error) => {
                self.bus.set_failed(device, error);
                self.platform
                    .log(format_args!("usb: no storage driver: {error:?}"));
            }
        }
    }

    /// The policies for a device, from the table and the run-time string.
    fn decide(&self, info: &DeviceInfo) -> Decision {
        let Some(descriptor) = info.descriptor else {
            return Decision::NONE;
        };
        let identity = Identity {
            vendor: descriptor.vendor,
            product: descriptor.product,
            release: descriptor.release,
            speed: info.speed(),
            manufacturer: info.strings.manufacturer.as_str(),
            product_name: info.strings.product.as_str(),
        };
        let decision = bulk_only(&identity, &self.overrides);
        if decision != Decision::NONE {
            let Identity {
                vendor, product, ..
            } = identity;
            let Decision { quirks, source } = &decision;
            self.platform.log(format_args!(
                "usb: {vendor:04x}:{product:04x}: {quirks:?} ({source})"
            ));
        }
        decision
    }

    fn advise_on_power(&self, info: &DeviceInfo) {
        let power = &info.power;
        if power.exceeds_port() {
            self.platform.log(format_args!(
                "usb: a device wants {} mA of a port that need give {}: it may lack power",
                power.milliamperes, power.port_milliamperes,
            ));
        }
    }

    pub(super) fn function_event(&mut self, index: u8, event: Option<FunctionEvent>, now: Instant) {
        match event {
            None => self.note_deadline(index),
            Some(FunctionEvent::Ended(outcome)) => self.command_ended(index, outcome, now),
            Some(FunctionEvent::Serving(highest)) => self.serving(index, highest, now),
            Some(FunctionEvent::Failed(error)) => {
                self.platform
                    .log(format_args!("usb: storage not configured: {error:?}"));
                if let Some(slot) = self.functions.get_mut(usize::from(index)) {
                    let device = slot.function.device();
                    slot.function.closed(&mut self.bus, &self.platform, index);
                    if let Some(device) = device {
                        self.bus.try_again(device, error, now);
                    }
                    if slot.absent_until.is_none() {
                        self.free_function(index);
                    }
                }
            }
        }
    }

    /// A function carries commands: its units are brought up.
    fn serving(&mut self, function: u8, highest: Lun, now: Instant) {
        let slot = self.functions.get(usize::from(function));
        let transfer_bytes = slot.map_or(0, |slot| slot.function.transfer_bytes());
        let device = slot.and_then(|slot| slot.function.device());
        let Some(info) = device.and_then(|device| self.bus.info(device)) else {
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
            self.add_units(function, info.controller, transfer_bytes, highest, now);
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
        for lun in highest.up_to() {
            let Some(index) = self.units.iter().position(UnitEntry::is_free) else {
                self.platform
                    .log(format_args!("usb: no room for unit {}", lun.number()));
                break;
            };
            if let Some(entry) = self.units.get_mut(index) {
                *entry = UnitEntry {
                    generation: entry.generation.wrapping_add(1),
                    function,
                    controller,
                    lun: lun.number(),
                    transfer_bytes,
                    told: entry.told,
                    ..UnitEntry::EMPTY
                };
            }
            self.bring_up(index as u8, now);
        }
    }

    /// The units of a function whose device is back are brought up again.
    fn bring_back_units(&mut self, function: u8, transfer_bytes: u32, now: Instant) {
        for unit in 0..self.units.len() {
            let Some(entry) = self.units.get_mut(unit) else {
                break;
            };
            if !entry.is_free() && entry.function == function {
                entry.transfer_bytes = transfer_bytes;
                self.bring_up(unit as u8, now);
            }
        }
    }

    /// Begins to bring a unit up, anew or again.
    pub(super) fn bring_up(&mut self, unit: u8, now: Instant) {
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
        let bring_up = BringUp::new(now + self.policy.readiness).minding(quirks, mode_form);
        let bring_up = match entry.interruptions {
            0 => bring_up,
            1..=REISSUES => bring_up.essential(),
            _ => {
                let error = TransportError::Timeout;
                entry.state = UnitState::Failed(BringUpError::Transport(error));
                return self.compare_with_before(unit);
            }
        };
        self.bring_up_step(unit, bring_up, Input::Begin, now);
    }

    fn bring_up_step(&mut self, unit: u8, mut machine: BringUp, input: Input<'_>, now: Instant) {
        let action = machine.step(input, now);
        let Some(entry) = self.units.get_mut(usize::from(unit)) else {
            return;
        };
        entry.state = match action {
            Action::Issue(command) => {
                self.bring_ups = true;
                UnitState::BringUp(machine, Next::Issue(command))
            }
            Action::Wait(until) => {
                self.next_timer = self.next_timer.min(until);
                UnitState::BringUp(machine, Next::Time(until))
            }
            Action::Ready(found) => {
                // That something upsets the device is kept in mind.
                entry.interruptions = entry.interruptions.min(1);
                entry.limit_transfers(&found);
                UnitState::Ready(found)
            }
            Action::Empty(inquiry) => UnitState::Empty(inquiry),
            Action::Skip => UnitState::Free,
            Action::Fail(error) => UnitState::Failed(error),
        };
        self.compare_with_before(unit);
    }

    /// A unit whose device was opened again has an end: is it what it was?
    fn compare_with_before(&mut self, unit: u8) {
        let Some(entry) = self.units.get_mut(usize::from(unit)) else {
            return;
        };
        let same = match (&entry.state, &entry.before) {
            (_, None) | (UnitState::BringUp(..) | UnitState::Away, _) => return,
            (UnitState::Ready(found), Some(before)) => is_same_unit(before, found),
            (_, Some(_)) => false,
        };
        entry.before = None;
        if !same {
            replace(entry);
            self.end_requests_of(unit, BlockError::Disconnected);
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
        let Some(entry) = self.units.get(usize::from(unit)) else {
            return;
        };
        let UnitState::BringUp(machine, _) = entry.state else {
            return;
        };
        let mut bytes = [0; ANSWER];
        let moved = outcome
            .map_or(0, |completion| completion.moved as usize)
            .min(ANSWER);
        let slot = self.functions.get(usize::from(function));
        if let Some(transport) = slot.and_then(|slot| slot.function.transport()) {
            transport.read_scratch(&mut bytes);
        }
        let answer = bytes.get(..moved).unwrap_or_default();
        self.bring_up_step(unit, machine, Input::Ended(outcome, answer), now);
    }

    /// What a failed request says about its unit.
    #[cold]
    #[inline(never)]
    pub(super) fn weigh_failure(&mut self, unit: u8, error: BlockError, now: Instant) {
        let again = matches!(error, BlockError::MediumChanged | BlockError::NoMedium);
        let is_ready = |entry: &UnitEntry| matches!(entry.state, UnitState::Ready(_));
        if again && self.units.get(usize::from(unit)).is_some_and(is_ready) {
            // What waits was meant for the medium that has gone.
            self.end_requests_of(unit, error);
            self.bring_up(unit, now);
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

    /// Ends the requests of a controller that may reach their memory for ever. Queued buffers stay
    /// where they are; nobody gets them back.
    fn quarantine(&mut self, controller: ControllerId) {
        for unit in 0..self.units.len() {
            let Some(entry) = self.units.get(unit) else {
                break;
            };
            if !entry.is_free() && entry.controller == controller {
                self.withhold_buffers_of(unit as u8);
                self.end_requests_of(unit as u8, BlockError::Quarantined);
            }
        }
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
            if slot.function.take_stuck() {
                self.climb(index as u8, Failure::Broken, now);
            } else if now >= slot.function.deadline() {
                let ended = slot
                    .function
                    .deadline_passed(&mut self.bus, &self.platform, now);
                if let Some(outcome) = ended {
                    self.command_ended(index as u8, outcome, now);
                }
            }
            self.note_deadline(index as u8);
            self.run_absence(index as u8, now);
        }
        self.run_rail(now);
        for unit in 0..self.units.len() {
            let Some(entry) = self.units.get(unit) else {
                break;
            };
            let UnitState::BringUp(machine, Next::Time(until)) = entry.state else {
                continue;
            };
            let function = entry.function;
            if now >= until {
                self.bring_up_step(unit as u8, machine, Input::Time, now);
                self.schedule(function, now);
            } else {
                self.wake_at(until);
            }
        }
    }

    #[inline]
    fn note_deadline(&mut self, function: u8) {
        let slot = self.functions.get(usize::from(function));
        let deadline = slot.map_or(Instant::NEVER, |slot| Function::deadline(&slot.function));
        self.wake_at(deadline);
    }
}
