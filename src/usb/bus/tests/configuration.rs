//! Tests of the bus: configuration.

use super::*;

const CONFIG: FunctionConfig = FunctionConfig {
    configuration: 1,
    interface: 0,
    alternate: 0,
};

#[test]
fn opens_the_endpoints_before_the_device_is_told() {
    let (mut bus, fake, device, now) = with_device();
    fake.state().calls.clear();
    bus.configure(device, CONFIG, now).unwrap();
    let events = run(&mut bus, now, now + WHILE);
    assert_eq!(events, [BusEvent::Configured(device, Ok(()))]);
    let told = Call::Control(SetupPacket::set_configuration(1));
    assert_eq!(fake.state().calls, [Call::Configure, told]);
    let info = bus.info(device).unwrap();
    assert_eq!(info.state, DeviceState::Configured);
}

#[test]
fn that_the_controller_refuses_shows_in_the_tree() {
    let (mut bus, fake, device, now) = with_device();
    let refusal = (Call::Configure, HostError::Resources);
    fake.state().refused.push(refusal);
    let error = UsbError::Controller(HostError::Resources);
    assert_eq!(bus.configure(device, CONFIG, now), Err(error));
    let info = bus.info(device).unwrap();
    assert_eq!(info.state, DeviceState::Failed(error));
}

#[test]
fn that_the_device_does_not_answer_ends_in_time() {
    let (mut bus, fake, device, now) = with_device();
    fake.state().mute = true;
    bus.configure(device, CONFIG, now).unwrap();
    let events = run(&mut bus, now, now + Duration::from_secs(6));
    let timeout = Err(UsbError::Timeout);
    assert_eq!(events, [BusEvent::Configured(device, timeout)]);
}
