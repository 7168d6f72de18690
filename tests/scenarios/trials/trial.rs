//! One trial: a caller, a disk that goes wrong, and a neighbour.

use rootport::block::queue::{DiskId, Operation, RequestId};
use rootport::block::{BlockDevice, BlockError, Lba};
use rootport::policy::Policy;
use rootport::stack::{DiskInfo, DiskState, Parting};
use rootport::time::Duration;
use rootport_models::adapter::owned;
use rootport_models::device::scsi::{Sense, StatusLoss};
use rootport_models::device::{Link, SECOND, Script};
use rootport_models::machine::{Buffer, Options, Power, Sleep};
use rootport_models::random::Random;

use super::faults::Plan;
use super::ledger::{BLOCK, Ledger, content};
use crate::controller::{self, Driver};
use crate::rig::{OTHER_PORT, POOL, QUEUEINGS, Rig, disk_at, port_for};
use crate::scenarios::every_step::course::Subject;

/// Blocks of the disk: so few that they are written again and again.
pub(super) const BLOCKS: u64 = 96;

/// Blocks of the longest request.
const LONGEST: u64 = 24;

/// What a caller does in a trial.
const STEPS: u64 = 60;

/// A disk that does not come back gets its plug pulled and put in again so often. Each fault is used
/// up at last.
const REPLUGS: usize = 12;

/// A command is issued so often at most: once, and again after two resets.
const TRIES: u64 = 3;

/// Staging memory: less than the longest request.
const STAGING: usize = 16 * BLOCK;

/// A pool in which the neighbour and the disk fit, with little to spare.
const SMALL_POOL: usize = 128 << 10;

/// A request of a batch, with what it needs until it has ended.
struct Pending {
    id: RequestId,
    operation: Operation,
    number: u32,
    buffer: Buffer,
}

pub(super) struct Trial<D> {
    rig: Rig,
    port: usize,
    seed: u64,
    device: D,
    disk: Option<DiskId>,
    neighbour: DiskId,
    /// Whether the controller dies, which the neighbour notices.
    may_die: bool,
    /// Memory of the caller begins here where the controller cannot reach it.
    high: Option<u64>,
    /// What blocking calls are copied through, where the platform cannot cut the controller off.
    _staging: Option<Buffer>,
    /// What goes wrong, for a message.
    plan: String,
    /// Bytes of the pool that are held while the neighbour is alone.
    held: usize,
    ledger: Ledger,
    link: Link,
    /// What the caller did, for a message.
    course: Vec<String>,
}

impl<D: Subject> Trial<D> {
    pub(super) fn new(link: Link, seed: u64, plan: Plan, device: D) -> Self {
        let may_die = plan.controller.death.is_some();
        let wrong = format!("{}; {:?}", plan.device, plan.controller);
        let mut rig = rig(seed, plan);
        let staging = (!can_cut_dma(seed)).then(|| {
            let mut memory = rig.machine.buffer(STAGING, 0);
            rig.host.set_staging(owned(&mut memory));
            memory
        });
        // Other pipes than the subject's, so that transfers can be told apart.
        let neighbour = Script::new().pipes(0, 0x86, 0x07).build();
        let neighbour = rig.disk(OTHER_PORT, neighbour);
        rig.run(Duration::from_millis(1));
        let held = rig.pool_used();
        rig.plug(port_for(link), device.clone());
        Self {
            rig,
            port: port_for(link),
            seed,
            device,
            disk: None,
            neighbour,
            may_die,
            high: is_narrow(seed).then_some(1 << 32),
            _staging: staging,
            plan: wrong,
            held,
            ledger: Ledger::new(BLOCKS as usize),
            link,
            course: Vec::new(),
        }
    }

    pub(super) fn run(mut self, random: &mut Random) {
        for _ in 0..STEPS {
            let disk = self.disk();
            match random.below(32) {
                29 | 30 => self.brown_out(random),
                31 => self.sleep(random),
                0 => self.pull(random),
                1 => self.pull_soon(random),
                2 => self.rig.run(Duration::from_millis(random.below(3000))),
                3..=7 => self.flush(disk),
                8..=14 => self.batch(disk, random),
                15..=21 => self.read(disk, random),
                _ => self.write(disk, random),
            }
            self.check_neighbour();
            let broken = self.device.violations();
            assert!(broken.is_empty(), "{broken:?}: {}", self.describe());
        }
        match self.seed % 6 {
            5 => self.leave(random),
            _ => self.end(),
        }
    }

