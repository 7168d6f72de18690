//! What the Bulk-Only machine does with each thing that a device or a wire can do.
//!
//! A test is a script: what happens, and the answer that it must get. Scripts begin where command,
//! data and status are queued, so that one script holds for both ways of queueing.

use super::*;

const QUEUEINGS: [Queueing; 2] = [Queueing::AfterCommand, Queueing::Eager];
const NONE: DataPhase = DataPhase::None;
const IN: DataPhase = DataPhase::In(512);
const OUT: DataPhase = DataPhase::Out(512);
const DONE: Input = Input::Operated(Ok(()));
const CLEAR_IN: Action = Action::ClearHalt(Direction::In);
const CLEAR_OUT: Action = Action::ClearHalt(Direction::Out);
const RECALL_IN: Action = Action::Recall(Direction::In);
const RECALL_OUT: Action = Action::Recall(Direction::Out);
/// The first step of reset recovery.
const RECOVER: Action = Action::Quiesce(Direction::Out);
const CANCELLED_STATUS: Input = Input::Status(Err(Outcome::Cancelled));
const STALLED_STATUS: Input = Input::Status(Err(Outcome::Stall));

/// What happens, and the answer to it.
type Script<'s> = &'s [(Input, Action)];

fn data(outcome: Outcome, actual: u32) -> Input {
    Input::Data {
        outcome,
        actual,
        status: None,
    }
}

fn wrapper(status: CswStatus, residue: u32) -> Csw {
    Csw { status, residue }
}

fn csw(status: CswStatus, residue: u32) -> Input {
    Input::Status(Ok(Ok(wrapper(status, residue))))
}

/// A good status that leaves so many bytes over.
fn passed(residue: u32) -> Input {
    csw(CswStatus::Passed, residue)
}

/// A device that says "phase error".
fn phase_error() -> Input {
    csw(CswStatus::PhaseError, 0)
}

fn bad_status(fault: CswFault) -> Input {
    Input::Status(Ok(Err(fault)))
}

/// The 13 bytes of a status wrapper, come as data.
fn wrapper_as_data(result: Result<Csw, CswFault>) -> Input {
    Input::Data {
        outcome: Outcome::Short,
        actual: Csw::LENGTH as u32,
        status: Some(result),
    }
}

/// The command ends well with so many bytes moved.
fn ends(moved: u32) -> Action {
    Action::Finish(End::Status(CswStatus::Passed, moved))
}

fn ends_failed(moved: u32) -> Action {
    Action::Finish(End::Status(CswStatus::Failed, moved))
}

/// A machine whose command, data and status are queued.
fn queued(phase: DataPhase, queueing: Queueing) -> Machine {
    let mut machine = Machine::idle();
    match queueing {
        Queueing::AfterCommand => {
            assert_eq!(machine.begin(phase, queueing), Action::SendCommand);
            let arrived = machine.step(Input::Command(Outcome::Complete));
            assert_eq!(arrived, Action::SendRest);
        }
        Queueing::Eager => assert_eq!(machine.begin(phase, queueing), Action::SendAll),
        Queueing::AfterData | Queueing::StatusLast => {
            unreachable!("they never have all three queued: after_data_tests")
        }
    }
    machine
}

#[track_caller]
fn follow(machine: &mut Machine, script: Script<'_>) {
    for (place, (input, answer)) in script.iter().enumerate() {
        assert_eq!(machine.step(*input), *answer, "step {place}: {input:?}");
    }
}

/// The script, in both ways of queueing.
#[track_caller]
fn play(phase: DataPhase, script: Script<'_>) {
    for queueing in QUEUEINGS {
        let mut machine = queued(phase, queueing);
        follow(&mut machine, script);
        let is_finished = matches!(script.last(), Some((_, Action::Finish(_))));
        assert_eq!(machine.is_busy(), !is_finished, "{queueing:?}");
    }
}

