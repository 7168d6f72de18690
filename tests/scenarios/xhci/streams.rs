//! UAS disks at SuperSpeed: what is about their streams.

use rootport::block::queue::{DiskId, Operation};
use rootport::block::{BlockError, Lba};
use rootport::host::HostError;
use rootport::policy::{Policy, UasFallback};
use rootport::scsi::bring_up::BringUpError;
use rootport::scsi::transport::TransportError;
use rootport::stack::DiskState;
use rootport::time::Duration;
use rootport::usb::{ControllerState, DeviceState, PortState, UsbError};
use rootport_models::controller::xhci::{CompletionFault, IdleStop, Signal, StreamStop};
use rootport_models::device::scsi::pattern;
use rootport_models::device::uas::{Manners, PrimeManner, TaskManner, What, on};
use rootport_models::device::{BothScript, Link, MILLISECOND, SECOND, Script, UasDisk, UasScript};
use rootport_models::machine::Options;

use super::{Faults, Interrupts, Traits, interrupting_by, usual};
use crate::rig::{FAST_PORT, OTHER_PORT, POOL, Rig};
use crate::scenarios::uas::{
    DEPTH, PATIENCE, READ, WRITE, all_good, driver, plugged, submit, through, through_on,
};

/// The pipes of the modelled disk.
const STATUS: u8 = 0x82;
const DATA_IN: u8 = 0x83;
const DATA_OUT: u8 = 0x04;

fn rig(traits: Traits, faults: Faults) -> Rig {
    Rig::faulty(Options::default(), traits, faults)
}

#[test]
fn the_depth_falls_to_what_the_pool_holds() {
    let mut depths = Vec::new();
    // Each step an eighth more.
    let sizes = std::iter::successors(Some(24_usize << 10), |size| Some(size + size / 8));
    for pool in sizes
        .map(|size| size & !0xff)
        .take_while(|size| *size < POOL)
    {
        let mut rig = Rig::with_pool(Options::default(), usual(), Faults::none(), pool);
        let device = UasScript::new().speed(Link::Super).build();
        rig.plug(FAST_PORT, device.clone());
        rig.run(Duration::from_secs(5));
        let Some(disk) = rig.host.disks().next().map(|disk| disk.id) else {
            continue;
        };
        rig.check(disk, 0, 16384);
        depths.push(device.deepest());
    }
    assert!(depths.is_sorted(), "{depths:?}");
    assert!(
        depths[0] < DEPTH && depths.last() == Some(&DEPTH),
        "{depths:?}"
    );
}

#[test]
fn an_array_is_no_larger_than_the_controller_takes() {
    for (exponent, tags) in [(1, 3), (2, 7), (3, DEPTH + 2), (15, DEPTH + 2)] {
        let traits = Traits {
            stream_array_size: exponent,
            ..usual()
        };
        let mut rig = rig(traits, Faults::none());
        let device = UasScript::new().speed(Link::Super).build();
        let disk = rig.disk(FAST_PORT, device.clone());
        rig.check(disk, 0, 16384);
        // Two tags are left to recovery.
        assert_eq!(device.deepest(), tags - 2, "MaxPSASize {exponent}");
    }
}

#[test]
fn a_device_gets_no_more_commands_than_it_has_streams_less_two() {
    for (exponent, depth) in [(2, 2), (3, 6), (4, DEPTH), (16, DEPTH)] {
        let (mut rig, disk, device) = plugged(Link::Super, UasScript::new().streams(exponent));
        rig.check(disk, 0, 16384);
        assert_eq!(
            device.deepest(),
            depth,
            "2 to the power of {exponent} streams"
        );
    }
}

/// All that a Stop Endpoint may report of streams, and of an endpoint that has nothing to do.
fn stops() -> impl Iterator<Item = Traits> {
    let streams = [
        StreamStop::Moving,
        StreamStop::EachWithWork,
        StreamStop::NullPointers,
    ];
    let idle = [IdleStop::Silent, IdleStop::Event, IdleStop::Either];
    streams.into_iter().flat_map(move |stream_stop| {
        idle.into_iter().map(move |idle_stop| Traits {
            stream_stop,
            idle_stop,
            ..usual()
        })
    })
}

#[test]
fn field_case_24_events_without_a_pointer_after_a_stop_lose_no_request() {
    for traits in stops() {
        let lost = on(READ, What::LoseStatus).after(1).times(1);
        let hung = on(WRITE, What::Hang).after(1).times(1);
        let script = UasScript::new().fault(lost).fault(hung);
        let (rig, device, results) = through_on(rig(traits, Faults::none()), Link::Super, script);
        assert!(all_good(&results), "{results:?}");
        assert_eq!(device.tasks().len(), 2, "two were aborted");
        assert_eq!(driver(&rig, FAST_PORT), "uas");
    }
}