    /// The host stops: what it does not name as lost is on the medium.
    fn leave(mut self, random: &mut Random) {
        let disk = self.disk();
        self.write(disk, random);
        let parting = match random.below(2) {
            0 => Parting::Flush,
            _ => Parting::FlushAndStop,
        };
        if self.device.is_pulled() {
            // It has gone, which its caller sees.
            self.ledger.loss_told();
        }
        let limit = limit(Policy::DEFAULT.flush);
        let leaving = self.call(limit, |rig| {
            rig.host.shutdown(parting, Duration::from_secs(5))
        });
        self.course.push(format!("{leaving:?}"));
        assert!(leaving.quiet, "{}", self.describe());
        if leaving.unflushed.is_none() {
            let flushed = self.ledger.flushed(|lba| self.device.durable(lba));
            self.hold(flushed);
        }
        assert_eq!(self.rig.pool_used(), 0, "{}", self.describe());
        assert!(self.rig.machine.all_rails_are_on(), "{}", self.describe());
    }

    /// The disk, ready; the plug is pulled where that alone helps.
    fn disk(&mut self) -> DiskId {
        for _ in 0..REPLUGS {
            for _ in 0..600 {
                match self.ready() {
                    Some(id) => return self.at(id),
                    None if self.device.is_pulled() => break,
                    None => self.rig.run(Duration::from_millis(100)),
                }
                if self.may_die {
                    // A controller that died in silence is found out by whoever wants something of it.
                    self.check_neighbour();
                }
            }
            self.replug();
        }
        panic!("{}: it never came back", self.describe())
    }

    /// The disk, if it is ready.
    fn ready(&self) -> Option<DiskId> {
        let units = self.rig.units_at(self.port);
        let ready = |unit: &&DiskInfo| matches!(unit.state, DiskState::Ready(_));
        units.iter().find(ready).map(|unit| unit.id)
    }

    /// A disk under another id is another disk to the caller, who knows that its writes may be lost.
    fn at(&mut self, id: DiskId) -> DiskId {
        if self.disk != Some(id) {
            self.ledger.loss_told();
            self.disk = Some(id);
        }
        id
    }

    fn pull(&mut self, random: &mut Random) {
        self.course.push("pull".to_owned());
        drop(self.rig.machine.unplug(0, self.port));
        self.rig
            .run(Duration::from_millis(100 + random.below(2000)));
        self.rig.plug(self.port, self.device.clone());
        self.rig.run(Duration::from_millis(300));
    }

    /// The plug goes in the middle of what comes next.
    fn pull_soon(&mut self, random: &mut Random) {
        self.course.push("pull soon".to_owned());
        self.device.pull_at(1 + random.below(100));
    }

    /// Pulls the plug and puts it in again.
    fn replug(&mut self) {
        self.course.push("replug".to_owned());
        drop(self.rig.machine.unplug(0, self.port));
        self.rig.run(Duration::from_millis(300));
        self.device.put_back();
        self.rig.plug(self.port, self.device.clone());
    }

    /// The disk loses power behind its bridge, which may hide that for a while.
    fn brown_out(&mut self, random: &mut Random) {
        let says: &[Sense] = match random.below(3) {
            0 => &[Sense::RESET],
            1 => &[Sense::BECOMING_READY, Sense::RESET],
            _ => &[Sense::BECOMING_READY, Sense::ABORTED, Sense::RESET],
        };
        // What it says once may be lost on the wire.
        let loss = match random.below(4) {
            0 => Some(StatusLoss::Silent),
            1 => Some(StatusLoss::Damaged),
            _ => None,
        };
        self.course
            .push(format!("brown-out: {}, {loss:?}", says.len()));
        self.device.brown_out(says, loss);
    }

    /// Nobody looks at the host for longer than any deadline of a read.
    fn sleep(&mut self, random: &mut Random) {
        let seconds = 1 + random.below(90);
        self.course.push(format!("asleep for {seconds} s"));
        self.rig.machine.advance(seconds * SECOND);
    }

    fn extent(random: &mut Random) -> (u64, u64) {
        let blocks = 1 + random.below(LONGEST);
        (random.below(BLOCKS - blocks + 1), blocks)
    }

    /// Memory for so many bytes: anywhere, at any offset.
    fn buffer(&mut self, bytes: usize, offset: usize, random: &mut Random) -> Buffer {
        match &mut self.high {
            Some(next) if random.once_in(3) => {
                *next += 1 << 16;
                self.rig.machine.buffer_at(*next, bytes, offset)
            }
            _ => self.rig.machine.buffer(bytes, offset),
        }
    }

