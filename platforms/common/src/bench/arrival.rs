//! When what was reached on the way from the start of the host to the first block of a disk.
//!
//! Seen from outside, between two polls: the stack has no clock of its own.

use rootport::block::queue::DiskId;
use rootport::block::{BlockDevice, Lba};
use rootport::time::{Duration, Instant};
use rootport::usb::{ControllerState, DeviceState, Driver, PortState};
use rootport::{Host, Platform};

use crate::power::Reason;
use crate::println;

/// How long a disk may take to come. Policy: a slow one spins up.
const LIMIT: Duration = Duration::from_secs(30);

/// What is reached, one after the other, before the first block is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Milestone {
    /// A controller runs.
    Running,
    /// Something is on a port.
    Connected,
    /// It is stable, and its enumeration has begun.
    Enumerating,
    /// Its descriptors are known.
    Described,
    /// It is configured.
    Configured,
    /// It is a disk and ready.
    Ready,
    /// A block was read.
    Read,
}

const MILESTONES: [(Milestone, &str); 7] = [
    (Milestone::Running, "running"),
    (Milestone::Connected, "connected"),
    (Milestone::Enumerating, "enumerating"),
    (Milestone::Described, "described"),
    (Milestone::Configured, "configured"),
    (Milestone::Ready, "ready"),
    (Milestone::Read, "read"),
];

impl Milestone {
    fn is_reached<P: Platform, C: Driver>(self, host: &Host<'_, P, C>) -> bool {
        let bus = host.bus();
        match self {
            Self::Running => bus
                .controllers()
                .any(|(_, state, _)| state == ControllerState::Running),
            Self::Connected => bus.ports().any(|port| port.state() != PortState::Empty),
            Self::Enumerating => bus.ports().any(|port| {
                matches!(
                    port.state(),
                    PortState::Enumerating | PortState::Occupied(_)
                )
            }),
            Self::Described => bus
                .devices()
                .any(|device| device.state != DeviceState::Enumerating),
            Self::Configured => bus
                .devices()
                .any(|device| device.state == DeviceState::Configured),
            Self::Ready => host.first_disk().is_ok(),
            Self::Read => false,
        }
    }
}

/// When each milestone was seen, and the disk that was found.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    disk: DiskId,
    start: Instant,
    seen: [Instant; MILESTONES.len()],
}

impl Arrival {
    /// Starts the host and watches it until the first block of its first disk is in `block`, whose
    /// length is that of the largest block there is.
    ///
    /// # Errors
    ///
    /// Nothing came in time, or the disk cannot be read.
    pub fn watch<P: Platform, C: Driver>(
        host: &mut Host<'_, P, C>,
        block: &mut [u8],
    ) -> Result<Self, Reason> {
        let start = host.platform().now();
        let mut seen = [Instant::NEVER; MILESTONES.len()];
        let mut next = 0;
        host.start();
        let came = host.poll_until(LIMIT, |host| {
            while let Some((milestone, _)) = MILESTONES.get(next)
                && milestone.is_reached(host)
            {
                seen[next] = host.platform().now();
                next += 1;
            }
            host.first_disk().is_ok()
        });
        if !came {
            return Err("no disk came in time".into());
        }
        let told = |error| Reason::new(format_args!("the first disk: {error}"));
        let disk = host.first_disk().map_err(told)?;
        let length = host.geometry(disk).map_err(told)?.block_bytes as usize;
        let block = block
            .get_mut(..length)
            .ok_or("a block of unheard-of length")?;
        host.disk(disk).read(Lba(0), block).map_err(told)?;
        seen[MILESTONES.len() - 1] = host.platform().now();
        Ok(Self { disk, start, seen })
    }

    /// The disk.
    #[must_use]
    pub const fn disk(&self) -> DiskId {
        self.disk
    }

    /// Prints a marker line for each milestone.
    pub fn print(&self) {
        for ((_, name), seen) in MILESTONES.iter().zip(&self.seen) {
            let microseconds = seen.since(self.start).as_micros();
            println!("@reached what={name} microseconds={microseconds}");
        }
    }
}
