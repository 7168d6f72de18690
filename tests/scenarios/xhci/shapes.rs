//! What a driver must read from the chip: a disk at each speed works on every shape there is.

use rootport::block::{BlockDevice, Lba};
use rootport::time::Duration;
use rootport::usb::{PortState, UsbError};
use rootport_models::controller::xhci::{AfterShort, Firmware, IdleStop, Protocol, Signal};
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Link, MILLISECOND, Script};
use rootport_models::machine::Options;

use super::{Driver, Faults, Traits};
use crate::rig::{HIGH_PORT, OTHER_PORT, POOL, Rig};

/// The first port of a protocol.
fn port_of(traits: &Traits, protocol: Protocol) -> usize {
    let mut ports = traits.ports.iter();
    ports
        .position(|port| *port == protocol)
        .expect("there is one")
}

fn works(traits: &Traits) {
    let ports = [Protocol::Usb2, Protocol::Usb3].map(|protocol| port_of(traits, protocol));
    let mut rig = Rig::new(Options::default(), traits.clone());
    let stick = Script::new().build();
    let high = rig.disk(ports[0], stick.clone());
    let fast = Script::new()
        .speed(Link::Super)
        .unit(LogicalUnit::disk(65536, 512))
        .build();
    let fast_id = rig.disk(ports[1], fast.clone());
    for (disk, device) in [(high, &stick), (fast_id, &fast)] {
        rig.check(disk, 3, 300);
        rig.write_at(disk, 1000, &[0x3c; 5 * 512], 9).unwrap();
        rig.flush(disk).unwrap();
        assert_eq!(device.durable_block(1004), [0x3c; 512]);
    }
    rig.unplug(ports[0]);
    rig.check(fast_id, 3, 30);
}

#[test]
fn the_rk3328_s_controller_with_its_own_values() {
    works(&Traits::rk3328());
}

#[test]
fn a_controller_that_is_odd_in_every_respect() {
    works(&Traits::odd());
}

#[test]
fn contexts_of_32_and_64_bytes_with_any_number_of_scratchpads() {
    for large_contexts in [false, true] {
        for scratchpads in [0, 1, 2, 31, 32, 33, 64] {
            works(&Traits {
                large_contexts,
                scratchpads,
                ..Traits::default()
            });
        }
    }
}

#[test]
fn ports_in_both_orders_and_in_any_number() {
    use Protocol::{Usb2, Usb3};
    for ports in [
        vec![Usb2, Usb3],
        vec![Usb3, Usb2],
        vec![Usb3, Usb3, Usb2, Usb2, Usb2],
        [vec![Usb2; 7], vec![Usb3; 6]].concat(),
    ] {
        for slot_types in [[0, 0], [0, 3], [5, 0]] {
            works(&Traits {
                ports: ports.clone(),
                slot_types,
                ..Traits::default()
            });
        }
    }
}

/// The driver wants 272 events in flight, so in two segments: more reads than that go through both.
#[test]
fn event_rings_of_one_and_of_many_segments_are_gone_round() {
    for event_segments_log2 in 0..=4 {
        let traits = Traits {
            event_segments_log2,
            ..Traits::default()
        };
        works(&traits);
        let mut rig = Rig::new(Options::default(), traits);
        let disk = rig.disk(HIGH_PORT, Script::new().build());
        for lba in 0..600 {
            rig.check(disk, lba, 1);
        }
    }
}

#[test]
fn addresses_of_32_bits_pages_of_64_kib_and_few_slots() {
    works(&Traits::addresses_32());
    works(&Traits {
        page_size: 0x1_0000,
        scratchpads: 3,
        slots: 2,
        ..Traits::default()
    });
}

#[test]
fn everything_that_controllers_may_do_in_their_own_way() {
    for idle_stop in [IdleStop::Silent, IdleStop::Event, IdleStop::Either] {
        for after_short in [
            AfterShort::ShortAgain,
            AfterShort::Success,
            AfterShort::Nothing,
        ] {
            works(&Traits {
                idle_stop,
                after_short,
                ..Traits::default()
            });
        }
    }
    for firmware in [Firmware::Absent, Firmware::Releases(900 * MILLISECOND)] {
        works(&Traits {
            firmware,
            running_at_start: true,
            port_power_control: true,
            speed_after_reset: true,
            no_dequeue_at_link: true,
            signal: Signal::Message,
            ..Traits::default()
        });
    }
}

#[test]
fn a_bus_of_32_bits_is_believed_over_a_controller_that_names_64() {
    let driver = Driver {
        reach: u64::from(u32::MAX),
        ..Driver::default()
    };
    let (options, traits) = (Options::default(), Traits::default());
    let mut rig = Rig::made(options, traits, Faults::none(), POOL, driver);
    let disk = rig.disk(HIGH_PORT, Script::new().build());
    let mut high = rig.machine.buffer_at(0x1_2345_6000, 4096, 0);
    rig.host.disk(disk).read(Lba(0), &mut high).unwrap();
    let copies = rig.host.copies(disk).expect("it is there");
    assert_eq!((copies.copied, copies.bounced), (1, 4096));
    assert!(high[..] == rig.read(disk, 0, 4096).unwrap()[..]);
}

#[test]
fn case_35_a_port_without_a_speed_is_a_typed_error_in_time_and_its_neighbour_works() {
    let mut faults = Faults::none();
    faults.no_speed.insert(HIGH_PORT);
    let mut rig = Rig::faulty(Options::default(), Traits::default(), faults);
    let neighbour = rig.disk(OTHER_PORT, Script::new().build());
    rig.plug(HIGH_PORT, Script::new().build());
    let state = rig.within(Duration::from_secs(10), |rig| rig.settle_port(HIGH_PORT));
    assert_eq!(state, PortState::Failed(UsbError::PortReset));
    rig.check(neighbour, 3, 30);
    rig.unplug(HIGH_PORT);
}
