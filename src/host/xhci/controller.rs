//! The controller as a whole: taking it over, running it, giving it back.
//!
//! The trait's part one. Starting and stopping are the same road walked with different goals, in
//! [`Step`]s that each wait for one bit; `poll` looks at that bit about once a millisecond. Read
//! `xHCI 1.2 §4.2` (initialisation), `§4.22.1` (hand-off) and `§4.24` (errors).

use super::base::{self, Base};
use super::device::endpoint0_config;
use super::interrupt::Interrupts;
use super::regs::{IMAN, IMOD, LEGACY, USBCMD, USBSTS, interrupter, legacy, operational};
use super::streams::most_streams;
use super::{EndpointState, Xhci};
use crate::dma::{Owner, Pool, release};
use crate::host::{
    Capabilities, ControllerFault, Event, HostController, Requirement, RootPort, RootPorts,
    TransferEnd,
};
use crate::mmio::{Bus, ChangeBits, Registers};
use crate::time::{Duration, Instant};

/// How often a waited-for bit is looked at. Policy; and some chips hang if a register is read in
/// the first millisecond of their reset.
const LOOK: Duration = Duration::from_millis(1);
/// What a firmware has to give the controller up (`xHCI 1.2 §4.22.1`).
const HAND_OFF_TIME: Duration = Duration::from_secs(1);
/// Halting takes 16 ms (`xHCI 1.2 §5.4.1.1`). Policy: twice that.
pub(super) const HALT_TIME: Duration = Duration::from_millis(32);
/// The specification bounds neither the reset nor what comes after it. Policy: 1 s each; 120 ms
/// were seen.
pub(super) const RESET_TIME: Duration = Duration::from_secs(1);
/// Starting takes no time that the specification names. Policy.
const RUN_TIME: Duration = Duration::from_millis(100);
/// Units of the moderation interval: 250 ns (`xHCI 1.2 §5.5.2.2`), 4 a microsecond.
const MODERATION_PER_MICROSECOND: u64 = 4;

/// Where the controller is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Not ours, or given back.
    Idle,
    /// Under way.
    Moving {
        goal: Goal,
        step: Step,
        deadline: Instant,
    },
    Running,
    Dead,
}

/// Where it is to get to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Goal {
    Running,
    Stopped,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The firmware gives up its ownership.
    HandOff,
    /// A reset or a power-on that is under way ends: nothing may be written before (`xHCI 1.2 §5.4.2`, CNR).
    Settle,
    /// The controller halts.
    Halt,
    /// The reset ends.
    Reset,
    /// The controller is ready to be written to.
    Ready,
    /// It runs.
    Run,
}

impl<B: Bus> HostController for Xhci<'_, B> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            number: self.controller,
            address_mask: self.parameters.address_mask,
            grain: 1,
            root_ports: self.parameters.ports,
            streams: most_streams(&self.parameters),
            holds: true,
            reset_hold: None,
        }
    }

    fn requirement(&self) -> Requirement {
        let endpoint0 = endpoint0_config(64);
        base::requirement(&self.parameters, self.extent(), &endpoint0, self.quirks)
    }

    fn start(&mut self, _pool: &mut Pool<'_>, now: Instant) {
        self.base = None;
        self.forget_all();
        self.begin(Goal::Running, Step::HandOff, now);
    }

    fn stop(&mut self, now: Instant) {
        self.base = None;
        self.forget_all();
        let look = match self.phase {
            // No register is read so early in a reset.
            Phase::Moving {
                step: Step::Reset, ..
            } => self.wake,
            _ => now,
        };
        self.begin(Goal::Stopped, Step::Settle, now);
        self.wake = look;
    }

    fn abandon(&mut self) {
        self.base = None;
        self.forget_all();
        self.phase = Phase::Dead;
        self.wake = Instant::NEVER;
    }

    #[inline]
    fn has_events(&self) -> bool {
        match &self.base {
            Some(base) => base.events.is_ready(),
            None => false,
        }
    }

    #[inline]
    fn poll(&mut self, pool: &mut Pool<'_>, now: Instant) -> Option<Event> {
        if now < self.wake && !self.pending && !self.has_events() {
            return None;
        }
        self.take_next(pool, now)
    }

    #[inline]
    fn take_end(&mut self, end: &mut TransferEnd) -> bool {
        self.take_good_end(end)
    }

    #[inline]
    fn acknowledge_events(&mut self) {
        if let Some(base) = &mut self.base {
            // The next interrupt comes only when this one was answered (`xHCI 1.2 §4.17.2`).
            let interrupts = self.options.interrupts != Interrupts::Polled;
            if interrupts || base.events.is_worth_telling() {
                base.events.acknowledge(&self.blocks);
            }
        }
    }

    fn check_alive(&mut self) -> bool {
        self.read_alive()
    }

    #[inline]
    fn next_deadline(&self) -> Instant {
        self.wake
    }
}

