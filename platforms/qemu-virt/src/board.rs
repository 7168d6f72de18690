//! The board: its console, its interrupts, its power.

use core::sync::atomic::{AtomicU32, Ordering};

use board_common::aarch64::{Start, entry_level, interrupts, timer};
use board_common::attention::Served;
use board_common::board::Board;
use board_common::demo::options::Mode;
use board_common::gic::{Acknowledged, Gic, Messages};
use board_common::power::Reason;
use board_common::region::Region;
use board_common::uart::pl011::Pl011;
use board_common::{board, println};
use smccc::{Hvc, Smc, psci};

use crate::host;
use crate::memory_map;

const GIC_DISTRIBUTOR: Region = Region::new(0x0800_0000, 0x1_0000);
const GIC_CPU_INTERFACE: Region = Region::new(0x0801_0000, 0x1_0000);
const GIC_MESSAGES: Region = Region::new(0x0802_0000, 0x1000);
const UART: Region = Region::new(memory_map::UART, 0x1000);

// SAFETY: the machine has a PL011 there, and it is in `DEVICES`.
const CONSOLE: Pl011 = unsafe { Pl011::new(UART.start) };
// SAFETY: the machine has a GICv2 there (`gic-version=2`), and both are in `DEVICES`.
const GIC: Gic = unsafe { Gic::new(GIC_DISTRIBUTOR.start, GIC_CPU_INTERFACE.start) };

// SAFETY: the machine has a GICv2m frame there beside its GICv2, and it is in `DEVICES`.
const MESSAGES: Messages = unsafe { Messages::new(GIC_MESSAGES.start) };

/// Timer interrupts taken.
static TICKS: AtomicU32 = AtomicU32::new(0);

/// The timer has called.
#[cold]
#[inline(never)]
fn tick(interrupt: Acknowledged) {
    timer::disarm();
    TICKS.fetch_add(1, Ordering::Relaxed);
    GIC.end(interrupt);
}

/// Nobody quietens an interrupt: it must not come again.
#[cold]
#[inline(never)]
fn silence(interrupt: Acknowledged) {
    GIC.disable(interrupt.id());
    GIC.end(interrupt);
}

struct QemuVirt;

board!(QemuVirt);

impl Board for QemuVirt {
    const NAME: &'static str = "qemu-virt";
    const DEVICES: &'static [Region] = &[GIC_DISTRIBUTOR, GIC_CPU_INTERFACE, GIC_MESSAGES, UART];
    const DEVICE_TREE: Option<usize> = Some(memory_map::RAM_BASE);

    fn write_console(bytes: &[u8]) {
        CONSOLE.write(bytes);
    }

    fn read_console() -> Option<u8> {
        CONSOLE.read()
    }

    fn interrupt() {
        // One at a time: what else is pending interrupts again.
        let Some(interrupt) = GIC.acknowledge() else {
            return;
        };
        if interrupt.id() == timer::INTERRUPT {
            return tick(interrupt);
        }
        if host::ATTENTION.serve(interrupt.id()) == Served::Never {
            return silence(interrupt);
        }
        GIC.end(interrupt);
    }

    fn stop_controllers() {
        host::BRAKES.pull(timer::microseconds);
    }

    fn power_off() {
        // The machine's firmware is QEMU itself: it listens to SMC where there is an EL2
        // (`virtualization=on`), else to HVC. An image that entered at EL2 knows which.
        let result = if entry_level() == 2 {
            psci::system_off::<Smc>()
        } else {
            psci::system_off::<Hvc>()
        };
        if result.is_err() {
            println!("PSCI SYSTEM_OFF was refused.");
        }
    }

    fn main(start: Start) -> Result<(), Reason> {
        GIC.set_up();
        GIC.enable(timer::INTERRUPT);
        interrupts::unmask();
        for ram in start.device_tree.memory() {
            println!("RAM {:#x}..{:#x}", ram.start, ram.end());
        }
        let options = host::OPTIONS.changed_by(start.device_tree.command_line())?;
        match options.mode {
            Mode::Hello => take_a_timer_interrupt(),
            Mode::Fault => fault(),
            _ => host::run(start, &options, GIC, MESSAGES),
        }
    }
}

/// Sleeps for 10 ms and sees that the timer woke it.
fn take_a_timer_interrupt() -> Result<(), Reason> {
    const SLEEP: u64 = 10_000;
    let start = timer::microseconds();
    interrupts::sleep_unless(|| false, start + SLEEP);
    let slept = timer::microseconds() - start;
    println!("timer: asked for {SLEEP} us of sleep, got {slept} us");
    if TICKS.load(Ordering::Relaxed) == 1 && slept >= SLEEP {
        Ok(())
    } else {
        Err("the timer did not interrupt".into())
    }
}

/// Reads where nothing is mapped, to show the report.
fn fault() -> Result<(), Reason> {
    let nowhere = 0x1000 as *const u32;
    // SAFETY: not sound for the language, and on purpose: the MMU maps nothing there, so that the
    // core reports a data abort and never comes back.
    let value = unsafe { nowhere.read_volatile() };
    Err(Reason::new(format_args!(
        "read {value:#x} from an unmapped address"
    )))
}
