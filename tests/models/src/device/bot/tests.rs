//! The Bulk-Only disk, driven with packets.

use super::super::base::Request;
use super::super::packet_host::{Data as Phase, Fault, PacketHost, Status};
use super::super::scsi::{CacheLoss, LogicalUnit, Sense, Timing, pattern};
use super::super::{Disk, Link, MILLISECOND, Packet, Reply, SECOND, Script, UsbDevice};
use super::*;

mod hooks;

const TEST: [u8; 6] = [0; 6];
const INQUIRY: [u8; 6] = [0x12, 0, 0, 0, 36, 0];

fn read(lba: u8, blocks: u8) -> [u8; 10] {
    [0x28, 0, 0, 0, 0, lba, 0, 0, blocks, 0]
}

fn write(lba: u8, blocks: u8) -> [u8; 10] {
    [0x2a, 0, 0, 0, 0, lba, 0, 0, blocks, 0]
}

fn plugged(script: Script) -> PacketHost<Disk> {
    let mut host = PacketHost::plug(script.build());
    host.enumerate().expect("a disk enumerates");
    host
}

const fn good(residue: u32) -> Status {
    Status {
        well_formed: true,
        tag: 0x1234,
        residue,
        status: 0,
    }
}

const fn failed(residue: u32) -> Status {
    Status {
        status: 1,
        ..good(residue)
    }
}

#[test]
fn blocks_are_written_and_read_at_every_speed() {
    for link in [Link::Full, Link::High, Link::Super] {
        let mut host = plugged(Script::new().speed(link));
        let bytes = [vec![0x5a; 512], vec![0xa5; 512]].concat();
        assert_eq!(
            host.command(&write(8, 2), Phase::Out(&bytes)),
            Ok((vec![], good(0)))
        );
        assert_eq!(
            host.command(&read(8, 2), Phase::In(1024)),
            Ok((bytes, good(0)))
        );
        assert_eq!(
            host.command(&read(10, 1), Phase::In(512)),
            Ok((pattern(10, 512), good(0)))
        );
    }
}

#[test]
fn get_max_lun_tells_the_last_unit() {
    let script = Script::new()
        .unit(LogicalUnit::empty_slot())
        .unit(LogicalUnit::stick(64));
    let mut host = plugged(script);
    assert_eq!(
        host.control([0xa1, 0xfe, 0, 0, 0, 0, 1, 0], &[]),
        Ok(vec![1])
    );
}

#[test]
fn a_class_request_with_wrong_fields_is_recorded() {
    let mut host = plugged(Script::new());
    host.control([0xa1, 0xfe, 0, 0, 1, 0, 1, 0], &[])
        .expect("answered all the same");
    host.device.faults().expect_only("BOT 1.0 §3.2");
    host.control([0x21, 0xff, 1, 0, 0, 0, 0, 0], &[])
        .expect("answered all the same");
    host.device.faults().expect_only("BOT 1.0 §3.1");
}

#[test]
fn a_failed_command_leaves_sense() {
    let mut host = plugged(Script::new().unit(LogicalUnit::empty_slot()));
    assert_eq!(host.simple(&TEST), Ok(1));
    assert_eq!(host.sense(), Ok((2, 0x3a, 0)));
}