/// The rest of reset recovery, all of it well (BOT 1.0 §5.3.4).
fn recovery(error: BotError) -> [(Input, Action); 5] {
    [
        (DONE, Action::Quiesce(Direction::In)),
        (DONE, Action::Reset),
        (DONE, CLEAR_IN),
        (DONE, CLEAR_OUT),
        (DONE, Action::Finish(End::Recovered(error))),
    ]
}

/// The script, which ends at the begin of reset recovery, and the whole recovery.
#[track_caller]
fn play_recovery(phase: DataPhase, script: Script<'_>, error: BotError) {
    for queueing in QUEUEINGS {
        let mut machine = queued(phase, queueing);
        follow(&mut machine, script);
        follow(&mut machine, &recovery(error));
        assert!(!machine.is_busy(), "{queueing:?}");
    }
}

/// BOT 1.0 §6.7: what the host expects against what the device means to do.
mod thirteen_cases {
    use super::*;

    #[test]
    fn case_1_no_data_and_none_meant_ends_with_the_status() {
        play(NONE, &[(passed(0), ends(0))]);
        play(NONE, &[(csw(CswStatus::Failed, 0), ends_failed(0))]);
    }

    #[test]
    fn case_2_no_data_but_the_device_sends_gets_reset_recovery() {
        play_recovery(NONE, &[(phase_error(), RECOVER)], BotError::PhaseError);
        // A device that stalls the status instead is asked once more.
        let stalled = [
            (STALLED_STATUS, CLEAR_IN),
            (DONE, Action::ReadStatus),
            (phase_error(), RECOVER),
        ];
        play_recovery(NONE, &stalled, BotError::PhaseError);
        // One that sends its data where the status belongs is out of step.
        let fault = CswFault::WrongLength { found: 512 };
        let sends = [(bad_status(fault), RECOVER)];
        play_recovery(NONE, &sends, BotError::Status(fault));
    }

    #[test]
    fn case_3_no_data_but_the_device_receives_gets_reset_recovery() {
        play_recovery(NONE, &[(phase_error(), RECOVER)], BotError::PhaseError);
    }

    #[test]
    fn case_4_data_in_that_the_device_does_not_have_ends_with_0_bytes() {
        let stalls = [
            (data(Outcome::Stall, 0), CLEAR_IN),
            (CANCELLED_STATUS, Action::Wait),
            (DONE, Action::ReadStatus),
            (csw(CswStatus::Failed, 512), ends_failed(0)),
        ];
        play(IN, &stalls);
        let empty_packet = [
            (data(Outcome::Short, 0), Action::Wait),
            (csw(CswStatus::Failed, 512), ends_failed(0)),
        ];
        play(IN, &empty_packet);
        // Padding is not data: the residue says so.
        let pads = [
            (data(Outcome::Complete, 512), Action::Wait),
            (passed(512), ends(0)),
        ];
        play(IN, &pads);
    }

    #[test]
    fn case_5_less_data_in_than_asked_for_ends_short() {
        let short = [
            (data(Outcome::Short, 36), Action::Wait),
            (passed(476), ends(36)),
        ];
        play(IN, &short);
        let stalls_after_it = [
            (data(Outcome::Stall, 36), CLEAR_IN),
            (CANCELLED_STATUS, Action::Wait),
            (DONE, Action::ReadStatus),
            (passed(476), ends(36)),
        ];
        play(IN, &stalls_after_it);
        let pads = [
            (data(Outcome::Complete, 512), Action::Wait),
            (passed(476), ends(36)),
        ];
        play(IN, &pads);
    }

    #[test]
    fn case_6_all_data_in_ends_with_all_of_it() {
        // A full transfer is not reported by itself: the status behind it says that it is done.
        play(IN, &[(passed(0), ends(512))]);
        play(IN, &[(csw(CswStatus::Failed, 0), ends_failed(512))]);
        let reported = [
            (data(Outcome::Complete, 512), Action::Wait),
            (passed(0), ends(512)),
        ];
        play(IN, &reported);
    }

