//! [`Host`]: all layers put together, for one or more controllers.
//!
//! The stack owns the bus, the storage functions, the units and the requests, each in a slice of
//! the caller's [`Storage`], and carries what one reports to the next. [`Host::poll`] does bounded
//! work and says when it wants to be called again; [`Disk`] is the blocking face on top,
//! [`Host::submit`] the queue face.
//!
//! Nothing here knows a protocol: what a device says is weighed in `usb`, `storage` and `scsi`.

mod attach;
mod attention;
mod bounce;
mod disk;
mod dispatch;
mod events;
mod fallback;
mod holders;
mod identity;
mod lines;
mod neighbours;
mod rails;
mod recover;
mod report;
mod requests;
mod restart;
mod schedule;
mod shutdown;
mod smart;
mod tables;
mod unheard;
mod unwinding;
mod writes;

use crate::block::BlockError;
use crate::block::line::Line;
use crate::block::queue::{HolderEntry, RequestSlot, RequestState};
use crate::dma::{CoherentRegion, DmaBuffer, Pool, PoolRecord, PoolUsage};
use crate::host::{Controller, TransferEnd};
use crate::platform::{ControllerId, Platform};
use crate::policy::Policy;
use crate::scsi::transport::TransportError;
use crate::scsi::unit::UnitEntry;
use crate::storage::fallback::Fallback;
use crate::storage::function::Function;
use crate::storage::ladder::Ladder;
use crate::storage::quirks::Overrides;
use crate::storage::uas::CommandSlot;
use crate::storage::uas::transport::Tools;
use crate::storage::usage::Usage;
use crate::time::{Duration, Instant};
use crate::usb::bus::countable;
use crate::usb::{Bus, BusStorage, ControllerSlot, DeviceEntry, Driver, PortEntry, Turn, UsbError};
pub use disk::Disk;
pub use events::HostEvent;
pub use identity::StableName;
use rails::Rails;
use recover::Home;
pub use report::{DiskInfo, DiskState, UasInfo};
use requests::Backlog;
pub use shutdown::{Leaving, Parting};
pub use smart::SmartError;
pub use tables::Tables;

/// How many things one [`Host::poll`] takes at most. Policy: more than any burst of completions
/// that the request table allows, and an end to what a mad controller can keep the CPU busy with.
const POLL_BUDGET: usize = 256;

/// The memory that a host works with, from its caller: a slice for each table. Longer slices let
/// more things be there at the same time, up to 255 of each; a full table is a typed error on what did
/// not fit.
#[derive(Debug)]
pub struct Storage<'s, C> {
    /// One for each controller.
    pub controllers: &'s mut [ControllerSlot<C>],
    /// One for each root port of all controllers.
    pub ports: &'s mut [PortEntry],
    /// One for each device.
    pub devices: &'s mut [DeviceEntry],
    /// One for each storage interface.
    pub functions: &'s mut [FunctionSlot],
    /// One for each logical unit.
    pub units: &'s mut [UnitEntry],
    /// One for each request in flight.
    pub requests: &'s mut [RequestSlot],
    /// One for each command in flight on a UAS device. A device keeps as many in a row as it can use
    /// ([`Policy::depth`] at most) while it is there, but leaves two to those that come later, or half
    /// where fewer than four are left: so with two or more a second device always fits, one command at a
    /// time if need be. For `n` devices at their full depth, `n` times that and two more. A device that
    /// finds none left is used over Bulk-Only, or not at all if it has no other way
    /// ([`Table::Commands`](crate::usb::Table)).
    pub commands: &'s mut [CommandSlot],
    /// One for each holder of a disk beyond its first: see [`Host::add_holder`].
    pub holders: &'s mut [HolderEntry],
    /// One for each controller: how UAS has fared on it, where
    /// [`UasFallback::UntilRestart`](crate::policy::UasFallback::UntilRestart) is the policy. Without, it
    /// is remembered until the device is pulled.
    pub fallbacks: &'s mut [Fallback],
    /// One for each piece of the pool that is held at the same time: about 8 for a controller and 8
    /// for each disk.
    pub pool: &'s mut [PoolRecord],
}

/// A storage function, and what recovery must know of it.
#[derive(Debug)]
pub struct FunctionSlot {
    function: Function,
    ladder: Ladder,
    /// Where its device is plugged in.
    home: Option<Home>,
    /// Its device is being reset, and must be back by then.
    absent_until: Option<Instant>,
    /// What requests end with when the device has gone.
    error: BlockError,
    /// What its device was reset for last.
    trouble: TransportError,
    /// How its device is used.
    usage: Option<Usage>,
    /// What went wrong while it spoke UAS, as far as that is the device's own.
    fallback: Fallback,
    /// It could be used over Bulk-Only.
    has_bulk_only: bool,
    /// Its controller may reach its memory for ever: its requests have ended without it, and their places
    /// may be others' by now.
    is_disowned: bool,
}

