//! The hook behind the library's stores to coherent memory.
//!
//! The driver's stores are plain stores to the PC's memory. Only the library can tell when it makes
//! one, and when it passes a release; it does so on PCs, through one function for the process. Here
//! each thread remembers the machines that were made on it, and they are told.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rootport::arch::observer::{Observation, install};

use super::world::{World, WorldGuard};

thread_local! {
    static MACHINES: RefCell<Vec<Weak<Mutex<World>>>> = const { RefCell::new(Vec::new()) };
}

/// From now on the machine is told of this thread's stores.
pub(super) fn watch(world: &Arc<Mutex<World>>) {
    install(observe);
    MACHINES.with_borrow_mut(|machines| {
        machines.retain(|machine| machine.strong_count() != 0);
        machines.push(Arc::downgrade(world));
    });
}

fn observe(observation: Observation) {
    let machines = MACHINES.with_borrow(Clone::clone);
    for world in machines.iter().filter_map(Weak::upgrade) {
        let mut world = WorldGuard {
            guard: world.lock().unwrap_or_else(PoisonError::into_inner),
        };
        match observation {
            Observation::Stored { address, length } => world.stored(address, length),
            Observation::Released => world.memory.released(),
        }
    }
}
