//! Recovery above one command: the ladder carried out, devices that come back, and the proof that
//! they are the same.
//!
//! A function whose device is reset keeps its units and their requests. When a device is described
//! on the same port, was not pulled meanwhile and has the same descriptor and serial number, the function
//! takes it, and each unit is brought up again: only if it says the same of itself, has the same names in its
//! pages and the same size do its requests go on. A request that had commands under way issues them again: they are certainly
//! dead, since the device was closed, and the scheduler let no other be under way that could have
//! overtaken them.

use super::{FunctionSlot, Host};
use crate::block::durability::Durability;
use crate::block::{BlockError, FlushSupport};
use crate::host::RootPort;
use crate::platform::{ControllerId, Platform, PortPower};
use crate::scsi::bring_up::Found;
use crate::scsi::transport::{Client, ClientKind, Fault, TransportError};
use crate::scsi::unit::{UnitEntry, UnitState, transport_failed};
use crate::storage::ladder::{Allowed, Climb, Failure};
use crate::storage::uas::machine::Tried;
use crate::storage::uas::transport::Tools;
use crate::time::Instant;
use crate::usb::{ControllerState, DeviceId, DeviceInfo, Driver, Fate};

/// Where a function's device is plugged in, and what it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home(DeviceInfo);

impl Home {
    pub(super) fn of(info: &DeviceInfo) -> Self {
        Self(*info)
    }

    /// What was known of the device when it was there last.
    pub(super) fn info(&self) -> &DeviceInfo {
        &self.0
    }

    pub(super) fn controller(&self) -> ControllerId {
        self.0.controller
    }

    fn root_port(&self) -> RootPort {
        self.0.attachment.root_port
    }

    /// Whether this is the same device, as far as can be told: one whose serial number was known must have it
    /// again. A port without power does not see what is plugged in, so there is no other proof.
    fn is_of(&self, other: &DeviceInfo) -> bool {
        let (serial, now) = (&self.0.strings.serial, &other.strings.serial);
        self.0.descriptor == other.descriptor && (serial.is_empty() || serial == now)
    }