    fn read(&mut self, disk: DiskId, random: &mut Random) {
        let (lba, blocks) = Self::extent(random);
        let offset = random.below(160) as usize;
        let mut buffer = self.buffer(blocks as usize * BLOCK, offset, random);
        let result = self.call(limit(Policy::DEFAULT.read_write), |rig| {
            rig.host.disk(disk).read(Lba(lba), &mut buffer)
        });
        self.course.push(format!("read {lba}+{blocks}: {result:?}"));
        if result.is_ok() {
            let read = self.ledger.read(lba, &buffer);
            self.hold(read);
        }
    }

    fn write(&mut self, disk: DiskId, random: &mut Random) {
        let (lba, blocks) = Self::extent(random);
        let (number, offset) = (self.ledger.next(), random.below(160) as usize);
        let mut buffer = self.buffer(blocks as usize * BLOCK, offset, random);
        buffer.copy_from_slice(&contents(lba, blocks, number));
        let result = self.call(limit(Policy::DEFAULT.read_write), |rig| {
            rig.host.disk(disk).write(Lba(lba), &buffer)
        });
        self.course
            .push(format!("write {number} {lba}+{blocks}: {result:?}"));
        self.ledger.wrote(lba, blocks, number, result.is_ok());
    }

    fn flush(&mut self, disk: DiskId) {
        let limit = limit(Policy::DEFAULT.flush);
        let result = self.call(limit, |rig| rig.flush(disk));
        self.course.push(format!("flush: {result:?}"));
        match result {
            Ok(()) => {
                let flushed = self.ledger.flushed(|lba| self.device.durable(lba));
                self.hold(flushed);
            }
            Err(BlockError::WritesMayBeLost | BlockError::Disconnected) => self.ledger.loss_told(),
            Err(_) => {}
        }
    }

    /// Several requests at once, which may overlap.
    fn batch(&mut self, disk: DiskId, random: &mut Random) {
        let mut pending = Vec::new();
        for _ in 0..1 + random.below(5) {
            let (lba, blocks) = Self::extent(random);
            let mut buffer = self.buffer(blocks as usize * BLOCK, 0, random);
            let mut number = 0;
            let operation = if random.once_in(2) {
                Operation::Read(Lba(lba))
            } else {
                number = self.ledger.next();
                buffer.copy_from_slice(&contents(lba, blocks, number));
                Operation::Write(Lba(lba))
            };
            let given = Some(owned(&mut buffer));
            if let Ok(id) = self.rig.host.submit(disk, operation, given) {
                pending.push(Pending {
                    id,
                    operation,
                    number,
                    buffer,
                });
            }
        }
        if random.once_in(6) {
            // What has ended meanwhile has ended in time, however late it is seen. Over UAS without streams
            // nothing ends, and all is late: each command waits for the host to hear that the disk is ready.
            self.course.push("asleep for 30 s".to_owned());
            self.rig.machine.advance(30 * SECOND);
        }
        let mut ended = Vec::new();
        let limit = limit(Duration::from_secs(5 * 10));
        self.call(limit, |rig| {
            while ended.len() < pending.len() {
                rig.run(Duration::from_millis(1));
                while let Some(completion) = rig.host.take_completion() {
                    ended.push((completion.id, completion.result));
                }
            }
        });
        for Pending {
            id,
            operation,
            number,
            buffer,
        } in pending
        {
            let end = ended.iter().find(|(it, _)| *it == id);
            let result = end.expect("each ends once").1;
            let blocks = (buffer.len() / BLOCK) as u64;
            self.course
                .push(format!("{operation:?} {number} +{blocks}: {result:?}"));
            match operation {
                Operation::Write(Lba(lba)) => {
                    self.ledger.wrote(lba, blocks, number, result.is_ok());
                }
                Operation::Read(Lba(lba)) if result.is_ok() => {
                    let read = self.ledger.read(lba, &buffer);
                    self.hold(read);
                }
                _ => {}
            }
        }
    }

    /// A call ends in time.
    fn call<T>(&mut self, limit: Duration, work: impl FnOnce(&mut Rig) -> T) -> T {
        let (result, took) = self.rig.timed(work);
        assert!(
            took <= limit,
            "took {} of {} ms: {}",
            took.as_millis(),
            limit.as_millis(),
            self.describe()
        );
        result
    }

