//! The strings of a device: maker, product, serial number.
//!
//! A part of enumeration, after all that a device can be used without. Tolerant on purpose: a string
//! that is refused or makes no sense is left out, and after any worse failure none is asked any
//! more. Read USB 2.0 §9.6.7 first.

use core::num::NonZeroU8;

use super::descriptor::{Device, StringDescriptor};
use super::error::UsbError;
use super::quirks::BusQuirks;
use super::setup::SetupPacket;
use crate::text::Text;
use crate::time::Duration;

/// How long a string may take. Policy: a device that has some answers in milliseconds, and one that
/// does not shall not hold the bus for long.
pub const STRING_TIMEOUT: Duration = Duration::from_millis(1_000);

/// Bytes asked of a string. Policy: all that there can be, as every host asks.
const WHOLE: u16 = 255;

/// Bytes of a string's head, which has its length.
const HEAD: u16 = 2;

/// English of the United States: what most devices have, and what is asked of a device that does
/// not list its languages.
const ENGLISH: u16 = 0x0409;

/// What a device calls itself: printable ASCII, cut where it is longer. Empty where it says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceStrings {
    /// Who made it.
    #[doc(alias = "iManufacturer")]
    pub manufacturer: Text<32>,
    /// What it is.
    #[doc(alias = "iProduct")]
    pub product: Text<32>,
    /// Which one it is: no other device of the same ids has it, if its maker kept the rules.
    #[doc(alias = "iSerialNumber")]
    pub serial: Text<64>,
}

impl DeviceStrings {
    /// Nothing said.
    pub const NONE: Self = Self {
        manufacturer: Text::EMPTY,
        product: Text::EMPTY,
        serial: Text::EMPTY,
    };
}

/// Which string is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Languages,
    Manufacturer,
    Product,
    Serial,
    Done,
}

impl Place {
    const fn next(self) -> Self {
        match self {
            Self::Languages => Self::Manufacturer,
            Self::Manufacturer => Self::Product,
            Self::Product => Self::Serial,
            Self::Serial | Self::Done => Self::Done,
        }
    }
}

/// The questions, and the answers so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reading {
    place: Place,
    indices: [Option<NonZeroU8>; 3],
    language: u16,
    /// The string's length is asked for first, and what it was.
    is_measured: bool,
    length: Option<u16>,
    strings: DeviceStrings,
}

impl Reading {
    /// Nothing to ask.
    pub(super) const NONE: Self = Self {
        place: Place::Done,
        indices: [None; 3],
        language: ENGLISH,
        is_measured: false,
        length: None,
        strings: DeviceStrings::NONE,
    };

    pub(super) fn new(device: &Device, quirks: BusQuirks) -> Self {
        let indices = [
            device.manufacturer_string,
            device.product_string,
            device.serial_string,
        ];
        let has_any = indices.iter().any(Option::is_some);
        Self {
            place: if has_any {
                Place::Languages
            } else {
                Place::Done
            },
            indices,
            language: ENGLISH,
            is_measured: quirks.contains(BusQuirks::STRING_FETCH_255),
            length: None,
            strings: DeviceStrings::NONE,
        }
    }

    /// What was learnt.
    pub(super) fn strings(&self) -> DeviceStrings {
        self.strings
    }

    /// The present question. `None` when there are no more.
    pub(super) fn request(&self) -> Option<SetupPacket> {
        let length = match (self.is_measured, self.length) {
            (false, _) => WHOLE,
            (true, None) => HEAD,
            (true, Some(length)) => length,
        };
        match self.place {
            Place::Done => None,
            Place::Languages => Some(SetupPacket::string_descriptor(0, 0, length)),
            _ => {
                let index = self.index()?.get();
                Some(SetupPacket::string_descriptor(index, self.language, length))
            }
        }
    }

    fn index(&self) -> Option<NonZeroU8> {
        let [manufacturer, product, serial] = self.indices;
        match self.place {
            Place::Manufacturer => manufacturer,
            Place::Product => product,
            Place::Serial => serial,
            Place::Languages | Place::Done => None,
        }
    }

