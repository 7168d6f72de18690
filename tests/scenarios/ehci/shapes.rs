//! What a driver must read from the chip: a disk works on every shape there is.

use rootport_models::device::field::good_stick;
use rootport_models::device::{MICROSECOND, MILLISECOND};
use rootport_models::machine::Options;

use super::Traits;
use crate::rig::Rig;

/// A disk in the first port that has a PHY, pulled and plugged in again.
fn works(traits: &Traits) {
    let port = (0..traits.ports).find(|port| !traits.missing_phys.contains(port));
    let port = port.expect("there is one");
    let mut rig = Rig::new(Options::default(), traits.clone());
    for _ in 0..2 {
        let stick = good_stick();
        let disk = rig.disk(port, stick.clone());
        rig.check(disk, 3, 300);
        rig.write_at(disk, 1000, &[0x3c; 5 * 512], 9).unwrap();
        rig.flush(disk).unwrap();
        assert_eq!(stick.durable_block(1004), [0x3c; 512]);
        rig.unplug(port);
    }
}

#[test]
fn the_h3_s_controller_with_ports_that_lead_nowhere() {
    works(&Traits::allwinner());
}

#[test]
fn a_controller_that_is_odd_in_every_respect() {
    works(&Traits::odd());
}

#[test]
fn any_number_of_ports_with_and_without_switched_power_and_companions() {
    for ports in [1, 2, 7, 15] {
        for port_power_control in [false, true] {
            for companions in [0, 1, 15] {
                works(&Traits {
                    ports,
                    port_power_control,
                    companions,
                    ..Traits::default()
                });
            }
        }
    }
}

#[test]
fn registers_anywhere_and_addresses_of_64_bits() {
    for capability_length in [0x10, 0x14, 0x20, 0xa0] {
        for addresses_64 in [false, true] {
            works(&Traits {
                capability_length,
                addresses_64,
                park: addresses_64,
                programmable_frame_list: addresses_64,
                ..Traits::default()
            });
        }
    }
}

#[test]
fn controllers_that_take_all_the_time_that_they_may() {
    for (reset_time, halt_time) in [(MICROSECOND, MICROSECOND), (99 * MILLISECOND, 1_999_000)] {
        for follow_time in [MICROSECOND, 100 * MICROSECOND, 3 * MILLISECOND] {
            works(&Traits {
                reset_time,
                halt_time,
                follow_time,
                advance_time: follow_time,
                port_reset_end: halt_time,
                ..Traits::default()
            });
        }
    }
}
