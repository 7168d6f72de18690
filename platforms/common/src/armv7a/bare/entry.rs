//! From the boot loader's jump to the board's `main`.
//!
//! What holds on arrival: one core, in supervisor or Hyp mode, MMU off or mapping one to one, the
//! image at its linked address, r0 to r2 as in [`handoff`]. `entry.s` checks mode and address,
//! cleans the caches, switches MMU and caches off, clears bss, goes down to supervisor mode, and
//! sets the stacks.
//!
//! U-Boot's `go` cleans no cache before it jumps. What it loaded by the processor may still be dirty in
//! the data cache, where instructions are not fetched from. `entry.s` lies at the image's start, and
//! has left a cache of 32 KiB by the time the rest of the image was written; it cleans what is left
//! before it jumps there.
//!
//! Invariant: up to [`AddressSpace::enable`] memory is treated as strongly-ordered by the core. No
//! exclusive access (so no read-modify-write atomic) and no unaligned one may run there; the target
//! that this builds for has `strict-align`.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, Ordering};

use aarch32_cpu::register::{Actlr, CntVoff, Cnthctl, Hcptr, Hcr, Sctlr, SysRegRead, SysRegWrite};
use heapless::Vec;

use super::exceptions;
use super::mmu::CONTROL_MMU_OFF;
use crate::address_space::AddressSpace;
use crate::armv7a::handoff::{self, Line};
use crate::board::{self, Ram};
use crate::device_tree::{self, DeviceTree};
use crate::power::{self, Reason};
use crate::println;
use crate::region::Region;

global_asm!(include_str!("entry.s"));

/// Policy: pieces of RAM that are told apart.
const RAM_PIECES: usize = 8;
/// The mode bits of CPSR, and Hyp mode (DDI 0406C table B1-1).
const MODE: u32 = 0x1f;
const HYP: u32 = 0x1a;
/// Where `entry.s` puts SCTLR or HSCTLR: M and C are its bits 0 and 2 (DDI 0406C §B4.1.130).
const CONTROL_SHIFT: u32 = 8;
const MMU_AND_CACHE: u32 = 1 << 0 | 1 << 2;
/// HCPTR: the bits that are 1 where there is no such coprocessor, and no trap (DDI 0406C §B4.1.61).
const NO_TRAPS: u32 = 0x33ff;
/// ACTLR of Cortex-A7: take part in coherency, to be set before the caches are on (DDI 0464F §4.3.31).
const SMP: u32 = 1 << 6;

/// How the boot loader entered, as `entry.s` has it: its mode and its control register; 0 until it is known. Plain
/// loads and stores only, so that it may be used with the MMU off.
static ENTRY: AtomicU32 = AtomicU32::new(0);

/// The mode in which the boot loader entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryMode {
    /// Hyp mode: the non-secure world.
    Hyp,
    /// Supervisor mode, in either world.
    Supervisor,
}

impl EntryMode {
    /// The word for it on the console.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hyp => "hyp",
            Self::Supervisor => "svc",
        }
    }
}

/// The mode in which the boot loader entered.
#[must_use]
pub fn entry_mode() -> EntryMode {
    match ENTRY.load(Ordering::Relaxed) & MODE {
        HYP => EntryMode::Hyp,
        _ => EntryMode::Supervisor,
    }
}

/// Whether the boot loader entered with MMU and data cache on, as a word for the console.
fn entry_caches() -> &'static str {
    let control = ENTRY.load(Ordering::Relaxed) >> CONTROL_SHIFT;
    match control & MMU_AND_CACHE {
        MMU_AND_CACHE => "on",
        _ => "off",
    }
}

/// What the board's `main` starts from.
#[derive(Debug)]
pub struct Start {
    /// The address space, to map more into it.
    pub memory: AddressSpace,
    /// The pieces of RAM: as the device tree has them, or else as the board has them.
    pub ram: Vec<Region, RAM_PIECES>,
    /// Memory for structures shared with devices: mapped uncached, zeroed, used by nothing else.
    pub dma_pool: Region,
    words: Line,
    device_tree: Option<DeviceTree>,
}

