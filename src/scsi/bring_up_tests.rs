//! What bring-up makes of each kind of device: which commands it sends, how long it takes, and
//! what it says in the end.
//!
//! A device is a closure from a command to its answer; time is virtual and moves only while the
//! machine waits, or as long as an answer takes.

use super::*;
use crate::scsi::cdb::DataPhase;
use crate::scsi::sense::SenseKey;
use crate::scsi::transport::{Fault, Outcome};

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

mod inquiry {
    use super::*;

    #[test]
    fn tells_what_is_no_disk_and_no_more_is_asked_of_it() {
        let kinds = [
            (0x01, "a tape"),
            (0x0d, "an enclosure"),
            (0x1f, "nothing"),
            (0x20, "a disk that is not connected"),
            (0x7f, "a unit that cannot be"),
        ];
        for (byte, what) in kinds {
            let ended = but_for(INQUIRY, |_| good(&[byte, 0, 6, 2, 31]));
            assert_eq!(ended.action, Action::Skip, "{what}");
            assert_eq!(ended.commands, [INQUIRY], "{what}");
        }
    }

    #[test]
    fn of_an_optical_drive_or_a_reduced_disk_leads_on() {
        for byte in [0x05, 0x0e] {
            but_for(INQUIRY, |_| good(&[byte, 0x80, 0, 2, 31])).found();
        }
    }

    #[test]
    fn that_the_unit_refuses_again_and_again_skips_it() {
        for refusal in [sense(5, 0x25, 0), sense(5, 0x20, 0), sense(5, 0x24, 0)] {
            let ended = but_for(INQUIRY, |_| fails(refusal));
            assert_eq!(ended.action, Action::Skip);
            assert_eq!(ended.commands, [INQUIRY; 3]);
        }
    }

    #[test]
    fn that_the_unit_refuses_once_does_not_lose_it() {
        for refusal in [sense(5, 0x25, 0), sense(5, 0x20, 0), sense(5, 0x24, 0)] {
            let ended = at_first(INQUIRY, 1, || fails(refusal));
            ended.found();
        }
    }

    #[test]
    fn is_believed_over_a_unit_that_says_once_that_it_is_not_there() {
        let ended = at_first(TEST_UNIT_READY, 1, || fails(sense(5, 0x25, 0)));
        ended.found();
    }

    #[test]
    fn without_an_answer_is_asked_three_times() {
        let ended = but_for(INQUIRY, |_| good(&[]));
        assert_eq!(ended.action, Action::Fail(BringUpError::NoInquiryData));
        assert_eq!(ended.commands, [INQUIRY; 3]);
        at_first(INQUIRY, 2, || good(&[])).found();
    }
}

/// Field case 2.
mod a_unit_attention {
    use super::*;

    #[test]
    fn costs_the_same_question_once_more_and_no_pause() {
        let attentions = [
            sense(6, 0x28, 0),
            sense(6, 0x29, 0),
            sense(6, 0x2a, 1),
            sense(6, 0x2a, 9),
            sense(0xb, 0, 0),
        ];
        for code in [INQUIRY, TEST_UNIT_READY, READ_CAPACITY_10] {
            for attention in attentions {
                let ended = at_first(code, 1, || fails(attention));
                assert_eq!(ended.found().capacity.blocks(), 1000);
                assert_eq!(ended.count(code), 2, "{code:02x} {attention}");
                assert_eq!(ended.took, Duration::ZERO);
            }
        }
    }

    #[test]
    fn may_come_eight_times_one_for_each_cause() {
        let ended = at_first(TEST_UNIT_READY, 8, || fails(sense(6, 0x29, 0)));
        assert_eq!(ended.count(TEST_UNIT_READY), 9);
        ended.found();
    }

    #[test]
    fn that_never_ends_is_a_fault_of_the_unit() {
        for code in [INQUIRY, TEST_UNIT_READY, READ_CAPACITY_10] {
            let attention = sense(6, 0x28, 0);
            let ended = but_for(code, |_| fails(attention));
            let fault = Action::Fail(BringUpError::Failed(attention));
            assert_eq!(ended.action, fault);
            assert_eq!(ended.count(code), 9);
        }
    }
}

/// Field cases 3 and 4.
mod readiness {
    use super::*;

    #[test]
    fn that_takes_8_seconds_is_waited_for() {
        let ready = Instant::from_micros(13_000_000);
        let ended = but_for(TEST_UNIT_READY, |now| match now < ready {
            true => fails(sense(2, 4, 1)),
            false => good(&[]),
        });
        ended.found();
        assert!(ended.took >= Duration::from_secs(8));
        assert!(ended.took < Duration::from_millis(8_200));
        assert!(ended.count(TEST_UNIT_READY) <= 82);
    }

