//! 6/28/00 until REQUEST SENSE is sent, from a stick that takes 4 s besides: sense is fetched after
//! each failed command, and the readiness budget is long enough.

use crate::rig::with_disk;
use rootport::time::Duration;
use rootport_models::device::field::readiness::keeps_its_attention_until_request_sense;

#[test]
fn each_failed_command_is_followed_by_request_sense_and_the_stick_comes_up() {
    let device = keeps_its_attention_until_request_sense();
    let (mut rig, disk) = with_disk(&device);
    let took = rig.age();
    assert!(took >= Duration::from_secs(4), "{took:?}");
    assert!(
        took < Duration::from_secs(5),
        "ready at its time, found soon after: {took:?}"
    );
    rig.check(disk, 0, 8);
    let exchanges = device.exchanges();
    for (index, exchange) in exchanges.iter().enumerate() {
        if exchange.status == Some(1) {
            let next = exchanges.get(index + 1).map(|next| next.wrapper.cdb[0]);
            assert_eq!(next, Some(0x03), "REQUEST SENSE follows command {index}");
        }
    }
}

#[test]
fn the_attention_itself_costs_one_question_more() {
    let device = keeps_its_attention_until_request_sense();
    device.unit(0, |unit| unit.spin_up = 0);
    let (_rig, _disk) = with_disk(&device);
    // INQUIRY, TEST UNIT READY (attention), its sense, TEST UNIT READY, capacity, the first read,
    // mode sense.
    let order = [0x12, 0x00, 0x03, 0x00, 0x25, 0x28, 0x1a];
    assert_eq!(device.opcodes(), order);
}