impl FunctionSlot {
    /// An unused slot.
    pub const EMPTY: Self = Self {
        function: Function::EMPTY,
        ladder: Ladder::DOWN,
        home: None,
        absent_until: None,
        error: BlockError::Disconnected,
        trouble: TransportError::Timeout,
        usage: None,
        fallback: Fallback::NONE,
        has_bulk_only: false,
        is_disowned: false,
    };
}

/// A USB host: its controllers, devices and disks.
///
/// In the order of use:
///
/// | what | how |
/// |---|---|
/// | make it | [`Host::new`]; then [`Host::set_policy`], [`Host::set_quirks`], [`Host::set_staging`], where wanted |
/// | give it controllers | [`Host::add_controller`] for each, then [`Host::start`] |
/// | keep it going | [`Host::poll`], or [`Host::poll_until`], which waits too |
/// | see what is there | [`Host::disks`], [`Host::first_disk`], [`Host::take_event`], [`Host::bus`] |
/// | use a disk, blocking | [`Host::disk`] |
/// | use disks, several requests at a time | [`Host::submit`], [`Host::take_completion`] |
/// | leave | [`Host::shutdown`], then [`Host::into_parts`] |
///
/// `docs/porting.md` has each step as code.
#[derive(Debug)]
pub struct Host<'s, P: Platform, C = Controller<'s, <P as Platform>::Bus>> {
    platform: P,
    bus: Bus<'s, C>,
    functions: &'s mut [FunctionSlot],
    units: &'s mut [UnitEntry],
    requests: &'s mut [RequestSlot],
    commands: &'s mut [CommandSlot],
    holders: &'s mut [HolderEntry],
    /// By controller.
    fallbacks: &'s mut [Fallback],
    policy: Policy,
    overrides: Overrides<'s>,
    staging: Option<DmaBuffer>,
    /// Numbers requests in the order of their submission.
    sequence: u32,
    backlog: Backlog,
    /// Places of the table that no request has: the one that was freed last is taken first.
    free: Line,
    /// Requests of the queue face that have ended.
    ended: Line,
    /// How many requests stand in the lines of their disks: they want a command, and have none yet.
    hungry: usize,
    /// Some unit may want a command for its bring-up.
    bring_ups: bool,
    rails: Rails,
    /// When functions and units must be looked at.
    next_timer: Instant,
}

impl<'s, P: Platform, C: Driver> Host<'s, P, C> {
    /// A host without controllers.
    ///
    /// `region` becomes the coherent pool; [`Host::pool_usage`] says how much of it is used.
    pub fn new(platform: P, region: CoherentRegion, storage: Storage<'s, C>) -> Self {
        let Storage {
            controllers,
            ports,
            devices,
            functions,
            units,
            requests,
            commands,
            holders,
            fallbacks,
            pool,
        } = storage;
        let requests = countable(requests);
        let free = Line::of(requests, |slot| slot.state == RequestState::Free);
        Self {
            platform,
            bus: Bus::new(
                BusStorage {
                    controllers,
                    ports,
                    devices,
                },
                Pool::new(region, pool),
            ),
            functions: countable(functions),
            units: countable(units),
            requests,
            commands,
            holders: countable(holders),
            fallbacks,
            policy: Policy::DEFAULT,
            overrides: Overrides::NONE,
            staging: None,
            sequence: 0,
            backlog: Backlog::NONE,
            free,
            ended: Line::EMPTY,
            hungry: 0,
            bring_ups: false,
            rails: Rails::ON,
            next_timer: Instant::NEVER,
        }
    }

    /// Replaces the policy. Devices that are there already keep what they were opened with.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// Overrides the built-in quirks of storage devices by a string in Linux's syntax,
    /// `VID:PID:letters[,VID:PID:letters...]`, from wherever it comes: a boot argument
    /// (`usb-storage.quirks=`), a U-Boot variable. For devices that are described from now on.
    ///
    /// Bad entries are left out alone and told of in the log, with their positions; for more, ask
    /// [`Overrides::problems`] before.
    pub fn set_quirks(&mut self, text: &'s str) {
        self.overrides = Overrides::new(text);
        for problem in self.overrides.problems() {
            self.platform.log(format_args!("usb: {problem}"));
        }
    }