    #[test]
    fn that_answers_each_question_only_after_3_seconds_is_waited_for() {
        let mut asked = 0;
        let ended = but_for(TEST_UNIT_READY, |_| {
            asked += 1;
            let answer = if asked < 4 {
                fails(sense(2, 4, 1))
            } else {
                good(&[])
            };
            answer.taking(Duration::from_secs(3))
        });
        ended.found();
    }

    #[test]
    fn that_never_comes_ends_with_the_budget_and_says_what_the_unit_said_last() {
        let states = [
            sense(2, 4, 0),
            sense(2, 4, 1),
            sense(2, 4, 7),
            sense(2, 4, 3),
        ];
        for state in states {
            let ended = but_for(TEST_UNIT_READY, |_| fails(state));
            let fault = Action::Fail(BringUpError::NotReady(state));
            assert_eq!(ended.action, fault);
            assert!(ended.took >= BUDGET);
            assert!(ended.took < BUDGET + Duration::from_millis(200));
            assert!(ended.count(TEST_UNIT_READY) <= 201, "{state}");
        }
    }

    #[test]
    fn is_asked_for_again_when_the_capacity_says_that_it_is_gone() {
        let ended = at_first(READ_CAPACITY_10, 1, || fails(sense(2, 4, 1)));
        ended.found();
        let order = [
            INQUIRY,
            TEST_UNIT_READY,
            READ_CAPACITY_10,
            TEST_UNIT_READY,
            READ_CAPACITY_10,
            READ_10,
            MODE_SENSE_6,
        ];
        assert_eq!(ended.commands, order);
        assert!(ended.took >= READY_POLL);
    }

    #[test]
    fn that_comes_and_goes_for_ever_ends_with_the_budget() {
        let state = sense(2, 4, 1);
        let ended = but_for(READ_CAPACITY_10, |_| fails(state));
        assert_eq!(ended.action, Action::Fail(BringUpError::NotReady(state)));
        assert!(ended.took < BUDGET + Duration::from_millis(200));
    }

    #[test]
    fn cannot_be_asked_of_a_device_without_the_command_which_counts_as_ready() {
        let ended = but_for(TEST_UNIT_READY, |_| fails(sense(5, 0x20, 0)));
        ended.found();
        assert_eq!(ended.count(TEST_UNIT_READY), 1);
    }

    #[test]
    fn that_fails_without_a_reason_is_asked_three_times_then_the_capacity_decides() {
        for state in [Sense::NONE, sense(4, 0x44, 0x81), sense(3, 0x11, 0)] {
            let ended = but_for(TEST_UNIT_READY, |_| fails(state));
            ended.found();
            assert_eq!(ended.count(TEST_UNIT_READY), 3, "{state}");
        }
    }
}

mod a_stopped_disk {
    use super::*;

    #[test]
    fn is_started_then_asked_for_readiness() {
        let ended = at_first(TEST_UNIT_READY, 1, || fails(sense(2, 4, 2)));
        ended.found();
        let order = [
            INQUIRY,
            TEST_UNIT_READY,
            START_STOP,
            TEST_UNIT_READY,
            READ_CAPACITY_10,
            READ_10,
            MODE_SENSE_6,
        ];
        assert_eq!(ended.commands, order);
    }

    #[test]
    fn that_wants_the_start_and_then_some_time_gets_both() {
        let mut started = None;
        let ended = bring_up(|command, now| match operation(command) {
            START_STOP => {
                started = Some(now);
                good(&[])
            }
            TEST_UNIT_READY => match started {
                None => fails(sense(2, 4, 2)),
                Some(start) if now - start < Duration::from_secs(6) => fails(sense(2, 4, 1)),
                Some(_) => good(&[]),
            },
            _ => healthy(command),
        });
        ended.found();
        assert_eq!(ended.count(START_STOP), 1);
        assert!(ended.took < Duration::from_millis(6_200));
    }

    #[test]
    fn that_takes_the_start_but_stays_stopped_is_given_up_with_the_budget() {
        let state = sense(2, 4, 2);
        let ended = but_for(TEST_UNIT_READY, |_| fails(state));
        assert_eq!(ended.action, Action::Fail(BringUpError::NotReady(state)));
        assert!(ended.took >= BUDGET);
        assert!(ended.took < BUDGET + Duration::from_millis(200));
        assert!(ended.count(START_STOP) <= 201);
    }

    #[test]
    fn that_wants_a_second_start_gets_it() {
        let mut starts = 0;
        let ended = bring_up(|command, _| match operation(command) {
            START_STOP => {
                starts += 1;
                good(&[])
            }
            TEST_UNIT_READY if starts < 2 => fails(sense(2, 4, 2)),
            _ => healthy(command),
        });
        ended.found();
        assert_eq!(ended.count(START_STOP), 2);
    }

