//! GET MAX LUN (BOT 1.0 §3.2) answered in odd ways. A host takes one unit for granted and goes on.
//!
//! CherryUSB issues 259 and 339 (stick 058f:6387), edk2 commit 8d92f819f5.

use super::super::base::{Answer, Request};
use super::super::{Disk, Nanoseconds, SECOND, Script};

/// The request is stalled, which the specification allows to a device with one unit.
#[must_use]
pub fn stalls() -> Disk {
    answering(Answer::Stall)
}

/// The answer is `value`: 16 and more are not legal.
#[must_use]
pub fn says(value: u8) -> Disk {
    answering(Answer::Data(vec![value]))
}

/// The data stage is empty.
#[must_use]
pub fn says_nothing() -> Disk {
    answering(Answer::Data(Vec::new()))
}

/// The answer comes after 10 s.
#[must_use]
pub fn answers_after_ten_seconds() -> Disk {
    answering(Answer::After(10 * SECOND, Box::new(Answer::Data(vec![0]))))
}

/// The data stage is NAKed for ever; the next request works.
#[must_use]
pub fn never_answers() -> Disk {
    answering(Answer::After(Nanoseconds::MAX, Box::new(Answer::Stall)))
}

fn answering(answer: Answer) -> Disk {
    Script::new()
        .ids(0x058f, 0x6387)
        .control(Request::GET_MAX_LUN, answer)
        .build()
}

#[cfg(test)]
mod tests {
    use super::super::super::packet_host::Fault;
    use super::super::testing::{TEST, plugged};
    use super::*;

    const GET_MAX_LUN: [u8; 8] = [0xa1, 0xfe, 0, 0, 0, 0, 1, 0];

    #[test]
    fn each_answer_is_odd_and_the_disk_works_afterwards() {
        for (disk, answer) in [
            (stalls(), Err(Fault::Stall)),
            (says(0x10), Ok(vec![0x10])),
            (says(0xff), Ok(vec![0xff])),
            (says_nothing(), Ok(vec![])),
            (answers_after_ten_seconds(), Err(Fault::Timeout)),
            (never_answers(), Err(Fault::Timeout)),
        ] {
            let mut host = plugged(disk);
            assert_eq!(host.control(GET_MAX_LUN, &[]), answer);
            assert_eq!(host.simple(&TEST), Ok(0));
        }
    }

    #[test]
    fn a_late_answer_comes_to_a_patient_host() {
        let mut host = plugged(answers_after_ten_seconds());
        host.patience = 11 * SECOND;
        assert_eq!(host.control(GET_MAX_LUN, &[]), Ok(vec![0]));
    }
}
