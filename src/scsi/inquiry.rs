//! Standard INQUIRY data: what the device is (SPC-4, standard INQUIRY data).
//!
//! The disk driver reads it first of all, to skip what is no disk and to show the names.

use crate::bytes::u8_at;
use crate::text::Text;

/// What stands behind a logical unit number (SPC-4, PERIPHERAL QUALIFIER).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presence {
    /// A device, connected.
    Connected,
    /// The target could have one here, but has not.
    Absent,
    /// The target cannot have one here, or says nothing sensible.
    Impossible,
}

/// Kind of device (SPC-4, PERIPHERAL DEVICE TYPE).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceType {
    /// 00: disks, sticks, card readers.
    Disk,
    /// 05: CD and DVD drives. Blocks can be read as from a disk.
    Optical,
    /// 0E: a disk with the reduced command set.
    ReducedDisk,
    /// 14: a disk that takes writes in order within zones.
    ZonedDisk,
    /// 1F: nothing that has a kind.
    Unknown,
    /// Anything else, by its number.
    Other(u8),
}

impl DeviceType {
    const fn from_bits(bits: u8) -> Self {
        match bits & 0x1f {
            0x00 => Self::Disk,
            0x05 => Self::Optical,
            0x0e => Self::ReducedDisk,
            0x14 => Self::ZonedDisk,
            0x1f => Self::Unknown,
            other => Self::Other(other),
        }
    }
}

/// What a device says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inquiry {
    /// Whether there is a device at this logical unit number.
    pub presence: Presence,
    /// Which kind.
    pub device_type: DeviceType,
    /// Whether the medium can be taken out.
    #[doc(alias = "RMB")]
    pub removable: bool,
    /// Edition of the standard: 5 is SPC-3, 6 is SPC-4; many sticks say 0.
    #[doc(alias = "VERSION")]
    pub version: u8,
    /// Whether the device queues commands. On USB it says nothing reliable.
    #[doc(alias = "CMDQUE")]
    pub queues_commands: bool,
    /// Who made it, or the bridge's idea of that.
    pub vendor: Text<8>,
    /// What it is.
    pub product: Text<16>,
    /// Which revision.
    pub revision: Text<4>,
}

/// A device answered INQUIRY with no data at all. Treat the unit as one that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoInquiryData;

impl Inquiry {
    /// What a device counts as that must not be asked.
    pub const ASSUMED: Self = Self {
        presence: Presence::Connected,
        device_type: DeviceType::Disk,
        removable: true,
        version: 2,
        queues_commands: false,
        vendor: Text::EMPTY,
        product: Text::EMPTY,
        revision: Text::EMPTY,
    };

    /// Bytes to ask for.
    pub const LENGTH: usize = 36;

    /// Reads as much as came. Policy: one byte is enough to know the kind of device; fields that
    /// did not come are empty, as with old card readers that send five bytes.
    ///
    /// # Errors
    /// [`NoInquiryData`] when there is no first byte.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoInquiryData> {
        let kind = u8_at(bytes, 0).ok_or(NoInquiryData)?;
        let byte = |offset| u8_at(bytes, offset).unwrap_or_default();
        let presence = match kind & 0xe0 {
            0x00 => Presence::Connected,
            0x20 => Presence::Absent,
            _ => Presence::Impossible,
        };
        Ok(Self {
            presence,
            device_type: DeviceType::from_bits(kind),
            removable: byte(1) & 0x80 != 0,
            version: byte(2),
            queues_commands: byte(7) & 0x02 != 0,
            vendor: text_at(bytes, 8, 8),
            product: text_at(bytes, 16, 16),
            revision: text_at(bytes, 32, 4),
        })
    }
}

/// The text of up to `length` bytes from `offset`, as far as it came.
fn text_at<const N: usize>(bytes: &[u8], offset: usize, length: usize) -> Text<N> {
    let rest = bytes.get(offset..).unwrap_or_default();
    Text::from_bytes(rest.get(..length).unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STICK: &[u8; 36] = b"\x00\x80\x06\x02\x1f\x00\x00\x00SanDisk Cruzer Blade    1.27";

    #[test]
    fn names_are_trimmed() {
        let inquiry = Inquiry::parse(STICK).unwrap();
        assert_eq!(inquiry.presence, Presence::Connected);
        assert_eq!(inquiry.device_type, DeviceType::Disk);
        assert!(inquiry.removable);
        assert_eq!(inquiry.version, 6);
        assert_eq!(inquiry.vendor.as_str(), "SanDisk");
        assert_eq!(inquiry.product.as_str(), "Cruzer Blade");
        assert_eq!(inquiry.revision.as_str(), "1.27");
    }

    #[test]
    fn five_bytes_are_enough_and_none_are_not() {
        let inquiry = Inquiry::parse(&[5, 0x80, 0, 2, 0]).unwrap();
        assert_eq!(inquiry.device_type, DeviceType::Optical);
        assert!(inquiry.vendor.is_empty());
        assert_eq!(Inquiry::parse(&[]), Err(NoInquiryData));
    }

    #[test]
    fn a_text_that_is_cut_off_shows_what_came() {
        let inquiry = Inquiry::parse(STICK.get(..20).unwrap()).unwrap();
        assert_eq!(inquiry.product.as_str(), "Cruz");
    }

    #[test]
    fn a_unit_that_cannot_exist_is_told_from_one_that_is_absent() {
        assert_eq!(
            Inquiry::parse(&[0x7f]).unwrap().presence,
            Presence::Impossible
        );
        assert_eq!(Inquiry::parse(&[0x20]).unwrap().presence, Presence::Absent);
    }
}