    #[test]
    fn case_7_more_data_in_than_asked_for_gets_reset_recovery() {
        let polite = [
            (data(Outcome::Complete, 512), Action::Wait),
            (phase_error(), RECOVER),
        ];
        play_recovery(IN, &polite, BotError::PhaseError);
        let babble = BotError::Transfer(UsbError::Babble);
        play_recovery(IN, &[(data(Outcome::Babble, 512), RECOVER)], babble);
        // The surplus lands in the status read.
        let fault = CswFault::WrongLength { found: 488 };
        let surplus = [(bad_status(fault), RECOVER)];
        play_recovery(IN, &surplus, BotError::Status(fault));
    }

    #[test]
    fn case_8_data_in_where_the_device_receives_gets_reset_recovery() {
        let stalls = [
            (data(Outcome::Stall, 0), CLEAR_IN),
            (CANCELLED_STATUS, Action::Wait),
            (DONE, Action::ReadStatus),
            (phase_error(), RECOVER),
        ];
        play_recovery(IN, &stalls, BotError::PhaseError);
    }

    #[test]
    fn case_9_data_out_that_the_device_does_not_want_ends_with_0_bytes() {
        let stalls = [
            (data(Outcome::Stall, 0), CLEAR_OUT),
            (DONE, Action::Wait),
            (csw(CswStatus::Failed, 512), ends_failed(0)),
        ];
        play(OUT, &stalls);
        let swallows = [
            (data(Outcome::Complete, 512), Action::Wait),
            (passed(512), ends(0)),
        ];
        play(OUT, &swallows);
        // The status comes and the data was never taken: nothing may be left in flight.
        let ignores = [
            (csw(CswStatus::Failed, 512), RECALL_OUT),
            (data(Outcome::Cancelled, 0), Action::Wait),
            (DONE, ends_failed(0)),
        ];
        play(OUT, &ignores);
    }

    #[test]
    fn case_10_data_out_where_the_device_sends_gets_reset_recovery() {
        let stalls = [
            (data(Outcome::Stall, 0), CLEAR_OUT),
            (DONE, Action::Wait),
            (phase_error(), RECOVER),
        ];
        play_recovery(OUT, &stalls, BotError::PhaseError);
        // The phase error may come first; the data is still queued then, and recovery takes it.
        play_recovery(OUT, &[(phase_error(), RECOVER)], BotError::PhaseError);
    }

    #[test]
    fn case_11_less_data_out_than_offered_ends_short() {
        let stalls = [
            (data(Outcome::Stall, 192), CLEAR_OUT),
            (DONE, Action::Wait),
            (passed(320), ends(192)),
        ];
        play(OUT, &stalls);
        let takes_part = [
            (passed(320), RECALL_OUT),
            (data(Outcome::Cancelled, 192), Action::Wait),
            (DONE, ends(192)),
        ];
        play(OUT, &takes_part);
    }

    #[test]
    fn case_12_all_data_out_ends_with_all_of_it() {
        let all = [
            (data(Outcome::Complete, 512), Action::Wait),
            (passed(0), ends(512)),
        ];
        play(OUT, &all);
    }

    #[test]
    fn case_13_more_data_out_wanted_than_offered_gets_reset_recovery() {
        let wants_more = [
            (data(Outcome::Complete, 512), Action::Wait),
            (phase_error(), RECOVER),
        ];
        play_recovery(OUT, &wants_more, BotError::PhaseError);
    }
}

mod the_command_wrapper {
    use super::*;

    #[test]
    fn goes_alone_first_and_the_rest_follows_its_arrival() {
        let mut machine = Machine::idle();
        let begun = machine.begin(IN, Queueing::AfterCommand);
        assert_eq!(begun, Action::SendCommand);
        follow(
            &mut machine,
            &[(Input::Command(Outcome::Complete), Action::SendRest)],
        );
    }

    #[test]
    fn that_is_reported_as_arrived_in_eager_queueing_changes_nothing() {
        let mut machine = queued(IN, Queueing::Eager);
        let script = [
            (Input::Command(Outcome::Complete), Action::Wait),
            (passed(0), ends(512)),
        ];
        follow(&mut machine, &script);
    }

