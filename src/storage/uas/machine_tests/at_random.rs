//! Tests of the machine: any sequence of inputs.

use super::*;

/// Whatever comes in whatever order: no tag ends twice, none ends with a transfer in flight, and the
/// machine neither panics nor loops.
#[test]
fn no_sequence_of_inputs_ends_a_tag_with_a_transfer_in_flight() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..4000 {
        let mode = if round % 2 == 0 {
            Mode::Streams
        } else {
            Mode::Ready
        };
        run_at_random(mode, &mut seed);
    }
}

fn random(seed: &mut u64, below: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed % below
}

fn run_at_random(mode: Mode, seed: &mut u64) {
    let mut machine = Machine::new(mode, DEPTH);
    // Transfers in flight by tag: status, data; and whether a command has the tag.
    let (mut status, mut data_out, mut used) = ([false; 18], [false; 18], [false; 18]);
    for _ in 0..60 {
        let number = random(seed, 7) as u16 + 1;
        let place = usize::from(number);
        let outcome = match random(seed, 8) {
            0 => Outcome::Stall,
            1 => Outcome::Short,
            2 => Outcome::Babble,
            _ => Outcome::Complete,
        };
        let unit = match random(seed, 6) {
            0 => bad(number),
            1 => response(number, ResponseCode::Complete),
            2 => response(number, ResponseCode::NotSupported),
            3 => StatusUnit::ReadReady(tag(number)),
            _ => good(number),
        };
        match random(seed, 6) {
            0 if number <= u16::from(DEPTH) && !used[place] && machine.takes_commands() => {
                used[place] = true;
                machine.begin(tag(number), 0, READ);
            }
            1 if data_out[place] => {
                data_out[place] = false;
                machine.step(data(number, outcome, 512));
            }
            2 if mode == Mode::Streams && status[place] => {
                status[place] = false;
                machine.step(on(number, unit));
            }
            3 if mode == Mode::Ready => machine.step(heard(unit)),
            4 => machine.step(Input::Late(tag(number))),
            5 if machine.running.is_some() => {
                let pipe = machine.running;
                for other in 1..18_u16 {
                    let place = usize::from(other);
                    if pipe == Some(UasPipe::Status) && core::mem::take(&mut status[place]) {
                        machine.step(cancelled_status(other));
                    }
                    if pipe == Some(UasPipe::DataIn) && core::mem::take(&mut data_out[place]) {
                        machine.step(data(other, Outcome::Cancelled, 0));
                    }
                }
                machine.step(OPERATED);
            }
            _ => {}
        }
        for action in drain(&mut machine) {
            match action {
                Action::ReadStatus(Some(tag)) => {
                    let place = &mut status[usize::from(tag.number())];
                    assert!(!core::mem::replace(place, true), "two reads on a stream");
                }
                Action::QueueData(tag, _) => {
                    let place = &mut data_out[usize::from(tag.number())];
                    assert!(!core::mem::replace(place, true), "its data twice");
                }
                Action::Finish(tag, _) => {
                    let place = usize::from(tag.number());
                    assert!(core::mem::take(&mut used[place]), "ended twice");
                    assert!(!data_out[place] && !status[place], "still in flight");
                }
                Action::GiveUp => return,
                _ => {}
            }
        }
    }
}
