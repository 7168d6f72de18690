//! Devices are enumerated, and data moves.

use rootport_models::controller::xhci::Traits;
use rootport_models::device::scsi::LogicalUnit;
use rootport_models::device::{Disk, Link, Script};

use crate::rig::with_running;

fn stick(link: Link) -> Disk {
    Script::new()
        .speed(link)
        .unit(LogicalUnit::stick(65536).content(b"block zero"))
        .build()
}

#[test]
fn a_disk_is_read_at_every_speed_on_every_shape() {
    for traits in [
        Traits::default(),
        Traits::rk3328(),
        Traits::addresses_32(),
        Traits::odd(),
    ] {
        for link in [Link::Full, Link::High, Link::Super] {
            let wanted = match link {
                Link::Super => rootport_models::controller::xhci::Protocol::Usb3,
                _ => rootport_models::controller::xhci::Protocol::Usb2,
            };
            let port = traits.ports.iter().position(|one| *one == wanted).unwrap();
            with_running(traits.clone(), |rig| {
                let stick = stick(link);
                rig.machine.plug(0, port, stick.clone());
                let mut disk = rig.disk(port);
                for blocks in [1, 8, 128, 1, 240, 3] {
                    let bytes = rig.read_at(&mut disk, 0, blocks);
                    assert_eq!(&bytes[..10], b"block zero", "{link:?} {blocks}");
                }
                assert_eq!(stick.opcodes(), [0x28; 6]);
                assert_eq!(rig.driver.statistics(), Default::default());
                assert_eq!(rig.close(disk.device), Ok(()));
                assert_eq!(rig.stop(), Ok(()));
            });
        }
    }
}

#[test]
fn a_polled_read_costs_two_doorbells_and_now_and_then_an_acknowledgement_and_no_register_is_read() {
    with_running(Traits::default(), |rig| {
        rig.machine.plug(0, 2, stick(Link::Super));
        let mut disk = rig.disk(2);
        rig.read_at(&mut disk, 0, 8);
        let before = rig.machine.statistics(0);
        for _ in 0..50 {
            rig.read_at(&mut disk, 0, 8);
        }
        let after = rig.machine.statistics(0);
        assert_eq!(after.reads - before.reads, 0);
        // 50 events are less than a quarter of the ring, or just about one.
        let acknowledgements = after.writes - before.writes - 50 * 2;
        assert!(acknowledgements <= 2 * 2, "{acknowledgements}");
    });
}

#[test]
fn every_length_and_offset_around_the_boundaries_arrives_whole() {
    with_running(Traits::default(), |rig| {
        let content: Vec<u8> = (0..0x1_0000_u32).map(|n| (n % 251) as u8).collect();
        let unit = LogicalUnit::stick(65536).content(&content);
        rig.machine
            .plug(0, 2, Script::new().speed(Link::Super).unit(unit).build());
        let mut disk = rig.disk(2);
        for start in [0, 1, 0x3f, 0xfe00, 0xfffe, 0xffff] {
            for blocks in [1, 2, 100, 128] {
                let bytes = rig.read_at(&mut disk, start, blocks);
                let wanted = (0..bytes.len()).map(|n| (n % 251) as u8);
                assert!(bytes.iter().copied().eq(wanted), "{start:#x} {blocks}");
            }
        }
    });
}
