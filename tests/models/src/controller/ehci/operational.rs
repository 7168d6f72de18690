//! USBCMD, USBSTS and the base registers: run, halt, reset, schedule enables (EHCI 1.0 §2.3, §4.1,
//! §4.6, §4.8).

use super::interrupts::{HOST_SYSTEM_ERROR, ROLLOVER, SOURCES};
use super::{Due, Ehci, List, Traits, timing};
use crate::broken::{broken, require};
use crate::controller::Surroundings;
use crate::device::Nanoseconds;

pub(super) const RUN: u32 = 1;
const RESET: u32 = 1 << 1;
const FRAME_LIST_SIZE: u32 = 3 << 2;
pub(super) const PERIODIC_ENABLE: u32 = 1 << 4;
pub(super) const ASYNC_ENABLE: u32 = 1 << 5;
pub(super) const DOORBELL: u32 = 1 << 6;
const LIGHT_RESET: u32 = 1 << 7;
const PARK_COUNT: u32 = 3 << 8;
const PARK_ENABLE: u32 = 1 << 11;
const THRESHOLD: u32 = 0xff << 16;
/// Reserved bits of USBCMD: 10, 15..12, 31..24; they are written as zeros.
const COMMAND_RESERVED: u32 = 0xff00_f400;

const HALTED: u32 = 1 << 12;
const RECLAMATION: u32 = 1 << 13;
const PERIODIC_STATUS: u32 = 1 << 14;
const ASYNC_STATUS: u32 = 1 << 15;
/// Reserved bits of USBSTS: 11..6, 31..16.
const STATUS_RESERVED: u32 = 0xffff_0fc0;

/// The operational registers but for those of the ports.
#[derive(Debug)]
pub(super) struct Operational {
    pub(super) command: u32,
    halted: bool,
    /// Which schedules are on, by their status bits.
    asynchronous: bool,
    periodic: bool,
    /// FRINDEX at `started`.
    index: u32,
    /// The microframe in which it ran from `index` on.
    started: u64,
    /// How often the frame list had rolled over when FLR was last looked at.
    rollovers: u64,
    /// CTRLDSSEGMENT.
    pub(super) segment: u32,
    /// PERIODICLISTBASE.
    pub(super) periodic_base: u32,
    /// ASYNCLISTADDR.
    pub(super) async_address: u32,
    /// CONFIGFLAG.
    pub(super) configured: bool,
    /// A host system error happened, and HCRESET has not followed it.
    failed: bool,
}

impl Operational {
    pub(super) fn at_power_on(traits: &Traits) -> Self {
        Self {
            command: default_command(traits),
            halted: true,
            asynchronous: false,
            periodic: false,
            index: 0,
            started: 0,
            rollovers: 0,
            segment: 0,
            // Undefined after a reset.
            periodic_base: 0x5a5a_5000,
            async_address: 0xa5a5_a5a0,
            configured: false,
            failed: false,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        !self.halted
    }

    pub(super) fn is_halted(&self) -> bool {
        self.halted
    }

    pub(super) fn is_resetting(&self) -> bool {
        self.command & RESET != 0
    }

    /// Whether a schedule is on (its status bit).
    pub(super) fn is_on(&self, list: List) -> bool {
        match list {
            List::Asynchronous => self.asynchronous,
            List::Periodic => self.periodic,
        }
    }

    fn wants(&self, list: List) -> bool {
        self.command & enable_bit(list) != 0
    }

    fn switch(&mut self, list: List, on: bool) {
        match list {
            List::Asynchronous => self.asynchronous = on,
            List::Periodic => self.periodic = on,
        }
    }

    /// Elements of the frame list.
    pub(super) fn frame_list_length(&self) -> u32 {
        1024 >> ((self.command & FRAME_LIST_SIZE) >> 2)
    }

    /// ITC in microframes.
    pub(super) fn threshold(&self) -> u64 {
        u64::from((self.command & THRESHOLD) >> 16).max(1)
    }

    /// How often a high-speed queue head of the asynchronous schedule is executed in a row.
    pub(super) fn park_count(&self) -> u32 {
        if self.command & PARK_ENABLE != 0 {
            (self.command & PARK_COUNT) >> 8
        } else {
            1
        }
    }

    /// FRINDEX (§2.3.4).
    pub(super) fn frame_index(&self, now: Nanoseconds) -> u32 {
        if self.halted {
            return self.index;
        }
        let passed = now / timing::MICROFRAME - self.started;
        ((u64::from(self.index) + passed) & 0x3fff) as u32
    }

    /// Frames since the index was zero, never going back while the controller runs.
    pub(super) fn frame_number(&self, now: Nanoseconds) -> u64 {
        (u64::from(self.index) + now / timing::MICROFRAME - self.started) >> 3
    }

    fn total_rollovers(&self, now: Nanoseconds) -> u64 {
        let passed = now / timing::MICROFRAME - self.started;
        (u64::from(self.index) + passed) / u64::from(8 * self.frame_list_length())
    }

    fn start(&mut self, now: Nanoseconds) {
        self.halted = false;
        self.started = now / timing::MICROFRAME;
        self.rollovers = self.total_rollovers(now);
    }

    fn stop(&mut self, now: Nanoseconds) {
        self.index = self.frame_index(now);
        self.halted = true;
        self.asynchronous = false;
        self.periodic = false;
    }

    /// As a boot loader leaves it.
    pub(super) fn leave_running(&mut self, asynchronous: u32, periodic: u32) {
        self.command |= RUN | ASYNC_ENABLE | PERIODIC_ENABLE;
        (self.asynchronous, self.periodic) = (true, true);
        (self.async_address, self.periodic_base) = (asynchronous, periodic);
        self.configured = true;
        self.start(0);
    }

    /// The same, but for the asynchronous schedule.
    pub(super) fn leave_asynchronous_off(&mut self) {
        self.command &= !ASYNC_ENABLE;
        self.asynchronous = false;
    }
}

fn default_command(traits: &Traits) -> u32 {
    let park = if traits.park {
        PARK_ENABLE | PARK_COUNT
    } else {
        0
    };
    0x0008_0000 | park
}

fn enable_bit(list: List) -> u32 {
    match list {
        List::Asynchronous => ASYNC_ENABLE,
        List::Periodic => PERIODIC_ENABLE,
    }
}

impl Ehci {
    pub(super) fn read_command(&self) -> u32 {
        let doorbell = if self.doorbell.is_some() { DOORBELL } else { 0 };
        self.operational.command | doorbell
    }

