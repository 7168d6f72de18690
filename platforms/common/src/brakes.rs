//! The brakes of the controllers, where a panic handler finds them.
//!
//! Who calls it: the board's `main` puts them in, panics and exception reports pull them all
//! ([`Brakes::pull`]) before the machine goes off: whatever comes next must not find its memory written to.
//! No lock is taken: `Once::get` is a load.

use rootport::host::EmergencyStop;
use rootport::mmio::Bus;
use rootport::time::Instant;
use spin::Once;

use crate::println;

/// The brakes of at most `N` controllers.
#[derive(Debug)]
pub struct Brakes<B, const N: usize>([Once<EmergencyStop<B>>; N]);

impl<B: Bus, const N: usize> Default for Brakes<B, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B: Bus, const N: usize> Brakes<B, N> {
    /// No brakes.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { Once::new() }; N])
    }

    /// Puts in the brake of the controller `index`. The first one stays.
    pub fn attach(&self, index: usize, brake: EmergencyStop<B>) {
        if let Some(place) = self.0.get(index) {
            place.call_once(|| brake);
        }
    }

    /// Stops all controllers, and says how many of them did. `microseconds` is the board's clock.
    pub fn pull(&self, microseconds: fn() -> u64) {
        let now = || Instant::from_micros(microseconds());
        let attached = self.0.iter().filter_map(Once::get);
        let (all, stopped) = attached.fold((0, 0), |(all, stopped), brake| {
            (all + 1, stopped + u32::from(brake.stop(now)))
        });
        if all != 0 {
            println!("@quiet controllers={all} stopped={stopped}");
        }
    }
}
