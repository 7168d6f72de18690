//! The UAS sides of field cases that Bulk-Only disks have too: what the disk says is the same, and what
//! the host owes its user as well.

use rootport::block::BlockError;
use rootport::scsi::bring_up::BringUpError;
use rootport::scsi::capacity::CapacityFault;
use rootport::stack::{DiskInfo, DiskState};
use rootport::time::Duration;
use rootport_models::device::scsi::{Attention, LogicalUnit, Scripted, Sense, pattern};
use rootport_models::device::uas::Offer;
use rootport_models::device::{Link, SECOND, Script, UasDisk, UasScript};
use rootport_models::machine::Options;

use super::{DEPTH, plugged};
use crate::controller::{self, LINKS};
use crate::rig::{OTHER_PORT, POOL, Rig, port_for};

/// A disk with these units at a link: its units when all are settled.
fn settled(link: Link, units: Vec<LogicalUnit>) -> (Rig, Vec<DiskInfo>, UasDisk) {
    let mut rig = Rig::default();
    let script = units.into_iter().fold(UasScript::new(), UasScript::unit);
    let device = script.speed(link).build();
    let units = rig.settle(port_for(link), device.clone());
    (rig, units, device)
}

fn count(device: &UasDisk, opcode: u8) -> usize {
    let exchanges = device.exchanges();
    let mut commands = exchanges.iter().filter(|one| one.cdb[0] == opcode);
    commands.by_ref().count()
}

#[test]
fn field_case_1_no_disk_over_uas_is_asked_for_its_highest_unit_on_endpoint_0() {
    for &link in LINKS {
        let unknown = Scripted::Fail(Sense::UNKNOWN_COMMAND);
        let unit = LogicalUnit::disk(4096, 512).script(0xa0, unknown);
        let (mut rig, units, device) = settled(link, vec![unit]);
        assert_eq!(units.len(), 1);
        rig.check(units[0].id, 0, 8);
        let asked = device.change(|device| {
            let requests = &device.trace.requests;
            requests
                .iter()
                .any(|(_, setup)| setup.request_type == 0xa1 && setup.request == 0xfe)
        });
        assert!(!asked);
    }
}

#[test]
fn field_case_2_an_attention_comes_with_its_status_and_needs_no_request_sense() {
    for &link in LINKS {
        let unit = LogicalUnit::disk(4096, 512)
            .attention_after_reset(Sense::MEDIUM_CHANGED, Attention::OnceReported);
        let (mut rig, units, device) = settled(link, vec![unit]);
        rig.check(units[0].id, 0, 8);
        assert_eq!(count(&device, 0x03), 0);
        assert_eq!(count(&device, 0x00), 2, "one question more");
    }
}

#[test]
fn field_case_3_no_medium_is_empty_at_once_and_becoming_ready_ends_with_the_budget() {
    for &link in LINKS {
        let (mut rig, units, device) = settled(link, vec![LogicalUnit::empty_slot()]);
        assert_eq!(units[0].state, DiskState::Empty);
        assert!(rig.age() < Duration::from_secs(1));
        assert!(device.exchanges().len() <= 8);
        assert_eq!(rig.read(units[0].id, 0, 512), Err(BlockError::NoMedium));
        let slow = LogicalUnit::disk(4096, 512).ready_after(u64::MAX);
        let (rig, units, _) = settled(link, vec![slow]);
        let DiskState::Failed(BringUpError::NotReady(sense)) = units[0].state else {
            panic!("{:?}", units[0].state);
        };
        assert_eq!((sense.key.code(), sense.asc, sense.ascq), (2, 0x04, 0x01));
        assert!(rig.age() < Duration::from_secs(22));
    }
}

#[test]
fn field_case_4_a_disk_that_is_ready_after_eight_seconds_is_found_soon_after() {
    for &link in LINKS {
        let slow = LogicalUnit::disk(4096, 512).ready_after(8 * SECOND);
        let (mut rig, units, _) = settled(link, vec![slow]);
        let took = rig.age();
        assert!((8..10).contains(&(took.as_millis() / 1000)), "{took:?}");
        rig.check(units[0].id, 0, 8);
        let (mut rig, units, device) =
            settled(link, vec![LogicalUnit::disk(64, 512).needs_start()]);
        rig.check(units[0].id, 0, 8);
        assert_eq!(count(&device, 0x1b), 1);
    }
}

