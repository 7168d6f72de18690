//! Questions that must not be asked, and devices that are none.

use rootport::storage::quirks::Quirks;
use rootport::usb::DeviceState;
use rootport_models::device::base::{Answer, Request};
use rootport_models::device::bot::{Action, Until, opcode};
use rootport_models::device::descriptor::{Configuration, Endpoint, Interface};
use rootport_models::device::field::commands::{garbles_the_first_read, refuses_the_first_read};
use rootport_models::device::scsi::LogicalUnit;

use super::{stick, works};
use crate::rig::{HIGH_PORT, Rig, with_disk};

#[test]
fn get_max_lun_is_not_sent_to_a_device_that_has_one_unit() {
    // Two units are announced; the second is the first once more (0c45:1060).
    let two = |product| {
        stick(0x0c45, product, 0x0100)
            .control(Request::GET_MAX_LUN, Answer::Data(vec![1]))
            .unit(LogicalUnit::stick(65536))
            .unit(LogicalUnit::stick(65536))
            .build()
    };
    let device = two(0x1060);
    let (mut rig, disk) = with_disk(&device);
    assert_eq!(device.count_requests(Request::GET_MAX_LUN), 0);
    assert_eq!(rig.units_at(HIGH_PORT).len(), 1);
    works(&mut rig, disk);
    let neighbour = two(0x1061);
    let (rig, _) = with_disk(&neighbour);
    assert_eq!(neighbour.count_requests(Request::GET_MAX_LUN), 1);
    assert_eq!(rig.units_at(HIGH_PORT).len(), 2);
}

#[test]
fn a_device_that_dies_of_a_question_is_not_asked_and_its_neighbour_is() {
    for (ids, question) in [
        // Buffalo DUB-P40G: INQUIRY.
        ((0x0411, 0x001c, 0x0113), 0x12),
        // Kingston DT Ultimate G3: MODE SENSE.
        ((0x0951, 0x1697, 0x0100), 0x1a),
        // Toshiba External USB 3.0, which hides its cache: MODE SENSE.
        ((0x0480, 0xd010, 0x0100), 0x1a),
    ] {
        let (vendor, product, release) = ids;
        let device = stick(vendor, product, release)
            .on(opcode(question), Action::Hang(Until::PowerCycle))
            .build();
        let (mut rig, disk) = with_disk(&device);
        assert_eq!(device.count(question), 0, "{ids:x?}");
        works(&mut rig, disk);
        let neighbour = stick(vendor, product + 1, release).build();
        with_disk(&neighbour);
        assert_eq!(neighbour.count(question), 1, "{ids:x?}");
    }
}

#[test]
fn a_device_that_is_no_disk_gets_no_driver_and_its_neighbour_does() {
    let mut rig = Rig::default();
    let device = stick(0x0ace, 0x2011, 0x0101).build();
    rig.plug(HIGH_PORT, device.clone());
    rig.run(rootport::time::Duration::from_secs(3));
    let found: Vec<_> = rig.host.bus().devices().collect();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].driver, found[0].state),
        ("none (quirk i)", DeviceState::Described)
    );
    assert!(device.opcodes().is_empty());
    with_disk(&stick(0x0ace, 0x2011, 0x0102).build());
}

#[test]
fn a_disk_in_disguise_is_used_where_it_is_known() {
    // Y-E Data Silicon Media R/W: the class of its interface is the vendor's.
    let disguised = |product| {
        stick(0x057b, product, 0x0100)
            .descriptors(|link, mut descriptors| {
                let interface = Interface::new(0)
                    .class(0xff, 0xff, 0xff)
                    .endpoint(Endpoint::bulk(0x81, link))
                    .endpoint(Endpoint::bulk(0x02, link));
                descriptors.configurations =
                    vec![Configuration::new(1).interface(interface).bytes()];
                descriptors
            })
            .build()
    };
    let (mut rig, disk) = with_disk(&disguised(0x0022));
    works(&mut rig, disk);
    let mut rig = Rig::default();
    rig.plug(HIGH_PORT, disguised(0x0023));
    rig.run(rootport::time::Duration::from_secs(3));
    assert_eq!(rig.host.disks().count(), 0);
}

#[test]
fn a_first_read_that_fails_or_lies_is_nobodys_but_bring_ups() {
    for device in [refuses_the_first_read(), garbles_the_first_read()] {
        let (mut rig, disk) = with_disk(&device);
        let quirks = rig.units_at(HIGH_PORT)[0].quirks;
        assert_eq!(quirks, Quirks::INITIAL_READ10);
        rig.check(disk, 0, 4);
        let reads = device
            .commands()
            .into_iter()
            .filter(|it| it.opcode() == 0x28);
        let first = reads.map(|it| it.extent().unwrap()).next().unwrap();
        assert_eq!((first.lba, first.blocks), (0, 1));
    }
}
