//! The UAS disk alone, packet by packet: each check has a test that trips it.

use super::super::base::{Function, Given, Reset, Taken, Wire};
use super::super::scsi::{LogicalUnit, Sense, Target};
use super::super::{Link, MILLISECOND, Violations};
use super::machine::PIPES;
use super::*;
use crate::device::base::Endpoints;

const READ_ONE: [u8; 16] = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
const WRITE_ONE: [u8; 16] = [0x2a, 0, 0, 0, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];

struct Bench {
    uas: Uas,
    link: Link,
    endpoints: Endpoints,
    violations: Violations,
    now: u64,
}

impl Bench {
    fn new(link: Link) -> Self {
        let violations = Violations::new();
        let unit = LogicalUnit::disk(64, 512);
        let mut uas = Uas::new(Target::new(vec![unit], violations.clone()), 8);
        uas.reset(0, Reset::PowerOn);
        if link.is_super() {
            uas.primed = PIPES[1..].to_vec();
        }
        Self {
            uas,
            link,
            endpoints: Endpoints::default(),
            violations,
            now: 1_000_000_000,
        }
    }

    fn with<R>(&mut self, work: impl FnOnce(&mut Uas, &mut Wire<'_>) -> R) -> R {
        self.now += 5 * MILLISECOND;
        let mut wire = Wire {
            now: self.now,
            link: self.link,
            endpoints: &mut self.endpoints,
            violations: &self.violations,
        };
        self.uas.advance(&mut wire);
        work(&mut self.uas, &mut wire)
    }

    fn command(&mut self, tag: u16, cdb: [u8; 16]) {
        let mut unit = vec![0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        unit[2..4].copy_from_slice(&tag.to_be_bytes());
        unit.extend(cdb);
        self.send(&unit);
    }

    fn task(&mut self, tag: u16, function: u8, target: u16) {
        let mut unit = vec![0x05, 0, 0, 0, function, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        unit[2..4].copy_from_slice(&tag.to_be_bytes());
        unit[6..8].copy_from_slice(&target.to_be_bytes());
        self.send(&unit);
    }

    fn send(&mut self, unit: &[u8]) {
        let taken = self.with(|uas, wire| uas.take(wire, 0x01, 0, unit));
        assert_eq!(taken, Taken::Yes);
    }

    fn status(&mut self, stream: u16) -> Option<Vec<u8>> {
        match self.with(|uas, wire| uas.give(wire, 0x82, stream, 1024)) {
            Given::Packet { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    fn data(&mut self, stream: u16, maximum: usize) -> Option<Vec<u8>> {
        match self.with(|uas, wire| uas.give(wire, 0x83, stream, maximum)) {
            Given::Packet { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// The streams that the device wants to start on a pipe, in its order.
    fn streams_ready(&self, pipe: u8) -> Vec<u16> {
        let ready = self.uas.streams_ready(self.now, pipe);
        ready.into_iter().map(|(_, stream)| stream).collect()
    }

    /// Takes the attention that follows power-on.
    fn settle(&mut self) {
        let streams = u16::from(self.link.is_super());
        self.command(1, [0; 16]);
        let sense = self.status(streams).unwrap();
        if sense[6] == 2 {
            self.command(1, [0; 16]);
            self.status(streams).unwrap();
        }
    }
}

#[test]
fn with_streams_each_command_has_its_data_and_status_on_its_own_stream() {
    let mut bench = Bench::new(Link::Super);
    bench.settle();
    bench.command(2, READ_ONE);
    bench.command(3, READ_ONE);
    assert_eq!(bench.status(3), None, "data first");
    assert_eq!(bench.data(3, 1024).map(|data| data.len()), Some(512));
    assert_eq!(bench.status(2), None);
    assert_eq!(bench.status(3).unwrap()[..4], [0x03, 0, 0, 3]);
    assert_eq!(bench.data(2, 1024).map(|data| data.len()), Some(512));
    assert_eq!(bench.status(2).unwrap()[..4], [0x03, 0, 0, 2]);
    assert!(bench.violations.all().is_empty());
}

#[test]
fn without_streams_the_device_says_whose_data_come_next() {
    let mut bench = Bench::new(Link::High);
    bench.settle();
    bench.command(2, READ_ONE);
    bench.command(3, READ_ONE);
    for _ in 0..2 {
        let ready = bench.status(0).unwrap();
        assert_eq!((ready[0], ready.len()), (0x06, 4));
        assert_eq!(bench.status(0), None, "one data phase at a time");
        assert_eq!(bench.data(0, 512).map(|data| data.len()), Some(512));
        let sense = bench.status(0).unwrap();
        assert_eq!((sense[0], sense[3]), (0x03, ready[3]));
    }
    assert!(bench.violations.all().is_empty());
}

#[test]
fn a_write_is_stored_when_its_data_have_come() {
    let mut bench = Bench::new(Link::High);
    bench.settle();
    bench.command(2, WRITE_ONE);
    assert_eq!(bench.status(0).unwrap()[0], 0x07);
    let taken = bench.with(|uas, wire| uas.take(wire, 0x04, 0, &[0x5a; 512]));
    assert_eq!(taken, Taken::Yes);
    assert_eq!(bench.status(0).unwrap()[6], 0);
    assert_eq!(bench.uas.target.units[0].image.block(5), [0x5a; 512]);
}

#[test]
fn data_before_the_device_was_ready_are_the_host_s_fault() {
    let mut bench = Bench::new(Link::High);
    bench.settle();
    bench.command(2, READ_ONE);
    assert_eq!(bench.data(0, 512), None);
    bench.violations.expect_only("UAS §4.3");
}

#[test]
fn a_tag_in_use_ends_everything_and_is_the_host_s_fault() {
    let mut bench = Bench::new(Link::Super);
    bench.settle();
    bench.command(2, READ_ONE);
    bench.command(3, READ_ONE);
    bench.command(2, READ_ONE);
    assert_eq!(bench.status(2).unwrap()[7], 0x0a);
    assert_eq!(bench.uas.holds(), 0);
    bench.violations.expect_only("UAS §4.2");
}

#[test]
fn a_tag_beyond_the_streams_and_a_stream_that_does_not_exist_are_the_host_s_fault() {
    let mut bench = Bench::new(Link::Super);
    bench.settle();
    bench.command(9, READ_ONE);
    bench.violations.expect_only("UAS §4.2");
    for stream in [0, 9] {
        let mut bench = Bench::new(Link::Super);
        bench.settle();
        bench.status(stream);
        bench.violations.expect_only("UAS §4.2");
    }
    let mut bench = Bench::new(Link::High);
    bench.settle();
    bench.status(3);
    bench.violations.expect_only("UAS §4.2");
}

#[test]
fn a_stream_before_its_pipe_was_primed_is_the_host_s_fault() {
    let mut bench = Bench::new(Link::Super);
    bench.uas.primed.clear();
    bench.status(1);
    bench.violations.expect_only("USB 3.2 §8.12.1.4");
    assert_eq!(bench.uas.streams_ready(bench.now, 0x82), []);
    let primed = bench.with(|uas, wire| uas.prime(wire, 0x82));
    assert_eq!(primed, Taken::Busy, "NRDY");
    bench.command(1, [0; 16]);
    let ready: Vec<u16> = bench.streams_ready(0x82);
    assert_eq!(ready, [1]);
}

#[test]
fn a_pipe_without_streams_is_not_primed() {
    for (link, pipe) in [(Link::Super, 0x01), (Link::High, 0x82)] {
        let mut bench = Bench::new(link);
        bench.with(|uas, wire| uas.prime(wire, pipe));
        bench.violations.expect_only("USB 3.2 §8.12.1.4");
    }
}

#[test]
fn the_stream_that_was_begun_goes_on_first() {
    for seed in 1..20 {
        let mut bench = Bench::new(Link::Super);
        bench.settle();
        bench.uas.manners.seed = seed;
        let long = [0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0];
        for tag in 1..=4 {
            bench.command(tag, long);
        }
        let mut order = bench.streams_ready(0x83);
        let last = order.pop().unwrap();
        assert_eq!(bench.data(last, 1024).map(|data| data.len()), Some(1024));
        assert_eq!(bench.streams_ready(0x83)[0], last);
        assert!(bench.violations.all().is_empty());
    }
}

#[test]
fn a_medium_with_a_pace_serves_one_command_after_the_other() {
    let mut bench = Bench::new(Link::Super);
    bench.settle();
    let rate = &mut bench.uas.target.units[0].timing.bytes_per_second;
    *rate = Some(512 * 10); // a block in 100 ms
    bench.command(2, READ_ONE);
    bench.command(3, READ_ONE);
    let ready = bench.uas.streams_ready(bench.now, 0x83);
    let [(first, _), (second, _)] = ready[..] else {
        panic!("{ready:?}");
    };
    assert!((90..=100).contains(&((first - bench.now) / MILLISECOND)));
    assert_eq!(second - first, 100 * MILLISECOND);
    assert_eq!(bench.data(2, 1024), None, "not yet");
    bench.now = second;
    assert_eq!(bench.data(2, 1024).map(|data| data.len()), Some(512));
}

#[test]
fn a_unit_that_makes_no_sense_is_refused_and_the_host_s_fault() {
    let mut reserved = [0; 32];
    (reserved[0], reserved[3], reserved[7]) = (1, 2, 1);
    let mut far = [0; 32];
    (far[0], far[3], far[8]) = (1, 2, 0x40);
    for unit in [&[1, 0, 0, 2][..], &[9; 32], &reserved, &far, &[5; 15]] {
        let mut bench = Bench::new(Link::High);
        bench.settle();
        bench.send(unit);
        let response = bench.status(0).unwrap();
        assert_eq!((response[0], response[7]), (0x04, 0x02));
        bench.violations.expect_only("UAS §6.2");
    }
}

#[test]
fn an_aborted_command_is_never_heard_of_again() {
    let mut bench = Bench::new(Link::High);
    bench.settle();
    bench.uas.faults.push(on(0x28, What::Hang).times(1));
    bench.command(2, READ_ONE);
    assert_eq!(bench.status(0), None);
    bench.task(9, 0x01, 2);
    assert_eq!(bench.status(0).unwrap(), [0x04, 0, 0, 9, 0, 0, 0, 0]);
    assert_eq!(bench.uas.holds(), 0);
    bench.command(2, READ_ONE);
    assert_eq!(bench.status(0).unwrap()[0], 0x06, "the tag is free again");
}

#[test]
fn a_unit_reset_ends_all_commands_of_the_unit_and_is_told_of() {
    let mut bench = Bench::new(Link::High);
    bench.settle();
    bench.uas.faults.push(on(0x28, What::Hang));
    for tag in [2, 3] {
        bench.command(tag, READ_ONE);
    }
    bench.task(10, 0x08, 0);
    assert_eq!(bench.status(0).unwrap()[..4], [0x04, 0, 0, 10]);
    assert_eq!(bench.uas.holds(), 0);
    bench.command(2, [0; 16]);
    let sense = bench.status(0).unwrap();
    assert_eq!((sense[6], sense[18], sense[28]), (2, 6, 0x29));
}

#[test]
fn a_device_that_leaves_statuses_sends_them_after_its_answer_and_takes_the_tag_again() {
    for function in [0x01, 0x08] {
        let mut bench = Bench::new(Link::High);
        bench.settle();
        bench.uas.manners.abort = TaskManner::LeavesStatus;
        bench.uas.manners.unit_reset = TaskManner::LeavesStatus;
        let late = What::DelayStatus(100 * MILLISECOND);
        bench.uas.faults.push(on(0x28, late).times(1));
        bench.command(2, READ_ONE);
        assert_eq!(bench.status(0).unwrap(), [0x06, 0, 0, 2]);
        assert!(bench.data(0, 512).is_some());
        bench.task(9, function, 2);
        assert_eq!(bench.status(0).unwrap()[..4], [0x04, 0, 0, 9]);
        bench.now += 200 * MILLISECOND;
        bench.command(2, WRITE_ONE);
        assert_eq!(bench.status(0).unwrap()[..4], [0x03, 0, 0, 2]);
        assert_eq!(bench.uas.leftovers, [2]);
    }
}

#[test]
fn a_fault_may_last_until_the_device_loses_its_power() {
    let mut bench = Bench::new(Link::High);
    bench.settle();
    let hang = on(0x28, What::Hang);
    bench.uas.faults.push(hang.clone().until_power_on());
    bench.command(2, READ_ONE);
    assert_eq!(bench.status(0), None);
    bench.uas.reset(0, Reset::Bus);
    bench.command(2, READ_ONE);
    assert_eq!(bench.status(0), None);
    bench.uas.reset(0, Reset::PowerOn);
    assert!(bench.uas.faults.is_empty());
    bench.uas.faults.push(hang);
    bench.uas.reset(0, Reset::PowerOn);
    assert_eq!(bench.uas.faults.len(), 1);
}

/// Whether a unit is the one that a fault should make.
type Expected = fn(&[u8]) -> bool;

#[test]
fn faults_bend_what_they_name() {
    let table: [(What, Expected); 6] = [
        (What::Response(2), |unit| unit[0] == 4 && unit[7] == 2),
        (What::Status(0x28), |unit| unit[0] == 3 && unit[6] == 0x28),
        (What::Fail(Sense::READ_ERROR), |unit| unit[18] == 3),
        (What::SkipData, |unit| unit[0] == 3 && unit[6] == 0),
        (What::ReadyForTag(7), |unit| unit == [6, 0, 0, 7]),
        (What::BulkOnlyWords, |unit| unit[..4] == *b"USBS"),
    ];
    for (what, expected) in table {
        let mut bench = Bench::new(Link::High);
        bench.settle();
        bench.uas.faults.push(on(0x28, what.clone()));
        bench.command(2, READ_ONE);
        if what == What::BulkOnlyWords {
            bench.status(0);
            bench.data(0, 512);
        }
        let unit = bench.status(0).unwrap();
        assert!(expected(&unit), "{what:?}: {unit:02x?}");
    }
}
