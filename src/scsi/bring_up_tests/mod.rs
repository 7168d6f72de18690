//! What bring-up makes of each kind of device: which commands it sends, how long it takes, and
//! what it says in the end.
//!
//! A device is a closure from a command to its answer; time is virtual and moves only while the
//! machine waits, or as long as an answer takes.

mod a_stopped_disk;
mod a_transport_that_fails;
/// Also one that a device keeps until it is asked for sense data.
mod a_unit_attention;
/// As card readers have them, and sticks that never find their medium.
mod an_empty_unit;
mod inquiry;
/// What is asked of a disk beyond what it takes to use it.
mod questions;
/// Slow disks, and units that become ready for ever.
mod readiness;
mod the_capacity;
mod the_free_manner;
/// With sticks that die of the question, and such as answer it half.
mod write_protection;

use super::failures::READY_POLL;
use super::*;
use crate::scsi::cdb::DataPhase;
use crate::scsi::sense::{Sense, SenseKey};
use crate::scsi::transport::{Fault, Outcome, TransportError};
use crate::time::Duration;

const INQUIRY: u8 = 0x12;
const TEST_UNIT_READY: u8 = 0x00;
const START_STOP: u8 = 0x1b;
const READ_CAPACITY_10: u8 = 0x25;
const READ_CAPACITY_16: u8 = 0x9e;
const MODE_SENSE_6: u8 = 0x1a;
const READ_10: u8 = 0x28;

const BUDGET: Duration = Duration::from_secs(20);

/// Far more commands than any bring-up needs.
const ENDLESS: usize = 2_000;

/// What a device answers to a command, and how long it takes.
struct Answer {
    outcome: Outcome,
    data: Vec<u8>,
    after: Duration,
}

impl Answer {
    fn taking(self, after: Duration) -> Self {
        Self { after, ..self }
    }
}

fn good(data: &[u8]) -> Answer {
    let moved = data.len() as u32;
    answer(
        Ok(Completion {
            status: Status::Good,
            moved,
        }),
        data,
    )
}

fn fails(sense: Sense) -> Answer {
    let status = Status::Check(sense);
    answer(Ok(Completion { status, moved: 0 }), &[])
}

fn dies(error: TransportError) -> Answer {
    answer(Err(error), &[])
}

fn answer(outcome: Outcome, data: &[u8]) -> Answer {
    Answer {
        outcome,
        data: data.to_vec(),
        after: Duration::ZERO,
    }
}

fn sense(key: u8, asc: u8, ascq: u8) -> Sense {
    Sense::parse(&[
        0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc, ascq, 0, 0, 0, 0,
    ])
}

const STICK: &[u8; 36] = b"\x00\x80\x06\x02\x1f\x00\x00\x00Maker   Stick           1.00";

fn capacity_10(last_block: u32, block_length: u32) -> Vec<u8> {
    [last_block.to_be_bytes(), block_length.to_be_bytes()].concat()
}

fn capacity_16(last_block: u64, block_length: u32) -> Vec<u8> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&last_block.to_be_bytes());
    bytes[8..12].copy_from_slice(&block_length.to_be_bytes());
    bytes.to_vec()
}

fn operation(command: &Command) -> u8 {
    command.cdb.operation_code()
}

/// A healthy disk of 1000 blocks, 512 bytes each.
fn healthy(command: &Command) -> Answer {
    match operation(command) {
        INQUIRY => good(STICK),
        TEST_UNIT_READY | START_STOP => good(&[]),
        READ_CAPACITY_10 => good(&capacity_10(999, 512)),
        READ_10 => good(&[0; 512]),
        MODE_SENSE_6 => good(&[3, 0, 0, 0]),
        _ => fails(sense(5, 0x20, 0)),
    }
}

/// A bring-up that has ended.
struct Ended {
    action: Action,
    commands: Vec<u8>,
    took: Duration,
}

impl Ended {
    fn count(&self, operation: u8) -> usize {
        self.commands
            .iter()
            .filter(|code| **code == operation)
            .count()
    }

    #[track_caller]
    fn found(&self) -> Found {
        match self.action {
            Action::Ready(found) => found,
            other => panic!("no disk: {other:?}"),
        }
    }
}