#[test]
fn case_4_halts_bulk_in_and_keeps_the_whole_residue() {
    let mut host = plugged(Script::new().unit(LogicalUnit::empty_slot()));
    let capacity = [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    host.command_wrapper(0, &capacity, Phase::In(8))
        .expect("wrapper");
    assert_eq!(host.bulk_in(0x81, 8), Err(Fault::Stall));
    host.clear_halt(0x81).expect("clear");
    assert_eq!(host.status(), Ok(failed(8)));
}

#[test]
fn case_5_ends_by_short_packet_or_halt_as_the_device_is_built() {
    for (short, then_halts) in [
        (ShortEnd::Packet, false),
        (ShortEnd::Halt, true),
        (ShortEnd::EmptyPacket, false),
    ] {
        let mut host = plugged(Script::new().manners(Manners {
            short,
            ..Manners::default()
        }));
        host.command_wrapper(0, &INQUIRY, Phase::In(96))
            .expect("wrapper");
        assert_eq!(host.bulk_in(0x81, 96).map(|bytes| bytes.len()), Ok(36));
        if then_halts {
            assert_eq!(host.status(), Err(Fault::Stall));
            host.clear_halt(0x81).expect("clear");
        }
        assert_eq!(host.status(), Ok(good(60)));
    }
}

#[test]
fn case_9_halts_bulk_out_and_the_status_is_there_at_once() {
    let mut host = plugged(Script::new().unit(LogicalUnit::stick(64).read_only()));
    host.command_wrapper(0, &write(0, 1), Phase::Out(&[0; 512]))
        .expect("wrapper");
    assert_eq!(host.bulk_out(0x02, &[0; 512]), Err(Fault::Stall));
    assert_eq!(host.status(), Ok(failed(512)));
    host.clear_halt(0x02).expect("clear");
    assert_eq!(host.sense(), Ok((7, 0x27, 0)));
}

#[test]
fn a_host_that_announces_another_length_than_the_command_is_recorded() {
    // Cases 2, 3, 7, 8, 10, 13 and, for commands on blocks, 5 and 11.
    let one = [0; 512];
    let two = [0; 1024];
    for (case, cdb, data) in [
        (2, read(0, 1), Phase::Nothing),
        (3, write(0, 1), Phase::Nothing),
        (5, read(0, 1), Phase::In(1024)),
        (7, read(0, 2), Phase::In(512)),
        (8, write(0, 1), Phase::In(512)),
        (10, read(0, 1), Phase::Out(&one)),
        (11, write(0, 1), Phase::Out(&two)),
        (13, write(0, 2), Phase::Out(&one)),
    ] {
        let mut host = plugged(Script::new());
        let (_, status) = host
            .command(&cdb, data)
            .expect("a status comes in every case");
        assert_eq!(status.status == 2, !matches!(case, 5 | 11), "case {case}");
        assert_eq!(host.device.exchanges()[0].case, case);
        host.device.faults().expect_only("BOT 1.0 §6.7");
        host.reset_recovery().expect("recovery");
        assert_eq!(host.simple(&TEST), Ok(0));
    }
}

#[test]
fn an_invalid_wrapper_halts_both_pipes_until_reset_recovery() {
    let mut host = plugged(Script::new());
    host.bulk_out(0x02, &[0; 30]).expect("taken");
    host.device.faults().expect_only("BOT 1.0 §6.2.1");
    for _ in 0..2 {
        assert_eq!(host.bulk_in(0x81, 512), Err(Fault::Stall));
        host.clear_halt(0x81).expect("accepted, without effect");
        let status = host.control([0x82, 0, 0, 0, 0x81, 0, 2, 0], &[]);
        assert_eq!(status, Ok(vec![1, 0]));
        assert_eq!(host.bulk_out(0x02, &[0; 31]), Err(Fault::Stall));
        host.clear_halt(0x02).expect("accepted, without effect");
    }
    host.reset_recovery().expect("recovery");
    assert_eq!(host.simple(&TEST), Ok(0));
}

#[test]
fn a_reserved_bit_in_a_wrapper_is_recorded() {
    let mut host = plugged(Script::new());
    host.command_wrapper(0x10, &TEST, Phase::Nothing)
        .expect("wrapper");
    host.device.faults().expect_only("BOT 1.0 §6.2.2");
    assert_eq!(host.status(), Ok(good(0)));
}

#[test]
fn a_wrapper_before_the_status_was_read_is_recorded() {
    let mut host = plugged(Script::new());
    host.command_wrapper(0, &TEST, Phase::Nothing)
        .expect("wrapper");
    host.now += MILLISECOND;
    host.patience = MILLISECOND;
    assert_eq!(
        host.command_wrapper(0, &TEST, Phase::Nothing),
        Err(Fault::Timeout)
    );
    host.device.faults().expect_only("BOT 1.0 §5.3");
}

#[test]
fn a_read_that_is_queued_before_the_command_gets_its_data() {
    let mut host = plugged(Script::new());
    host.patience = 0;
    assert_eq!(host.bulk_in(0x81, 512), Err(Fault::Timeout));
    host.patience = SECOND;
    assert_eq!(
        host.command(&read(3, 1), Phase::In(512)),
        Ok((pattern(3, 512), good(0)))
    );
}

#[test]
fn less_data_than_announced_is_recorded() {
    let mut host = plugged(Script::new());
    host.command_wrapper(0, &write(0, 2), Phase::Out(&[0; 1024]))
        .expect("wrapper");
    host.bulk_out(0x02, &[1; 600])
        .expect("a short packet ends it");
    host.device.faults().expect_only("BOT 1.0 §6.7");
    assert_eq!(host.status(), Ok(good(424)));
    assert_eq!(
        (host.device.block(0)[0], host.device.block(1)),
        (1, pattern(1, 512))
    );
}

#[test]
fn a_bad_block_gives_the_good_ones_then_a_halt() {
    let mut host = plugged(Script::new().unit(LogicalUnit::stick(64).bad_blocks(5..6)));
    host.command_wrapper(0, &read(4, 4), Phase::In(2048))
        .expect("wrapper");
    let mut sequence = 0;
    assert_eq!(
        host.read_packet(0x81, 512, 2048, &mut sequence),
        Ok(pattern(4, 512))
    );
    assert_eq!(host.bulk_in(0x81, 512), Err(Fault::Stall));
    host.clear_halt(0x81).expect("clear");
    assert_eq!(host.status(), Ok(failed(1536)));
    assert_eq!(host.sense(), Ok((3, 0x11, 0)));
}

#[test]
fn a_write_that_fails_at_a_block_takes_all_data_and_fails() {
    let mut host = plugged(Script::new().unit(LogicalUnit::stick(64).bad_blocks(5..6)));
    let bytes = [9; 1024];
    let (_, status) = host
        .command(&write(4, 2), Phase::Out(&bytes))
        .expect("a status");
    assert_eq!(status, failed(0));
    assert_eq!(host.sense(), Ok((3, 0x0c, 0)));
    assert_eq!(
        host.device.commands()[0].failure,
        Some(Sense::WRITE_ERROR.at(5))
    );
}

#[test]
fn pulling_the_plug_loses_the_cache_at_once() {
    let unit = LogicalUnit::stick(64).write_cache(CacheLoss::PowerCycle);
    let mut host = plugged(Script::new().unit(unit));
    host.command(&write(0, 1), Phase::Out(&[7; 512]))
        .expect("into the cache");
    assert_eq!(host.device.block(0), [7; 512]);
    host.device.pull_at(1);
    assert_eq!(host.simple(&TEST), Err(Fault::Silent));
    assert_eq!(host.device.block(0), pattern(0, 512));
}

#[test]
fn a_pulled_disk_works_again_when_put_back() {
    let mut host = plugged(Script::new());
    host.device.pull_at(1);
    assert_eq!(host.simple(&TEST), Err(Fault::Silent));
    host.device.put_back();
    host.device.power_on(host.now);
    host.reset();
    host.enumerate().expect("comes back");
    assert_eq!(host.simple(&TEST), Ok(0));
}

#[test]
fn commands_take_the_time_of_the_medium() {
    let timing = Timing {
        access: 3 * MILLISECOND,
        program: 7 * MILLISECOND,
        flush: 100 * MILLISECOND,
        bytes_per_second: Some(1_000_000),
    };
    let mut host = plugged(Script::new().unit(LogicalUnit::stick(64).timing(timing)));
    let time = |host: &mut PacketHost<Disk>, cdb: &[u8], data: Phase<'_>| {
        let before = host.now;
        host.command(cdb, data).expect("a slow disk is a good disk");
        (host.now - before) / MILLISECOND
    };
    assert_eq!(time(&mut host, &TEST, Phase::Nothing), 3);
    assert_eq!(time(&mut host, &read(0, 20), Phase::In(10240)), 3 + 10);
    // 10240 bytes at 1 MB/s are taken in 10 ms, programmed in 7 after the last byte came.
    assert_eq!(time(&mut host, &write(0, 20), Phase::Out(&[0; 10240])), 13);
}

