//! The controller as a whole: from any state to running, to a stop, and what `poll` does.
//!
//! Called by the core through [`HostController`]. Starting and stopping are the same walk, a phase
//! at a time, each with a deadline: schedules off, halt, reset, and then memory and run, or nothing.
//! A boot loader may have left its schedules running over memory that is somebody else's now, so
//! nothing is allocated or written before the reset. Firmware is not asked here: its hand-off is in
//! PCI configuration space and is the platform's (`EHCI 1.0 §5.1`). `EHCI 1.0 §4.1`.

use super::Ehci;
use super::device::control_config;
use super::endpoints::Found;
use super::interrupt::{COMPLETIONS, Interrupts};
use super::periodic::{FRAMES, LIST_LENGTH};
use super::port::RESET_HOLD;
use super::queue;
use super::queue_head;
use super::regs::{
    ASYNCLISTADDR_REGISTER, CONFIGFLAG, CONFIGFLAG_REGISTER, CTRLDSSEGMENT_REGISTER,
    PERIODICLISTBASE_REGISTER, USBCMD, USBCMD_REGISTER, USBINTR_REGISTER, USBSTS, USBSTS_CHANGES,
    USBSTS_REGISTER,
};
use super::schedule::Doorbell;
use super::storage::CALL;
use super::transfer_descriptor::LINK_END;
use crate::dma::{Allocation, Class, Owner, Pool, Rules};
use crate::host::{
    Capabilities, CapabilityField, ControllerFault, EndpointConfig, EndpointKind, Event,
    HostController, HostError, Requirement, TransferEnd,
};
use crate::mmio::{Bus, ChangeBits};
use crate::time::{Duration, Instant};
use crate::usb::setup::Direction;

/// Schedules start and stop with the frame under way; one may be told to only when it has done what
/// it was told before (`EHCI 1.0 §4.8`). Policy: 250 ms; after that the halt is tried anyway. Here and
/// below the time is spent only where something is wrong, and an emulator's timers are late on a busy
/// machine: QEMU's EHCI needed more than 20 ms of a board's clock that ran fast.
pub(super) const SCHEDULES_TIMEOUT: Duration = Duration::from_millis(250);
/// Halts within 16 microframes (`EHCI 1.0 §2.3.1`). Policy: 250 ms.
pub(super) const HALT_TIMEOUT: Duration = Duration::from_millis(250);
/// The specification gives no bound for the reset. Policy: 250 ms, as Linux waits.
pub(super) const RESET_TIMEOUT: Duration = Duration::from_millis(250);
/// Runs, and looks at its schedule, within a microframe. Policy: 250 ms.
const RUN_TIMEOUT: Duration = Duration::from_millis(250);

/// The status bits that say which schedules run.
const SCHEDULES_RUN: u32 = USBSTS::PSS::SET.value | USBSTS::ASS::SET.value;

/// The command bits that enable them.
const SCHEDULES_ENABLED: u32 = USBCMD::PSE::SET.value | USBCMD::ASE::SET.value;

/// What is kept of the command that a controller is found with.
const COMMAND_KEPT: u32 = USBCMD::RS::SET.value | 0xff << USBCMD::ITC.shift | SCHEDULES_ENABLED;

/// How soon to look again at a register that is about to change. Policy: a microframe.
const STEP: Duration = Duration::from_micros(125);

/// How often the status register is looked at without interrupts, for what memory does not tell:
/// ports and errors. Policy: as long as the debounce of a connection takes (`USB 2.0 §7.1.7.3`).
const LOOK_POLLED: Duration = Duration::from_millis(100);
/// The same with interrupts, for one that got lost. Policy.
const LOOK_WIRED: Duration = Duration::from_secs(1);

/// Where a start or stop stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// A reset that is under way is to end, and schedules are to be as they were last told, before they are
    /// told something else.
    Settle,
    /// Schedules are to stop.
    Schedules,
    /// The controller is to halt.
    Halt,
    /// The reset is to end.
    Reset,
    /// The controller is to run.
    Run,
    /// The asynchronous schedule is to run.
    Enable,
}

/// Where a start or stop leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Goal {
    Running,
    Stopped,
}

/// A start or stop under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Change {
    goal: Goal,
    phase: Phase,
    until: Instant,
}

/// What the controller does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Life {
    /// Nothing: not started, or stopped.
    Off,
    /// On its way.
    Changing(Change),
    /// Its work.
    Running,
    /// Nothing any more, until it is started again.
    Dead,
}

