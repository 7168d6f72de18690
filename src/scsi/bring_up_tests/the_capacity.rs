//! Tests of bring-up: the capacity.

use super::*;

/// As of a disk on a port that gives it too little power.
#[test]
fn that_fails_for_lack_of_power_is_an_error_that_says_so() {
    let state = sense(4, 0x44, 0x81);
    let ended = bring_up(|command, _| match operation(command) {
        READ_CAPACITY_10 | READ_CAPACITY_16 => fails(state),
        _ => healthy(command),
    });
    assert_eq!(ended.action, Action::Fail(BringUpError::Failed(state)));
    assert_eq!(state.key, SenseKey::HardwareError);
    assert_eq!(ended.count(READ_CAPACITY_10), 3);
}

#[test]
fn has_the_block_length_that_the_disk_says() {
    for length in [512, 1024, 2048, 4096, 0x1_0000] {
        let ended = but_for(READ_CAPACITY_10, |_| good(&capacity_10(999, length)));
        assert_eq!(ended.found().capacity.block_length().bytes(), length);
    }
}

/// As card readers and sticks without a medium are known to give it.
#[test]
fn of_a_nonsensical_block_length_is_asked_three_times_and_refused() {
    for length in [0, 1, 511, 513, 1000, 0x2_0000, 263_520_264, u32::MAX] {
        let ended = but_for(READ_CAPACITY_10, |_| good(&capacity_10(999, length)));
        let fault = BringUpError::Capacity(CapacityFault::BlockLength(length));
        assert_eq!(ended.action, Action::Fail(fault), "{length}");
        assert_eq!(ended.count(READ_CAPACITY_10), 3);
    }
}

#[test]
fn that_makes_sense_only_the_second_time_is_taken() {
    at_first(READ_CAPACITY_10, 1, || good(&capacity_10(999, 0))).found();
    at_first(READ_CAPACITY_10, 2, || good(&[0, 0, 3])).found();
}

#[test]
fn beyond_32_bits_is_asked_for_with_16_bytes() {
    let ended = bring_up(|command, _| match operation(command) {
        READ_CAPACITY_10 => good(&capacity_10(u32::MAX, 512)),
        READ_CAPACITY_16 => good(&capacity_16(0x1_8000_0000, 512)),
        _ => healthy(command),
    });
    assert_eq!(ended.found().capacity.blocks(), 0x1_8000_0001);
    assert_eq!(ended.count(READ_CAPACITY_16), 1);
}

#[test]
fn below_that_is_not_asked_for_with_16_bytes() {
    let ended = but_for(READ_CAPACITY_10, |_| good(&capacity_10(u32::MAX - 1, 512)));
    assert_eq!(ended.found().capacity.blocks(), u64::from(u32::MAX));
    assert_eq!(ended.count(READ_CAPACITY_16), 0);
}

#[test]
fn beyond_32_bits_without_the_command_is_what_32_bits_can_reach() {
    let ended = bring_up(|command, _| match operation(command) {
        READ_CAPACITY_10 => good(&capacity_10(u32::MAX, 512)),
        _ => healthy(command),
    });
    assert_eq!(ended.found().capacity.blocks(), 1 << 32);
    let ended = bring_up(|command, _| match operation(command) {
        READ_CAPACITY_10 => good(&capacity_10(u32::MAX, 0)),
        _ => healthy(command),
    });
    let fault = BringUpError::Capacity(CapacityFault::BlockLength(0));
    assert_eq!(ended.action, Action::Fail(fault));
}

#[test]
fn of_the_largest_number_that_there_is_is_a_lie() {
    let ended = bring_up(|command, _| match operation(command) {
        READ_CAPACITY_10 => good(&capacity_10(u32::MAX, 512)),
        READ_CAPACITY_16 => good(&capacity_16(u64::MAX, 512)),
        _ => healthy(command),
    });
    let fault = BringUpError::Capacity(CapacityFault::LastBlock(u64::MAX));
    assert_eq!(ended.action, Action::Fail(fault));
}