    #[test]
    fn that_does_not_know_the_start_is_waited_for_within_the_budget() {
        let state = sense(2, 4, 2);
        let ended = bring_up(|command, _| match operation(command) {
            START_STOP => fails(sense(5, 0x20, 0)),
            TEST_UNIT_READY => fails(state),
            _ => healthy(command),
        });
        assert!(matches!(
            ended.action,
            Action::Fail(BringUpError::NotReady(_))
        ));
        assert!(ended.took < BUDGET + Duration::from_millis(200));
    }
}

/// Field cases 3, 6 and 9.
mod an_empty_unit {
    use super::*;

    #[test]
    fn is_asked_three_times_and_then_is_there_without_a_medium() {
        for state in [
            sense(2, 0x3a, 0),
            sense(2, 0x3a, 1),
            sense(2, 0x3a, 2),
            sense(6, 0x3a, 0),
        ] {
            let ended = but_for(TEST_UNIT_READY, |_| fails(state));
            let inquiry = Inquiry::parse(STICK).unwrap();
            assert_eq!(ended.action, Action::Empty(inquiry));
            assert_eq!(
                ended.commands,
                [INQUIRY, TEST_UNIT_READY, TEST_UNIT_READY, TEST_UNIT_READY]
            );
            assert!(ended.took <= Duration::from_millis(300));
        }
    }

    #[test]
    fn may_have_looked_only_at_the_third_question() {
        at_first(TEST_UNIT_READY, 2, || fails(sense(2, 0x3a, 0))).found();
    }

    #[test]
    fn may_say_so_only_when_asked_for_its_capacity() {
        let ended = but_for(READ_CAPACITY_10, |_| fails(sense(2, 0x3a, 0)));
        assert!(matches!(ended.action, Action::Empty(_)));
        assert_eq!(ended.count(READ_CAPACITY_10), 3);
    }

    /// Field case 20.
    #[test]
    fn may_give_block_0_as_its_last() {
        let ended = but_for(READ_CAPACITY_10, |_| good(&capacity_10(0, 512)));
        assert!(matches!(ended.action, Action::Empty(_)));
        assert_eq!(ended.count(READ_CAPACITY_10), 1);
    }
}

mod the_capacity {
    use super::*;

    /// Field case 5.
    #[test]
    fn that_fails_for_lack_of_power_is_an_error_that_says_so() {
        let state = sense(4, 0x44, 0x81);
        let ended = bring_up(|command, _| match operation(command) {
            READ_CAPACITY_10 | READ_CAPACITY_16 => fails(state),
            _ => healthy(command),
        });
        assert_eq!(ended.action, Action::Fail(BringUpError::Failed(state)));
        assert_eq!(state.key, SenseKey::HardwareError);
        assert_eq!(ended.count(READ_CAPACITY_10), 3);
    }

    /// Field case 19.
    #[test]
    fn has_the_block_length_that_the_disk_says() {
        for length in [512, 1024, 2048, 4096, 0x1_0000] {
            let ended = but_for(READ_CAPACITY_10, |_| good(&capacity_10(999, length)));
            assert_eq!(ended.found().capacity.block_length().bytes(), length);
        }
    }

    /// Field case 20.
    #[test]
    fn of_a_nonsensical_block_length_is_asked_three_times_and_refused() {
        for length in [0, 1, 511, 513, 1000, 0x2_0000, 263_520_264, u32::MAX] {
            let ended = but_for(READ_CAPACITY_10, |_| good(&capacity_10(999, length)));
            let fault = BringUpError::Capacity(CapacityFault::BlockLength(length));
            assert_eq!(ended.action, Action::Fail(fault), "{length}");
            assert_eq!(ended.count(READ_CAPACITY_10), 3);
        }
    }

    #[test]
    fn that_makes_sense_only_the_second_time_is_taken() {
        at_first(READ_CAPACITY_10, 1, || good(&capacity_10(999, 0))).found();
        at_first(READ_CAPACITY_10, 2, || good(&[0, 0, 3])).found();
    }

    #[test]
    fn beyond_32_bits_is_asked_for_with_16_bytes() {
        let ended = bring_up(|command, _| match operation(command) {
            READ_CAPACITY_10 => good(&capacity_10(u32::MAX, 512)),
            READ_CAPACITY_16 => good(&capacity_16(0x1_8000_0000, 512)),
            _ => healthy(command),
        });
        assert_eq!(ended.found().capacity.blocks(), 0x1_8000_0001);
        assert_eq!(ended.count(READ_CAPACITY_16), 1);
    }

    #[test]
    fn below_that_is_not_asked_for_with_16_bytes() {
        let ended = but_for(READ_CAPACITY_10, |_| good(&capacity_10(u32::MAX - 1, 512)));
        assert_eq!(ended.found().capacity.blocks(), u64::from(u32::MAX));
        assert_eq!(ended.count(READ_CAPACITY_16), 0);
    }

