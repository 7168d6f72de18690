//! USBCMD, USBSTS, DCBAAP and CONFIG: run, halt, reset, and what must be in place before (xHCI 1.2
//! §4.2, §5.4).

use super::checks::check_memory_released;
use super::{Death, Due, Interrupter, Traits, Xhci};
use crate::broken::require;
use crate::controller::Surroundings;

pub(super) const RUN: u32 = 1;
const RESET: u32 = 1 << 1;
pub(super) const INTERRUPTER_ENABLE: u32 = 1 << 2;
const SAVE_OR_RESTORE: u32 = 0b11 << 8;
/// RsvdP bits of USBCMD (§5.4.1): 6:4, 12, 31:17.
const COMMAND_RESERVED: u32 = 0xfffe_1070;
/// What the reserved bits of USBCMD and CONFIG read as where a test wants them odd.
const ODD_COMMAND: u32 = 1 << 12;
const ODD_CONFIG: u32 = 1 << 16;

const HALTED: u32 = 1;
pub(super) const HOST_SYSTEM_ERROR: u32 = 1 << 2;
pub(super) const EVENT_INTERRUPT: u32 = 1 << 3;
pub(super) const PORT_CHANGE: u32 = 1 << 4;
const SAVE_RESTORE_ERROR: u32 = 1 << 10;
const NOT_READY: u32 = 1 << 11;
pub(super) const CONTROLLER_ERROR: u32 = 1 << 12;
const STATUS_CLEARABLE: u32 =
    HOST_SYSTEM_ERROR | EVENT_INTERRUPT | PORT_CHANGE | SAVE_RESTORE_ERROR;
/// RsvdZ bits of USBSTS (§5.4.2): 1, 7:5, 31:13.
const STATUS_RESERVED: u32 = 0xffff_e0e2;

/// The operational registers.
#[derive(Debug)]
pub(super) struct Operational {
    command: u32,
    pub(super) status: u32,
    pub(super) notifications: u32,
    pub(super) config: u32,
    pub(super) device_contexts: u64,
    odd_command: u32,
    odd_config: u32,
}

impl Operational {
    pub(super) fn at_power_on(traits: &Traits) -> Self {
        let odd = u32::from(traits.odd_reserved_bits);
        let mut new = Self {
            command: 0,
            status: HALTED,
            notifications: 0,
            config: odd * ODD_CONFIG,
            device_contexts: 0,
            odd_command: odd * ODD_COMMAND,
            odd_config: odd * ODD_CONFIG,
        };
        if traits.not_ready_at_start != 0 {
            new.status |= NOT_READY;
        }
        if traits.running_at_start {
            new.command = RUN | INTERRUPTER_ENABLE;
            new.status &= !HALTED;
        }
        new
    }

    pub(super) fn command(&self) -> u32 {
        self.command | self.odd_command
    }

    pub(super) fn status(&self) -> u32 {
        self.status
    }

    pub(super) fn is_running(&self) -> bool {
        self.status & (HALTED | HOST_SYSTEM_ERROR | CONTROLLER_ERROR) == 0
    }

    pub(super) fn is_halted(&self) -> bool {
        self.status & HALTED != 0
    }

    pub(super) fn is_resetting(&self) -> bool {
        self.command & RESET != 0
    }

    pub(super) fn is_ready(&self) -> bool {
        self.status & NOT_READY == 0
    }

    pub(super) fn interrupts_enabled(&self) -> bool {
        self.command & INTERRUPTER_ENABLE != 0
    }

    /// MaxSlotsEn.
    pub(super) fn slots_enabled(&self) -> u8 {
        self.config as u8
    }
}

impl Xhci {
    pub(super) fn write_command(&mut self, around: &mut Surroundings<'_>, value: u32) {
        let old = self.operational.command;
        require!(
            value & COMMAND_RESERVED == self.operational.command() & COMMAND_RESERVED,
            "xHCI 1.2 §5.4.1",
            "USBCMD = {value:#x} does not preserve the reserved bits of {:#x}",
            self.operational.command()
        );
        require!(
            value & SAVE_OR_RESTORE == 0,
            "model",
            "saving and restoring state is not modelled"
        );
        if value & RESET != 0 {
            self.begin_reset(around);
            return;
        }
        self.operational.command = value & !COMMAND_RESERVED;
        match (old & RUN, value & RUN) {
            (0, RUN) => self.begin_run(around),
            (RUN, 0) => self
                .agenda
                .add(around.now + self.traits.halt_time, Due::Halted),
            _ => {}
        }
    }