impl Start {
    /// The command line: the words of U-Boot's `go`, or what the device tree has.
    #[must_use]
    pub fn command_line(&self) -> &str {
        match &self.device_tree {
            Some(tree) => tree.command_line(),
            None => &self.words,
        }
    }
}

/// Sets supervisor mode up as a guest of nobody: nothing trapped, no second stage, MMU and caches
/// off. Called in Hyp mode.
#[unsafe(no_mangle)]
extern "C" fn rootport_prepare_svc() {
    // Whole values, not changes: the boot loader's settings are unknown.
    Hcr::write(Hcr::new_with_raw_value(0));
    Hcptr::write(Hcptr::new_with_raw_value(NO_TRAPS));
    let open = Cnthctl::new_with_raw_value(0);
    Cnthctl::write(open.with_pl1pcen(true).with_pl1pcten(true));
    CntVoff::write(CntVoff(0));
    Sctlr::write(Sctlr::new_with_raw_value(CONTROL_MMU_OFF));
}

/// Supervisor mode, MMU off, on the main stack; see the module's head.
#[unsafe(no_mangle)]
extern "C" fn rootport_start(first: usize, second: usize, third: usize, entry: u32) -> ! {
    ENTRY.store(entry, Ordering::Relaxed);
    exceptions::install();
    join_coherency();
    // SAFETY: this is the only place that takes it, and it runs once.
    let memory = unsafe { AddressSpace::take() };
    power::off(run(memory, [first, second, third]))
}

fn run(mut memory: AddressSpace, registers: [usize; 3]) -> Result<(), Reason> {
    let facts = board::facts();
    let words = words(facts.ram, registers);
    let tree = match words {
        Some(_) => None,
        None => find_device_tree(facts.ram, registers[2]),
    };
    memory.map_first(facts.devices, tree.unwrap_or(Region::new(0, 0)))?;
    // SAFETY: the image, the stacks, the console and the device tree are mapped one to one.
    unsafe { memory.enable() };
    let level = entry_mode().word();
    let caches = entry_caches();
    println!(
        "\n@boot protocol=1 board={} level={level} caches={caches}",
        facts.name
    );
    let device_tree = match tree {
        // SAFETY: `tree` was checked for its magic and its size, is mapped, and nothing writes there.
        Some(tree) => Some(unsafe { DeviceTree::at(tree.start) }?),
        None => None,
    };
    let ram = ram(device_tree, facts.ram);
    for &piece in &ram {
        memory.map_ram(piece)?;
    }
    let dma_pool = memory.take_pool();
    (facts.main)(Start {
        memory,
        ram,
        dma_pool,
        words: words.unwrap_or_default(),
        device_tree,
    })
}

/// The words of U-Boot's `go`, if that is how we came here.
fn words(ram: Option<Ram>, [count, first, _]: [usize; 3]) -> Option<Line> {
    // SAFETY: where RAM may be, a boot loader's pointer leads to RAM, to be read with the MMU off.
    let memory = unsafe { handoff::Ram::new(ram?.space) };
    handoff::words(&memory, count, first)
}

fn find_device_tree(ram: Option<Ram>, address: usize) -> Option<Region> {
    let head = Region::new(address, 8);
    if !ram?.space.contains(head) {
        return None;
    }
    // SAFETY: as in `words`.
    unsafe { device_tree::extent(address) }
}

fn ram(tree: Option<DeviceTree>, known: Option<Ram>) -> Vec<Region, RAM_PIECES> {
    let told: Vec<_, RAM_PIECES> = tree
        .into_iter()
        .flat_map(DeviceTree::memory)
        .filter(|piece| piece.length > 0)
        .take(RAM_PIECES)
        .collect();
    if told.is_empty() {
        known.into_iter().map(|ram| ram.least).collect()
    } else {
        told
    }
}

/// Sets the bit without which this core's caches stay out of the game. Firmware usually has; in the
/// non-secure world it may be read-only.
fn join_coherency() {
    let control = Actlr::read_raw();
    if control & SMP == 0 {
        // SAFETY: the bit has no effect while the caches are off.
        unsafe { Actlr::write_raw(control | SMP) };
    }
}