    #[test]
    fn that_fails_gets_reset_recovery_in_both_queueings() {
        let table = [
            (Outcome::Stall, BotError::Stalled),
            (
                Outcome::TransactionError,
                BotError::Transfer(UsbError::NoAnswer),
            ),
            (Outcome::SplitError, BotError::Transfer(UsbError::NoAnswer)),
            (Outcome::HostOverrun, BotError::Transfer(UsbError::NoAnswer)),
            (Outcome::Babble, BotError::Transfer(UsbError::Babble)),
        ];
        for (outcome, error) in table {
            for queueing in QUEUEINGS {
                let mut machine = Machine::idle();
                machine.begin(OUT, queueing);
                follow(&mut machine, &[(Input::Command(outcome), RECOVER)]);
                follow(&mut machine, &recovery(error));
            }
        }
    }

    #[test]
    fn that_nobody_takes_is_given_up_at_the_deadline() {
        let mut machine = Machine::idle();
        machine.begin(NONE, Queueing::AfterCommand);
        follow(&mut machine, &[(Input::Deadline, RECOVER)]);
        follow(&mut machine, &recovery(BotError::Timeout));
    }
}

mod the_data {
    use super::*;

    /// Field case 31: the same recovery for every error of the wire or the controller.
    #[test]
    fn that_fails_on_the_wire_gets_reset_recovery() {
        let table = [
            (Outcome::TransactionError, UsbError::NoAnswer),
            (Outcome::SplitError, UsbError::NoAnswer),
            (Outcome::HostOverrun, UsbError::NoAnswer),
            (Outcome::Babble, UsbError::Babble),
            (
                Outcome::Other(29),
                UsbError::Controller(crate::host::HostError::Refused(29)),
            ),
        ];
        for (outcome, error) in table {
            for phase in [IN, OUT] {
                let script = [(data(outcome, 100), RECOVER)];
                play_recovery(phase, &script, BotError::Transfer(error));
            }
        }
    }

    /// Field case 9 (b): 192 bytes asked for, 16 come, then a stall, and a residue of 0xB0.
    #[test]
    fn that_is_short_then_stalled_is_kept_as_the_residue_says() {
        let script = [
            (data(Outcome::Stall, 16), CLEAR_IN),
            (CANCELLED_STATUS, Action::Wait),
            (DONE, Action::ReadStatus),
            (passed(0xb0), ends(16)),
        ];
        play(DataPhase::In(192), &script);
    }

    #[test]
    fn counts_as_the_smaller_of_what_came_and_what_the_device_processed() {
        let table = [
            (512, 0, 512),
            (512, 512, 0),
            (512, 1, 511),
            (100, 0, 100),
            (100, 412, 100),
            (100, 500, 12),
            (0, 0, 0),
        ];
        for (came, residue, moved) in table {
            let script = [
                (data(Outcome::Short, came), Action::Wait),
                (passed(residue), ends(moved)),
            ];
            play(IN, &script);
        }
    }

    #[test]
    fn whose_halt_cannot_be_cleared_gets_reset_recovery() {
        let refused = Input::Operated(Err(UsbError::Stall));
        let script = [(data(Outcome::Stall, 0), CLEAR_IN), (refused, RECOVER)];
        play_recovery(IN, &script, BotError::Transfer(UsbError::Stall));
        let script = [(data(Outcome::Stall, 0), CLEAR_OUT), (refused, RECOVER)];
        play_recovery(OUT, &script, BotError::Transfer(UsbError::Stall));
    }

    #[test]
    fn that_stalls_out_while_the_status_has_come_already_ends_with_that_status() {
        let script = [
            (data(Outcome::Stall, 64), CLEAR_OUT),
            (csw(CswStatus::Failed, 448), Action::Wait),
            (DONE, ends_failed(64)),
        ];
        play(OUT, &script);
    }

