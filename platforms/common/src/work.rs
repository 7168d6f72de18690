//! What a board does with its controllers: the host that is made of them, and what it is made for.
//!
//! Who calls it: a board's `main`, when it has made a driver for each controller. Here is what does not
//! depend on the board: the stack on its memory, and the demo or the measurement on the stack.

use core::ptr::NonNull;

use heapless::Vec;
use rootport::Host;
use rootport::dma::{BusAddress, CoherentRegion};
use rootport::host::Controller;
use rootport::mmio::MmioWindow;
use rootport::policy::{Policy, Queueing};
use rootport::stack::Storage;

use crate::brakes::CutDma;
use crate::console;
use crate::cpu::timer;
use crate::demo::buffers::Buffers;
use crate::demo::options::{Mode, Options, Waiting};
use crate::demo::session::{self, Tools};
use crate::machine::Machine;
use crate::power::Reason;
use crate::region::Region;
use crate::wake;

/// The driver of any controller of a board.
pub type Driver = Controller<'static, MmioWindow>;

/// When Bulk-Only data and status are queued, where the command line does not say. Policy: one interrupt
/// a request. A device that cannot take it so gets the status late by a quirk.
const QUEUEING: Queueing = Queueing::Eager;

/// What a board brings, for at most `N` controllers.
#[derive(Debug)]
pub struct Parts<'s, C, const N: usize> {
    /// A driver for each controller.
    pub drivers: Vec<Driver, N>,
    /// The machine; its controllers are in the order of `drivers`.
    pub machine: Machine<C, N>,
    /// The stack's tables.
    pub storage: Storage<'s, Driver>,
    /// Quirks of devices, in Linux's syntax.
    pub quirks: &'s str,
}

/// Makes the host and does what the options ask for; `buffers` makes the demo's.
///
/// # Errors
///
/// The first thing that failed.
///
/// # Safety
///
/// Entry has mapped `dma_pool` uncached after its lines were cleaned out of the caches, and nothing
/// else uses it; devices use the processor's addresses.
pub unsafe fn run<C: CutDma, const N: usize>(
    parts: Parts<'_, C, N>,
    dma_pool: Region,
    options: &Options,
    buffers: impl FnOnce() -> Result<Buffers<'static>, Reason>,
) -> Result<(), Reason> {
    let first = NonNull::new(dma_pool.start as *mut u8).ok_or("no DMA pool")?;
    let bus = BusAddress::new(dma_pool.start as u64);
    // SAFETY: as the caller promises.
    let region = unsafe { CoherentRegion::new(first, bus, dma_pool.length) };
    if options.waiting == Waiting::Dozing {
        wake::doze_between_polls();
    }
    let mut host = Host::new(parts.machine, region, parts.storage);
    host.set_policy(Policy {
        queueing: options.queueing.unwrap_or(QUEUEING),
        depth: options.depth.unwrap_or(Policy::DEFAULT.depth),
        ..Policy::DEFAULT
    });
    host.set_quirks(parts.quirks);
    for driver in parts.drivers {
        host.add_controller(driver)
            .map_err(|error| Reason::new(format_args!("adding a controller: {error}")))?;
    }
    if matches!(options.mode, Mode::Bench | Mode::Spread) {
        return measure(&mut host, options);
    }
    let mut tools = Tools {
        buffers: buffers()?,
        clock: timer::microseconds,
        key: || console::read_byte().is_some(),
    };
    session::run(host, options, &mut tools)
}

#[cfg(feature = "bench")]
fn measure<C: CutDma, const N: usize>(
    host: &mut Host<'_, Machine<C, N>, Driver>,
    options: &Options,
) -> Result<(), Reason> {
    use crate::bench::{self, memory::Memory, meter::Meter};
    use crate::cpu::counters;
    counters::start_counting();
    let meter = Meter {
        instructions: counters::instructions,
        ticks: counters::ticks,
        waits: wake::waits,
    };
    let tools = bench::Tools {
        meter,
        memory: Memory::take().ok_or("the buffers are taken once")?,
        rounds: options.rounds,
        only: options.only,
    };
    match options.mode {
        Mode::Spread => bench::spread::run(host, tools, options.disks),
        _ => bench::run(host, tools),
    }
}

#[cfg(not(feature = "bench"))]
fn measure<C, const N: usize>(
    _host: &mut Host<'_, Machine<C, N>, Driver>,
    _options: &Options,
) -> Result<(), Reason>
where
    C: CutDma,
{
    Err("only an image with the feature bench measures".into())
}