#[test]
fn field_case_5_a_disk_without_power_is_none_and_says_why() {
    for &link in LINKS {
        let failure = Scripted::Fail(Sense::UNDER_POWERED);
        let unit = LogicalUnit::disk(4096, 512)
            .script(0x00, failure.clone())
            .script(0x25, failure.clone())
            .script(0x9e, failure);
        let (mut rig, units, _) = settled(link, vec![unit]);
        let DiskState::Failed(BringUpError::Failed(sense)) = units[0].state else {
            panic!("{:?}", units[0].state);
        };
        assert_eq!((sense.key.code(), sense.asc, sense.ascq), (4, 0x44, 0x81));
        assert!(rig.age() < Duration::from_secs(5));
        assert_eq!(rig.read(units[0].id, 0, 512), Err(BlockError::NotReady));
    }
}

#[test]
fn field_case_6_the_card_is_found_in_any_slot_and_the_others_are_empty() {
    for &link in LINKS {
        for slot in 0..3 {
            let unit = |number| match number == slot {
                true => LogicalUnit::disk(4096, 512),
                false => LogicalUnit::empty_slot(),
            };
            let mut rig = Rig::default();
            let script = (0..3).map(unit).fold(UasScript::new(), UasScript::unit);
            rig.plug(port_for(link), script.speed(link).build());
            rig.run(Duration::from_secs(4));
            let units = rig.units_at(port_for(link));
            assert_eq!(units.len(), 3, "slot {slot}, {link:?}");
            for unit in units {
                match usize::from(unit.unit) == slot {
                    true => rig.check(unit.id, 3, 4),
                    false => assert_eq!(unit.state, DiskState::Empty, "slot {slot}"),
                }
            }
        }
    }
}

#[test]
fn field_case_18_disks_beyond_2_tib_are_read_and_written_to_their_last_block() {
    for &link in LINKS {
        for blocks in [0xee77_52b0, 9_767_541_168] {
            let unit = LogicalUnit::disk(blocks, 512);
            let (mut rig, units, device) = settled(link, vec![unit]);
            let disk = units[0].id;
            assert_eq!(rig.geometry(disk).blocks, blocks);
            rig.check(disk, blocks - 3, 3);
            rig.write(disk, blocks - 1, &[0x77; 512]).unwrap();
            rig.flush(disk).unwrap();
            assert_eq!(device.durable_block(blocks - 1), [0x77; 512]);
            rig.check(disk, 0x7fff_ffff, 3);
        }
    }
}

#[test]
fn field_case_19_blocks_of_every_legal_size_are_read_and_written_whole() {
    for &link in LINKS {
        for exponent in 9..=16 {
            let size = 1_usize << exponent;
            let (mut rig, units, device) = settled(link, vec![LogicalUnit::disk(65536, size)]);
            let disk = units[0].id;
            assert_eq!(rig.geometry(disk).block_bytes as usize, size);
            rig.check(disk, 65535, 1);
            rig.write(disk, 11, &vec![0x5a; 2 * size]).unwrap();
            assert_eq!(device.block(10), pattern(10, size));
            assert_eq!(device.block(12), vec![0x5a; size]);
            assert_eq!(device.block(13), pattern(13, size));
        }
    }
}

#[test]
fn field_case_20_a_block_length_that_makes_no_sense_is_refused() {
    for &link in LINKS {
        for length in [0, 1, 511, 263_520_264, 0x2_0000_u32] {
            let told = [65535_u32.to_be_bytes(), length.to_be_bytes()].concat();
            let long = [[0; 4], 65535_u32.to_be_bytes(), length.to_be_bytes()].concat();
            let mut long = long;
            long.resize(32, 0);
            let unit = LogicalUnit::disk(65536, 512)
                .script(0x25, Scripted::Data(told))
                .script(0x9e, Scripted::Data(long));
            let (rig, units, device) = settled(link, vec![unit]);
            let wanted = BringUpError::Capacity(CapacityFault::BlockLength(length));
            assert_eq!(units[0].state, DiskState::Failed(wanted), "{length}");
            assert!(rig.age() < Duration::from_secs(5));
            assert_eq!(count(&device, 0x28), 0);
        }
    }
}