    fn is_at(&self, other: &DeviceInfo) -> bool {
        let place = |info: &DeviceInfo| {
            let attachment = &info.attachment;
            (info.controller, attachment.root_port, attachment.route)
        };
        place(&self.0) == place(other)
    }
}

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// A command has ended without a status: what is done about it. `true` if whoever wanted the
    /// command keeps waiting.
    pub(super) fn climb_after(
        &mut self,
        function: u8,
        error: TransportError,
        now: Instant,
    ) -> bool {
        let (failure, trouble) = match error {
            TransportError::Timeout | TransportError::Protocol(_) => (Failure::Reset, error),
            TransportError::Broken(Fault::Timeout) => (Failure::Broken, TransportError::Timeout),
            TransportError::Broken(fault) => (Failure::Broken, TransportError::Protocol(fault)),
            // What it was reset for has climbed.
            TransportError::Neighbour => return true,
            // It has ended the command, though it did nothing.
            TransportError::DeviceBusy | TransportError::Reserved => {
                if let Some(slot) = self.functions.get_mut(usize::from(function)) {
                    slot.ladder.succeeded();
                }
                return false;
            }
            _ => return false,
        };
        if let Some(slot) = self.functions.get_mut(usize::from(function)) {
            slot.trouble = trouble;
        }
        self.climb(function, failure, now)
    }

    /// The next rung of a function's ladder. `false` if there is none left.
    pub(super) fn climb(&mut self, function: u8, failure: Failure, now: Instant) -> bool {
        let tried = self.tried(function);
        let allowed = Allowed {
            unit_reset: tried == Tried::UnitReset,
            power_cycle: self.may_cycle(function),
            restart: self.may_restart(function),
        };
        let episode = self.policy.episode;
        let Some(slot) = self.functions.get_mut(usize::from(function)) else {
            return false;
        };
        let climb = slot.ladder.climb(failure, allowed, episode, now);
        let climb = self.leave_uas(function, climb, now);
        let slot = self.functions.get(usize::from(function));
        let home = slot.and_then(|slot| slot.home);
        let device = slot.and_then(|slot| slot.function.device());
        self.platform.log(format_args!(
            "usb: storage {function}: {failure:?}, then {climb:?}"
        ));
        match (climb, device) {
            (Climb::Retry, _) => return true,
            (Climb::ResetPort, Some(device)) => {
                self.leave(function, now);
                self.bus.reset_device(device, now);
            }
            (Climb::CyclePower, device) => {
                self.cycle_neighbours(function, now);
                self.leave(function, now);
                match (device, home) {
                    (Some(device), _) => self.bus.cycle_power(device, now),
                    (None, Some(home)) => {
                        self.bus
                            .cycle_port(home.controller(), home.root_port(), now);
                    }
                    (None, None) => {}
                }
            }
            (Climb::RestartController, _) => self.restart_controller_of(function, now),
            (Climb::ResetPort | Climb::GiveUp, device) => {
                self.give_up(function, device, now);
                return false;
            }
        }
        true
    }

    fn tried(&self, function: u8) -> Tried {
        let slot = self.functions.get(usize::from(function));
        slot.map_or(Tried::Nothing, |slot| slot.function.tried())
    }

    /// Whether a function's commands are issued again between the two resets of its transport: that is of the
    /// same fault as the time before, and does not count.
    pub(super) fn is_between_resets(&self, function: u8) -> bool {
        let slot = self.functions.get(usize::from(function));
        slot.is_some_and(|slot| slot.ladder.is_at_unit_reset())
    }

    /// A command of a bring-up was under way when its device had to be reset. It is brought up again,
    /// but not for ever: the device may be well, and upset by this command each time.
    pub(super) fn bring_up_interrupted(&mut self, unit: u8) {
        if let Some(entry) = self.units.get_mut(usize::from(unit)) {
            entry.interruptions = entry.interruptions.saturating_add(1);
        }
    }

    /// A function's device is about to be closed and opened again.
    pub(super) fn leave(&mut self, function: u8, now: Instant) {
        let until = now + self.policy.reopen;
        if let Some(slot) = self.functions.get_mut(usize::from(function)) {
            slot.function.gone();
            slot.absent_until = Some(until);
        }
        self.wake_at(until);
        for entry in self
            .units
            .iter_mut()
            .filter(|entry| entry.function == function)
        {
            entry.durability.interrupted();
            // What it has said of its flush command may have been the fault that it is reset for.
            entry.flush = FlushSupport::Command;
        }
    }

    fn give_up(&mut self, function: u8, device: Option<DeviceId>, now: Instant) {
        self.platform
            .log(format_args!("usb: storage {function} is given up"));
        if let Some(slot) = self.functions.get_mut(usize::from(function)) {
            slot.absent_until = None;
            slot.error = BlockError::Broken;
            slot.function.gone();
        }
        match device {
            Some(device) => self.bus.give_up(device, now),
            None => self.free_function(function),
        }
    }

    /// Whether a function's port may lose its power: if it can be switched at all, and every other
    /// disk behind the switch has nothing to lose.
    fn may_cycle(&self, function: u8) -> bool {
        match self.power_of(function) {
            PortPower::AlwaysOn => false,
            PortPower::Port => true,
            PortPower::Rail(rail) => {
                let has_nothing_to_lose = |entry: &UnitEntry| {
                    entry.is_free()
                        || entry.function == function
                        || self.power_of(entry.function) != PortPower::Rail(rail)
                        || !entry.durability.is_dirty()
                };
                self.rails.have_room_for(rail) && self.units.iter().all(has_nothing_to_lose)
            }
        }
    }

    fn power_of(&self, function: u8) -> PortPower {
        let slot = self.functions.get(usize::from(function));
        match slot.and_then(|slot| slot.home.as_ref()) {
            Some(home) => self
                .platform
                .port_power(home.controller(), home.root_port().0),
            None => PortPower::AlwaysOn,
        }
    }

    /// The other functions behind a function's power switch leave with it, and come back with it.
    fn cycle_neighbours(&mut self, function: u8, now: Instant) {
        let PortPower::Rail(rail) = self.power_of(function) else {
            return;
        };
        for neighbour in 0..self.functions.len() as u8 {
            if neighbour == function || self.power_of(neighbour) != PortPower::Rail(rail) {
                continue;
            }
            let slot = self.functions.get(usize::from(neighbour));
            if let Some(device) = slot.and_then(|slot| slot.function.device()) {
                self.leave(neighbour, now);
                self.bus.cycle_power(device, now);
                self.blame_neighbour(neighbour);
            } else {
                self.stay_away(neighbour, now);
            }
        }
        self.switch_rail_off(rail, now + crate::usb::port::POWER_OFF);
    }

    /// A function whose device is away already has as long again: whatever it waits for begins anew.
    pub(super) fn stay_away(&mut self, function: u8, now: Instant) {
        let until = now + self.policy.reopen;
        let slot = self.functions.get_mut(usize::from(function));
        if let Some(absent_until) = slot.and_then(|slot| slot.absent_until.as_mut()) {
            *absent_until = until;
            self.wake_at(until);
        }
    }

    /// A function's device is reset for another one's sake: what is under way ends with that.
    pub(super) fn blame_neighbour(&mut self, function: u8) {
        if let Some(slot) = self.functions.get_mut(usize::from(function)) {
            slot.error = BlockError::Reset;
        }
    }

    /// The controller has let go of a function's device.
    pub(super) fn closed(&mut self, device: DeviceId, fate: Fate, now: Instant) {
        let Some(index) = self.function_of(device) else {
            return;
        };
        let Some(slot) = self.functions.get_mut(usize::from(index)) else {
            return;
        };
        // One that nobody waits for comes back as a new one.
        if fate == Fate::Gone || slot.is_disowned {
            self.put_back_all(index, now);
            self.close_function(index, now);
            self.free_function(index);
            return;
        }
        if slot.absent_until.is_none() {
            // Its controller has died, and is started again.
            slot.trouble = TransportError::Timeout;
            self.note_death(index, now);
            self.leave(index, now);
        }
        self.put_back_all(index, now);
        self.close_function(index, now);
        self.suspend_units(index);
    }

    /// The commands that were under way on a device are issued again when it is back: all are
    /// certainly dead. Those of a neighbour that was reset for another's sake end.
    fn put_back_all(&mut self, function: u8, now: Instant) {
        let Some(slot) = self.functions.get_mut(usize::from(function)) else {
            return;
        };
        let is_disowned = slot.is_disowned;
        let trouble = transport_failed(slot.trouble);
        let was_neighbour = slot.error == BlockError::Reset;
        if was_neighbour {
            slot.error = BlockError::Disconnected;
        }
        while let Some(client) = self.abandon(function, now) {
            let Client { kind, index, piece } = client;
            match kind {
                // Who wanted it was told already, and is gone.
                _ if is_disowned => {}
                // What it was about counts as lost with the device that was closed.
                ClientKind::Doubt => {}
                ClientKind::Unit => self.bring_up_interrupted(index),
                ClientKind::Request => {
                    if was_neighbour {
                        self.end_request(index, Err(BlockError::Reset));
                    }
                    self.put_back(index, piece, Some(trouble));
                }
            }
        }
    }

    pub(super) fn abandon(&mut self, function: u8, now: Instant) -> Option<Client> {
        let slot = self.functions.get_mut(usize::from(function))?;
        slot.function.abandon(&mut Tools {
            bus: &mut self.bus,
            dma: &self.platform,
            commands: self.commands,
            now,
        })
    }

    pub(super) fn close_function(&mut self, function: u8, now: Instant) {
        if let Some(slot) = self.functions.get_mut(usize::from(function)) {
            let mut tools = Tools {
                bus: &mut self.bus,
                dma: &self.platform,
                commands: self.commands,
                now,
            };
            slot.function.closed(&mut tools, function);
        }
    }

    /// The units of a function wait for their device. What they are is kept, to be compared.
    fn suspend_units(&mut self, function: u8) {
        for entry in self
            .units
            .iter_mut()
            .filter(|entry| entry.function == function)
        {
            if let UnitState::Ready(found) = entry.state {
                entry.before = Some(found);
            }
            entry.relapsed = false;
            if !entry.is_free() {
                entry.state = UnitState::Away;
            }
        }
    }

    /// A device was described: if it is the one that a function waits for, the function's place.
    pub(super) fn returning(&self, info: &DeviceInfo) -> Option<usize> {
        let waits = |slot: &FunctionSlot| {
            let is_there = |home: &Home| home.is_at(info);
            slot.function.is_free()
                && slot.absent_until.is_some()
                && slot.home.as_ref().is_some_and(is_there)
        };
        self.functions.iter().position(waits)
    }

    /// What was away from a port was pulled: the functions that wait for it end.
    pub(super) fn vacated(&mut self, controller: ControllerId, port: RootPort) {
        for function in 0..self.functions.len() {
            let Some(slot) = self.functions.get(function) else {
                break;
            };
            let is_there =
                |home: &Home| (home.controller(), home.root_port()) == (controller, port);
            // One that is still being closed ends when it is.
            let is_away = slot.absent_until.is_some() && slot.function.is_free();
            if is_away && slot.home.as_ref().is_some_and(is_there) {
                self.free_function(function as u8);
            }
        }
    }

    /// Whether the device that was described is the same as before, as far as can be told yet.
    pub(super) fn is_same_device(&self, function: usize, info: &DeviceInfo) -> bool {
        let slot = self.functions.get(function);
        let before = slot.and_then(|slot| slot.home.as_ref());
        self.bus.is_kept(info.id) && before.is_some_and(|home| home.is_of(info))
    }

    /// Ends a function: its units and all their requests.
    pub(super) fn free_function(&mut self, function: u8) {
        let Some(slot) = self.functions.get_mut(usize::from(function)) else {
            return;
        };
        let error = slot.error;
        *slot = FunctionSlot::EMPTY;
        for unit in 0..self.units.len() {
            let Some(entry) = self.units.get_mut(unit) else {
                break;
            };
            if !entry.is_free() && entry.function == function {
                entry.state = UnitState::Free;
                entry.before = None;
                self.end_requests_of(unit as u8, error);
            }
        }
    }

    /// A function whose device has not come back in time.
    pub(super) fn run_absence(&mut self, function: u8, now: Instant) {
        let Some(slot) = self.functions.get_mut(usize::from(function)) else {
            return;
        };
        match slot.absent_until {
            Some(until) if now < until => self.wake_at(until),
            Some(_) if slot.function.is_free() => self.not_back(function, now),
            // It is still being closed: the controller has deadlines for that.
            Some(_) => self.wake_at(now + self.policy.reopen),
            None => {}
        }
    }
}

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// A function's device has not come back in its time. As long as its controller does not run, that is no fault
    /// of the device's; and where that never will, nothing comes back.
    fn not_back(&mut self, function: u8, now: Instant) {
        let controller = self.controller_of(function);
        match controller.and_then(|controller| self.bus.controller_state(controller)) {
            Some(ControllerState::Running) => {
                self.climb(function, Failure::Broken, now);
            }
            Some(ControllerState::Stopped | ControllerState::Failed(_)) | None => {
                self.free_function(function);
            }
            Some(_) => self.stay_away(function, now),
        }
    }

    /// Functions whose devices are away get none back: the host is leaving.
    pub(super) fn forget_absent(&mut self) {
        for function in 0..self.functions.len() as u8 {
            let slot = self.functions.get(usize::from(function));
            if slot.is_some_and(|slot| slot.absent_until.is_some() && slot.function.is_free()) {
                self.free_function(function);
            }
        }
    }
}

/// Whether a unit says the same of itself as before: all that was known, also what its pages said.
pub(super) fn is_same_unit(before: &Found, now: &Found) -> bool {
    let size = |found: &Found| (found.capacity.blocks(), found.capacity.block_length());
    let (was, is) = (&before.details, &now.details);
    let serial = was.serial.is_none() || was.serial == is.serial;
    let name = was.name.is_none() || was.name == is.name;
    before.inquiry == now.inquiry && size(before) == size(now) && serial && name
}

/// A unit that came back as another one: its handles are dead.
pub(super) fn replace(entry: &mut UnitEntry) {
    entry.generation = entry.generation.wrapping_add(1);
    entry.before = None;
    entry.relapsed = false;
    entry.flush = FlushSupport::Command;
    entry.has_flushed = false;
    entry.chosen_bytes = u32::MAX;
    entry.durability = Durability::NEW;
    entry.seen = 0;
}