    /// Gives the blocking face memory of the stack's own, for controllers whose DMA the platform
    /// cannot cut: the caller's buffers are copied through it. A multiple of 4096 bytes is best.
    pub fn set_staging(&mut self, buffer: DmaBuffer) {
        self.staging = Some(buffer);
    }

    /// Adds a controller, whose driver was made with the next free number: 0 for the first, then 1.
    ///
    /// # Errors
    ///
    /// [`UsbError::TableFull`] says which slice of the storage is too short;
    /// [`UsbError::WrongNumber`] if the driver was not made for the next free place, the first being 0.
    pub fn add_controller(&mut self, driver: C) -> Result<ControllerId, UsbError> {
        self.bus.add(driver)
    }

    /// Begins to start the controllers. What is plugged in shows up as [`Host::poll`] is called.
    pub fn start(&mut self) {
        self.bus.start(self.platform.now());
    }

    /// Does what is due, and returns when it wants to be called again at the latest, unless an
    /// interrupt comes before.
    #[inline]
    pub fn poll(&mut self) -> Instant {
        let (_, wake) = self.look();
        wake
    }

    /// Does what is due, and says whether anything was, and when it wants to be called again.
    #[inline]
    fn look(&mut self) -> (bool, Instant) {
        let now = self.platform.now();
        if now < self.next_timer && !self.bus.is_due(now) {
            return (false, self.next_wake());
        }
        (true, self.work(now))
    }

    /// When it wants to be called again, as of the last poll and all that was begun since.
    #[inline]
    fn next_wake(&self) -> Instant {
        self.bus.next_wake().min(self.next_timer)
    }

    /// A poll that finds something, most likely.
    #[inline(never)]
    fn work(&mut self, now: Instant) -> Instant {
        self.kick(now);
        let mut end = TransferEnd::NONE;
        for _ in 0..POLL_BUDGET {
            match self.bus.take_end(&mut end, now) {
                Turn::End => {
                    self.transfer_ended(&end, now);
                    continue;
                }
                Turn::Over if now < self.next_timer => {
                    self.kick(now);
                    return self.next_wake();
                }
                Turn::Over | Turn::Other => {}
            }
            match self.bus.poll(now) {
                Some(event) => self.dispatch(event, now),
                // What has ended in time has not timed out, also where it could not be told of yet.
                None if now >= self.next_timer && !self.bus.is_behind(now) => self.run_timers(now),
                None => {
                    self.kick(now);
                    return self.next_wake();
                }
            }
        }
        // There is more, whatever the controllers say when they are asked next.
        self.bus.wake_at(now);
        now
    }

    /// Tells the controllers of commands that were begun and that they were not told of yet.
    #[inline]
    fn kick(&mut self, now: Instant) {
        if self.bus.take_promise() {
            self.kick_functions(now);
        }
    }

    #[inline(never)]
    fn kick_functions(&mut self, now: Instant) {
        for slot in self.functions.iter_mut() {
            slot.function.kick(&mut Tools {
                bus: &mut self.bus,
                dma: &self.platform,
                commands: self.commands,
                now,
            });
        }
    }

    /// Polls until `done` says so or `timeout` has passed; `false` if it has.
    pub fn poll_until(&mut self, timeout: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let deadline = self.platform.now() + timeout;
        loop {
            let wake = self.poll();
            if done(self) {
                return true;
            }
            if self.platform.now() >= deadline {
                return false;
            }
            self.platform.wait(wake.min(deadline));
        }
    }

    /// Ends a host, and returns the platform and the pool's memory. Use that memory for something else only
    /// if [`Host::shutdown`] or [`Host::stop`] has said that every controller stopped: one that still runs
    /// writes to it.
    #[must_use]
    pub fn into_parts(self) -> (P, CoherentRegion) {
        (self.platform, self.bus.into_pool().into_region())
    }

    /// The platform.
    pub fn platform(&self) -> &P {
        &self.platform
    }

    /// The bus, for its tree of controllers, ports and devices.
    pub fn bus(&self) -> &Bus<'s, C> {
        &self.bus
    }

    /// A controller's driver, for what is its own: its interrupt half, its counters.
    pub fn controller_mut(&mut self, controller: ControllerId) -> Option<&mut C> {
        self.bus.driver_mut(controller)
    }

    /// How much of the coherent pool is in use.
    pub fn pool_usage(&mut self) -> PoolUsage {
        self.bus.pool().usage()
    }

    fn wake_at(&mut self, time: Instant) {
        self.next_timer = self.next_timer.min(time);
    }
}