/// Brings a device up until the machine has an end.
#[track_caller]
fn bring_up(mut device: impl FnMut(&Command, Instant) -> Answer) -> Ended {
    let begin = Instant::from_micros(5_000_000);
    let mut now = begin;
    let mut machine = BringUp::new(begin + BUDGET);
    let mut commands = Vec::new();
    let mut action = machine.step(Input::Begin, now);
    for _ in 0..ENDLESS {
        action = match action {
            Action::Issue(command) => {
                commands.push(operation(&command));
                let answer = device(&command, now);
                assert!(answer.data.len() as u32 <= command.data.length());
                now = now + answer.after;
                machine.step(Input::Ended(answer.outcome, &answer.data), now)
            }
            Action::Wait(until) => {
                assert!(until > now, "a wait that is over when it begins");
                now = until;
                machine.step(Input::Time, now)
            }
            action => {
                return Ended {
                    action,
                    commands,
                    took: now - begin,
                };
            }
        };
    }
    panic!("no end after {ENDLESS} steps, {:?}", now - begin);
}

/// A healthy disk but for this command.
#[track_caller]
fn but_for(code: u8, mut odd: impl FnMut(Instant) -> Answer) -> Ended {
    bring_up(|command, now| {
        if operation(command) == code {
            odd(now)
        } else {
            healthy(command)
        }
    })
}

/// A healthy disk that fails this command so many times first.
#[track_caller]
fn at_first(code: u8, times: usize, mut odd: impl FnMut() -> Answer) -> Ended {
    let mut left = times;
    bring_up(|command, _| {
        if operation(command) == code && left > 0 {
            left -= 1;
            odd()
        } else {
            healthy(command)
        }
    })
}

#[test]
fn a_healthy_disk_is_found_with_one_command_of_each_kind_and_no_pause() {
    let ended = bring_up(|command, _| healthy(command));
    let found = ended.found();
    assert_eq!(found.capacity.blocks(), 1000);
    assert_eq!(found.capacity.block_length().bytes(), 512);
    assert!(!found.write_protected);
    assert!(found.inquiry.removable);
    let order = [
        INQUIRY,
        TEST_UNIT_READY,
        READ_CAPACITY_10,
        READ_10,
        MODE_SENSE_6,
    ];
    assert_eq!(ended.commands, order);
    assert_eq!(ended.took, Duration::ZERO);
}

#[test]
fn an_essential_bring_up_asks_nothing_that_a_disk_can_be_used_without() {
    let mut machine = BringUp::new(Instant::NEVER);
    machine.keep_to_essentials();
    let mut action = machine.step(Input::Begin, Instant::default());
    let mut commands = Vec::new();
    while let Action::Issue(command) = action {
        commands.push(operation(&command));
        let answer = healthy(&command);
        let ended = Input::Ended(answer.outcome, &answer.data);
        action = machine.step(ended, Instant::default());
    }
    assert_eq!(commands, [INQUIRY, TEST_UNIT_READY, READ_CAPACITY_10]);
    assert!(matches!(action, Action::Ready(_)));
}

/// Recovered errors are no failures.
#[test]
fn a_command_that_was_done_with_an_effort_was_done() {
    let ended = bring_up(|command, _| {
        let answer = healthy(command);
        let moved = answer.data.len() as u32;
        let status = Status::Check(sense(1, 0x17, 1));
        Answer {
            outcome: Ok(Completion { status, moved }),
            ..answer
        }
    });
    assert_eq!(ended.found().capacity.blocks(), 1000);
    assert_eq!(ended.commands.len(), 5);
}

#[test]
fn each_command_has_its_own_three_tries() {
    let mut failed = Vec::new();
    let ended = bring_up(|command, _| {
        let code = operation(command);
        if failed.iter().filter(|other| **other == code).count() < 2 {
            failed.push(code);
            return dies(TransportError::Protocol(Fault::BadStatus));
        }
        healthy(command)
    });
    assert_eq!(ended.found().capacity.blocks(), 1000);
    assert_eq!(ended.count(READ_CAPACITY_10), 3);
}
