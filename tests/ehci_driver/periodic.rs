//! Interrupt endpoints, and bulk ones below a translator: they are polled, halted, taken back and closed, and a disk
//! beside them does not notice. The model holds both schedules to what it may have of memory.

use rootport::host::{
    Addressing, Attachment, DeviceHandle, Devices, EndpointConfig, EndpointHandle, EndpointKind,
    Endpoints, Outcome, Report, Sequence, Translator,
};
use rootport::time::Duration;
use rootport::usb::setup::Direction;
use rootport::usb::speed::Speed;
use rootport_models::controller::ehci::Traits;
use rootport_models::device::{Link, Reply, Script, scsi::LogicalUnit};

use crate::probe::{Habit, Probe};
use crate::rig::{Rig, with_running};

/// The endpoint of the probe that is asked, and where its answers go.
const INPUT: u8 = 0x83;
const PLACE: usize = 0x2_0000;

/// Where a device below full speed is: the hub's address and port.
const HUB: (u8, u8) = (5, 2);

/// A device and one endpoint of it.
struct Asked {
    probe: Probe,
    device: DeviceHandle,
    endpoint: EndpointHandle,
    /// What stands for the hub that it is behind.
    hub: Option<DeviceHandle>,
}

fn traits() -> Traits {
    Traits {
        translators: vec![HUB],
        ..Traits::default()
    }
}

/// Opens a probe in port 0 as a device of this speed, with one IN endpoint.
fn asked(rig: &mut Rig<'_>, speed: Speed, kind: EndpointKind) -> Asked {
    let probe = Probe::new(Link::High);
    rig.machine.plug(0, 0, probe.clone());
    let direct = rig.connect(0);
    assert!(probe.state().powered);
    assert_eq!(probe.state().resets.len(), 1);
    // EHCI needs no more of a hub than its address.
    let hub = (speed != Speed::High).then(|| open(rig, &direct));
    let translator = hub.map(|hub| Translator {
        hub,
        hub_address: HUB.0,
        port: HUB.1,
        multi: false,
    });
    let attachment = Attachment {
        speed,
        max_packet0: if speed == Speed::Low { 8 } else { 64 },
        translator,
        ..direct
    };
    let device = open(rig, &attachment);
    let now = rig.now();
    let Ok(Addressing::Software(address)) = rig.driver.address_device(device, now) else {
        panic!("an EHCI leaves addresses to software");
    };
    // As if it had been told by SET_ADDRESS.
    probe.state().address = address;
    rig.driver.adopt_address(device, address);
    let max_packet = match kind {
        EndpointKind::Interrupt => 8,
        _ => 64,
    };
    probe.state().packet = max_packet.into();
    let config = EndpointConfig {
        number: INPUT & 0xf,
        direction: Direction::In,
        kind,
        max_packet,
        max_burst: 0,
        // Four frames, at high speed one.
        interval: 4,
        transfers: 3,
        longest: 256,
        streams: 0,
    };
    let opened = rig.driver.open_endpoint(&mut rig.pool, device, &config);
    let endpoint = opened.unwrap();
    configure(rig, device);
    Asked {
        probe,
        device,
        endpoint,
        hub,
    }
}

fn open(rig: &mut Rig<'_>, attachment: &Attachment) -> DeviceHandle {
    let now = rig.now();
    let device = rig.driver.open_device(&mut rig.pool, attachment, now);
    let device = device.unwrap();
    rig.device_result(device).unwrap();
    device
}

fn configure(rig: &mut Rig<'_>, device: DeviceHandle) {
    let now = rig.now();
    rig.driver.configure(device, now).unwrap();
    rig.device_result(device).unwrap();
}

/// Asks once more, for so many bytes.
fn ask(rig: &mut Rig<'_>, asked: &Asked, token: u32, bytes: usize) {
    let place = PLACE + 0x100 * token as usize;
    let piece = (place, bytes);
    rig.queue(asked.endpoint, token, Direction::In, piece, Report::Always);
    rig.driver.kick(asked.endpoint, 0);
}

fn answer(rig: &Rig<'_>, token: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    rig.data
        .read_bytes(PLACE + 0x100 * token as usize, &mut bytes);
    bytes
}

const SPEEDS: [Speed; 3] = [Speed::High, Speed::Full, Speed::Low];

#[test]
fn answers_arrive_in_order_and_with_the_toggles_that_follow() {
    for speed in SPEEDS {
        with_running(traits(), |rig| {
            let asked = asked(rig, speed, EndpointKind::Interrupt);
            let data = |byte: u8| Reply::data(vec![byte; 8], byte % 2);
            let replies = [
                Reply::Nak,
                data(0),
                Reply::Nak,
                Reply::Nak,
                data(1),
                data(2),
            ];
            asked.probe.answer(INPUT, replies);
            for token in 0..3 {
                ask(rig, &asked, token, 8);
            }
            for token in 0..3 {
                let ended = rig.ended(asked.endpoint);
                assert_eq!(ended, (token, Outcome::Complete, 8), "{speed:?}");
                assert_eq!(answer(rig, token), [token as u8; 8], "{speed:?}");
            }
            assert_eq!(rig.close(asked.device), Ok(()));
            assert_eq!(rig.stop(), Ok(()));
        });
    }
}