    pub(super) fn read_status(&mut self, around: &Surroundings<'_>) -> u32 {
        self.count_rollovers(around);
        let on = |list| self.operational.is_on(list);
        let halted = if self.operational.is_halted() {
            HALTED
        } else {
            0
        };
        let reclamation = if self.traversal.reclamation {
            RECLAMATION
        } else {
            0
        };
        let periodic = if on(List::Periodic) {
            PERIODIC_STATUS
        } else {
            0
        };
        let asynchronous = if on(List::Asynchronous) {
            ASYNC_STATUS
        } else {
            0
        };
        self.interrupts.status | halted | reclamation | periodic | asynchronous
    }

    /// FLR is brought up to date when somebody looks: nothing in the model waits for it.
    fn count_rollovers(&mut self, around: &Surroundings<'_>) {
        if self.operational.is_halted() {
            return;
        }
        let total = self.operational.total_rollovers(around.now);
        if total != self.operational.rollovers {
            self.operational.rollovers = total;
            self.interrupts.status |= ROLLOVER;
        }
    }

    pub(super) fn write_command(&mut self, around: &mut Surroundings<'_>, value: u32) {
        self.check_command(value);
        if value & RESET != 0 {
            self.begin_reset(around);
            return;
        }
        let old = self.operational.command;
        self.check_schedule_enables(old, value);
        if value & !old & (ASYNC_ENABLE | PERIODIC_ENABLE) != 0 {
            self.check_memory_released(around, "a schedule's enable bit");
        }
        self.operational.command = value & !(DOORBELL | COMMAND_RESERVED);
        match (old & RUN, value & RUN) {
            (0, RUN) => self.begin_run(around),
            (RUN, 0) => {
                let at = around.now + self.traits.halt_time;
                self.agenda.add(at, Due::Halted);
            }
            _ => {}
        }
        self.schedules_react(around);
        if value & DOORBELL != 0 {
            self.ring_doorbell(around);
        }
    }

    fn check_command(&self, value: u32) {
        let old = self.operational.command;
        require!(
            value & COMMAND_RESERVED == 0,
            "EHCI 1.0 §2.3.1",
            "USBCMD = {value:#x}: reserved bits are written as zero"
        );
        require!(
            value & LIGHT_RESET == 0,
            "model",
            "the light host controller reset is optional and not modelled"
        );
        let size = value & FRAME_LIST_SIZE;
        let fixed = !self.traits.programmable_frame_list || self.operational.is_running();
        require!(
            size != FRAME_LIST_SIZE && (!fixed || size == old & FRAME_LIST_SIZE),
            "EHCI 1.0 §2.3.1",
            "USBCMD = {value:#x} changes the frame list's size, which this controller cannot do now"
        );
        require!(
            self.traits.park || value & (PARK_ENABLE | PARK_COUNT) == 0,
            "EHCI 1.0 §2.3.1",
            "USBCMD = {value:#x} asks for park mode, which this controller does not have"
        );
        require!(
            value & PARK_ENABLE == 0 || value & PARK_COUNT != 0,
            "EHCI 1.0 §2.3.1",
            "USBCMD = {value:#x}: park mode with a count of zero"
        );
        self.check_threshold(old, value);
    }

