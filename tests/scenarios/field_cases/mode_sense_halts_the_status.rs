//! MODE SENSE of 192 bytes gets 16, then bulk IN halts when the status is read: the halt is cleared,
//! the status read again, and the disk works on.

use crate::rig::with_disk;
use rootport::time::Duration;
use rootport_models::device::base::Request;
use rootport_models::device::field::commands::halts_the_status_after_short_mode_data;

#[test]
fn the_halt_is_cleared_once_and_the_disk_works() {
    let device = halts_the_status_after_short_mode_data();
    let (mut rig, disk) = with_disk(&device);
    assert!(rig.age() < Duration::from_secs(1));
    assert_eq!(device.count_requests(Request::CLEAR_HALT), 1);
    assert_eq!(
        device.count_requests(Request::BULK_ONLY_RESET),
        0,
        "no recovery was needed"
    );
    assert_eq!(
        device.stalls().len(),
        1,
        "the pipe was not read again before it was cleared"
    );
    assert!(rig.geometry(disk).writable);
    rig.check(disk, 77, 32);
    rig.write(disk, 77, &[9; 512]).unwrap();
    assert_eq!(rig.read(disk, 77, 512).unwrap(), [9; 512]);
}

#[test]
fn every_data_command_announces_its_allocation_length() {
    let device = halts_the_status_after_short_mode_data();
    let (_rig, _disk) = with_disk(&device);
    for exchange in device.exchanges() {
        let wrapper = &exchange.wrapper;
        let asked = match wrapper.cdb[0] {
            0x12 | 0x1a | 0x03 => u32::from(wrapper.cdb[4]),
            0x25 => 8,
            0x28 => 512 * u32::from(wrapper.cdb[8]),
            _ => 0,
        };
        assert_eq!(wrapper.length, asked, "{:x?}", wrapper.cdb);
    }
}