    #[test]
    fn beyond_32_bits_without_the_command_is_what_32_bits_can_reach() {
        let ended = bring_up(|command, _| match operation(command) {
            READ_CAPACITY_10 => good(&capacity_10(u32::MAX, 512)),
            _ => healthy(command),
        });
        assert_eq!(ended.found().capacity.blocks(), 1 << 32);
        let ended = bring_up(|command, _| match operation(command) {
            READ_CAPACITY_10 => good(&capacity_10(u32::MAX, 0)),
            _ => healthy(command),
        });
        let fault = BringUpError::Capacity(CapacityFault::BlockLength(0));
        assert_eq!(ended.action, Action::Fail(fault));
    }

    #[test]
    fn of_the_largest_number_that_there_is_is_a_lie() {
        let ended = bring_up(|command, _| match operation(command) {
            READ_CAPACITY_10 => good(&capacity_10(u32::MAX, 512)),
            READ_CAPACITY_16 => good(&capacity_16(u64::MAX, 512)),
            _ => healthy(command),
        });
        let fault = BringUpError::Capacity(CapacityFault::LastBlock(u64::MAX));
        assert_eq!(ended.action, Action::Fail(fault));
    }
}

/// Field cases 8 and 9.
mod write_protection {
    use super::*;

    #[test]
    fn is_asked_for_with_6_bytes_and_192_of_answer() {
        let ended = bring_up(|command, _| {
            if operation(command) == MODE_SENSE_6 {
                assert_eq!(command.cdb.to_bytes(), [0x1a, 0, 0x3f, 0, 192, 0]);
                assert_eq!(command.data, DataPhase::In(192));
            }
            healthy(command)
        });
        ended.found();
    }

    #[test]
    fn is_one_bit_of_the_answer() {
        let protected = |byte| {
            but_for(MODE_SENSE_6, |_| good(&[3, 0, byte, 0]))
                .found()
                .write_protected
        };
        assert!(protected(0x80));
        assert!(!protected(0x7f));
    }

    #[test]
    fn that_is_not_told_means_writable_and_is_not_asked_for_again() {
        let answers: [fn() -> Answer; 6] = [
            || good(&[]),
            || good(&[3, 0]),
            || fails(sense(5, 0x20, 0)),
            || fails(sense(5, 0x24, 0)),
            || fails(sense(4, 0x44, 0)),
            || fails(Sense::NONE),
        ];
        for answer in answers {
            let ended = but_for(MODE_SENSE_6, |_| answer());
            assert!(!ended.found().write_protected);
            assert_eq!(ended.count(MODE_SENSE_6), 1);
            assert_eq!(ended.commands.last(), Some(&MODE_SENSE_6));
        }
    }

    #[test]
    fn is_asked_for_again_after_a_unit_attention() {
        let mut attention = Some(sense(6, 0x29, 0));
        let ended = but_for(MODE_SENSE_6, |_| match attention.take() {
            Some(attention) => fails(attention),
            None => good(&[3, 0, 0x80, 0]),
        });
        assert!(ended.found().write_protected);
        let ended = but_for(MODE_SENSE_6, |_| fails(sense(6, 0x29, 0)));
        assert!(!ended.found().write_protected);
        assert_eq!(ended.count(MODE_SENSE_6), 9);
    }

    #[test]
    fn of_another_medium_than_the_capacity_is_not_taken() {
        for changed in [sense(6, 0x28, 0), sense(6, 0x2a, 9)] {
            let mut blocks = 999;
            let ended = bring_up(|command, _| match operation(command) {
                READ_CAPACITY_10 => good(&capacity_10(blocks, 512)),
                MODE_SENSE_6 if blocks == 999 => {
                    blocks = 499;
                    fails(changed)
                }
                _ => healthy(command),
            });
            assert_eq!(ended.found().capacity.blocks(), 500);
            assert_eq!(ended.count(MODE_SENSE_6), 2);
        }
    }

    #[test]
    fn of_a_medium_that_was_taken_out_leaves_an_empty_unit() {
        let mut out = false;
        let ended = bring_up(|command, _| match operation(command) {
            MODE_SENSE_6 => {
                out = true;
                fails(sense(2, 0x3a, 0))
            }
            TEST_UNIT_READY if out => fails(sense(2, 0x3a, 0)),
            _ => healthy(command),
        });
        assert!(matches!(ended.action, Action::Empty(_)));
    }

    #[test]
    fn whose_question_upsets_the_device_leaves_a_disk_that_can_be_used() {
        for error in [
            TransportError::Timeout,
            TransportError::Protocol(Fault::Stall),
        ] {
            let ended = but_for(MODE_SENSE_6, |_| dies(error));
            assert!(!ended.found().write_protected);
            assert_eq!(ended.count(MODE_SENSE_6), 1);
        }
    }
}

