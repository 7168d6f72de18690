//! A name for a disk that stays the same from one boot to the next, as far as the disk allows it.

use core::fmt;

use super::DiskInfo;
use crate::host::RootPort;
use crate::platform::ControllerId;
use crate::scsi::vpd::{Authority, WorldWideName};
use crate::text::Text;

/// What tells a disk from others: the best of what is known of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StableName {
    /// A name that no other disk in the world has. It stays with the disk in another enclosure, if
    /// the bridge tells the truth.
    WorldWide(WorldWideName),
    /// The serial number of its USB device, and the unit. It stays with the enclosure in another
    /// port; some makers give all of theirs the same.
    Serial {
        /// `idVendor`.
        vendor: u16,
        /// `idProduct`.
        product: u16,
        /// The device's serial number.
        serial: Text<64>,
        /// The unit.
        unit: u8,
    },
    /// Where it is plugged in. It stays with the port.
    Place {
        /// The controller.
        controller: ControllerId,
        /// Its root port.
        root_port: RootPort,
        /// The ports of the hubs on the way (USB 3.2 §8.9), 0 without hubs.
        route: u32,
        /// The unit.
        unit: u8,
    },
}

impl DiskInfo {
    /// The best name that is known of the disk. Ask when it is ready: before, it may have none but
    /// its place.
    #[must_use]
    pub fn stable_name(&self) -> StableName {
        if let Some(name) = self.details.and_then(|details| details.name) {
            return StableName::WorldWide(name);
        }
        let (device, unit) = (&self.device, self.unit);
        match device.descriptor {
            Some(descriptor) if !device.strings.serial.is_empty() => StableName::Serial {
                vendor: descriptor.vendor,
                product: descriptor.product,
                serial: device.strings.serial,
                unit,
            },
            _ => StableName::Place {
                controller: device.controller,
                root_port: device.attachment.root_port,
                route: device.attachment.route,
                unit,
            },
        }
    }
}

impl fmt::Display for StableName {
    /// One word without blanks but for those of a serial number.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorldWide(name) => {
                formatter.write_str(match name.authority() {
                    Authority::Naa => "naa.",
                    Authority::Eui64 => "eui.",
                })?;
                name.bytes()
                    .iter()
                    .try_for_each(|byte| write!(formatter, "{byte:02x}"))
            }
            Self::Serial {
                vendor,
                product,
                serial,
                unit,
            } => write!(formatter, "usb-{vendor:04x}:{product:04x}-{serial}:{unit}"),
            Self::Place {
                controller,
                root_port,
                route,
                unit,
            } => {
                let (controller, port) = (controller.0, root_port.0);
                write!(formatter, "port-{controller}.{port}.{route:x}:{unit}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_that_tell_their_kind() {
        let name = WorldWideName::new(Authority::Naa, &[0x50, 0, 0xc5, 0, 1, 2, 3, 4]);
        let naa = StableName::WorldWide(name.unwrap());
        assert_eq!(naa.to_string(), "naa.5000c50001020304");
        let serial = StableName::Serial {
            vendor: 0x152d,
            product: 0x0578,
            serial: Text::from_bytes(b"A1"),
            unit: 1,
        };
        assert_eq!(serial.to_string(), "usb-152d:0578-A1:1");
        let place = StableName::Place {
            controller: ControllerId(1),
            root_port: RootPort(2),
            route: 0x13,
            unit: 0,
        };
        assert_eq!(place.to_string(), "port-1.2.13:0");
    }
}