/// What halts is told, comes back, and works again from toggle 0 on; by interrupt and by bulk.
#[test]
fn a_stall_halts_the_endpoint_until_it_is_started_again() {
    let interrupts = SPEEDS.map(|speed| (speed, EndpointKind::Interrupt));
    let bulk = [(Speed::Full, EndpointKind::Bulk)];
    for (speed, kind) in interrupts.into_iter().chain(bulk) {
        with_running(traits(), |rig| {
            let asked = asked(rig, speed, kind);
            let good = Reply::data(vec![7; 8], 0);
            let replies = [good.clone(), Reply::Stall, good];
            asked.probe.answer(INPUT, replies);
            ask(rig, &asked, 0, 8);
            assert_eq!(rig.ended(asked.endpoint), (0, Outcome::Complete, 8));
            ask(rig, &asked, 1, 8);
            ask(rig, &asked, 2, 8);
            let (token, outcome, actual) = rig.ended(asked.endpoint);
            assert_eq!(
                (token, outcome, actual),
                (1, Outcome::Stall, 0),
                "{speed:?}"
            );
            rig.quiesce(asked.endpoint).unwrap();
            let rest = rig.ended_so_far(asked.endpoint);
            assert_eq!(rest, [(2, Outcome::Cancelled, 0)], "{speed:?}");
            rig.restart(asked.endpoint, Sequence::Reset).unwrap();
            ask(rig, &asked, 1, 8);
            assert_eq!(rig.ended(asked.endpoint), (1, Outcome::Complete, 8));
            assert_eq!(answer(rig, 1), [7; 8], "{speed:?}");
            assert_eq!(rig.close(asked.device), Ok(()));
        });
    }
}

#[test]
fn a_device_that_is_silent_is_tried_three_times() {
    for speed in SPEEDS {
        with_running(traits(), |rig| {
            let asked = asked(rig, speed, EndpointKind::Interrupt);
            asked.probe.habit(INPUT, Habit::Silent);
            ask(rig, &asked, 0, 8);
            let ended = rig.ended(asked.endpoint);
            assert_eq!(ended, (0, Outcome::TransactionError, 0), "{speed:?}");
            assert_eq!(asked.probe.times(INPUT).len(), 3, "{speed:?}");
        });
    }
}

/// At moments that lie anywhere in a frame, so also between a start-split and its complete-split.
#[test]
fn what_nobody_answers_is_taken_back_and_the_endpoint_works_after_that() {
    let interrupts = SPEEDS.map(|speed| (speed, EndpointKind::Interrupt));
    let bulk = [(Speed::Full, EndpointKind::Bulk)];
    for (speed, kind) in interrupts.into_iter().chain(bulk) {
        for moment in 0..20 {
            with_running(traits(), |rig| {
                let asked = asked(rig, speed, kind);
                asked.probe.habit(INPUT, Habit::Nak(None));
                ask(rig, &asked, 0, 8);
                rig.idle(Duration::from_micros(20_000 + 107 * moment));
                assert_eq!(rig.ended_so_far(asked.endpoint), []);
                rig.quiesce(asked.endpoint).unwrap();
                let ended = rig.ended_so_far(asked.endpoint);
                assert_eq!(ended, [(0, Outcome::Cancelled, 0)], "{speed:?} {moment}");
                rig.restart(asked.endpoint, Sequence::Keep).unwrap();
                asked.probe.habit(INPUT, Habit::Stream);
                let packet = asked.probe.state().packet;
                ask(rig, &asked, 1, packet);
                let whole = (1, Outcome::Complete, packet as u32);
                assert_eq!(rig.ended(asked.endpoint), whole);
                assert_eq!(answer(rig, 1), [0x5a; 8], "{speed:?} {moment}");
            });
        }
    }
}

/// The memory of what was closed is used for what is opened next: the model fails the run if the controller still
/// holds any of it.
#[test]
fn an_endpoint_is_closed_while_it_is_polled_and_another_one_opened() {
    for speed in SPEEDS {
        with_running(traits(), |rig| {
            for round in 0..4 {
                let asked = asked(rig, speed, EndpointKind::Interrupt);
                asked.probe.habit(INPUT, Habit::Nak(None));
                ask(rig, &asked, 0, 8);
                rig.idle(Duration::from_micros(9_000 + 311 * round));
                for device in [asked.device].into_iter().chain(asked.hub) {
                    assert_eq!(rig.close(device), Ok(()));
                }
                let ended = rig.ended_so_far(asked.endpoint);
                assert_eq!(ended, [(0, Outcome::Cancelled, 0)], "{speed:?}");
                drop(rig.machine.unplug(0, 0));
                rig.idle(Duration::from_millis(10));
            }
            assert_eq!(rig.stop(), Ok(()));
        });
    }
}

#[test]
fn a_disk_is_read_beside_endpoints_that_are_polled() {
    let content = b"beside";
    with_running(traits(), |rig| {
        let asked = asked(rig, Speed::Full, EndpointKind::Interrupt);
        asked.probe.habit(INPUT, Habit::Nak(None));
        ask(rig, &asked, 0, 8);
        let unit = LogicalUnit::stick(65536).content(content);
        let stick = Script::new().speed(Link::High).unit(unit).build();
        rig.machine.plug(0, 1, stick);
        let mut disk = rig.disk(1);
        for blocks in [1, 8, 240, 3] {
            let bytes = rig.read_at(&mut disk, 0, blocks);
            assert_eq!(&bytes[..content.len()], content);
        }
        asked.probe.answer(INPUT, [Reply::data(vec![3; 8], 0)]);
        assert_eq!(rig.ended(asked.endpoint), (0, Outcome::Complete, 8));
        let polls = asked.probe.seen(INPUT).len();
        assert!(polls > 5, "{polls}");
        assert_eq!(rig.close(disk.device), Ok(()));
        assert_eq!(rig.close(asked.device), Ok(()));
    });
}