#[test]
fn field_case_24_a_stream_that_the_controller_loses_costs_an_abort_and_no_request() {
    for pipe in [STATUS, DATA_IN, DATA_OUT] {
        for count in [20, 21, 22] {
            let mut faults = Faults::none();
            let count = if pipe == DATA_OUT { count - 20 } else { count };
            faults
                .transfers
                .insert((pipe, count), CompletionFault::Never);
            let (_, device, results) =
                through_on(rig(usual(), faults), Link::Super, UasScript::new());
            assert!(all_good(&results), "{pipe:#04x}, {count}: {results:?}");
            assert!(device.tasks().len() < 2, "{:?}", device.tasks());
        }
    }
}

#[test]
fn field_case_24_an_error_of_the_controller_on_a_stream_costs_no_request() {
    for pipe in [STATUS, DATA_IN, DATA_OUT] {
        for code in [2, 3, 4, 5, 6, 33, 34, 200] {
            let mut faults = Faults::none();
            let count = if pipe == DATA_OUT { 1 } else { 21 };
            let fault = CompletionFault::Code(code);
            faults.transfers.insert((pipe, count), fault);
            let (_, _, results) = through_on(rig(usual(), faults), Link::Super, UasScript::new());
            assert!(all_good(&results), "{pipe:#04x}, code {code}: {results:?}");
        }
    }
}

#[test]
fn field_case_24_a_stop_endpoint_that_never_completes_costs_a_reset_of_the_port_and_one_request_at_most()
 {
    for traits in stops().take(3) {
        let mut faults = Faults::none();
        faults.stops_hang = 1;
        let lost = on(READ, What::Hang).after(1).times(1);
        let script = UasScript::new().fault(lost);
        let (rig, device, results) = through_on(rig(traits, faults), Link::Super, script);
        assert!(device.bus_resets().len() > 1);
        let lost = results.iter().filter(|result| result.is_err()).count();
        assert!(lost < 2, "{results:?}");
        assert_eq!(driver(&rig, FAST_PORT), "uas");
    }
}

#[test]
fn a_disk_that_announces_streams_and_refuses_them_is_none_and_its_neighbour_goes_on() {
    for prime in [PrimeManner::Halts, PrimeManner::Ignores] {
        let manners = Manners {
            prime,
            ..Manners::default()
        };
        let mut rig = Rig::default();
        let neighbour = rig.disk(OTHER_PORT, Script::new().build());
        let device = UasScript::new().speed(Link::Super).manners(manners).build();
        rig.plug(FAST_PORT, device);
        rig.run(Duration::from_secs(120));
        let given_up = PortState::Failed(UsbError::Timeout);
        assert_eq!(rig.port_state(FAST_PORT), given_up, "{}", rig.describe());
        rig.check(neighbour, 0, 8);
    }
}

/// What is told of the device without a unit in the fast port, and the driver's name for it.
fn unused(rig: &Rig) -> (&'static str, DeviceState) {
    assert!(rig.units_at(FAST_PORT).is_empty());
    let PortState::Occupied(id) = rig.port_state(FAST_PORT) else {
        panic!("{}", rig.describe());
    };
    let device = rig.host.bus().info(id).expect("it is there");
    (device.driver, device.state)
}

/// Linux leaves two streams unused because such bridges exist; so does this library.
#[test]
fn a_disk_whose_number_of_streams_is_off_by_one_or_two_serves_every_command() {
    for served in [6, 7] {
        let manners = Manners {
            streams_served: served,
            ..Manners::default()
        };
        let script = UasScript::new().streams(3).manners(manners);
        let (_, device, results) = through(Link::Super, script);
        assert!(all_good(&results), "{served} of 8 streams: {results:?}");
        assert!(device.tasks().is_empty());
    }
}

/// With fewer than are used at first it answers nothing; with more, those that it does not serve are found out.
#[test]
fn a_disk_that_lies_about_the_number_of_its_streams_ends_in_time_and_its_neighbour_goes_on() {
    let timeout = BringUpError::Transport(TransportError::Timeout);
    for served in [0, 1, 2, 4, 5] {
        let manners = Manners {
            streams_served: served,
            ..Manners::default()
        };
        let mut rig = Rig::default();
        let neighbour = rig.disk(OTHER_PORT, Script::new().build());
        let script = UasScript::new().speed(Link::Super).manners(manners);
        rig.plug(FAST_PORT, script.build());
        rig.run(Duration::from_secs(120));
        let [unit] = rig.units_at(FAST_PORT)[..] else {
            panic!("{served} of 16 streams: {}", rig.describe());
        };
        match served {
            0..=2 => assert_eq!(unit.state, DiskState::Failed(timeout)),
            _ => rig.check(unit.id, 0, 4096),
        }
        rig.check(neighbour, 0, 8);
    }
}