    #[test]
    fn that_is_passed_over_but_stalls_while_it_is_recalled_has_its_halt_cleared() {
        let script = [
            (passed(512), RECALL_OUT),
            (data(Outcome::Stall, 0), Action::Wait),
            (DONE, CLEAR_OUT),
            (DONE, ends(0)),
        ];
        play(OUT, &script);
    }

    #[test]
    fn whose_pipe_is_found_halted_as_it_is_recalled_has_its_halt_cleared_once() {
        let halted = Input::Operated(Err(UsbError::Controller(HostError::Halted)));
        for outcome in [Outcome::Stall, Outcome::Cancelled] {
            let script = [
                (passed(512), RECALL_OUT),
                (data(outcome, 0), Action::Wait),
                (halted, CLEAR_OUT),
                (DONE, ends(0)),
            ];
            play(OUT, &script);
        }
    }

    #[test]
    fn that_ended_after_all_while_it_is_recalled_counts() {
        let script = [
            (passed(0), RECALL_OUT),
            (data(Outcome::Complete, 512), Action::Wait),
            (DONE, ends(512)),
        ];
        play(OUT, &script);
    }

    #[test]
    fn that_cannot_be_recalled_gets_reset_recovery_and_no_status_is_believed() {
        let script = [
            (passed(512), RECALL_OUT),
            (Input::Operated(Err(UsbError::Timeout)), RECOVER),
        ];
        play_recovery(OUT, &script, BotError::Transfer(UsbError::Timeout));
    }
}

/// Field case 11.
mod a_status_wrapper_in_place_of_the_data {
    use super::*;

    #[test]
    fn is_the_status_of_a_command_that_moved_nothing() {
        let failed = wrapper(CswStatus::Failed, 512);
        let script = [
            (wrapper_as_data(Ok(failed)), RECALL_IN),
            (CANCELLED_STATUS, Action::Wait),
            (DONE, ends_failed(0)),
        ];
        play(IN, &script);
    }

    #[test]
    fn moves_nothing_also_if_it_claims_that_nothing_is_left_over() {
        let script = [
            (
                wrapper_as_data(Ok(wrapper(CswStatus::Passed, 0))),
                RECALL_IN,
            ),
            (CANCELLED_STATUS, Action::Wait),
            (DONE, ends(0)),
        ];
        play(DataPhase::In(13), &script);
    }

    #[test]
    fn may_be_followed_by_a_stall_which_is_cleared_before_the_next_command() {
        let script = [
            (
                wrapper_as_data(Ok(wrapper(CswStatus::Failed, 512))),
                RECALL_IN,
            ),
            (STALLED_STATUS, Action::Wait),
            (DONE, CLEAR_IN),
            (DONE, ends_failed(0)),
        ];
        play(IN, &script);
    }

    #[test]
    fn may_be_a_phase_error() {
        let phase_error = wrapper(CswStatus::PhaseError, 0);
        let script = [(wrapper_as_data(Ok(phase_error)), RECOVER)];
        play_recovery(IN, &script, BotError::PhaseError);
    }

    #[test]
    fn that_cannot_be_believed_gets_reset_recovery() {
        let fault = CswFault::ReservedStatus { found: 7 };
        let script = [(wrapper_as_data(Err(fault)), RECOVER)];
        play_recovery(IN, &script, BotError::Status(fault));
    }

    #[test]
    fn is_ended_by_the_deadline_if_the_status_read_behind_it_cannot_be_recalled() {
        let script = [
            (
                wrapper_as_data(Ok(wrapper(CswStatus::Passed, 0))),
                RECALL_IN,
            ),
            (Input::Deadline, RECOVER),
        ];
        play_recovery(IN, &script, BotError::Timeout);
    }
}

/// Field case 15.
mod the_status {
    use super::*;

    #[test]
    fn that_cannot_be_believed_gets_reset_recovery() {
        let faults = [
            CswFault::WrongLength { found: 12 },
            CswFault::WrongLength { found: 14 },
            CswFault::WrongLength { found: 16 },
            CswFault::WrongSignature { found: 0x5553_4253 },
            CswFault::WrongTag { found: 1 },
            CswFault::ReservedStatus { found: 3 },
            CswFault::ResidueTooLarge { found: 513 },
        ];
        for fault in faults {
            for phase in [NONE, IN, OUT] {
                let script = [(bad_status(fault), RECOVER)];
                play_recovery(phase, &script, BotError::Status(fault));
            }
        }
    }

