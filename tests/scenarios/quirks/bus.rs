//! Devices that are odd in enumeration, their strings, and what they draw.

use rootport::time::Duration;
use rootport_models::device::base::{Answer, Request};
use rootport_models::device::{Disk, Link, MILLISECOND, Nanoseconds};

use super::{stick, works};
use crate::rig::{FAST_PORT, FASTEST, HIGH_PORT, Rig, with_disk};

/// When the device descriptor was read in full, and when the configuration was asked for.
fn pause(device: &Disk) -> Nanoseconds {
    let requests = device.requests();
    let time = |request: Request| {
        let found = requests.iter().find(|(_, setup)| request.matches(setup));
        found.map(|(time, _)| *time).unwrap()
    };
    let whole = Request::get_descriptor(1).length(18);
    time(Request::get_descriptor(2)) - time(whole)
}

#[test]
fn a_stick_that_is_not_ready_for_its_configuration_gets_a_pause() {
    // HP v222w.
    let device = stick(0x03f0, 0x3f40, 0x0100).build();
    let (mut rig, disk) = with_disk(&device);
    works(&mut rig, disk);
    assert!(pause(&device) >= 200 * MILLISECOND);
    let neighbour = stick(0x03f0, 0x3f41, 0x0100).build();
    with_disk(&neighbour);
    assert!(pause(&neighbour) < 20 * MILLISECOND);
}

#[test]
fn a_device_that_dies_of_a_string_of_255_bytes_is_asked_for_its_length_first() {
    let strings = Request::get_descriptor(3);
    // Actions player.
    let device = stick(0x10d6, 0x2200, 0x0100)
        .control(strings.length(255), Answer::Silent)
        .strings("Actions", "Player", "A1")
        .build();
    let (rig, _) = with_disk(&device);
    let info = rig.units_at(HIGH_PORT)[0].device;
    assert_eq!(info.strings.product.as_str(), "Player");
    assert_eq!(info.strings.serial.as_str(), "A1");
    let neighbour = stick(0x10d6, 0x2201, 0x0100).build();
    with_disk(&neighbour);
    assert_eq!(neighbour.count_requests(strings.length(255)), 4);
}

#[test]
fn surplus_interfaces_are_left_alone_on_the_device_that_minds() {
    // One interface is announced, and it is none of ours; behind it a disk is described.
    let surplus = |product| {
        stick(0x1908, product, 0x0000)
            .pipes(1, 0x81, 0x02)
            .descriptors(|_, mut descriptors| {
                let configuration = &mut descriptors.configurations[0];
                configuration.splice(9..9, [9, 4, 0, 0, 0, 0xff, 0, 0, 0]);
                configuration[2] += 9;
                configuration[4] = 1;
                descriptors
            })
            .build()
    };
    let mut rig = Rig::default();
    rig.plug(HIGH_PORT, surplus(0x1315));
    rig.run(Duration::from_secs(3));
    assert_eq!(rig.host.disks().count(), 0);
    let (mut rig, disk) = with_disk(&surplus(0x1316));
    works(&mut rig, disk);
}

#[test]
fn strings_are_read_and_a_device_that_refuses_them_is_used_all_the_same() {
    let named = stick(0x1209, 1, 0x0100).strings("Maker", "Disk 9", "S-77");
    let (rig, _) = with_disk(&named.build());
    let strings = rig.units_at(HIGH_PORT)[0].device.strings;
    assert_eq!(strings.manufacturer.as_str(), "Maker");
    assert_eq!(strings.product.as_str(), "Disk 9");
    assert_eq!(strings.serial.as_str(), "S-77");
    let all = Request::get_descriptor(3);
    for answer in [Answer::Stall, Answer::Silent, Answer::Data(vec![2, 3])] {
        let device = stick(0x1209, 1, 0x0100).control(all, answer).build();
        let (mut rig, disk) = with_disk(&device);
        assert!(rig.units_at(HIGH_PORT)[0].device.strings.serial.is_empty());
        works(&mut rig, disk);
    }
}

#[test]
fn a_device_that_wants_more_than_its_port_gives_is_told_of() {
    let hungry = |raw: u8| {
        stick(0x1209, 1, 0x0100)
            .speed(FASTEST)
            .descriptors(move |_, mut descriptors| {
                descriptors.configurations[0][8] = raw;
                descriptors
            })
            .build()
    };
    // 900 mA of a SuperSpeed port, in units of 8 mA; 500 mA of others, in units of 2 mA.
    let cases = match FASTEST {
        Link::Super => [(112, 896, false), (113, 904, true)],
        _ => [(250, 500, false), (251, 502, true)],
    };
    for (raw, milliamperes, exceeds) in cases {
        let mut rig = Rig::default();
        rig.disk(FAST_PORT, hungry(raw));
        let power = rig.units_at(FAST_PORT)[0].device.power;
        assert_eq!(
            (power.milliamperes, power.exceeds_port()),
            (milliamperes, exceeds)
        );
        let log = format!("{:?}", rig.machine.log());
        assert_eq!(log.contains("may lack power"), exceeds, "{log}");
    }
}