/// Starting and stopping.
impl<B: Bus> Xhci<'_, B> {
    /// Begins a step. The bit that it waits for is looked at by the next poll, or, after a reset,
    /// a millisecond later.
    fn begin(&mut self, goal: Goal, step: Step, now: Instant) {
        let registers = &self.blocks.operational;
        let time = match step {
            Step::HandOff => {
                if let Some(block) = self.legacy_block() {
                    block.modify(legacy::SUPPORT, LEGACY::SYSTEM_OWNED::SET);
                }
                HAND_OFF_TIME
            }
            Step::Settle => RESET_TIME,
            Step::Halt => {
                registers.modify(
                    operational::USBCMD,
                    USBCMD::RUN::CLEAR + USBCMD::INTE::CLEAR + USBCMD::HSEE::CLEAR,
                );
                HALT_TIME
            }
            Step::Reset => {
                registers.modify(operational::USBCMD, USBCMD::HCRST::SET);
                RESET_TIME
            }
            Step::Ready => RESET_TIME,
            Step::Run => {
                release();
                let interrupts = match self.options.interrupts {
                    Interrupts::Polled => USBCMD::INTE::CLEAR,
                    Interrupts::Wired | Interrupts::Message => USBCMD::INTE::SET,
                };
                let run = USBCMD::RUN::SET + USBCMD::HSEE::SET + interrupts;
                registers.modify(operational::USBCMD, run);
                RUN_TIME
            }
        };
        self.phase = Phase::Moving {
            goal,
            step,
            deadline: now + time,
        };
        self.wake = match step {
            Step::Reset => now + LOOK,
            _ => now,
        };
    }

    /// Looks whether a step is done, and begins the next one.
    pub(super) fn advance(
        &mut self,
        goal: Goal,
        step: Step,
        deadline: Instant,
        pool: &mut Pool<'_>,
        now: Instant,
    ) {
        match self.is_done(step) {
            Err(fault) => self.arrive(goal, Err(fault)),
            Ok(true) => self.finish_step(goal, step, pool, now),
            // What does not halt may not be reset either (`xHCI 1.2 §5.4.1`, HCRST): whoever can must
            // cut it off from memory.
            Ok(false) if now >= deadline => self.arrive(goal, Err(step.fault())),
            Ok(false) => self.wake = now + LOOK,
        }
    }

    fn is_done(&self, step: Step) -> Result<bool, ControllerFault> {
        let status = self.blocks.read_status();
        if status.get() == u32::MAX {
            return Err(ControllerFault::Absent);
        }
        Ok(match step {
            Step::HandOff => self
                .legacy_block()
                .is_none_or(|block| !block.read(legacy::SUPPORT).is_set(LEGACY::FIRMWARE_OWNED)),
            Step::Settle => !self.is_resetting() && !status.is_set(USBSTS::CNR),
            Step::Halt => status.is_set(USBSTS::HALTED),
            Step::Reset => !self.is_resetting(),
            Step::Ready => !status.is_set(USBSTS::CNR),
            Step::Run => !status.is_set(USBSTS::HALTED),
        })
    }

    fn is_resetting(&self) -> bool {
        let command = self.blocks.operational.read(operational::USBCMD);
        command.is_set(USBCMD::HCRST)
    }

    fn finish_step(&mut self, goal: Goal, step: Step, pool: &mut Pool<'_>, now: Instant) {
        match (goal, step) {
            (_, Step::HandOff) => {
                self.silence_firmware();
                self.begin(goal, Step::Settle, now);
            }
            (_, Step::Settle) => self.begin(goal, Step::Halt, now),
            (_, Step::Halt) => self.begin(goal, Step::Reset, now),
            (_, Step::Reset) => self.begin(goal, Step::Ready, now),
            (Goal::Running, Step::Ready) => match self.install(pool) {
                Ok(()) => self.begin(goal, Step::Run, now),
                Err(fault) => {
                    // It was told of nothing yet.
                    pool.reclaim(Owner::Controller(self.controller));
                    self.arrive(goal, Err(fault));
                }
            },
            (Goal::Stopped, Step::Ready) => {
                if let Some(block) = self.legacy_block() {
                    block.modify(legacy::SUPPORT, LEGACY::SYSTEM_OWNED::CLEAR);
                }
                self.arrive(goal, Ok(()));
            }
            (_, Step::Run) => {
                // Where it can be switched, the power of ports is off after a reset (`xHCI 1.2 §5.4.8`, PP).
                for port in 0..self.parameters.ports {
                    self.power_port(RootPort(port), true);
                }
                self.arrive(goal, Ok(()));
            }
        }
    }

    /// The end of the road, good or bad.
    fn arrive(&mut self, goal: Goal, result: Result<(), ControllerFault>) {
        let (event, phase) = match goal {
            Goal::Running => (Event::Started(result), Phase::Running),
            Goal::Stopped => (Event::Stopped(result), Phase::Idle),
        };
        self.phase = match result {
            Ok(()) => phase,
            Err(_) => Phase::Dead,
        };
        if result.is_err() {
            self.base = None;
        }
        self.notice = Some(event);
        self.mark_pending();
    }

    fn legacy_block(&self) -> Option<Registers<B>> {
        let offset = self.parameters.legacy?;
        Some(Registers::new(self.blocks.capability.bus().clone(), offset))
    }

    /// Switches the firmware's own interrupts off (`xHCI 1.2 §7.1.2`).
    fn silence_firmware(&self) {
        if let Some(block) = self.legacy_block() {
            let kept = block.read(legacy::CONTROL).get() & legacy::CONTROL_KEEP;
            block.write_raw(legacy::CONTROL, kept | legacy::CONTROL_EVENTS);
        }
    }

    /// Gives the controller its memory.
    fn install(&mut self, pool: &mut Pool<'_>) -> Result<(), ControllerFault> {
        let extent = self.extent();
        let owner = Owner::Controller(self.controller);
        let mut base = Base::allocate(pool, owner, &self.parameters, extent, self.quirks)?;
        // The controller may read the event ring's table as soon as it knows where it is.
        release();
        base.install(&self.blocks, extent);
        self.base = Some(base);
        let runtime = &self.blocks.runtime;
        let moderation = self.options.moderation.as_micros();
        let units = moderation.saturating_mul(MODERATION_PER_MICROSECOND);
        let interval = IMOD::INTERVAL.val(units.min(0xffff) as u32);
        runtime.write(interrupter::IMOD, interval);
        let enable = match self.options.interrupts {
            Interrupts::Polled => IMAN::IE::CLEAR,
            Interrupts::Wired | Interrupts::Message => IMAN::IE::SET,
        };
        runtime.change(interrupter::IMAN, ChangeBits::none().with(enable));
        Ok(())
    }

    /// Reads the status register and declares the controller dead if it says so. Returns whether
    /// it is alive.
    ///
    /// For the core, after a transfer that took too long: a controller that died of a bus error
    /// writes no events any more.
    pub(super) fn read_alive(&mut self) -> bool {
        if self.phase != Phase::Running {
            return false;
        }
        let status = self.blocks.read_status();
        let errors = USBSTS::HSE::SET + USBSTS::HCE::SET + USBSTS::HALTED::SET;
        if status.get() == u32::MAX {
            self.die(ControllerFault::Absent);
        } else if status.any_matching_bits_set(errors) {
            self.die(ControllerFault::HostSystemError);
        }
        self.phase == Phase::Running
    }

    /// Nothing is expected of the controller any more, until it is started or stopped.
    #[cold]
    #[inline(never)]
    pub(super) fn die(&mut self, fault: ControllerFault) {
        self.base = None;
        self.phase = Phase::Dead;
        for endpoint in self.endpoints.iter_mut() {
            if endpoint.state == EndpointState::Running {
                endpoint.state = EndpointState::Halted;
            }
        }
        self.notice = Some(Event::Died(fault));
        self.mark_pending();
    }
}

impl Step {
    /// What it means that a step takes too long.
    fn fault(self) -> ControllerFault {
        match self {
            Self::HandOff => ControllerFault::FirmwareHolds,
            Self::Halt => ControllerFault::HaltTimeout,
            Self::Settle | Self::Reset | Self::Ready => ControllerFault::ResetTimeout,
            Self::Run => ControllerFault::RunTimeout,
        }
    }
}