#[test]
fn a_full_buffer_is_told_by_nyet_and_asked_about_by_ping() {
    let timing = Timing {
        bytes_per_second: Some(1_000_000),
        ..Timing::default()
    };
    let mut host = plugged(Script::new().unit(LogicalUnit::stick(512).timing(timing)));
    let bytes = vec![0; 255 * 512];
    host.command_wrapper(0, &write(0, 255), Phase::Out(&bytes))
        .expect("wrapper");
    host.now += MILLISECOND;
    let mut toggle = 1;
    let mut packets = 0;
    loop {
        let packet = Packet::Out {
            data: &bytes[..512],
            sequence: toggle,
            stream: 0,
        };
        packets += 1;
        toggle ^= 1;
        match host.transact(0x02, packet).expect("taken") {
            Reply::Ack => {}
            Reply::Nyet => break,
            reply => panic!("got {reply:?}"),
        }
    }
    // 64 KiB fit besides what the medium has taken meanwhile.
    assert!((129..140).contains(&packets), "{packets} packets");
    assert_eq!(
        host.device
            .clone()
            .transact(host.now, 5, 0x02, Packet::Ping),
        Reply::Nak
    );
    assert_eq!(host.transact(0x02, Packet::Ping), Ok(Reply::Ack));
}

#[test]
fn a_bus_reset_ends_the_command() {
    let mut host = plugged(Script::new());
    host.command_wrapper(0, &read(0, 4), Phase::In(2048))
        .expect("wrapper");
    host.reset();
    host.enumerate().expect("comes back");
    assert_eq!(host.simple(&TEST), Ok(0));
}