impl<B: Bus> Ehci<'_, B> {
    /// Refuses what needs a running controller.
    #[inline]
    pub(super) fn must_run(&self) -> Result<(), HostError> {
        match self.life {
            Life::Running => Ok(()),
            _ => Err(HostError::Dead),
        }
    }

    /// Makes the next `poll` look at all that is under way.
    pub(super) fn attend_now(&mut self) {
        self.wake = Instant::default();
    }

    /// Makes the next `poll` look at the status register: a device that does not answer may have
    /// been pulled, or the controller may have stopped.
    pub(super) fn look_now(&mut self) {
        self.next_look = Instant::default();
        self.attend_now();
    }

    /// Reads the status register and returns whether the controller is alive. If it is not, the next
    /// `poll` says so with [`Event::Died`].
    ///
    /// For the core, after a transfer that took too long. Without it a controller that stopped on an
    /// error is found within 100 ms.
    pub(super) fn read_alive(&mut self) -> bool {
        if self.life != Life::Running {
            return false;
        }
        let status = self.registers.read(USBSTS_REGISTER);
        let alive = status.get() != u32::MAX
            && !status.any_matching_bits_set(USBSTS::HSE::SET + USBSTS::HCHALTED::SET);
        if !alive {
            self.look_now();
            self.signal.raise(CALL);
        }
        alive
    }

    fn change_to(&mut self, goal: Goal, now: Instant) {
        self.forget();
        self.enter(goal, Phase::Settle, now + SCHEDULES_TIMEOUT);
        self.attend_now();
    }

    fn enter(&mut self, goal: Goal, phase: Phase, until: Instant) {
        self.life = Life::Changing(Change { goal, phase, until });
    }

    /// Forgets everything about memory, devices and ports.
    fn forget(&mut self) {
        self.head = None;
        self.frames = None;
        self.async_first = None;
        for endpoint in self.endpoints.iter_mut() {
            endpoint.vacate();
        }
        for device in self.devices.iter_mut() {
            device.vacate();
        }
        self.records.clear();
        self.reset_state();
    }

    /// Goes on with a start or stop.
    fn tend_change(&mut self, change: Change, pool: &mut Pool<'_>, now: Instant) -> Option<Event> {
        let step = self.step(change, pool, now);
        if let (Ok(()), Life::Changing(_)) = (step, self.life) {
            self.wake = now + STEP;
            return None;
        }
        if step.is_err() {
            self.life = Life::Off;
        }
        self.next_look = now + self.look_interval();
        self.attend_now();
        Some(match change.goal {
            Goal::Running => Event::Started(step),
            Goal::Stopped => Event::Stopped(step),
        })
    }

    /// One step of a start or stop, if it can be made.
    fn step(
        &mut self,
        change: Change,
        pool: &mut Pool<'_>,
        now: Instant,
    ) -> Result<(), ControllerFault> {
        let Change { goal, phase, until } = change;
        let status = self.registers.read(USBSTS_REGISTER);
        if status.get() == u32::MAX {
            return Err(ControllerFault::Absent);
        }
        let halted = status.is_set(USBSTS::HCHALTED);
        if status.is_set(USBSTS::HSE) && matches!(phase, Phase::Run | Phase::Enable) {
            return Err(ControllerFault::HostSystemError);
        }
        let (reached, fault) = match phase {
            // The run bits lie ten bits above the enable bits.
            Phase::Settle => {
                let command = self.registers.read(USBCMD_REGISTER);
                let is_resetting = command.is_set(USBCMD::HCRESET);
                self.command = command.get() & COMMAND_KEPT;
                let settled =
                    status.get() & SCHEDULES_RUN == (self.command & SCHEDULES_ENABLED) << 10;
                if !is_resetting && !settled && !halted && now >= until {
                    self.begin_halt(goal, now);
                    return Ok(());
                }
                let reached = !is_resetting && (settled || halted);
                (reached, ControllerFault::ResetTimeout)
            }
            Phase::Schedules => (
                halted || status.get() & SCHEDULES_RUN == 0 || now >= until,
                ControllerFault::HaltTimeout,
            ),
            Phase::Halt => (halted, ControllerFault::HaltTimeout),
            Phase::Reset => (
                !self.registers.read(USBCMD_REGISTER).is_set(USBCMD::HCRESET),
                ControllerFault::ResetTimeout,
            ),
            Phase::Run => (!halted, ControllerFault::RunTimeout),
            Phase::Enable => (status.is_set(USBSTS::ASS), ControllerFault::RunTimeout),
        };
        if reached {
            self.leave(goal, phase, pool, now)
        } else if now >= until {
            Err(fault)
        } else {
            Ok(())
        }
    }

    /// What is done when a phase has reached its end: the beginning of the next.
    fn leave(
        &mut self,
        goal: Goal,
        phase: Phase,
        pool: &mut Pool<'_>,
        now: Instant,
    ) -> Result<(), ControllerFault> {
        match (phase, goal) {
            (Phase::Settle, _) => {
                if self.command & USBCMD::RS::SET.value != 0 {
                    self.command &= !SCHEDULES_ENABLED;
                    self.write_command();
                }
                self.enter(goal, Phase::Schedules, now + SCHEDULES_TIMEOUT);
            }
            (Phase::Schedules, _) => self.begin_halt(goal, now),
            (Phase::Halt, _) => {
                self.registers.write(USBCMD_REGISTER, USBCMD::HCRESET::SET);
                self.enter(goal, Phase::Reset, now + RESET_TIMEOUT);
            }
            (Phase::Reset, Goal::Stopped) => self.life = Life::Off,
            (Phase::Reset, Goal::Running) => {
                // It is told of its memory only when all of it is there.
                let owner = Owner::Controller(self.index);
                self.set_up_memory(pool)
                    .inspect_err(|_| pool.reclaim(owner))?;
                self.command = (USBCMD::RS::SET + USBCMD::ITC.val(1)).value;
                self.write_command();
                self.enter(goal, Phase::Run, now + RUN_TIMEOUT);
            }
            (Phase::Run, _) => {
                self.registers
                    .write(CONFIGFLAG_REGISTER, CONFIGFLAG::CF::SET);
                self.command |= USBCMD::ASE::SET.value;
                self.write_command();
                self.enter(goal, Phase::Enable, now + RUN_TIMEOUT);
            }
            (Phase::Enable, _) => {
                self.power_all_ports();
                let stale = ChangeBits::none().clearing(USBSTS_CHANGES);
                self.registers.change(USBSTS_REGISTER, stale);
                self.signal.take();
                let enabled = match self.interrupts {
                    Interrupts::Polled => 0,
                    Interrupts::Wired => USBSTS_CHANGES,
                };
                self.registers.write_raw(USBINTR_REGISTER, enabled);
                self.life = Life::Running;
            }
        }
        Ok(())
    }

    fn begin_halt(&mut self, goal: Goal, now: Instant) {
        self.registers.write_raw(USBINTR_REGISTER, 0);
        self.command &= !USBCMD::RS::SET.value;
        self.write_command();
        self.enter(goal, Phase::Halt, now + HALT_TIMEOUT);
    }

    /// Gives the controller its list head and its frame list. It is reset and halted: nothing that
    /// it was given before is reached any more.
    fn set_up_memory(&mut self, pool: &mut Pool<'_>) -> Result<(), ControllerFault> {
        pool.reclaim_controller(self.index);
        // All structures, also those that are taken later, lie in one segment of 4 GiB (EHCI 1.0 §2.3.5).
        if !pool.is_reachable(self.capabilities().address_mask) || !pool.is_in_one_segment() {
            return Err(ControllerFault::Implausible(CapabilityField::AddressWidth));
        }
        let frames = self.allocate(pool, Class::Base, LIST_LENGTH)?;
        self.segment = frames.bus().high();
        for frame in 0..FRAMES {
            frames.write32(4 * frame, LINK_END);
        }
        let head = self.allocate(pool, Class::Queue, queue_head::LENGTH)?;
        queue_head::write_head(&head);
        if self.capability.wide {
            self.registers
                .write_raw(CTRLDSSEGMENT_REGISTER, self.segment);
        }
        self.registers
            .write_raw(PERIODICLISTBASE_REGISTER, frames.bus().low());
        self.registers
            .write_raw(ASYNCLISTADDR_REGISTER, head.bus().low());
        self.frames = Some(frames);
        self.head = Some(head);
        Ok(())
    }

    /// Takes pool memory for a structure that is aligned to its length.
    fn allocate(
        &self,
        pool: &mut Pool<'_>,
        class: Class,
        length: usize,
    ) -> Result<Allocation, ControllerFault> {
        let owner = Owner::Controller(self.index);
        Ok(pool.allocate(owner, class, length, Rules::aligned(length))?)
    }

    fn look_interval(&self) -> Duration {
        match self.interrupts {
            Interrupts::Polled => LOOK_POLLED,
            Interrupts::Wired => LOOK_WIRED,
        }
    }

    /// Takes what the interrupt half has noted, and looks at the status register if it is time, or
    /// if a doorbell is due.
    fn look(&mut self, now: Instant) -> Result<(), ControllerFault> {
        let mut changes = 0;
        if now >= self.next_look {
            self.note_returned_ports();
        }
        if now >= self.next_look || self.doorbell != Doorbell::Quiet {
            let status = self.registers.read(USBSTS_REGISTER);
            if status.get() == u32::MAX {
                return Err(ControllerFault::Absent);
            }
            changes = status.get() & USBSTS_CHANGES;
            if self.interrupts == Interrupts::Polled {
                // Memory tells of completions, and no line waits for their bits to be cleared.
                changes &= !COMPLETIONS;
            }
            if changes != 0 {
                let bits = ChangeBits::none().clearing(changes);
                self.registers.change(USBSTS_REGISTER, bits);
            }
            if status.is_set(USBSTS::HCHALTED) {
                return Err(ControllerFault::HostSystemError);
            }
            self.next_look = now + self.look_interval();
        }
        // After the register: the half notes a bit before it clears it.
        changes |= self.signal.take() & USBSTS_CHANGES;
        if changes & USBSTS::HSE::SET.value != 0 {
            return Err(self.system_error());
        }
        self.answer_seen |= changes & USBSTS::IAA::SET.value != 0;
        if changes & USBSTS::PCD::SET.value != 0 {
            self.note_port_changes();
        }
        Ok(())
    }

    fn system_error(&self) -> ControllerFault {
        match self.registers.read(USBSTS_REGISTER).get() {
            u32::MAX => ControllerFault::Absent,
            _ => ControllerFault::HostSystemError,
        }
    }

    /// Looks after all that is under way besides transfers.
    #[cold]
    fn attend(&mut self, pool: &mut Pool<'_>, now: Instant) -> Option<Event> {
        match self.life {
            Life::Running => {}
            Life::Changing(change) => return self.tend_change(change, pool, now),
            Life::Off | Life::Dead => {
                self.signal.take();
                self.wake = Instant::NEVER;
                return None;
            }
        }
        if let Err(fault) = self.look(now).and_then(|()| self.tend_doorbell(now)) {
            self.forget();
            self.life = Life::Dead;
            return Some(Event::Died(fault));
        }
        let event = self
            .tend_moving(pool, now)
            .or_else(|| self.tend_devices(pool))
            .or_else(|| self.tend_restarted())
            .or_else(|| self.tend_ports(now));
        if event.is_some() {
            // There may be more of them.
            self.attend_now();
            return event;
        }
        self.ring_if_waited_for(now);
        self.wake = self.next_wake(now);
        None
    }

    fn next_wake(&self, now: Instant) -> Instant {
        let soon = self.doorbell != Doorbell::Quiet || self.ports.is_ending();
        let step = if soon { now + STEP } else { Instant::NEVER };
        step.min(self.next_look).min(self.next_departure())
    }
}

