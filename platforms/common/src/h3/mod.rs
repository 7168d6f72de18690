//! What the boards with Allwinner's H3 or H2+ share: everything but their name, their RAM, and what
//! switches the power of their sockets.
//!
//! A board crate implements [`H3Board`] and hands `H3<…>` to [`board!`](crate::board!).

mod host;
mod memory_map;

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};

pub use rootport::soc::allwinner::{Bank, Pin, Port, Vbus};

use crate::attention::Served;
use crate::board::{Board, Ram};
use crate::cpu::{Start, interrupts, timer};
use crate::demo::options::{Mode, Options, Placement};
use crate::gic::Gic;
use crate::power::Reason;
use crate::println;
use crate::region::Region;
use crate::uart::ns16550::Ns16550;

/// Registers that are mapped before `main`: console, clocks and pins of both domains, interrupt
/// controller, USB.
const DEVICES: &[Region] = &[
    Region::new(memory_map::UART, 0x1000),
    Region::new(0x01c2_0000, 0x1000),
    Region::new(0x01f0_1000, 0x2000),
    Region::new(GIC_DISTRIBUTOR, 0x3000),
    Region::new(0x01c1_9000, 0x5000),
];
/// First address of RAM.
const RAM_BASE: usize = 0x4000_0000;
const GIC_DISTRIBUTOR: usize = 0x01c8_1000;
const GIC_CPU_INTERFACE: usize = 0x01c8_2000;

// SAFETY: the chip has such a UART there, and it is in `DEVICES`.
const CONSOLE: Ns16550 = unsafe { Ns16550::new(memory_map::UART) };
// SAFETY: the chip has a GIC-400 there, and both are in `DEVICES`.
const GIC: Gic = unsafe { Gic::new(GIC_DISTRIBUTOR, GIC_CPU_INTERFACE) };

/// The chip addresses at most 2 GiB (H3 Datasheet 1.2 §4.1).
const RAM_SPACE: Region = Region::new(RAM_BASE, 2 << 30);

/// Timer interrupts taken.
static TICKS: AtomicU32 = AtomicU32::new(0);

/// What a board with this chip must say about itself.
pub trait H3Board {
    /// See [`Board::NAME`].
    const NAME: &'static str;

    /// Bytes of RAM that every board of the kind has.
    const LEAST_RAM: usize;

    /// The USB ports that are used.
    const PORTS: &'static [Port];
}

/// A [`Board`] of an [`H3Board`].
#[derive(Debug)]
pub struct H3<B>(PhantomData<B>);

impl<B: H3Board> Board for H3<B> {
    const NAME: &'static str = B::NAME;
    const DEVICES: &'static [Region] = DEVICES;
    const RAM: Option<Ram> = Some(Ram {
        least: Region::new(RAM_BASE, B::LEAST_RAM),
        space: RAM_SPACE,
    });

    fn write_console(bytes: &[u8]) {
        CONSOLE.write(bytes);
    }

    fn read_console() -> Option<u8> {
        CONSOLE.read()
    }

    fn interrupt() {
        // One at a time: what else is pending interrupts again.
        if let Some(interrupt) = GIC.acknowledge() {
            if timer::INTERRUPTS.contains(&interrupt.id()) {
                timer::disarm();
                TICKS.fetch_add(1, Ordering::Relaxed);
            } else if host::ATTENTION.serve(interrupt.id()) == Served::Never {
                // Nobody quietens it: it must not come again.
                GIC.disable(interrupt.id());
            }
            GIC.end(interrupt);
        }
    }

    /// These boards have no switch: their regulators are always on.
    fn stop_controllers() {
        host::BRAKES.pull(timer::microseconds);
    }

    fn power_off() {}

    fn main(start: Start) -> Result<(), Reason> {
        GIC.set_up();
        for id in timer::INTERRUPTS {
            GIC.enable(id);
        }
        interrupts::unmask();
        for ram in &start.ram {
            println!("RAM {:#x}..{:#x}", ram.start, ram.end());
        }
        let options = Options::parse(start.command_line())?;
        match options.mode {
            Mode::Hello => take_a_timer_interrupt(),
            Mode::Fault => fault(),
            _ if options.buffers == Placement::High => {
                Err("this board has no RAM above 4 GiB".into())
            }
            _ => host::run(&start, B::PORTS, &options, GIC),
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