    fn check_threshold(&self, old: u32, value: u32) {
        let threshold = (value & THRESHOLD) >> 16;
        let resets = value & RESET != 0;
        require!(
            resets || matches!(threshold, 1 | 2 | 4 | 8 | 16 | 32 | 64),
            "EHCI 1.0 §2.3.1",
            "an interrupt threshold of {threshold} microframes"
        );
        require!(
            self.operational.is_halted() || (value ^ old) & THRESHOLD == 0,
            "EHCI 1.0 §2.3.1",
            "the interrupt threshold was changed while the controller runs"
        );
    }

    /// §4.6, §4.8: an enable bit may change only while its status bit equals it.
    fn check_schedule_enables(&self, old: u32, value: u32) {
        for list in [List::Asynchronous, List::Periodic] {
            let bit = enable_bit(list);
            let settled = self.operational.is_on(list) == (old & bit != 0);
            // A stopped controller has no schedule on, whatever is enabled.
            let stopped = self.operational.is_halted();
            if (old ^ value) & bit == 0 || settled || stopped {
                continue;
            }
            match list {
                List::Asynchronous => broken!(
                    "EHCI 1.0 §4.8",
                    "ASE was changed while the Asynchronous Schedule Status did not equal it"
                ),
                List::Periodic => broken!(
                    "EHCI 1.0 §4.6",
                    "PSE was changed while the Periodic Schedule Status did not equal it"
                ),
            }
        }
    }

    fn begin_reset(&mut self, around: &mut Surroundings<'_>) {
        require!(
            self.operational.is_halted(),
            "EHCI 1.0 §2.3.1",
            "HCRESET while HCHalted is zero"
        );
        self.operational.command = RESET;
        if !self.faults.reset_hangs {
            self.agenda
                .add(around.now + self.traits.reset_time, Due::ResetDone);
        }
    }

    /// Somebody has stopped it and begun its reset, which ends at this moment.
    pub(super) fn leave_resetting(&mut self, around: &Surroundings<'_>, end: Nanoseconds) {
        self.operational.stop(around.now);
        self.forget_schedules();
        self.operational.command = RESET;
        self.agenda.add(end, Due::ResetDone);
    }

    /// HCRESET has cleared: everything is at its default.
    pub(super) fn reset_is_done(&mut self, around: &mut Surroundings<'_>) {
        self.operational = Operational::at_power_on(&self.traits);
        self.interrupts.reset();
        self.forget_schedules();
        self.translators.reset();
        self.death = None;
        self.faults.find_endpoints(&self.begun);
        self.reset_ports(around);
        *around.noticed = true;
    }

    fn begin_run(&mut self, around: &mut Surroundings<'_>) {
        require!(
            self.operational.is_halted(),
            "EHCI 1.0 §2.3.1",
            "Run/Stop was set while HCHalted is zero"
        );
        require!(
            !self.operational.failed,
            "EHCI 1.0 §4.15.2.4",
            "Run/Stop was set after a host system error without HCRESET"
        );
        self.check_memory_released(around, "Run/Stop");
        if !self.faults.never_runs {
            self.operational.start(around.now);
            *around.noticed = true;
        }
    }

    pub(super) fn halt(&mut self, around: &mut Surroundings<'_>) {
        let stopped = self.operational.command & RUN == 0;
        if stopped && self.operational.is_running() && !self.faults.never_halts {
            self.operational.stop(around.now);
            self.forget_schedules();
            *around.noticed = true;
        }
    }

    /// §4.15.2.4: the controller stops where it stands.
    pub(super) fn host_system_error(&mut self, around: &mut Surroundings<'_>) {
        self.operational.command &= !RUN;
        self.operational.stop(around.now);
        self.operational.failed = true;
        self.forget_schedules();
        self.raise(around, HOST_SYSTEM_ERROR);
    }

    /// The controller holds nothing of memory any more.
    fn forget_schedules(&mut self) {
        self.held.clear();
        self.traversal.reset();
        self.turn.cancel();
        self.doorbell = None;
    }