impl<B: Bus> HostController for Ehci<'_, B> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            number: self.index,
            address_mask: if self.capability.wide {
                u64::MAX
            } else {
                u32::MAX.into()
            },
            grain: 4096,
            root_ports: self.capability.ports,
            streams: 0,
            holds: true,
            reset_hold: Some(RESET_HOLD),
        }
    }

    fn requirement(&self) -> Requirement {
        let bulk = EndpointConfig {
            kind: EndpointKind::Bulk,
            max_packet: 512,
            transfers: 4,
            longest: 128 * 1024,
            number: 1,
            direction: Direction::In,
            ..control_config(64)
        };
        let bytes = |config: &EndpointConfig| queue::descriptors(config).map_or(0, queue::length);
        Requirement {
            // The list's own alignment may cost as much again.
            pool: 2 * LIST_LENGTH + queue_head::LENGTH,
            pool_records: 2,
            pool_per_device: bytes(&control_config(64)) + 2 * bytes(&bulk),
            scratchpads: 0,
        }
    }

    fn start(&mut self, _pool: &mut Pool<'_>, now: Instant) {
        self.change_to(Goal::Running, now);
    }

    fn stop(&mut self, now: Instant) {
        self.change_to(Goal::Stopped, now);
    }

    fn abandon(&mut self) {
        self.forget();
        self.life = Life::Dead;
        self.wake = Instant::NEVER;
    }

    #[inline]
    fn has_events(&self) -> bool {
        // What has ended since the look a moment ago is found by the next.
        self.signal.is_raised()
            || (!self.active.set().is_empty()
                && !self.just_looked.replace(false)
                && self.has_ends())
    }

    #[inline]
    fn poll(&mut self, pool: &mut Pool<'_>, now: Instant) -> Option<Event> {
        self.now = now;
        if now >= self.wake || self.signal.is_raised() {
            let event = self.attend(pool, now);
            if event.is_some() {
                return event;
            }
        }
        if self.stirred {
            self.stirred = false;
            self.last_activity = now;
        }
        if self.active.set().is_empty() {
            return None;
        }
        self.scan()
    }

    #[inline]
    fn take_end(&mut self, end: &mut TransferEnd) -> bool {
        if self.active.set().is_empty() {
            return false;
        }
        self.look_around(end) == Found::End
    }

    /// Completions are in memory, not in a queue that could fill up.
    #[inline]
    fn acknowledge_events(&mut self) {
        self.just_looked.set(false);
    }

    fn check_alive(&mut self) -> bool {
        self.read_alive()
    }

    #[inline]
    fn next_deadline(&self) -> Instant {
        self.wake
    }
}
