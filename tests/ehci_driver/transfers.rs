//! Devices are enumerated, and data moves.

use rootport::host::{Attachment, Outcome, Translator};
use rootport::usb::setup::SetupPacket;
use rootport::usb::speed::Speed;
use rootport_models::controller::ehci::Traits;
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Link, Script};
use rootport_models::machine;

use crate::rig::{Setting, with_running};

fn stick(content: &[u8]) -> Disk {
    Script::new()
        .speed(Link::High)
        .unit(LogicalUnit::stick(65536).content(content))
        .build()
}

fn counting() -> Vec<u8> {
    (0..0x2_0000_u32).map(|n| (n % 251) as u8).collect()
}

#[test]
fn a_disk_is_read_on_every_shape() {
    for (traits, port) in [
        (Traits::default(), 1),
        (Traits::allwinner(), 0),
        (Traits::addresses_64(), 0),
        (Traits::odd(), 4),
    ] {
        with_running(traits, |rig| {
            let stick = stick(b"block zero");
            rig.machine.plug(0, port, stick.clone());
            let mut disk = rig.disk(port);
            for blocks in [1, 8, 128, 1, 240, 3] {
                let bytes = rig.read_at(&mut disk, 0, blocks);
                assert_eq!(&bytes[..10], b"block zero", "{blocks}");
            }
            assert_eq!(stick.opcodes(), [0x28; 6]);
            assert_eq!(rig.driver.missed_doorbells(), 0);
            assert_eq!(rig.close(disk.device), Ok(()));
            assert_eq!(rig.stop(), Ok(()));
        });
    }
}

#[test]
fn reads_touch_no_register() {
    with_running(Traits::default(), |rig| {
        rig.machine.plug(0, 0, stick(b"block zero"));
        let mut disk = rig.disk(0);
        rig.read_at(&mut disk, 0, 8);
        let begun = rig.now();
        let before = rig.machine.statistics(0);
        let mut reads = 0;
        while rig.now().since(begun).as_millis() < 1_000 {
            rig.read_at(&mut disk, 0, 8);
            reads += 1;
        }
        let after = rig.machine.statistics(0);
        assert!(reads > 1_000, "{reads}");
        assert!(
            after.reads - before.reads <= 11,
            "a look at the status each 100 ms"
        );
        assert!(
            after.writes - before.writes <= 11,
            "which clears what it shows"
        );
    });
}

#[test]
fn every_length_and_offset_around_the_pages_arrives_whole() {
    with_running(Traits::default(), |rig| {
        rig.machine.plug(0, 0, stick(&counting()));
        let mut disk = rig.disk(0);
        for start in [0, 1, 0x3f, 0xe00, 0xffe, 0xfff, 0x1fff] {
            for blocks in [1, 2, 7, 8, 33, 40, 41, 100, 240] {
                let bytes = rig.read_at(&mut disk, start, blocks);
                let wanted = (0..bytes.len()).map(|n| (n % 251) as u8);
                assert!(bytes.iter().copied().eq(wanted), "{start:#x} {blocks}");
            }
        }
    });
}

#[test]
fn a_sequential_read_comes_near_the_bus() {
    with_running(Traits::default(), |rig| {
        rig.machine.plug(0, 0, stick(&counting()));
        let mut disk = rig.disk(0);
        let begun = rig.now();
        for _ in 0..50 {
            assert_eq!(
                rig.read_blocks(&mut disk, 0, 240, 0).0,
                [(3, Outcome::Short, 13)]
            );
        }
        let took = rig.now().since(begun).as_micros();
        let rate = 50 * 240 * 512 / took;
        assert!(rate >= 50, "{rate} MB/s of 53.2");
    });
}

#[test]
fn requests_go_through_a_translator() {
    let traits = Traits {
        translators: vec![(1, 3)],
        ..Traits::default()
    };
    with_running(traits, |rig| {
        rig.machine.plug(0, 0, stick(b"block zero"));
        rig.machine.plug(0, 1, stick(b"the hub"));
        let hub = rig.connect(1);
        let hub = rig.address(&hub);
        // The model has a translator at that hub's port, and the device in port 0 behind it.
        let behind = Attachment {
            speed: Speed::Full,
            translator: Some(Translator {
                hub,
                hub_address: 1,
                port: 3,
                multi: false,
            }),
            ..rig.connect(0)
        };
        let device = rig.address(&behind);
        for _ in 0..20 {
            let read = rig.control(device, SetupPacket::device_descriptor(18));
            assert_eq!(read, (Outcome::Complete, 18));
            let (outcome, length) =
                rig.control(device, SetupPacket::configuration_descriptor(0, 255));
            assert_eq!((outcome, length), (Outcome::Short, 32));
            let configured = rig.control(device, SetupPacket::set_configuration(1));
            assert_eq!(configured, (Outcome::Complete, 0));
        }
        assert_eq!(rig.close(device), Ok(()));
        assert_eq!(rig.stop(), Ok(()));
    });
}

fn above_4_gib(traits: Traits) -> Setting {
    Setting {
        machine: machine::Options::above_4_gib(),
        ..traits.into()
    }
}

#[test]
fn memory_above_4_gib_holds_data_and_structures_of_a_controller_of_64_bits() {
    with_running(above_4_gib(Traits::addresses_64()), |rig| {
        rig.machine.plug(0, 0, stick(b"block zero"));
        let mut disk = rig.disk(0);
        assert_eq!(rig.read_at(&mut disk, 0, 8)[..10], *b"block zero");
        assert_eq!(rig.close(disk.device), Ok(()));
    });
}

#[test]
fn a_pool_above_4_gib_is_refused_by_a_controller_of_32_bits() {
    crate::rig::with_rig(above_4_gib(Traits::default()), |rig| {
        use rootport::host::{CapabilityField, ControllerFault::Implausible};
        assert_eq!(rig.start(), Err(Implausible(CapabilityField::AddressWidth)));
    });
}

/// Its structures have 32 bits of an address each, and one upper half for all.
#[test]
fn a_pool_on_both_sides_of_4_gib_is_refused() {
    use rootport::host::{CapabilityField, ControllerFault::Implausible};
    for traits in [Traits::default(), Traits::addresses_64()] {
        let setting = Setting {
            machine: machine::Options::around_4_gib(),
            ..above_4_gib(traits)
        };
        crate::rig::with_rig(setting, |rig| {
            assert_eq!(rig.start(), Err(Implausible(CapabilityField::AddressWidth)));
        });
    }
}