    /// Schedules that have to follow their enable bits will.
    fn schedules_react(&mut self, around: &mut Surroundings<'_>) {
        if self.operational.is_halted() || self.faults.schedules_stuck {
            return;
        }
        for list in [List::Asynchronous, List::Periodic] {
            if self.operational.wants(list) != self.operational.is_on(list) {
                let at = around.now + self.traits.follow_time;
                self.agenda.add(at, Due::Follow(list));
            }
        }
    }

    pub(super) fn schedule_follows(&mut self, around: &mut Surroundings<'_>, list: List) {
        let on = self.operational.wants(list);
        if !self.is_running() || on == self.operational.is_on(list) {
            return;
        }
        self.operational.switch(list, on);
        *around.noticed = true;
        match (list, on) {
            (List::Asynchronous, true) => self.begin_asynchronous(around),
            (List::Periodic, true) => self.begin_periodic(around),
            (_, false) => self.held.clear_list(list),
        }
    }

    pub(super) fn write_status(&mut self, around: &Surroundings<'_>, value: u32) {
        require!(
            value & STATUS_RESERVED == 0,
            "EHCI 1.0 §2.3.2",
            "USBSTS = {value:#x}: reserved bits are written as zero"
        );
        self.count_rollovers(around);
        self.interrupts.status &= !(value & SOURCES);
    }

    pub(super) fn write_enables(&mut self, value: u32) {
        require!(
            value & !SOURCES == 0,
            "EHCI 1.0 §2.3.3",
            "USBINTR = {value:#x}: reserved bits are written as zero"
        );
        require!(
            value & ROLLOVER == 0,
            "model",
            "the interrupt of a frame list rollover is not modelled"
        );
        self.interrupts.enabled = value;
    }

    pub(super) fn write_frame_index(&mut self, value: u32) {
        require!(
            self.operational.is_halted(),
            "EHCI 1.0 §2.3.4",
            "FRINDEX was written while the controller runs"
        );
        require!(
            value >> 14 == 0,
            "EHCI 1.0 §2.3.4",
            "FRINDEX = {value:#x}: reserved bits are written as zero"
        );
        self.operational.index = value;
    }

    pub(super) fn write_segment(&mut self, value: u32) {
        require!(
            self.traits.addresses_64,
            "EHCI 1.0 §2.3.5",
            "CTRLDSSEGMENT was written, which a controller of 32 bits does not have"
        );
        require!(
            self.operational.is_halted(),
            "EHCI 1.0 §2.3.5",
            "CTRLDSSEGMENT was written while the controller runs"
        );
        self.operational.segment = value;
    }

    pub(super) fn write_periodic_base(&mut self, value: u32) {
        let enabled = self.operational.wants(List::Periodic) || self.operational.periodic;
        require!(
            !enabled || self.operational.is_halted(),
            "EHCI 1.0 §2.3.6",
            "PERIODICLISTBASE was written while the periodic schedule is on"
        );
        require!(
            value & 0xfff == 0,
            "EHCI 1.0 §2.3.6",
            "PERIODICLISTBASE = {value:#x} is not a multiple of 4096"
        );
        self.operational.periodic_base = value;
    }

    pub(super) fn write_async_address(&mut self, value: u32) {
        let enabled = self.operational.wants(List::Asynchronous) || self.operational.asynchronous;
        require!(
            !enabled || self.operational.is_halted(),
            "EHCI 1.0 §4.8",
            "ASYNCLISTADDR was written while the asynchronous schedule is on"
        );
        require!(
            value & 0x1f == 0,
            "EHCI 1.0 §2.3.7",
            "ASYNCLISTADDR = {value:#x} is not a multiple of 32"
        );
        self.operational.async_address = value;
    }

    pub(super) fn write_configured(&mut self, around: &mut Surroundings<'_>, value: u32) {
        require!(
            value & !1 == 0,
            "EHCI 1.0 §2.3.8",
            "CONFIGFLAG = {value:#x}: reserved bits are written as zero"
        );
        let configured = value == 1;
        if configured != self.operational.configured {
            self.operational.configured = configured;
            self.route_ports(around);
        }
    }

    /// What the driver stored must be visible before it tells the controller to look.
    #[expect(clippy::unused_self, reason = "reads as a check of this controller")]
    pub(super) fn check_memory_released(&self, around: &Surroundings<'_>, what: &str) {
        require!(
            !around.memory.has_unreleased_stores(),
            "Policy: release before the register",
            "{what} was written while stores to coherent memory may still be under way"
        );
    }
}
