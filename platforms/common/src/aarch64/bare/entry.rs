//! From the boot loader's jump to the board's `main`.
//!
//! What holds on arrival (arm64 boot protocol): one core, at EL2 or EL1, MMU off or mapping one to
//! one, the image at its linked address, x0 the physical address of a device tree or 0.
//! `entry.s` checks the level and the address, cleans the image's memory out of the caches,
//! switches MMU and caches off, clears bss, and sets the stacks.
//!
//! Invariant: up to [`AddressSpace::enable`] memory is treated as device memory by the core. No
//! exclusive access (so no read-modify-write atomic) and no unaligned one may run there; the
//! targets that this builds for have `strict-align`.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering};

use aarch64_cpu::registers::{
    CNTHCTL_EL2, CNTVOFF_EL2, ELR_EL2, HCR_EL2, SCTLR_EL1, SPSR_EL2, Writeable,
};

use super::exceptions;
use super::mmu::CONTROL_MMU_OFF;
use crate::address_space::AddressSpace;
use crate::board;
use crate::device_tree::{self, DeviceTree};
use crate::power::{self, Reason};
use crate::println;
use crate::region::Region;

global_asm!(include_str!("entry.s"));

/// The exception level at which the boot loader entered; 0 until it is known. Plain loads and
/// stores only, so that it may be used with the MMU off.
static ENTRY_LEVEL: AtomicU64 = AtomicU64::new(0);

/// The exception level at which the boot loader entered: 1 or 2.
#[must_use]
pub fn entry_level() -> u64 {
    ENTRY_LEVEL.load(Ordering::Relaxed)
}

/// What the board's `main` starts from.
#[derive(Debug)]
pub struct Start {
    /// The address space, to map more into it.
    pub memory: AddressSpace,
    /// What the boot loader says about the machine.
    pub device_tree: DeviceTree,
    /// Memory for structures shared with devices: mapped uncached, zeroed, used by nothing else.
    pub dma_pool: Region,
}

/// Sets EL1 up as a guest of nobody and prepares the `eret` to `target`: 64-bit, nothing trapped,
/// timers and counter as at EL2, MMU and caches off. Called at EL2.
#[unsafe(no_mangle)]
extern "C" fn rootport_prepare_el1(target: u64) {
    // Whole values, not changes: the boot loader's settings are unknown. Everything that is not
    // named is 0: no trap, no second stage, no virtual host mode.
    HCR_EL2.write(HCR_EL2::RW::EL1IsAarch64);
    CNTHCTL_EL2.write(CNTHCTL_EL2::EL1PCEN::SET + CNTHCTL_EL2::EL1PCTEN::SET);
    CNTVOFF_EL2.set(0);
    SCTLR_EL1.set(CONTROL_MMU_OFF);
    SPSR_EL2.write(
        SPSR_EL2::D::Masked
            + SPSR_EL2::A::Masked
            + SPSR_EL2::I::Masked
            + SPSR_EL2::F::Masked
            + SPSR_EL2::M::EL1t,
    );
    ELR_EL2.set(target);
}

/// EL1, MMU off, on the main stack; see the module's head.
#[unsafe(no_mangle)]
extern "C" fn rootport_start(device_tree: usize, level: u64) -> ! {
    ENTRY_LEVEL.store(level, Ordering::Relaxed);
    exceptions::install();
    // SAFETY: this is the only place that takes it, and it runs once.
    let memory = unsafe { AddressSpace::take() };
    power::off(run(memory, device_tree))
}

fn run(mut memory: AddressSpace, device_tree: usize) -> Result<(), Reason> {
    let facts = board::facts();
    let tree = find_device_tree(device_tree, facts.device_tree)
        .ok_or("no device tree in x0 nor where this board keeps one")?;
    memory.map_first(facts.devices, tree)?;
    // SAFETY: the image, the stacks, the console and the device tree are mapped one to one.
    unsafe { memory.enable() };
    println!(
        "\n@boot protocol=1 board={} level={}",
        facts.name,
        entry_level()
    );
    // SAFETY: `tree` was checked for its magic and its size, is mapped, and nothing writes there.
    let device_tree = unsafe { DeviceTree::at(tree.start) }?;
    for ram in device_tree.memory() {
        memory.map_ram(ram)?;
    }
    let dma_pool = memory.take_pool();
    (facts.main)(Start {
        memory,
        device_tree,
        dma_pool,
    })
}

/// The device tree that the boot loader passed, or that lies where the board says.
fn find_device_tree(passed: usize, usual: Option<usize>) -> Option<Region> {
    // SAFETY: by the boot protocol x0 is a device tree or 0; the board vouches for its own
    // address. With the MMU off both are readable if they are RAM at all.
    [Some(passed), usual]
        .into_iter()
        .flatten()
        .find_map(|address| unsafe { device_tree::extent(address) })
}