    #[test]
    fn of_no_bytes_is_read_once_more_and_not_twice() {
        let empty = CswFault::WrongLength { found: 0 };
        let stray = [
            (bad_status(empty), Action::ReadStatus),
            (passed(0), ends(512)),
        ];
        play(IN, &stray);
        let again = [
            (bad_status(empty), Action::ReadStatus),
            (bad_status(empty), RECOVER),
        ];
        play_recovery(IN, &again, BotError::Status(empty));
    }

    #[test]
    fn that_stalls_is_read_once_more_and_not_twice() {
        let once = [
            (STALLED_STATUS, CLEAR_IN),
            (DONE, Action::ReadStatus),
            (passed(0), ends(512)),
        ];
        play(IN, &once);
        let twice = [
            (STALLED_STATUS, CLEAR_IN),
            (DONE, Action::ReadStatus),
            (STALLED_STATUS, RECOVER),
        ];
        play_recovery(IN, &twice, BotError::Stalled);
    }

    #[test]
    fn that_stalls_after_the_data_had_stalled_is_read_once_more() {
        let script = [
            (data(Outcome::Stall, 0), CLEAR_IN),
            (CANCELLED_STATUS, Action::Wait),
            (DONE, Action::ReadStatus),
            (STALLED_STATUS, CLEAR_IN),
            (DONE, Action::ReadStatus),
            (csw(CswStatus::Failed, 512), ends_failed(0)),
        ];
        play(IN, &script);
    }

    #[test]
    fn that_fails_on_the_wire_gets_reset_recovery() {
        let table = [
            (Outcome::TransactionError, UsbError::NoAnswer),
            (Outcome::SplitError, UsbError::NoAnswer),
            (Outcome::Babble, UsbError::Babble),
        ];
        for (outcome, error) in table {
            let script = [(Input::Status(Err(outcome)), RECOVER)];
            play_recovery(OUT, &script, BotError::Transfer(error));
        }
    }

    #[test]
    fn whose_halt_cannot_be_cleared_gets_reset_recovery() {
        let script = [
            (STALLED_STATUS, CLEAR_IN),
            (Input::Operated(Err(UsbError::Timeout)), RECOVER),
        ];
        play_recovery(NONE, &script, BotError::Transfer(UsbError::Timeout));
    }

    #[test]
    fn that_stalls_while_the_data_still_goes_out_is_read_after_both_halts_are_cleared() {
        let status_first = [
            (STALLED_STATUS, CLEAR_IN),
            (data(Outcome::Stall, 64), Action::Wait),
            (DONE, CLEAR_OUT),
            (DONE, Action::ReadStatus),
            (csw(CswStatus::Failed, 448), ends_failed(64)),
        ];
        play(OUT, &status_first);
        let data_first = [
            (data(Outcome::Stall, 64), CLEAR_OUT),
            (STALLED_STATUS, Action::Wait),
            (DONE, CLEAR_IN),
            (DONE, Action::ReadStatus),
            (csw(CswStatus::Failed, 448), ends_failed(64)),
        ];
        play(OUT, &data_first);
    }
}

mod the_deadline {
    use super::*;

    #[test]
    fn begins_reset_recovery_wherever_the_command_is() {
        let waiting: [(DataPhase, Script<'_>); 6] = [
            (IN, &[]),
            (OUT, &[(data(Outcome::Complete, 512), Action::Wait)]),
            (IN, &[(data(Outcome::Stall, 0), CLEAR_IN)]),
            (NONE, &[(STALLED_STATUS, CLEAR_IN)]),
            (OUT, &[(passed(512), RECALL_OUT)]),
            (
                NONE,
                &[(STALLED_STATUS, CLEAR_IN), (DONE, Action::ReadStatus)],
            ),
        ];
        for (phase, script) in waiting {
            for queueing in QUEUEINGS {
                let mut machine = queued(phase, queueing);
                follow(&mut machine, script);
                follow(&mut machine, &[(Input::Deadline, RECOVER)]);
                follow(&mut machine, &recovery(BotError::Timeout));
            }
        }
    }

    #[test]
    fn means_nothing_to_an_idle_machine() {
        assert_eq!(Machine::idle().step(Input::Deadline), Action::Wait);
    }
}

mod reset_recovery {
    use super::*;

