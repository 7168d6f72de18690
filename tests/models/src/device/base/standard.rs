//! The standard requests (USB 2.0 §9.4, USB 3.2 §9.4).
//!
//! What a real device would refuse is stalled; what no sane host sends is recorded besides.

use super::super::Nanoseconds;
use super::super::setup::Setup;
use super::Device;
use super::endpoints::Endpoints;
use super::function::{Answer, Function, Reset};

/// Answers a standard request and lets it take effect; a new address takes effect later, at the end
/// of the status stage.
pub(super) fn answer<F: Function>(
    device: &mut Device<F>,
    now: Nanoseconds,
    setup: &Setup,
) -> Answer {
    match (setup.request_type, setup.request) {
        (0x80, 6) => get_descriptor(device, setup),
        (0x00, 5) => set_address(device, now, setup),
        (0x80, 8) => Answer::Data(vec![device.state.configuration]),
        (0x00, 9) => set_configuration(device, now, setup),
        (0x81, 10) => get_interface(device, setup),
        (0x01, 11) => set_interface(device, now, setup),
        (0x80..=0x82, 0) => get_status(device, setup),
        (0x02, 1) => clear_halt(device, now, setup),
        (0x02, 3) => set_halt(device, setup),
        // SET_SEL and SET_ISOCH_DELAY (USB 3.2 §9.4.12, §9.4.11), U1 and U2 enable (§9.4.9).
        (0x00, 0x30 | 0x31) | (0x00, 1 | 3) if device.is_super() => Answer::Accept,
        _ => Answer::Stall,
    }
}

impl<F: Function> Device<F> {
    fn is_super(&self) -> bool {
        self.state.link.is_some_and(super::Link::is_super)
    }

    fn configured(&self) -> bool {
        self.state.configuration != 0
    }

    fn load_endpoints(&mut self, now: Nanoseconds) {
        let bytes = self
            .descriptors
            .with_value(self.state.configuration)
            .unwrap_or_default();
        let link = self.state.link.unwrap_or(super::Link::Full);
        self.state.endpoints = Endpoints::of_configuration(bytes, &self.state.alternates, link);
        self.function.reset(now, Reset::Configured);
    }
}

fn get_descriptor<F: Function>(device: &Device<F>, setup: &Setup) -> Answer {
    let [kind, index] = setup.value.to_be_bytes();
    device
        .descriptors
        .find(kind, index)
        .map_or(Answer::Stall, |bytes| Answer::Data(bytes.into()))
}

fn set_address<F: Function>(device: &mut Device<F>, now: Nanoseconds, setup: &Setup) -> Answer {
    let legal = setup.value < 128 && setup.index == 0 && setup.length == 0;
    if !legal || device.configured() {
        device
            .violations
            .record(now, "USB 2.0 §9.4.6", format!("a SET_ADDRESS of {setup}"));
        return Answer::Stall;
    }
    device.state.new_address = u8::try_from(setup.value).ok();
    Answer::Accept
}

fn set_configuration<F: Function>(
    device: &mut Device<F>,
    now: Nanoseconds,
    setup: &Setup,
) -> Answer {
    let [high, value] = setup.value.to_be_bytes();
    if high != 0 || setup.index != 0 || setup.length != 0 || device.state.address == 0 {
        device.violations.record(
            now,
            "USB 2.0 §9.4.7",
            format!("a SET_CONFIGURATION of {setup}"),
        );
        return Answer::Stall;
    }
    if value != 0 && device.descriptors.with_value(value).is_none() {
        return Answer::Stall;
    }
    device.state.configuration = value;
    device.state.alternates.clear();
    device.load_endpoints(now);
    Answer::Accept
}

fn get_interface<F: Function>(device: &Device<F>, setup: &Setup) -> Answer {
    if !device.configured() {
        return Answer::Stall;
    }
    let setting = device
        .state
        .alternates
        .iter()
        .find(|(number, _)| u16::from(*number) == setup.index);
    Answer::Data(vec![setting.map_or(0, |(_, setting)| *setting)])
}

fn set_interface<F: Function>(device: &mut Device<F>, now: Nanoseconds, setup: &Setup) -> Answer {
    let bytes = device
        .descriptors
        .with_value(device.state.configuration)
        .unwrap_or_default();
    let ([_, number], [_, setting]) = (setup.index.to_be_bytes(), setup.value.to_be_bytes());
    if !device.configured() || !has_setting(bytes, number, setting) {
        return Answer::Stall;
    }
    device
        .state
        .alternates
        .retain(|(known, _)| *known != number);
    device.state.alternates.push((number, setting));
    device.load_endpoints(now);
    Answer::Accept
}

/// Whether the configuration has this alternate setting of this interface.
fn has_setting(mut configuration: &[u8], number: u8, setting: u8) -> bool {
    while let [length, kind, rest @ ..] = configuration {
        if *kind == 4 && rest.starts_with(&[number, setting]) {
            return true;
        }
        match configuration.get(usize::from(*length).max(2)..) {
            Some(next) => configuration = next,
            None => return false,
        }
    }
    false
}

fn get_status<F: Function>(device: &Device<F>, setup: &Setup) -> Answer {
    if setup.request_type != 0x82 || setup.index & 0x0f == 0 {
        return Answer::Data(vec![0, 0]);
    }
    let endpoint = device.state.endpoints.find(endpoint_of(setup));
    endpoint.map_or(Answer::Stall, |endpoint| {
        Answer::Data(vec![u8::from(endpoint.halted), 0])
    })
}

/// CLEAR_FEATURE(ENDPOINT_HALT): also sets the toggle back, halted or not (USB 2.0 §9.4.5).
fn clear_halt<F: Function>(device: &mut Device<F>, now: Nanoseconds, setup: &Setup) -> Answer {
    let address = endpoint_of(setup);
    if address & 0x0f == 0 {
        return Answer::Accept;
    }
    if setup.value != 0 || setup.length != 0 {
        device
            .violations
            .record(now, "USB 2.0 §9.4.1", format!("a CLEAR_FEATURE of {setup}"));
        return Answer::Stall;
    }
    let Some(endpoint) = device.state.endpoints.find_mut(address) else {
        device
            .violations
            .record(now, "USB 2.0 §9.4.1", format!("no endpoint for {setup}"));
        return Answer::Stall;
    };
    endpoint.sequence = 0;
    endpoint.halted = false;
    let clear = device.with_wire(now, |function, wire| function.halt_cleared(wire, address));
    if !clear {
        device.state.endpoints.halt(address);
    }
    Answer::Accept
}

fn set_halt<F: Function>(device: &mut Device<F>, setup: &Setup) -> Answer {
    let address = endpoint_of(setup);
    if device.state.endpoints.find(address).is_none() {
        return Answer::Stall;
    }
    device.state.endpoints.halt(address);
    Answer::Accept
}

/// The endpoint in the index field; the direction is bit 7.
const fn endpoint_of(setup: &Setup) -> u8 {
    setup.index.to_le_bytes()[0]
}
