//! The hooks, one by one.

use super::*;

fn with_hook(when: When, action: Action) -> PacketHost<Disk> {
    plugged(Script::new().on(when, action))
}

fn read_with(action: Action) -> Result<(Vec<u8>, Status), Fault> {
    with_hook(opcode(0x28), action).command(&read(0, 2), Phase::In(1024))
}

#[test]
fn a_hook_fails_a_command_with_its_sense() {
    let mut host = with_hook(opcode(0x00).once(), Action::Fail(Sense::UNDER_POWERED));
    assert_eq!(host.simple(&TEST), Ok(1));
    assert_eq!(host.sense(), Ok((4, 0x44, 0x81)));
    assert_eq!(host.simple(&TEST), Ok(0));
}

#[test]
fn a_device_with_longer_wrappers_takes_no_plain_ones() {
    let manners = Manners {
        wrapper_length: 32,
        ..Manners::default()
    };
    let mut host = plugged(Script::new().manners(manners));
    assert_eq!(host.simple(&TEST), Err(Fault::Stall));
    let found = host.device.faults().take();
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_device_that_wants_a_pause_dies_of_haste() {
    let manners = Manners {
        pause: SECOND,
        ..Manners::default()
    };
    let mut host = plugged(Script::new().manners(manners));
    assert_eq!(host.simple(&TEST), Ok(0), "no data, no haste");
    assert!(host.command(&INQUIRY, Phase::In(36)).is_err());
    assert!(host.simple(&TEST).is_err(), "dead until reset recovery");
}

#[test]
fn a_device_that_wants_the_status_last_halts_where_it_is_asked_for_early() {
    let manners = Manners {
        status_last: true,
        ..Manners::default()
    };
    let mut host = plugged(Script::new().manners(manners));
    let bytes = [7; 512];
    let in_order = host.command(&write(0, 1), Phase::Out(&bytes));
    assert_eq!(in_order, Ok((vec![], good(0))));
    host.command_wrapper(0, &write(0, 1), Phase::Out(&bytes))
        .expect("wrapper");
    assert_eq!(host.status(), Err(Fault::Stall), "before its data");
    host.clear_halt(0x81).expect("clear");
    host.bulk_out(0x02, &bytes)
        .expect("the data are still taken");
    assert_eq!(host.status(), Ok(good(0)));
}

#[test]
fn a_hook_replaces_data() {
    let mut host = with_hook(opcode(0x12), Action::Data(vec![9; 16]));
    assert_eq!(
        host.command(&INQUIRY, Phase::In(36)),
        Ok((vec![9; 16], good(20)))
    );
    assert_eq!(host.device.count_requests(Request::CLEAR_HALT), 0);
}

#[test]
fn a_hook_delays_data_or_status() {
    for action in [Action::Delay(2 * SECOND), Action::DelayStatus(2 * SECOND)] {
        let mut host = with_hook(any(), action);
        let before = host.now;
        assert_eq!(host.simple(&TEST), Ok(0));
        assert!(host.now - before >= 2 * SECOND);
    }
}

#[test]
fn hooks_shorten_data_with_and_without_an_end() {
    let half = pattern(0, 512);
    assert_eq!(
        read_with(Action::ShortData(100)),
        Ok((half[..100].to_vec(), good(924)))
    );
    let mut host = with_hook(opcode(0x28), Action::EarlyStatus(512));
    host.command_wrapper(0, &read(0, 2), Phase::In(1024))
        .expect("wrapper");
    let bytes = host.bulk_in(0x81, 1024).expect("data and status in one");
    assert_eq!(bytes.len(), 512 + 13);
    assert_eq!(bytes[512..516], *b"USBS");
}

#[test]
fn a_hook_lengthens_data_beyond_what_was_announced() {
    let mut host = with_hook(opcode(0x12), Action::LongData(10));
    assert_eq!(host.command(&INQUIRY, Phase::In(36)), Err(Fault::Babble));
}

#[test]
fn a_hook_makes_data_wrong_both_ways() {
    let (bytes, status) = read_with(Action::WrongData).expect("looks good");
    assert_eq!((bytes[7], status), (!pattern(0, 512)[7], good(0)));
    let mut host = with_hook(opcode(0x2a), Action::WrongData);
    host.command(&write(0, 1), Phase::Out(&[0xf0; 512]))
        .expect("looks good");
    assert_eq!(host.device.block(0), [0x0f; 512]);
}

#[test]
fn a_hook_sends_the_status_in_place_of_data() {
    let mut host = with_hook(opcode(0x28), Action::StatusAsData(Sense::UNKNOWN_COMMAND));
    host.command_wrapper(0, &read(0, 2), Phase::In(1024))
        .expect("wrapper");
    let bytes = host.bulk_in(0x81, 1024).expect("13 bytes");
    assert_eq!(bytes, status_wrapper(0x1234, 1024, 1));
    assert_eq!(host.sense(), Ok((5, 0x20, 0)));
}

#[test]
fn a_hook_silences_transactions_of_the_data_phase() {
    let mut host = with_hook(opcode(0x28), Action::SilentData(3));
    host.command_wrapper(0, &read(0, 2), Phase::In(1024))
        .expect("wrapper");
    host.now += MILLISECOND;
    for _ in 0..3 {
        assert_eq!(host.bulk_in(0x81, 1024), Err(Fault::Silent));
    }
    assert_eq!(host.bulk_in(0x81, 1024).map(|bytes| bytes.len()), Ok(1024));
    assert_eq!(host.status(), Ok(good(0)));
}

#[test]
fn asking_for_the_status_of_a_write_does_not_use_its_silence_up() {
    let mut host = with_hook(opcode(0x2a), Action::SilentData(3));
    host.command_wrapper(0, &write(0, 1), Phase::Out(&[1; 512]))
        .expect("wrapper");
    host.now += MILLISECOND;
    let (data, status) = (
        Packet::Out {
            data: &[1; 512],
            sequence: 1,
            stream: 0,
        },
        Packet::In {
            sequence: 0,
            maximum: 512,
            stream: 0,
        },
    );
    for _ in 0..3 {
        let (now, address) = (host.now, host.address);
        let silent = host.device.transact(now, address, 0x02, data);
        assert_eq!(silent, Reply::Silent);
        let busy = host.device.transact(now, address, 0x81, status);
        assert_eq!(busy, Reply::Nak);
    }
}

#[test]
fn a_hook_halts_the_data_pipe() {
    let mut host = with_hook(opcode(0x28), Action::HaltData);
    host.command_wrapper(0, &read(0, 2), Phase::In(1024))
        .expect("wrapper");
    assert_eq!(host.bulk_in(0x81, 1024), Err(Fault::Stall));
    let mut host = with_hook(opcode(0x2a), Action::HaltData);
    host.command_wrapper(0, &write(0, 1), Phase::Out(&[0; 512]))
        .expect("wrapper");
    assert_eq!(host.bulk_out(0x02, &[0; 512]), Err(Fault::Stall));
}

#[test]
fn a_hook_puts_an_empty_packet_before_the_status() {
    let mut host = with_hook(any(), Action::EmptyPacketBeforeStatus);
    host.command_wrapper(0, &TEST, Phase::Nothing)
        .expect("wrapper");
    assert_eq!(host.bulk_in(0x81, 512), Ok(vec![]));
    assert_eq!(host.status(), Ok(good(0)));
}

#[test]
fn a_hook_halts_the_status_for_some_reads() {
    let mut host = with_hook(any(), Action::HaltStatus(2));
    host.command_wrapper(0, &TEST, Phase::Nothing)
        .expect("wrapper");
    for _ in 0..2 {
        assert_eq!(host.status(), Err(Fault::Stall));
        host.clear_halt(0x81).expect("clear");
    }
    assert_eq!(host.status(), Ok(good(0)));
}

#[test]
fn hooks_bend_each_field_of_the_status() {
    let status = |action| {
        let mut host = with_hook(any(), action);
        host.command(&TEST, Phase::Nothing).expect("some status").1
    };
    assert_eq!(status(Action::Status(2)).status, 2);
    assert_eq!(status(Action::Tag(1)).tag, 1);
    assert_eq!(status(Action::Residue(99)).residue, 99);
    assert!(!status(Action::Signature(*b"SBSU")).well_formed);
    assert!(!status(Action::StatusLength(16)).well_formed);
    assert!(!status(Action::StatusLength(12)).well_formed);
}

#[test]
fn a_hang_ends_at_the_rung_that_was_named_and_not_before() {
    for (until, ended_by) in [
        (Until::ClassReset, 0),
        (Until::BusReset, 1),
        (Until::PowerCycle, 2),
    ] {
        let mut host = with_hook(opcode(0x00).once(), Action::Hang(until));
        host.patience = SECOND;
        assert_eq!(host.simple(&TEST), Err(Fault::Timeout));
        for rung in 0..3 {
            match rung {
                0 => host.reset_recovery().expect("endpoint 0 lives"),
                1 => host.reset(),
                _ => {
                    host.device.power_off(host.now);
                    host.device.power_on(host.now);
                    host.reset();
                }
            }
            if rung > 0 {
                host.enumerate().expect("endpoint 0 lives");
            }
            let expected = if rung >= ended_by {
                Ok(0)
            } else {
                Err(Fault::Timeout)
            };
            assert_eq!(host.simple(&TEST), expected, "{until:?} after rung {rung}");
        }
    }
}

#[test]
fn a_crash_silences_endpoint_0_too() {
    let mut host = with_hook(opcode(0x00).once(), Action::Crash(Until::BusReset));
    assert_eq!(host.simple(&TEST), Err(Fault::Silent));
    assert_eq!(host.reset_recovery(), Err(Fault::Silent));
    host.reset();
    host.enumerate().expect("alive again");
    assert_eq!(host.simple(&TEST), Ok(0));
}

#[test]
fn a_device_that_leaves_comes_back_and_needs_a_reset() {
    let mut host = with_hook(opcode(0x00).once(), Action::Leave(300 * MILLISECOND));
    assert_eq!(host.simple(&TEST), Err(Fault::Silent));
    assert_eq!(host.device.link(host.now), None);
    host.now = host
        .device
        .link_changes_at(host.now)
        .expect("it comes back");
    assert_eq!(host.device.link(host.now), Some(Link::High));
    assert_eq!(host.simple(&TEST), Err(Fault::Silent));
    host.reset();
    host.enumerate().expect("alive again");
    assert_eq!(host.simple(&TEST), Ok(0));
}