#[test]
fn field_case_26_uas_is_found_wherever_its_setting_is_and_in_whatever_order_its_pipes_are() {
    let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]];
    for &link in LINKS {
        for offer in [
            Offer::UasAlone,
            Offer::UasBehindBulkOnly,
            Offer::UasBeforeBulkOnly,
        ] {
            for order in orders {
                let script = UasScript::new().offer(offer).order(order);
                let (mut rig, disk, device) = plugged(link, script);
                rig.check(disk, 0, 64);
                rig.write(disk, 3, &[7; 512]).unwrap();
                assert_eq!(device.block(3), [7; 512], "{offer:?}, {order:?}");
            }
        }
    }
}

#[test]
fn field_case_26_a_setting_that_does_not_say_what_its_pipes_are_for_is_not_used() {
    for &link in LINKS {
        for pipe in 0..4 {
            let mut rig = Rig::default();
            let neighbour = rig.disk(OTHER_PORT, Script::new().build());
            let device = UasScript::new().speed(link).unnamed(pipe).build();
            rig.plug(port_for(link), device.clone());
            rig.run(Duration::from_secs(10));
            assert!(rig.units_at(port_for(link)).is_empty(), "pipe {pipe}");
            assert_eq!(device.exchanges().len(), 0);
            rig.check(neighbour, 0, 8);
        }
    }
}

#[test]
fn field_case_38_memory_that_the_controller_does_not_reach_goes_through_the_pool() {
    use rootport::block::{BlockDevice, Lba};
    for &link in LINKS {
        let mut rig = Rig::new(Options::default(), controller::addresses_32());
        let disk = rig.disk(port_for(link), UasScript::new().speed(link).build());
        let before = rig.pool_used();
        let mut high = rig.machine.buffer_at(0x1_2345_6000, 300 * 512, 3);
        rig.host.disk(disk).read(Lba(3), &mut high).unwrap();
        let wanted: Vec<u8> = (3..303).flat_map(|lba| pattern(lba, 512)).collect();
        assert!(high[..] == wanted[..]);
        high.iter_mut().for_each(|byte| *byte = !*byte);
        rig.host.disk(disk).write(Lba(1000), &high).unwrap();
        assert!(rig.read(disk, 1000, 300 * 512).unwrap()[..] == high[..]);
        assert_eq!(rig.pool_used(), before, "every piece went back");
    }
}

#[test]
fn field_case_40_a_plug_that_is_pulled_and_put_back_is_a_new_disk_and_the_old_handle_fails() {
    for &link in LINKS {
        let (mut rig, disk, device) = plugged(link, UasScript::new());
        rig.check(disk, 0, 64);
        let other = rig.disk(OTHER_PORT, Script::new().build());
        rig.unplug(port_for(link));
        assert_eq!(rig.read(disk, 0, 512), Err(BlockError::Disconnected));
        let again = rig.disk(port_for(link), device);
        assert_ne!(again, disk);
        rig.check(again, 0, 64);
        assert_eq!(rig.read(disk, 0, 512), Err(BlockError::Disconnected));
        rig.check(other, 0, 64);
    }
}

#[test]
fn field_case_38_a_small_pool_keeps_the_depth_down_and_the_log_says_what_is_short() {
    for &link in LINKS {
        let mut depths = Vec::new();
        // Each step an eighth more.
        let sizes = std::iter::successors(Some(16_usize << 10), |size| Some(size + size / 8));
        let sizes = sizes.map(|size| size & !0xff);
        for pool in sizes.take_while(|size| *size < POOL) {
            let faults = controller::Faults::none();
            let mut rig = Rig::with_pool(Options::default(), controller::usual(), faults, pool);
            rig.plug(port_for(link), UasScript::new().speed(link).build());
            rig.run(Duration::from_secs(5));
            let Some(disk) = rig.host.disks().next().map(|disk| disk.id) else {
                continue;
            };
            rig.check(disk, 0, 1024);
            let depth = rig.host.uas(disk).expect("it has nothing else").depth;
            let short = match usize::from(depth) {
                DEPTH => "the table of Commands is full",
                _ => "the pool is too small",
            };
            let log = rig.machine.log();
            let told = format!("{depth} commands in flight at most: {short}");
            let is_told = log.iter().any(|line| line.contains(&told));
            assert!(is_told, "{link:?}, {pool} bytes: {log:?}");
            depths.push(usize::from(depth));
        }
        assert!(depths.is_sorted(), "{link:?}: {depths:?}");
        assert!(
            depths[0] < DEPTH && depths.last() == Some(&DEPTH),
            "{link:?}: {depths:?}"
        );
    }
}
