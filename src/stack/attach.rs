//! How a described device is taken into use: what it offers, what is known of it, and which of its
//! settings is opened.
//!
//! Called by [`dispatch`](super::dispatch) after every enumeration, since a device may offer something
//! else at another speed. UAS comes first where the device, the controller and what is known of both
//! allow it, and Bulk-Only is what remains.

use super::recover::Home;
use super::{FunctionSlot, Host};
use crate::host::HostError;
use crate::platform::Platform;
use crate::policy::{Policy, UasUse};
use crate::storage::choose::{Choice, Offer, Way};
use crate::storage::fallback::{FellBack, Unopened};
use crate::storage::quirks::{
    Avoidance, Decision, Identity, Quirks, Setting, UasChoice, attached, bulk_only,
};
use crate::storage::uas::transport::Tools;
use crate::storage::usage::{Instead, Usage};
use crate::time::Instant;
use crate::usb::enumerate::CONFIGURATION_LIMIT;
use crate::usb::quirks::bus_quirks;
use crate::usb::{DeviceId, DeviceInfo, Driver, Table, UsbError};

/// What is known of a device that was described.
struct Known {
    offer: Offer,
    /// Its policies over Bulk-Only.
    bulk_only: Decision,
    /// Whether UAS may be used, and its policies then.
    uas: (UasChoice, Decision),
}

