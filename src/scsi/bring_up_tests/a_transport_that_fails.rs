//! Tests of bring-up: a transport that fails.

use super::*;

#[test]
fn is_tried_three_times_where_the_device_was_brought_back_in_step() {
    for error in [
        TransportError::Timeout,
        TransportError::Protocol(Fault::BadStatus),
        TransportError::Protocol(Fault::PhaseError),
    ] {
        for code in [INQUIRY, TEST_UNIT_READY, READ_CAPACITY_10] {
            let ended = but_for(code, |_| dies(error));
            let fault = Action::Fail(BringUpError::Transport(error));
            assert_eq!(ended.action, fault);
            assert_eq!(ended.count(code), 3);
            at_first(code, 2, || dies(error)).found();
        }
    }
}

#[test]
fn ends_at_once_where_it_cannot_come_back() {
    for error in [
        TransportError::Disconnected,
        TransportError::Broken(Fault::Timeout),
    ] {
        for code in [INQUIRY, TEST_UNIT_READY, READ_CAPACITY_10, MODE_SENSE_6] {
            let ended = but_for(code, |_| dies(error));
            let fault = Action::Fail(BringUpError::Transport(error));
            assert_eq!(ended.action, fault);
            assert_eq!(ended.count(code), 1);
        }
    }
}