    fn begin_reset(&mut self, around: &mut Surroundings<'_>) {
        require!(
            self.operational.is_halted(),
            "xHCI 1.2 §5.4.1",
            "HCRST while the controller is not halted"
        );
        self.operational.command = RESET;
        if !self.faults.reset_hangs {
            self.agenda
                .add(around.now + self.traits.reset_time, Due::ResetDone);
        }
    }

    /// HCRST has cleared: everything is at its default, and CNR is set for a while.
    pub(super) fn reset_is_done(&mut self, around: &mut Surroundings<'_>) {
        let mut new = Operational::at_power_on(&self.traits);
        new.command = 0;
        new.status = HALTED | NOT_READY;
        self.operational = new;
        self.death = None;
        self.faults.find_endpoints(&self.td_counts);
        self.pending_half = None;
        self.scratchpads.clear();
        self.commands.reset();
        self.slots.iter_mut().for_each(|slot| slot.reset());
        self.interrupters
            .iter_mut()
            .for_each(|one| *one = Interrupter::default());
        self.agenda
            .add(around.now + self.traits.not_ready_time, Due::Ready);
        *around.noticed = true;
        self.reset_ports(around);
    }

    pub(super) fn becomes_ready(&mut self, around: &mut Surroundings<'_>) {
        if !self.faults.never_ready {
            self.operational.status &= !NOT_READY;
        }
        *around.noticed = true;
    }

    fn begin_run(&mut self, around: &mut Surroundings<'_>) {
        require!(
            self.operational.is_halted(),
            "xHCI 1.2 §5.4.1",
            "Run/Stop was set before HCHalted had followed the last stop"
        );
        check_memory_released(around, "Run/Stop");
        let slots = self.operational.slots_enabled();
        require!(
            slots != 0 && slots <= self.traits.slots,
            "xHCI 1.2 §5.4.7",
            "MaxSlotsEn is {slots} of {} as the controller is started",
            self.traits.slots
        );
        require!(
            self.operational.device_contexts != 0,
            "xHCI 1.2 §4.2",
            "DCBAAP was not programmed before Run/Stop was set"
        );
        require!(
            self.commands.is_programmed(),
            "xHCI 1.2 §4.2",
            "CRCR was not programmed before Run/Stop was set"
        );
        self.check_primary_interrupter();
        self.load_scratchpads(around);
        if self.faults.never_runs {
            return;
        }
        self.operational.status &= !HALTED;
        *around.noticed = true;
        self.report_ports_at_run(around);
    }

    pub(super) fn halt(&mut self, around: &mut Surroundings<'_>) {
        if self.operational.command & RUN == 0 && !self.faults.never_halts {
            self.operational.status |= HALTED;
            self.commands.stop();
            *around.noticed = true;
        }
    }

    pub(super) fn write_status(&mut self, around: &mut Surroundings<'_>, value: u32) {
        require!(
            value & STATUS_RESERVED == 0,
            "xHCI 1.2 §5.4.2",
            "USBSTS = {value:#x}: reserved bits are written as zero"
        );
        self.operational.status &= !(value & STATUS_CLEARABLE);
        let _ = around;
    }

    pub(super) fn write_config(&mut self, value: u32) {
        require!(
            !self.operational.is_running(),
            "xHCI 1.2 §5.4.7",
            "CONFIG was written while the controller runs"
        );
        require!(
            value & 0xffff_fc00 == self.operational.odd_config,
            "xHCI 1.2 §5.4.7",
            "CONFIG = {value:#x} does not preserve the reserved bits of {:#x}",
            self.operational.config
        );
        require!(
            value & 0x300 == 0,
            "xHCI 1.2 §5.4.7",
            "U3E and CIE need capabilities that this controller does not have"
        );
        self.operational.config = value;
    }

    pub(super) fn write_device_contexts(&mut self, value: u64) {
        require!(
            !self.operational.is_running(),
            "xHCI 1.2 §5.4.6",
            "DCBAAP was written while the controller runs"
        );
        require!(
            value.is_multiple_of(64),
            "xHCI 1.2 §5.4.6",
            "DCBAAP = {value:#x} is not a multiple of 64"
        );
        self.operational.device_contexts = value;
    }

    /// The controller dies as a test has planned it.
    pub(super) fn die(&mut self, around: &mut Surroundings<'_>, death: Death) {
        self.death = Some(death);
        *around.noticed = true;
        match death {
            Death::AllOnes | Death::Silent => {}
            Death::HostSystemError => {
                self.operational.status |= HOST_SYSTEM_ERROR | HALTED;
                self.operational.command &= !RUN;
            }
            Death::ControllerError => self.operational.status |= CONTROLLER_ERROR | HALTED,
        }
    }
}
