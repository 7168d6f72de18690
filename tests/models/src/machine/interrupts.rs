//! Interrupts as a CPU takes them: at any register access, look at the clock, or wait.
//!
//! A test hands in what its interrupt handler does, usually the interrupt half of a driver. It is
//! called as soon as a controller's line is asserted or a message has come, on top of whatever the
//! driver is at, even between the two halves of a 64-bit register; but never on top of itself, as a
//! CPU masks interrupts in a handler.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Machine;

/// What runs when a controller interrupts.
type Handler = Box<dyn FnMut() + Send>;

/// A handler that does not quieten its line runs for ever on hardware.
const STORM: u32 = 1_000;

/// The interrupt table of a machine.
#[derive(Default)]
pub(super) struct Interrupts {
    table: Mutex<Vec<Entry>>,
    in_handler: AtomicBool,
}

struct Entry {
    controller: usize,
    handler: Handler,
    /// Interrupts of the controller that were seen.
    taken: u64,
}

impl Machine {
    /// From now on `handler` is called when a controller interrupts.
    pub fn on_interrupt(&self, controller: usize, handler: impl FnMut() + Send + 'static) {
        let taken = self.statistics(controller).interrupts;
        let mut table = self
            .interrupts
            .table
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        table.push(Entry {
            controller,
            handler: Box::new(handler),
            taken,
        });
    }

    /// Calls the handlers of all controllers that interrupt, until all are quiet.
    ///
    /// # Panics
    /// If a line stays asserted whatever its handler does.
    pub(super) fn take_interrupts(&self) {
        if self.interrupts.in_handler.swap(true, Ordering::AcqRel) {
            return;
        }
        let _masked = Masked(&self.interrupts.in_handler);
        let mut table = self
            .interrupts
            .table
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for entry in table.iter_mut() {
            let mut rounds = 0;
            while self.interrupts_again(entry) {
                (entry.handler)();
                rounds += 1;
                assert!(
                    rounds < STORM,
                    "controller {} interrupts for ever: its handler does not clear the level",
                    entry.controller
                );
            }
        }
    }

    fn interrupts_again(&self, entry: &mut Entry) -> bool {
        let world = self.world();
        let Some(seat) = world.seats.get(entry.controller).filter(|_| !world.broken) else {
            return false;
        };
        let total = seat.controller.interrupts();
        let new = std::mem::replace(&mut entry.taken, total) != total;
        new || seat.controller.interrupt_line()
    }
}

/// Interrupts are masked as long as it lives.
struct Masked<'m>(&'m AtomicBool);

impl Drop for Masked<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