#[test]
fn a_command_that_survives_a_bus_reset_swallows_the_next_wrappers() {
    let manners = Manners {
        survives_bus_reset: true,
        ..Manners::default()
    };
    let mut host = plugged(Script::new().manners(manners));
    host.patience = SECOND;
    host.command_wrapper(0, &write(0, 1), Phase::Out(&[0; 512]))
        .expect("wrapper");
    host.reset();
    host.enumerate().expect("endpoint 0 lives");
    assert_eq!(host.simple(&TEST), Err(Fault::Timeout));
    host.reset_recovery().expect("recovery");
    assert_eq!(host.simple(&TEST), Ok(0));
}

#[test]
fn a_device_may_start_halted_and_may_ignore_the_class_reset() {
    for (class_reset, expected) in [
        (ClassReset::Works, Ok(0)),
        (ClassReset::Ignored, Err(Fault::Stall)),
    ] {
        let manners = Manners {
            starts_halted: true,
            class_reset,
            ..Manners::default()
        };
        let mut host = plugged(Script::new().manners(manners));
        assert_eq!(host.simple(&TEST), Err(Fault::Stall));
        host.reset_recovery().expect("accepted");
        assert_eq!(host.simple(&TEST), expected);
    }
}

#[test]
fn the_handle_tells_what_the_host_did() {
    let mut host = plugged(Script::new());
    host.command(&read(0, 3), Phase::In(1536)).expect("read");
    host.simple(&TEST).expect("test");
    let disk = &host.device;
    assert_eq!((disk.opcodes(), disk.count(0x28)), (vec![0x28, 0x00], 1));
    assert_eq!(disk.longest_transfer(), 3);
    assert_eq!((disk.bus_resets().len(), disk.power_ons().len()), (1, 1));
    assert_eq!(disk.requests().len(), 2);
    let exchange = &disk.exchanges()[0];
    assert_eq!((exchange.case, exchange.status), (6, Some(0)));
    assert!(exchange.ended > Some(exchange.at));
}