#[test]
fn an_essential_bring_up_asks_nothing_that_a_disk_can_be_used_without() {
    let mut machine = BringUp::new(Instant::NEVER).essential();
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

mod a_transport_that_fails {
    use super::*;

    #[test]
    fn is_tried_three_times_where_the_device_was_brought_back_in_step() {
        for error in [
            TransportError::Timeout,
            TransportError::Protocol(Fault::BadStatus),
            TransportError::Protocol(Fault::PhaseError),
        ] {
            for code in [INQUIRY, TEST_UNIT_READY, READ_CAPACITY_10] {
                let ended = but_for(code, |_| dies(error));
                let fault = Action::Fail(BringUpError::Transport(error));
                assert_eq!(ended.action, fault);
                assert_eq!(ended.count(code), 3);
                at_first(code, 2, || dies(error)).found();
            }
        }
    }

    #[test]
    fn ends_at_once_where_it_cannot_come_back() {
        for error in [
            TransportError::Disconnected,
            TransportError::Broken(Fault::Timeout),
        ] {
            for code in [INQUIRY, TEST_UNIT_READY, READ_CAPACITY_10, MODE_SENSE_6] {
                let ended = but_for(code, |_| dies(error));
                let fault = Action::Fail(BringUpError::Transport(error));
                assert_eq!(ended.action, fault);
                assert_eq!(ended.count(code), 1);
            }
        }
    }
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

/// What is asked of a disk beyond what it takes to use it.
mod questions {
    use super::*;
    use crate::storage::quirks::Quirks;

    const MODE_SENSE_10: u8 = 0x5a;

    /// A disk of SPC-4 that stays in its place.
    fn fixed(command: &Command) -> Answer {
        match operation(command) {
            INQUIRY if command.cdb.to_bytes()[1] == 0 => {
                good(b"\x00\x00\x06\x02\x1f\x00\x00\x00Maker   Disk            1.00")
            }
            INQUIRY => match command.cdb.to_bytes()[2] {
                0x00 => good(&[0, 0, 0, 2, 0, 0x80]),
                _ => good(b"\x00\x80\x00\x04S123"),
            },
            READ_CAPACITY_16 => good(&capacity_16(999, 512)),
            MODE_SENSE_10 => good(&[0, 6, 0, 0x80, 0, 0, 0, 0]),
            _ => healthy(command),
        }
    }

    fn minding(
        quirks: Quirks,
        mode_form: ModeForm,
        mut device: impl FnMut(&Command) -> Answer,
    ) -> Ended {
        let mut machine = BringUp::new(Instant::NEVER).minding(quirks, mode_form);
        let mut commands = Vec::new();
        let mut action = machine.step(Input::Begin, Instant::default());
        while let Action::Issue(command) = action {
            commands.push(operation(&command));
            assert!(commands.len() < ENDLESS);
            let answer = device(&command);
            let ended = Input::Ended(answer.outcome, &answer.data);
            action = machine.step(ended, Instant::default());
        }
        Ended {
            action,
            commands,
            took: Duration::ZERO,
        }
    }

    fn of_a_fixed_disk(quirks: Quirks) -> Ended {
        minding(quirks, ModeForm::Six, fixed)
    }

    #[test]
    fn a_fixed_disk_tells_its_details_and_a_stick_is_not_asked() {
        let ended = of_a_fixed_disk(Quirks::empty());
        let order = [
            INQUIRY,
            TEST_UNIT_READY,
            READ_CAPACITY_10,
            READ_CAPACITY_16,
            READ_10,
            MODE_SENSE_6,
            INQUIRY,
            INQUIRY,
        ];
        assert_eq!(ended.commands, order);
        let serial = ended.found().details.serial;
        assert_eq!(serial.unwrap().as_str(), "S123");
        let ended = minding(Quirks::empty(), ModeForm::Six, healthy);
        assert_eq!(
            (ended.count(INQUIRY), ended.count(READ_CAPACITY_16)),
            (1, 0)
        );
    }

    #[test]
    fn what_harms_a_device_is_not_asked() {
        for (quirk, command) in [
            (Quirks::NO_WP_DETECT, MODE_SENSE_6),
            (Quirks::ALWAYS_SYNC, MODE_SENSE_6),
            (Quirks::NO_READ_CAPACITY_16, READ_CAPACITY_16),
        ] {
            let ended = of_a_fixed_disk(quirk);
            assert_eq!(ended.count(command), 0, "{quirk:?}");
            assert_eq!(ended.found().capacity.blocks(), 1000);
        }
        let ended = minding(Quirks::FIX_INQUIRY, ModeForm::Six, healthy);
        assert_eq!(ended.count(INQUIRY), 0);
        assert!(ended.found().inquiry.removable);
    }

    #[test]
    fn capacities_are_corrected_as_the_policies_say() {
        let blocks = |quirks, last| {
            let device = |command: &Command| match operation(command) {
                READ_CAPACITY_10 => good(&capacity_10(last, 512)),
                _ => healthy(command),
            };
            minding(quirks, ModeForm::Six, device)
                .found()
                .capacity
                .blocks()
        };
        assert_eq!(blocks(Quirks::FIX_CAPACITY, 1000), 1000);
        assert_eq!(blocks(Quirks::CAPACITY_HEURISTICS, 1000), 1000);
        assert_eq!(blocks(Quirks::CAPACITY_HEURISTICS, 999), 1000);
        assert_eq!(blocks(Quirks::empty(), 1000), 1001);
    }

    #[test]
    fn case_18_sixteen_is_asked_first_where_ten_is_known_to_lie() {
        let device = |command: &Command| match operation(command) {
            READ_CAPACITY_16 => good(&capacity_16(5_860_533_167, 512)),
            _ => healthy(command),
        };
        let ended = minding(Quirks::NEEDS_CAP16, ModeForm::Six, device);
        assert_eq!(ended.found().capacity.blocks(), 5_860_533_168);
        assert_eq!(ended.count(READ_CAPACITY_10), 0);
        // One that does not know it is asked as any other.
        let ended = minding(Quirks::NEEDS_CAP16, ModeForm::Six, healthy);
        assert_eq!(ended.found().capacity.blocks(), 1000);
    }

    #[test]
    fn case_18_a_fixed_disk_whose_ten_was_cut_is_known_by_its_sixteen() {
        let wrong = |last_10, last_16| {
            let device = move |command: &Command| match operation(command) {
                READ_CAPACITY_10 => good(&capacity_10(last_10, 512)),
                READ_CAPACITY_16 => good(&capacity_16(last_16, 512)),
                _ => fixed(command),
            };
            let ended = minding(Quirks::empty(), ModeForm::Six, device);
            ended.found().capacity.blocks()
        };
        assert_eq!(wrong(0x5d50_a3af, 0x1_5d50_a3af), 0x1_5d50_a3b0);
        assert_eq!(wrong(999, 77), 1000, "smaller: not the same disk");
        assert_eq!(
            wrong(999, 0x1_0000_0000),
            1000,
            "another end: not the same disk"
        );
    }

    #[test]
    fn case_18_a_disk_that_must_not_be_asked_sixteen_is_used_as_far_as_ten_can_say() {
        let device = |command: &Command| match operation(command) {
            READ_CAPACITY_10 => good(&capacity_10(u32::MAX, 512)),
            READ_CAPACITY_16 => dies(TransportError::Timeout),
            _ => healthy(command),
        };
        let ended = minding(Quirks::NO_READ_CAPACITY_16, ModeForm::Six, device);
        assert_eq!(ended.found().capacity.blocks(), 1 << 32);
        assert_eq!(ended.count(READ_CAPACITY_16), 0);
    }

    #[test]
    fn case_8_the_long_form_is_for_what_announces_no_scsi() {
        let ended = minding(Quirks::empty(), ModeForm::Ten, fixed);
        assert_eq!(
            (ended.count(MODE_SENSE_6), ended.count(MODE_SENSE_10)),
            (0, 1)
        );
        assert!(ended.found().write_protected);
    }

    #[test]
    fn case_22_a_first_read_that_fails_is_repeated_once_and_costs_nothing() {
        let failing = |times: usize| {
            let mut left = times;
            let device = |command: &Command| match operation(command) {
                READ_10 if left > 0 => {
                    left -= 1;
                    fails(sense(5, 0x21, 0))
                }
                _ => healthy(command),
            };
            let ended = minding(Quirks::empty(), ModeForm::Six, device);
            ended.found();
            ended.count(READ_10)
        };
        assert_eq!([failing(0), failing(1), failing(9)], [1, 2, 2]);
    }

    #[test]
    fn case_22_a_new_medium_at_the_first_read_is_measured_again() {
        let mut told = false;
        let device = |command: &Command| match operation(command) {
            READ_10 if !core::mem::replace(&mut told, true) => fails(sense(6, 0x28, 0)),
            _ => healthy(command),
        };
        let ended = minding(Quirks::empty(), ModeForm::Six, device);
        ended.found();
        assert_eq!(ended.count(READ_CAPACITY_10), 2);
    }

    #[test]
    fn a_question_that_upsets_the_transport_costs_the_answer_alone() {
        for (code, most) in [(READ_CAPACITY_16, 1), (READ_10, 1), (MODE_SENSE_6, 1)] {
            let device = |command: &Command| match operation(command) {
                operation if operation == code => dies(TransportError::Timeout),
                _ => fixed(command),
            };
            let ended = minding(Quirks::empty(), ModeForm::Six, device);
            assert_eq!(ended.found().capacity.blocks(), 1000);
            assert_eq!(ended.count(code), most);
        }
        let device = |command: &Command| match &*command.cdb.to_bytes() {
            [INQUIRY, 1, ..] => dies(TransportError::Timeout),
            _ => fixed(command),
        };
        let ended = minding(Quirks::empty(), ModeForm::Six, device);
        assert_eq!(
            (ended.count(INQUIRY), ended.found().details.serial),
            (2, None)
        );
    }
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

mod the_free_manner {
    use super::*;
    use crate::block::WriteCache;
    use crate::scsi::details::Details;

    const REPORT_LUNS: u8 = 0xa0;

    /// Mode parameters of these flags: DPOFUA or none, a caching page or none.
    fn mode(specific: u8, page: &[u8]) -> Answer {
        let mut bytes = vec![3 + page.len() as u8, 0, specific, 0];
        bytes.extend(page);
        good(&bytes)
    }

    const WRITE_BACK: &[u8] = &[
        0x08, 0x12, 0x04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    const WRITE_THROUGH: &[u8] = &[
        0x08, 0x12, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    /// What was found, the mode pages that were asked for, and the neighbours.
    struct Asked {
        action: Action,
        pages: Vec<u8>,
        codes: Vec<u8>,
        neighbours: Vec<Neighbours>,
    }

    impl Asked {
        fn details(&self) -> Details {
            match self.action {
                Action::Ready(found) => found.details,
                other => panic!("{other:?}"),
            }
        }
    }

    fn ask(
        quirks: Quirks,
        (manner, search): (Manner, Search),
        device: impl Fn(&Command) -> Answer,
    ) -> Asked {
        let mut machine = BringUp::new(Instant::NEVER)
            .minding(quirks, ModeForm::Six)
            .asking(manner, search);
        let now = Instant::from_micros(0);
        let (mut pages, mut codes, mut neighbours) = (Vec::new(), Vec::new(), Vec::new());
        let mut action = machine.step(Input::Begin, now);
        while let Action::Issue(command) = action {
            assert!(codes.len() < ENDLESS);
            let cdb = command.cdb.to_bytes();
            codes.push(cdb[0]);
            if cdb[0] == MODE_SENSE_6 {
                pages.push(cdb[2]);
            }
            let Answer { outcome, data, .. } = device(&command);
            action = machine.step(Input::Ended(outcome, &data), now);
            neighbours.extend(machine.take_neighbours());
        }
        Asked {
            action,
            pages,
            codes,
            neighbours,
        }
    }

    /// A stick whose MODE SENSE is answered by page.
    fn device(modes: impl Fn(u8) -> Answer) -> impl Fn(&Command) -> Answer {
        move |command| match &*command.cdb.to_bytes() {
            [INQUIRY, ..] => good(STICK),
            [READ_CAPACITY_10, ..] => good(&capacity_10(999, 512)),
            [MODE_SENSE_6, _, page, ..] => modes(*page),
            [REPORT_LUNS, ..] => good(&[
                0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0,
            ]),
            [READ_10, ..] => good(&[0; 512]),
            _ => good(&[]),
        }
    }

    const FREE: (Manner, Search) = (Manner::Free, Search::None);
    const CAUTIOUS: (Manner, Search) = (Manner::Cautious, Search::None);

    #[test]
    fn the_cache_is_read_where_all_pages_have_it_and_asked_for_where_they_do_not() {
        let together = ask(Quirks::empty(), FREE, device(|_| mode(0x10, WRITE_BACK)));
        assert_eq!(together.pages, [0x3f]);
        assert_eq!(together.details().cache, WriteCache::WriteBack);
        assert!(together.details().takes_forced_writes);
        let apart = device(|page| match page {
            0x08 => mode(0x00, WRITE_THROUGH),
            _ => mode(0x00, &[]),
        });
        let apart = ask(Quirks::empty(), FREE, apart);
        assert_eq!(apart.pages, [0x3f, 0x08]);
        assert_eq!(apart.details().cache, WriteCache::WriteThrough);
        assert!(!apart.details().takes_forced_writes);
    }

    #[test]
    fn a_cautious_bring_up_believes_no_caching_page_and_asks_for_none() {
        let asked = ask(
            Quirks::empty(),
            CAUTIOUS,
            device(|_| mode(0x10, WRITE_THROUGH)),
        );
        assert_eq!(asked.pages, [0x3f]);
        assert_eq!(asked.details().cache, WriteCache::Unknown);
        assert!(!asked.details().takes_forced_writes);
    }

    #[test]
    fn policies_keep_each_question_from_its_device() {
        let answers = |page| match page {
            0x08 => mode(0x10, WRITE_BACK),
            _ => mode(0x90, &[]),
        };
        for (quirk, pages, cache, forced) in [
            (Quirks::ALWAYS_SYNC, &[][..], WriteCache::Unknown, false),
            (Quirks::WRITE_CACHE, &[0x3f], WriteCache::Unknown, false),
            (Quirks::NO_WP_DETECT, &[0x08], WriteCache::WriteBack, true),
            (
                Quirks::BROKEN_FUA,
                &[0x3f, 0x08],
                WriteCache::WriteBack,
                false,
            ),
        ] {
            let asked = ask(quirk, FREE, device(answers));
            assert_eq!(asked.pages, pages, "{quirk:?}");
            assert_eq!(asked.details().cache, cache, "{quirk:?}");
            assert_eq!(asked.details().takes_forced_writes, forced, "{quirk:?}");
        }
    }

    #[test]
    fn write_protection_is_read_from_all_pages_alone() {
        let asked = ask(
            Quirks::empty(),
            FREE,
            device(|page| match page {
                0x08 => mode(0x80, WRITE_BACK),
                _ => mode(0x00, &[]),
            }),
        );
        let Action::Ready(found) = asked.action else {
            panic!("{:?}", asked.action)
        };
        assert!(!found.write_protected);
    }

    #[test]
    fn a_caching_page_that_is_refused_costs_the_question_alone() {
        let asked = ask(
            Quirks::empty(),
            FREE,
            device(|page| match page {
                0x08 => fails(sense(5, 0x24, 0)),
                _ => mode(0x10, &[]),
            }),
        );
        assert_eq!(asked.pages, [0x3f, 0x08]);
        assert_eq!(asked.details().cache, WriteCache::Unknown);
        assert!(asked.details().takes_forced_writes);
    }

    fn listed(numbers: &[u8]) -> Neighbours {
        let mut bytes = vec![0, 0, 0, 8 * numbers.len() as u8, 0, 0, 0, 0];
        for number in numbers {
            bytes.extend([0, *number, 0, 0, 0, 0, 0, 0]);
        }
        Neighbours::Listed(crate::scsi::luns::Luns::parse(&bytes).unwrap())
    }

    #[test]
    fn units_are_listed_before_the_disk_is_asked_anything_else() {
        let plain = device(|_| mode(0, &[]));
        let asked = ask(Quirks::empty(), (Manner::Free, Search::List), plain);
        assert_eq!(asked.codes[..3], [INQUIRY, REPORT_LUNS, TEST_UNIT_READY]);
        assert_eq!(asked.neighbours, [listed(&[0, 2])]);
        assert!(matches!(asked.action, Action::Ready(_)));
    }

    #[test]
    fn where_the_list_is_forbidden_or_fails_the_next_unit_may_be_there() {
        let plain = device(|_| mode(0, &[]));
        let search = (Manner::Free, Search::List);
        let forbidden = ask(Quirks::NO_REPORT_LUNS, search, &plain);
        assert!(!forbidden.codes.contains(&REPORT_LUNS));
        assert_eq!(forbidden.neighbours, [Neighbours::PerhapsNext]);
        for answer in [|| fails(sense(5, 0x20, 0)), || good(&[0; 8])] {
            let failing = |command: &Command| match command.cdb.operation_code() {
                REPORT_LUNS => answer(),
                _ => plain(command),
            };
            let asked = ask(Quirks::empty(), search, failing);
            assert_eq!(asked.neighbours, [Neighbours::PerhapsNext]);
            // A count that is known otherwise stands.
            let counted = ask(Quirks::empty(), (Manner::Free, Search::ListAlone), failing);
            assert_eq!(counted.neighbours, []);
            assert!(matches!(counted.action, Action::Ready(_)));
        }
    }

    #[test]
    fn an_attention_does_not_stand_for_a_list() {
        let attentions = core::cell::Cell::new(2);
        let plain = device(|_| mode(0, &[]));
        let asked = ask(
            Quirks::empty(),
            (Manner::Free, Search::List),
            |command: &Command| match command.cdb.operation_code() {
                REPORT_LUNS if attentions.get() > 0 => {
                    attentions.set(attentions.get() - 1);
                    fails(sense(6, 0x28, 0))
                }
                _ => plain(command),
            },
        );
        assert_eq!(asked.neighbours, [listed(&[0, 2])]);
    }

    #[test]
    fn a_first_unit_that_is_no_disk_tells_of_the_others() {
        let plain = device(|_| mode(0, &[]));
        let asked = ask(
            Quirks::empty(),
            (Manner::Free, Search::List),
            |command: &Command| match command.cdb.operation_code() {
                INQUIRY => {
                    let mut bytes = *STICK;
                    bytes[0] = 0x0d;
                    good(&bytes)
                }
                _ => plain(command),
            },
        );
        assert_eq!(asked.neighbours, [listed(&[0, 2])]);
        assert_eq!(asked.action, Action::Skip);
    }

    #[test]
    fn a_unit_that_is_not_there_ends_the_search() {
        let nobody = |command: &Command| match command.cdb.operation_code() {
            INQUIRY => {
                let mut bytes = *STICK;
                bytes[0] = 0x7f;
                good(&bytes)
            }
            _ => good(&[]),
        };
        let asked = ask(Quirks::empty(), (Manner::Free, Search::Next), nobody);
        assert_eq!((asked.neighbours, asked.action), (vec![], Action::Skip));
        let there = ask(
            Quirks::empty(),
            (Manner::Free, Search::Next),
            device(|_| mode(0, &[])),
        );
        assert_eq!(there.neighbours, [Neighbours::PerhapsNext]);
    }
}