    /// Takes the end of the present question, and goes on to the next.
    ///
    /// # Errors
    ///
    /// [`UsbError::Disconnected`]: there is nobody left to ask.
    pub(super) fn answered(&mut self, result: Result<&[u8], UsbError>) -> Result<(), UsbError> {
        match result {
            Ok(bytes) if self.is_measured && self.length.is_none() => {
                let length = bytes.first().map(|length| u16::from(*length));
                match length.filter(|length| *length > HEAD) {
                    Some(length) => self.length = Some(length),
                    None => self.pass(),
                }
            }
            Ok(bytes) => {
                self.keep(bytes);
                self.pass();
            }
            Err(UsbError::Disconnected) => return Err(UsbError::Disconnected),
            Err(UsbError::Stall) => self.pass(),
            Err(_) => self.place = Place::Done,
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) {
        let Ok(descriptor) = StringDescriptor::parse(bytes) else {
            return;
        };
        match self.place {
            Place::Languages => {
                let has_english = descriptor.languages().any(|it| it == ENGLISH);
                if !has_english && let Some(first) = descriptor.languages().next() {
                    self.language = first;
                }
            }
            Place::Manufacturer => self.strings.manufacturer = descriptor.text(),
            Place::Product => self.strings.product = descriptor.text(),
            Place::Serial => self.strings.serial = descriptor.text(),
            Place::Done => {}
        }
    }

    fn pass(&mut self) {
        self.length = None;
        self.place = self.place.next();
        while self.place != Place::Done && self.index().is_none() {
            self.place = self.place.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(strings: [u8; 3]) -> Device {
        let [manufacturer, product, serial] = strings;
        let bytes = [
            18,
            1,
            0,
            2,
            0,
            0,
            0,
            64,
            1,
            0,
            2,
            0,
            0,
            1,
            manufacturer,
            product,
            serial,
            1,
        ];
        Device::parse(&bytes).unwrap()
    }

    fn string(text: &str) -> Vec<u8> {
        let mut bytes = vec![2 + 2 * text.len() as u8, 3];
        bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        bytes
    }

    /// Answers each question by index and length; gives back the questions and what was learnt.
    fn ask(
        strings: [u8; 3],
        quirks: BusQuirks,
        answer: impl Fn(u8, u16) -> Result<Vec<u8>, UsbError>,
    ) -> (Vec<(u8, u16)>, DeviceStrings) {
        let mut reading = Reading::new(&device(strings), quirks);
        let mut asked = Vec::new();
        while let Some(setup) = reading.request() {
            let index = setup.value as u8;
            asked.push((index, setup.length));
            assert!(asked.len() < 10);
            let answer = answer(index, setup.length);
            let answer = answer
                .as_ref()
                .map(|bytes| &bytes[..])
                .map_err(|error| *error);
            if reading.answered(answer).is_err() {
                break;
            }
        }
        (asked, reading.strings())
    }

    fn good(index: u8, length: u16) -> Result<Vec<u8>, UsbError> {
        let whole = match index {
            0 => vec![4, 3, 9, 4],
            1 => string("Maker"),
            2 => string("Disk"),
            _ => string(" A1B2 "),
        };
        Ok(whole[..whole.len().min(length.into())].to_vec())
    }

    #[test]
    fn all_three_are_read_after_the_languages() {
        let (asked, strings) = ask([1, 2, 3], BusQuirks::empty(), good);
        assert_eq!(asked, [(0, 255), (1, 255), (2, 255), (3, 255)]);
        assert_eq!(strings.manufacturer.as_str(), "Maker");
        assert_eq!(strings.product.as_str(), "Disk");
        assert_eq!(strings.serial.as_str(), "A1B2");
    }

    #[test]
    fn a_device_without_strings_is_asked_nothing_and_one_with_some_no_others() {
        assert!(ask([0, 0, 0], BusQuirks::empty(), good).0.is_empty());
        let (asked, _) = ask([0, 0, 3], BusQuirks::empty(), good);
        assert_eq!(asked, [(0, 255), (3, 255)]);
    }

    #[test]
    fn a_refused_string_costs_no_other_and_silence_ends_the_questions() {
        let refuse = |error, at| {
            move |index, length| match index {
                index if index == at => Err(error),
                _ => good(index, length),
            }
        };
        let (asked, strings) = ask([1, 2, 3], BusQuirks::empty(), refuse(UsbError::Stall, 1));
        assert_eq!(asked.len(), 4);
        assert!(strings.manufacturer.is_empty());
        assert_eq!(strings.serial.as_str(), "A1B2");
        for error in [UsbError::Timeout, UsbError::Babble, UsbError::Disconnected] {
            let (asked, _) = ask([1, 2, 3], BusQuirks::empty(), refuse(error, 1));
            assert_eq!(asked.len(), 2);
        }
        let (asked, strings) = ask([1, 2, 3], BusQuirks::empty(), refuse(UsbError::Stall, 0));
        assert_eq!((asked.len(), strings.product.as_str()), (4, "Disk"));
    }

    #[test]
    fn a_device_that_fails_at_255_bytes_is_asked_for_the_length_first() {
        let picky = |index, length| match length {
            255 => Err(UsbError::Timeout),
            _ => good(index, length),
        };
        let (asked, strings) = ask([1, 0, 0], BusQuirks::STRING_FETCH_255, picky);
        assert_eq!(asked, [(0, 2), (0, 4), (1, 2), (1, 12)]);
        assert_eq!(strings.manufacturer.as_str(), "Maker");
        let (asked, _) = ask([1, 0, 0], BusQuirks::empty(), picky);
        assert_eq!(asked, [(0, 255)]);
    }

    #[test]
    fn nonsense_is_left_out() {
        for nonsense in [vec![], vec![2], vec![4, 1, 9, 4], vec![0, 3]] {
            let answer = |index, length| match index {
                2 => Ok(nonsense.clone()),
                _ => good(index, length),
            };
            let (_, strings) = ask([1, 2, 3], BusQuirks::empty(), answer);
            assert!(strings.product.is_empty());
            assert_eq!(strings.serial.as_str(), "A1B2");
        }
    }
}
