//! What goes wrong in a trial.

use rootport_models::device::bot::{Action, Hook, Until, opcode};
use rootport_models::device::scsi::Sense;
use rootport_models::device::uas::{Fault, Manners, TaskManner, What, on};
use rootport_models::random::Random;

use crate::controller::{BAD_ENDS, Faults, MENDABLE, NEVER_ENDS};

/// SYNCHRONIZE CACHE (10).
const FLUSH: u8 = 0x35;

/// WRITE (10).
const WRITE: u8 = 0x2a;

/// READ (10), WRITE (10), SYNCHRONIZE CACHE (10), TEST UNIT READY, INQUIRY, READ CAPACITY (10),
/// MODE SENSE (6), REQUEST SENSE: the first three most often.
const COMMANDS: [u8; 12] = [
    0x28, 0x28, WRITE, WRITE, WRITE, FLUSH, FLUSH, 0x00, 0x12, 0x25, 0x1a, 0x03,
];

/// How many faults a trial has of one sort, at most.
const MOST: u64 = 4;

fn pick<T: Clone>(random: &mut Random, from: &[T]) -> T {
    from[random.below(from.len() as u64) as usize].clone()
}

/// What goes wrong outside the disk, and how to make what goes wrong inside.
pub(super) struct Plan {
    pub(super) controller: Faults,
    /// What goes wrong inside, for a message.
    pub(super) device: String,
    /// Nothing goes wrong but what befalls the disk from outside.
    is_calm: bool,
}

impl Plan {
    /// Faults of the controller and of the wire, at these endpoints of the disk in this port. One in four
    /// has none, so that nothing that is told for another reason hides a loss that is not.
    pub(super) fn new(random: &mut Random, port: usize, endpoints: &[u8]) -> Self {
        let mut faults = Faults::none();
        if random.once_in(4) {
            return Self {
                controller: faults,
                device: String::new(),
                is_calm: true,
            };
        }
        for _ in 0..random.below(MOST) {
            let endpoint = pick(random, endpoints);
            let fault = match random.below(4) {
                0 => NEVER_ENDS,
                _ => pick(random, BAD_ENDS),
            };
            faults
                .transfers
                .insert((endpoint, random.below(120)), fault);
        }
        for _ in 0..random.below(3) * 4 {
            let transaction = (port, random.below(3000));
            faults.lost_transactions.insert(transaction);
        }
        if random.once_in(6) {
            let at = 1_000_000_000 + random.below(20_000) * 1_000_000;
            faults.death = Some((at, pick(random, MENDABLE)));
        }
        Self {
            controller: faults,
            device: String::new(),
            is_calm: false,
        }
    }

    /// How many faults the disk has.
    fn count(&self, random: &mut Random) -> u64 {
        match self.is_calm {
            true => 0,
            false => random.below(MOST),
        }
    }

    /// What a Bulk-Only disk does at some of its commands.
    pub(super) fn bulk_only(&mut self, random: &mut Random) -> Vec<Hook> {
        let hook = |random: &mut Random| {
            let code = pick(random, &COMMANDS);
            let action = match action(random) {
                // Where the host sends data there is no place for it.
                Action::StatusAsData(sense) if code == WRITE => Action::Fail(sense),
                Action::EarlyStatus(bytes) if code == WRITE => Action::ShortData(bytes),
                action => action,
            };
            let when = opcode(code).after(random.below(30) as u32);
            let when = when.times(1 + random.below(2) as u32);
            Hook { when, action }
        };
        let hooks = (0..self.count(random)).map(|_| hook(random)).collect();
        self.device += &format!("{hooks:?}");
        hooks
    }

    /// What a UAS disk does at some of its commands.
    pub(super) fn uas(&mut self, random: &mut Random) -> Vec<Fault> {
        let fault = |random: &mut Random| {
            let opcode = pick(random, &COMMANDS);
            let what = match what(random) {
                // A flush that does nothing and is good: nobody can notice.
                What::SkipData if opcode == FLUSH => What::LoseStatus,
                what => what,
            };
            on(opcode, what)
                .after(random.below(30) as u32)
                .times(1 + random.below(2) as u32)
        };
        let faults = (0..self.count(random)).map(|_| fault(random)).collect();
        self.device += &format!("{faults:?}");
        faults
    }

    /// How a UAS disk behaves in general.
    pub(super) fn manners(random: &mut Random) -> Manners {
        let manner = |random: &mut Random| match random.below(4) {
            0 => TaskManner::Refuses(0x04),
            1 => TaskManner::Ignores,
            _ => TaskManner::Works,
        };
        Manners {
            abort: manner(random),
            unit_reset: manner(random),
            room: pick(random, &[1, 3, usize::MAX]),
            seed: random.bits(),
            ..Manners::default()
        }
    }
}

/// No action that stores or brings wrong data and calls that good: nobody can notice.
fn action(random: &mut Random) -> Action {
    let bytes = random.below(4) as usize * 256;
    let until = pick(
        random,
        &[Until::ClassReset, Until::BusReset, Until::PowerCycle],
    );
    let all = [
        Action::Fail(Sense::ABORTED),
        Action::Fail(Sense::RESET),
        Action::Fail(Sense::READ_ERROR),
        Action::Fail(Sense::BECOMING_READY),
        Action::Delay(random.below(15_000) * 1_000_000),
        Action::Hang(until),
        Action::Crash(until),
        Action::Leave(random.below(3_000) * 1_000_000),
        Action::HaltData,
        Action::ShortData(bytes),
        Action::EarlyStatus(bytes),
        Action::LongData(1 + bytes),
        Action::SilentData(1 + random.below(5) as u32),
        Action::StatusAsData(Sense::BAD_FIELD),
        Action::EmptyPacketBeforeStatus,
        Action::HaltStatus(1 + random.below(2) as u32),
        Action::DelayStatus(random.below(15_000) * 1_000_000),
        Action::Status(1 + random.below(4) as u8),
        Action::Tag(random.bits() as u32),
        Action::Signature(*b"USBX"),
        Action::Residue(random.below(1024) as u32),
        Action::StatusLength(random.below(20) as usize),
    ];
    pick(random, &all)
}

/// The same over UAS. A disk that says that a read or a write was good and moved nothing is noticed by
/// the bytes that are missing; one that names another command which is under way cannot be caught.
fn what(random: &mut Random) -> What {
    let tag = 20 + random.below(20) as u16;
    let all = [
        What::LoseStatus,
        What::Hang,
        What::DelayStatus(random.below(15_000) * 1_000_000),
        What::WrongTag(tag),
        What::Response(random.below(10) as u8),
        What::BulkOnlyWords,
        What::Fail(Sense::ABORTED),
        What::Fail(Sense::RESET),
        What::Fail(Sense::READ_ERROR),
        What::HaltData,
        What::Status(pick(random, &[0x08, 0x18, 0x28, 0x40])),
        What::SkipData,
        What::ReadyForTag(tag),
        What::Babble,
        What::WrongStream(tag),
        What::ResetItself,
    ];
    pick(random, &all)
}