impl<P: Platform, C: Driver> Host<'_, P, C> {
    /// A device's descriptors are known: if it has storage, a function takes it.
    pub(super) fn described(&mut self, device: DeviceId, now: Instant) {
        let Some(info) = self.bus.info(device) else {
            return;
        };
        if self.bus.reset_for_speed(device, now) {
            self.platform.log(format_args!(
                "usb: a SuperSpeed device runs at high speed: it is reset once"
            ));
            return;
        }
        self.advise_on_power(&info);
        let Some(known) = self.look_up(&info) else {
            return;
        };
        let order = known.in_order(None, &self.policy);
        if order.iter().all(Option::is_none) {
            self.bus.set_driver_name(device, known.why_unused());
            return;
        }
        let attached = match self.place_for(&info) {
            None => Err(UsbError::TableFull(Table::Functions)),
            Some(index) => self.attach(index, &info, &known, now),
        };
        match attached {
            Ok(usage) => self.bus.set_driver_name(device, usage.name()),
            Err(error) => {
                self.bus.set_failed(device, error);
                self.tell_failure("no storage driver", error);
            }
        }
    }

    /// The place in the table for a device: the one that waits for it, or a free one.
    fn place_for(&mut self, info: &DeviceInfo) -> Option<usize> {
        match self.returning(info) {
            Some(index) if self.is_same_device(index, info) => Some(index),
            Some(index) => {
                // Another one was plugged in its place.
                self.free_function(index as u8);
                Some(index)
            }
            None => {
                let is_unused =
                    |slot: &FunctionSlot| slot.function.is_free() && slot.absent_until.is_none();
                let index = self.functions.iter().position(is_unused)?;
                // Nothing of whoever was there before, or could not be opened there, is this one's.
                self.free_function(index as u8);
                Some(index)
            }
        }
    }

    /// What the device offers, and its policies from the table and the run-time string.
    fn look_up(&self, info: &DeviceInfo) -> Option<Known> {
        let descriptor = info.descriptor?;
        let identity = Identity {
            vendor: descriptor.vendor,
            product: descriptor.product,
            release: descriptor.release,
            speed: info.speed(),
            manufacturer: info.strings.manufacturer.as_bytes(),
            product_name: info.strings.product.as_bytes(),
        };
        let bulk_only = bulk_only(&identity, &self.overrides);
        let bus_quirks = bus_quirks(descriptor.vendor, descriptor.product);
        let mut bytes = [0; CONFIGURATION_LIMIT as usize];
        let configuration = self.bus.read_configuration(info.id, &mut bytes);
        let offer = Offer::of(configuration, info.speed(), bulk_only.quirks, bus_quirks);
        let capabilities = self.bus.capabilities(info.id);
        let setting = Setting {
            is_offered: offer.uas.is_some(),
            raw_max_power: offer.raw_max_power,
            status_streams: offer.status_streams(),
            host_has_streams: capabilities.is_some_and(|host| host.streams != 0),
        };
        let uas = attached(&identity, &setting, &self.overrides);
        Some(Known {
            offer,
            bulk_only,
            uas,
        })
    }

    /// Opens a device over the best of what it offers. Returns how.
    fn attach(
        &mut self,
        index: usize,
        info: &DeviceInfo,
        known: &Known,
        now: Instant,
    ) -> Result<Usage, UsbError> {
        let slot = self.functions.get_mut(index);
        let slot = slot.ok_or(UsbError::TableFull(Table::Functions))?;
        slot.home = Some(Home::of(info));
        slot.has_bulk_only = known.offer.bulk_only.is_some();
        let mut reason = self.reason_against_uas(index, info.controller);
        let mut last = UsbError::Disconnected;
        for choice in known.in_order(reason, &self.policy).into_iter().flatten() {
            let is_uas = matches!(choice.way, Way::Uas(_));
            let decision = if is_uas { known.uas.1 } else { known.bulk_only };
            let opened = self.open(index, info.id, choice, decision, now);
            let slot = self.functions.get_mut(index);
            let slot = slot.ok_or(UsbError::TableFull(Table::Functions))?;
            match opened {
                Ok(()) => {
                    let usage = known.usage(choice, reason);
                    slot.usage = Some(usage);
                    self.tell_usage(info, usage, &decision);
                    self.tell_shortage(index);
                    return Ok(usage);
                }
                Err(error) if is_uas => {
                    slot.fallback.not_opened(error);
                    reason = reason.or(slot.fallback.reason());
                    last = error;
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// A device could not be configured for UAS: it is opened again over Bulk-Only, if it can be.
    pub(super) fn leave_unopened_uas(&mut self, index: u8, error: UsbError, now: Instant) -> bool {
        let Some(slot) = self.functions.get_mut(usize::from(index)) else {
            return false;
        };
        let is_uas = slot.function.takes_several();
        let Some(device) = slot
            .function
            .device()
            .filter(|_| is_uas && slot.has_bulk_only)
        else {
            return false;
        };
        slot.fallback.not_opened(error);
        self.leave(index, now);
        self.bus.reset_device(device, now);
        true
    }

    fn open(
        &mut self,
        index: usize,
        device: DeviceId,
        choice: &Choice,
        decision: Decision,
        now: Instant,
    ) -> Result<(), UsbError> {
        let slot = self.functions.get_mut(index);
        let slot = slot.ok_or(UsbError::TableFull(Table::Functions))?;
        let mut tools = Tools {
            bus: &mut self.bus,
            dma: &self.platform,
            commands: self.commands,
            now,
        };
        let (policy, index) = (&self.policy, index as u8);
        slot.function
            .attach(&mut tools, policy, index, device, (choice, decision))
    }

    /// One line, where a device is used otherwise than one would think.
    fn tell_usage(&self, info: &DeviceInfo, usage: Usage, decision: &Decision) {
        let is_plain = usage.reason().is_none() && *decision == Decision::NONE;
        let Some(descriptor) = info.descriptor.filter(|_| !is_plain) else {
            return;
        };
        let (vendor, product) = (descriptor.vendor, descriptor.product);
        let Decision { quirks, source } = decision;
        self.platform.log(format_args!(
            "usb: {vendor:04x}:{product:04x}: {usage}, {quirks:?} ({source})"
        ));
    }

    /// One line about a device that is not used, with what is short where it is the pool.
    pub(super) fn tell_failure(&mut self, what: &str, error: UsbError) {
        let usage = self.bus.pool().usage();
        match error {
            UsbError::Controller(HostError::PoolExhausted) => self.platform.log(format_args!(
                "usb: {what}: {}: {} bytes in one piece, of {} there are {} left",
                Unopened(error),
                usage.refused,
                usage.capacity,
                usage.capacity - usage.used,
            )),
            _ => self
                .platform
                .log(format_args!("usb: {what}: {}", Unopened(error))),
        }
    }

    /// One line, where fewer commands are in flight over UAS than could be.
    fn tell_shortage(&mut self, index: usize) {
        let slot = self.functions.get(index);
        let transport = slot.and_then(|slot| slot.function.uas());
        let Some((depth, error)) = transport.and_then(|uas| Some((uas.depth(), uas.shortage()?)))
        else {
            return;
        };
        let pool = self.bus.pool().usage();
        self.platform.log(format_args!(
            "usb: storage {index} has {depth} commands in flight at most: {} (pool: {} of {} bytes in use)",
            Unopened(error),
            pool.used,
            pool.capacity,
        ));
    }

    fn advise_on_power(&self, info: &DeviceInfo) {
        let power = &info.power;
        if power.exceeds_port() {
            self.platform.log(format_args!(
                "usb: a device wants {} mA of a port that need give {}: it may lack power",
                power.milliamperes, power.port_milliamperes,
            ));
        }
    }
}

impl Known {
    /// The settings to be tried, in this order. UAS is the last resort of a device that has failed
    /// over it, and not used at all where it is known to fail.
    fn in_order(&self, fell_back: Option<FellBack>, policy: &Policy) -> [Option<&Choice>; 2] {
        let may = self.uas.0 == UasChoice::Uas && policy.uas == UasUse::WherePossible;
        let uas = self.offer.uas.as_ref().filter(|_| may);
        let bulk_only = self.offer.bulk_only.as_ref();
        match fell_back {
            Some(_) => [bulk_only, uas],
            None => [uas, bulk_only],
        }
    }

    /// Why a device is not used, for the tree; empty if it has no storage.
    fn why_unused(&self) -> &'static str {
        match self.uas.0 {
            _ if self.bulk_only.quirks.contains(Quirks::IGNORE_DEVICE) => "none (quirk i)",
            UasChoice::BulkOnly(Avoidance::NotOffered) => "",
            UasChoice::Uas => "none (uas only, and policy)",
            UasChoice::BulkOnly(Avoidance::HostWithoutStreams) => {
                "none (uas only, controller without streams)"
            }
            UasChoice::BulkOnly(Avoidance::Quirk) => "none (uas only, quirk u)",
            UasChoice::BulkOnly(_) => "none (uas only, known to fail)",
        }
    }

    fn usage(&self, choice: &Choice, fell_back: Option<FellBack>) -> Usage {
        match (choice.way, self.uas.0, fell_back) {
            (Way::Uas(_), ..) => Usage::Uas,
            (Way::BulkOnly(_), UasChoice::BulkOnly(reason), _) => {
                Usage::BulkOnly(Instead::Avoided(reason))
            }
            (Way::BulkOnly(_), UasChoice::Uas, Some(reason)) => {
                Usage::BulkOnly(Instead::FellBack(reason))
            }
            (Way::BulkOnly(_), UasChoice::Uas, None) => Usage::BulkOnly(Instead::Policy),
        }
    }
}