#[test]
fn data_on_the_wrong_stream_are_never_taken_for_the_command_s() {
    for stream in [0, 1, 2, 5, 9, 10, 12, 15, 40, 300] {
        let script = UasScript::new().fault(on(READ, What::WrongStream(stream)).after(1).times(1));
        let (_, _, results) = through(Link::Super, script);
        assert!(all_good(&results), "stream {stream}: {results:?}");
    }
}

#[test]
fn data_on_the_stream_of_another_command_in_flight_are_never_taken_for_that_one_s() {
    let wanted: Vec<u8> = (0..8192).flat_map(|lba| pattern(lba, 512)).collect();
    for stream in [1, 2, 3, 4, 12] {
        let script = UasScript::new().fault(on(READ, What::WrongStream(stream)).after(3).times(1));
        let (mut rig, disk, _) = plugged(Link::Super, script);
        for round in 0..2 {
            let read = rig.within(PATIENCE, |rig| rig.read(disk, 0, 4 << 20));
            let read = read.unwrap_or_else(|error| panic!("stream {stream}, {round}: {error}"));
            assert!(read == wanted, "stream {stream}, round {round}");
        }
    }
}

#[test]
fn babble_on_a_data_stream_leaves_the_other_streams_alone() {
    let script = UasScript::new().fault(on(READ, What::Babble).after(4).times(1));
    let (mut rig, disk, device) = plugged(Link::Super, script);
    for lba in 0..8 {
        submit(&mut rig, disk, Operation::Read(Lba(8 * lba)), 0);
    }
    rig.run(Duration::from_secs(30));
    for _ in 0..8 {
        let completion = rig.host.take_completion().expect("all have ended");
        assert_eq!(completion.result, Ok(()));
    }
    assert!(device.deepest() > 4);
}

#[test]
fn a_disk_without_streams_at_superspeed_is_no_uas_disk() {
    let mut rig = Rig::default();
    let device = UasScript::new().speed(Link::Super).streams(0).build();
    rig.plug(FAST_PORT, device);
    rig.run(Duration::from_secs(60));
    let failed = DeviceState::Failed(UsbError::Controller(HostError::Unsupported));
    assert_eq!(unused(&rig), ("", failed));
}

#[test]
fn field_case_26_a_controller_without_streams_has_no_uas_at_superspeed_but_below() {
    let traits = || Traits {
        stream_array_size: 0,
        ..usual()
    };
    let mut rig = rig(traits(), Faults::none());
    rig.plug(FAST_PORT, UasScript::new().speed(Link::Super).build());
    let disk = rig.disk(crate::rig::HIGH_PORT, UasScript::new().build());
    rig.run(Duration::from_secs(30));
    let why = "none (uas only, controller without streams)";
    assert_eq!(unused(&rig), (why, DeviceState::Described));
    rig.check(disk, 0, 8);
}

#[test]
fn a_pulled_superspeed_disk_ends_all_commands_in_flight() {
    let abort = TaskManner::Ignores;
    let manners = Manners {
        abort,
        ..Manners::default()
    };
    let script = UasScript::new()
        .fault(on(READ, What::Hang).after(1))
        .fault(on(WRITE, What::Hang));
    let (mut rig, disk, device) = plugged(Link::Super, script.manners(manners));
    for lba in [0, 8, 16] {
        submit(&mut rig, disk, Operation::Read(Lba(lba)), 0);
        submit(&mut rig, disk, Operation::Write(Lba(100 + lba)), 7);
    }
    // It waits for the writes.
    rig.host.submit(disk, Operation::Flush, None).unwrap();
    rig.run(Duration::from_millis(9_000));
    assert_eq!(device.change(|device| device.function.holds()), 6);
    rig.run(Duration::from_millis(2_000));
    rig.unplug(FAST_PORT);
    for _ in 0..7 {
        let completion = rig.host.take_completion().expect("all have ended");
        assert_eq!(completion.result, Err(BlockError::Disconnected));
    }
}

/// A bridge with both transports at SuperSpeed: how it is used in the end, with data that are right.
fn used(traits: Traits, script: BothScript) -> String {
    let mut rig = rig(traits, Faults::none());
    let neighbour = rig.disk(OTHER_PORT, Script::new().build());
    let disk = rig.disk(FAST_PORT, script.speed(Link::Super).build());
    rig.run(Duration::from_secs(1));
    rig.check(disk, 0, 4096);
    rig.check(neighbour, 0, 8);
    rig.units_at(FAST_PORT)[0].usage.to_string()
}