    /// A machine in reset recovery, so many steps of which were taken.
    fn recovering(steps: usize) -> Machine {
        let mut machine = queued(IN, Queueing::AfterCommand);
        follow(&mut machine, &[(Input::Deadline, RECOVER)]);
        follow(&mut machine, &recovery(BotError::Timeout)[..steps]);
        machine
    }

    #[test]
    fn is_not_moved_by_the_ends_of_what_it_takes_back() {
        let late = [
            CANCELLED_STATUS,
            STALLED_STATUS,
            passed(0),
            phase_error(),
            data(Outcome::Cancelled, 100),
            data(Outcome::Stall, 0),
            wrapper_as_data(Ok(wrapper(CswStatus::Passed, 0))),
            Input::Command(Outcome::Cancelled),
            Input::Command(Outcome::Stall),
        ];
        for steps in 0..5 {
            let mut machine = recovering(steps);
            for input in late {
                assert_eq!(machine.step(input), Action::Wait, "{steps}: {input:?}");
            }
            follow(&mut machine, &recovery(BotError::Timeout)[steps..]);
        }
    }

    /// What fails, or does not end, after so many steps.
    fn failing(steps: usize) -> [Action; 2] {
        [Input::Operated(Err(UsbError::Timeout)), Input::Deadline].map(|failure| {
            let mut machine = recovering(steps);
            let action = machine.step(failure);
            assert!(!machine.is_busy());
            action
        })
    }

    #[test]
    fn that_cannot_make_a_pipe_quiet_never_ends_the_command_by_itself() {
        assert_eq!(failing(0), [Action::GiveUp; 2]);
        assert_eq!(failing(1), [Action::GiveUp; 2]);
    }

    #[test]
    fn that_fails_behind_quiet_pipes_ends_the_command_and_says_why_it_began() {
        let broken = Action::Finish(End::Broken(BotError::Timeout));
        for steps in 2..5 {
            assert_eq!(failing(steps), [broken; 2], "{steps}");
        }
    }

    #[test]
    fn leaves_the_machine_ready_for_the_next_command() {
        let mut machine = recovering(5);
        assert_eq!(machine.begin(OUT, Queueing::Eager), Action::SendAll);
        let script = [
            (data(Outcome::Complete, 512), Action::Wait),
            (passed(0), ends(512)),
        ];
        follow(&mut machine, &script);
    }
}

#[test]
fn a_command_takes_nothing_over_from_the_one_before() {
    let mut machine = queued(OUT, Queueing::AfterCommand);
    // A stalled status, an early one, and data that is known: all of it must be forgotten.
    let script = [
        (data(Outcome::Stall, 64), CLEAR_OUT),
        (STALLED_STATUS, Action::Wait),
        (DONE, CLEAR_IN),
        (DONE, Action::ReadStatus),
        (passed(448), ends(64)),
    ];
    follow(&mut machine, &script);
    machine.begin(IN, Queueing::Eager);
    let script = [
        (STALLED_STATUS, CLEAR_IN),
        (DONE, Action::ReadStatus),
        (passed(0), ends(512)),
    ];
    follow(&mut machine, &script);
}

#[test]
fn an_idle_machine_ignores_the_ends_of_what_has_ended() {
    let mut machine = Machine::idle();
    for input in [passed(0), data(Outcome::Stall, 0), DONE, STALLED_STATUS] {
        assert_eq!(machine.step(input), Action::Wait, "{input:?}");
        assert!(!machine.is_busy());
    }
}