    fn hold(&self, result: Result<(), String>) {
        if let Err(lie) = result {
            panic!("{lie}: {}", self.describe());
        }
    }

    fn check_neighbour(&mut self) {
        if self.may_die {
            self.neighbour = self.rig.wait_for_disk(OTHER_PORT);
        }
        let (neighbour, lba) = (self.neighbour, self.seed % 4096);
        let (result, took) = self.rig.timed(|rig| rig.read(neighbour, lba, BLOCK));
        let is_good = result == Ok(content(lba, 0)) && took <= Duration::from_secs(1);
        let may_fail = self.may_die && (result.is_err() || took > Duration::from_secs(1));
        assert!(
            is_good || may_fail,
            "the neighbour: {:?} after {} ms: {}",
            result.map(|_| ()),
            took.as_millis(),
            self.describe()
        );
    }

    /// All is flushed and read, and all memory comes back.
    fn end(mut self) {
        for _ in 0..REPLUGS {
            let disk = self.disk();
            self.flush(disk);
            let read = self.call(limit(Policy::DEFAULT.read_write), |rig| {
                rig.read(disk, 0, BLOCKS as usize * BLOCK)
            });
            if let Ok(bytes) = read {
                let read = self.ledger.read(0, &bytes);
                self.hold(read);
                break;
            }
        }
        self.rig.unplug(self.port);
        // Whose controller was started again is there in a moment.
        self.check_neighbour();
        let used = self.rig.pool_used();
        assert_eq!(used, self.held, "the pool: {}", self.describe());
        // It is found late where the controller has died in silence.
        self.rig.plug(self.port, disk_at(self.link).build());
        let disk = (0..600).find_map(|_| {
            self.rig.run(Duration::from_millis(100));
            self.ready()
        });
        let Some(disk) = disk else {
            panic!("a good disk is none: {}", self.describe());
        };
        self.rig.check(disk, 1, 5);
        self.check_neighbour();
    }

    fn describe(&self) -> String {
        let course = self.course.join("\n  ");
        let Self {
            seed, link, plan, ..
        } = self;
        format!(
            "seed {seed}, {link:?}: {plan}\n  {course}\n{}",
            self.rig.describe()
        )
    }
}

/// A call ends within this time whatever happens, if one try of its commands takes `try` at most: that
/// many tries, each with an episode of recovery of 20 s, and 20 s for a disk to be ready again.
fn limit(of_a_try: Duration) -> Duration {
    Duration::from_millis((of_a_try.as_millis() + 40_000) * TRIES)
}

/// Whether the controller names 32 bits and the caller has memory above them.
fn is_narrow(seed: u64) -> bool {
    seed % 5 == 2
}

/// Whether the platform can cut the controller off from memory.
fn can_cut_dma(seed: u64) -> bool {
    seed % 7 != 4
}

/// A machine for this seed.
fn rig(seed: u64, plan: Plan) -> Rig {
    let (traits, driver) = match seed % 3 {
        1 => controller::interrupting().remove(0),
        2 => controller::interrupting().pop().expect("there is one"),
        _ => (controller::usual(), Driver::default()),
    };
    let (traits, driver) = match is_narrow(seed) {
        true => (controller::addresses_32(), Driver::default()),
        false => (traits, driver),
    };
    let traits = controller::shaped(traits, seed);
    let polls = is_narrow(seed) || seed.is_multiple_of(3);
    let options = Options {
        seed: seed + 1,
        cache_line: [32, 64, 128][seed as usize / 3 % 3],
        coherent: seed % 4 == 3,
        sleep: match polls {
            true => Sleep::UntilAnything,
            false => Sleep::UntilInterrupt,
        },
        can_cut_dma: can_cut_dma(seed),
        // The neighbour is on a rail of its own.
        power: match seed % 10 {
            3 | 6 => Power::Rails(2),
            _ => Power::AlwaysOn,
        },
        ..Options::default()
    };
    let pool = [POOL, POOL, SMALL_POOL][seed as usize / 9 % 3];
    let mut rig = Rig::made(options, traits, plan.controller, pool, driver);
    rig.queue(QUEUEINGS[(seed + seed / 4) as usize % 4]);
    rig
}

fn contents(lba: u64, blocks: u64, number: u32) -> Vec<u8> {
    (lba..lba + blocks)
        .flat_map(|lba| content(lba, number))
        .collect()
}