#[test]
fn a_superspeed_bridge_with_both_is_used_over_uas_with_streams_alone() {
    assert_eq!(used(usual(), BothScript::new()), "uas");
    let without = used(usual(), BothScript::new().streams(0));
    assert!(without.starts_with("bot"), "{without}");
}

#[test]
fn field_case_26_a_controller_without_streams_uses_a_superspeed_bridge_over_bulk_only() {
    let traits = Traits {
        stream_array_size: 0,
        ..usual()
    };
    let usage = used(traits, BothScript::new());
    assert_eq!(usage, "bot (controller without streams)");
}

#[test]
fn a_bridge_that_announces_streams_and_refuses_them_is_used_over_bulk_only() {
    for prime in [PrimeManner::Halts, PrimeManner::Ignores] {
        let manners = Manners {
            prime,
            ..Manners::default()
        };
        let usage = used(usual(), BothScript::new().manners(manners));
        assert!(usage.starts_with("bot (fell back"), "{prime:?}: {usage}");
    }
}

/// A controller whose commands hang is dead, and one that dies again and again is left alone: UAS is
/// left before it comes to that.
#[test]
fn field_case_24_a_bridge_whose_streams_kill_the_controller_twice_is_used_over_bulk_only() {
    for uas_fallback in [UasFallback::UntilUnplugged, UasFallback::UntilRestart] {
        let mut faults = Faults::none();
        (faults.stops_hang, faults.abort_hangs) = (2, true);
        let mut rig = rig(usual(), faults);
        rig.host.set_policy(Policy {
            uas_fallback,
            uas_window: Duration::MAX,
            ..Policy::DEFAULT
        });
        let script = BothScript::new().fault(on(READ, What::Hang).after(1));
        let device = script.speed(Link::Super).build();
        let disk = rig.disk(FAST_PORT, device.clone());
        let neighbour = rig.disk(OTHER_PORT, Script::new().pipes(0, 0x89, 0x0a).build());
        rig.within(Duration::from_secs(100), |rig| rig.check(disk, 0, 8));
        let usage = |rig: &Rig| rig.units_at(FAST_PORT)[0].usage.to_string();
        assert_eq!(usage(&rig), "bot (fell back: 2 resets)");
        assert_eq!(rig.controller_state(), ControllerState::Running);
        rig.check(neighbour, 0, 8);
        rig.unplug(FAST_PORT);
        rig.disk(FAST_PORT, device);
        let remembered = uas_fallback == UasFallback::UntilRestart;
        assert_eq!(usage(&rig) != "uas", remembered);
    }
}

/// A disk that is slow to read, with one read under way, on a controller that
/// interrupts. What is submitted next waits for a doorbell.
fn with_a_read_under_way() -> (Rig, DiskId, UasDisk) {
    let (traits, driver) = interrupting_by((Interrupts::Message, Signal::Message));
    let options = Options::default();
    let mut rig = Rig::made(options, traits, Faults::none(), POOL, driver);
    let slow = on(READ, What::DelayStatus(100 * MILLISECOND));
    let device = UasScript::new().speed(Link::Super).fault(slow).build();
    let disk = rig.disk(FAST_PORT, device.clone());
    submit(&mut rig, disk, Operation::Read(Lba(0)), 0);
    rig.run(Duration::from_millis(1));
    (rig, disk, device)
}

/// It submits, and does something else for longer than a command may take.
#[test]
fn commands_of_a_caller_that_comes_by_late_are_carried_out_and_not_given_up() {
    let (mut rig, disk, device) = with_a_read_under_way();
    submit(&mut rig, disk, Operation::Read(Lba(64)), 0);
    let begun = device.exchanges().len();
    rig.machine.advance(100 * SECOND);
    assert_eq!(device.exchanges().len(), begun, "the second was not begun");
    rig.run(Duration::from_secs(1));
    for _ in 0..2 {
        let completion = rig.host.take_completion().expect("both have ended");
        assert_eq!(completion.result, Ok(()));
    }
    assert_eq!(device.tasks(), [], "none was aborted");
}

#[test]
fn a_blocking_write_beside_a_queued_read_is_begun_at_once() {
    let (mut rig, disk, _) = with_a_read_under_way();
    let (result, took) = rig.timed(|rig| rig.write(disk, 64, &[1; 512]));
    assert_eq!(result, Ok(()));
    assert!(took < Duration::from_millis(50), "{took:?}");
}
