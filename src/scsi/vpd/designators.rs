//! Page 83: names for the unit, some unique in the world (SPC-4, Device Identification VPD page).

use super::{PageCode, VpdFault, body};
use crate::bytes::{array_at, u8_at};

/// Who gives world-wide names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Authority {
    /// The makers, by a name that begins with their IEEE company number: NAA 2, 3 and 5 of 8 bytes, and
    /// NAA 6 of 16.
    Naa,
    /// The IEEE: EUI-64, alone, with four bytes of directory or with eight bytes of extension.
    Eui64,
}

/// A name that no other disk in the world has, if its maker kept the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WorldWideName {
    authority: Authority,
    length: u8,
    /// The name up to `length`, zero behind.
    bytes: [u8; 16],
}

impl WorldWideName {
    /// The name in these bytes; `None` for a length, or a kind of NAA name, that there is not.
    #[must_use]
    pub fn new(authority: Authority, bytes: &[u8]) -> Option<Self> {
        let first = bytes.first()? & 0xf0;
        match (authority, bytes.len(), first) {
            (Authority::Eui64, 8 | 12 | 16, _) => {}
            (Authority::Naa, 8, 0x20 | 0x30 | 0x50) | (Authority::Naa, 16, 0x60) => {}
            _ => return None,
        }
        let mut name = Self {
            authority,
            length: bytes.len() as u8,
            bytes: [0; 16],
        };
        for (to, from) in name.bytes.iter_mut().zip(bytes) {
            *to = *from;
        }
        Some(name)
    }

    /// Who has given it.
    #[must_use]
    pub const fn authority(&self) -> Authority {
        self.authority
    }

    /// Its 8, 12 or 16 bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.length))
            .unwrap_or_default()
    }

    /// NAA names are preferred: bridges that invent a name invent an EUI-64.
    fn is_preferred(&self) -> bool {
        self.authority == Authority::Naa
    }
}

/// A view of the designators.
#[derive(Clone, Debug)]
pub struct Designators<'a> {
    rest: &'a [u8],
}

/// Code set 1: binary. World-wide names are.
const BINARY: u8 = 0x01;
/// Association 0: the designator names the logical unit, not its port or target.
const LOGICAL_UNIT: u8 = 0x00;
/// Designator type 2.
const EUI_64: u8 = 0x02;
/// Designator type 3.
const NAA: u8 = 0x03;

impl<'a> Designators<'a> {
    /// Reads the page. A designator that is cut off ends it.
    ///
    /// # Errors
    /// [`VpdFault`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, VpdFault> {
        body(bytes, PageCode::DEVICE_IDENTIFICATION).map(|rest| Self { rest })
    }

    /// The unit's world-wide names, in the device's order. Names of zeros only, which bridges
    /// without a name send, are left out.
    pub fn names(&self) -> impl Iterator<Item = WorldWideName> + use<'a> {
        Records { rest: self.rest }.filter_map(name)
    }

    /// The name to know the unit by: the first NAA name, else the first other one.
    #[must_use]
    pub fn name(&self) -> Option<WorldWideName> {
        let preferred = self.names().find(WorldWideName::is_preferred);
        preferred.or_else(|| self.names().next())
    }
}

fn name(record: &[u8]) -> Option<WorldWideName> {
    let [code_set, kind] = array_at(record, 0)?;
    let designator = record.get(4..)?;
    let is_ours = code_set & 0x0f == BINARY && kind & 0x30 == LOGICAL_UNIT;
    if !is_ours || designator.iter().all(|byte| *byte == 0) {
        return None;
    }
    match kind & 0x0f {
        NAA => WorldWideName::new(Authority::Naa, designator),
        EUI_64 => WorldWideName::new(Authority::Eui64, designator),
        _ => None,
    }
}

/// Walks designation descriptors: 4 bytes of header, the last of which is the length.
struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let length = 4 + usize::from(u8_at(self.rest, 3)?);
        let (record, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EUI: [u8; 12] = [0x01, 0x02, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8];
    const NAA_5: [u8; 12] = [0x01, 0x03, 0, 8, 0x50, 2, 3, 4, 5, 6, 7, 8];

    fn name_of(designators: &[&[u8]]) -> Option<WorldWideName> {
        let mut page = [0; 64];
        let mut end = 4;
        for designator in designators {
            page[end..end + designator.len()].copy_from_slice(designator);
            end += designator.len();
        }
        page[1] = 0x83;
        page[3] = u8::try_from(end - 4).unwrap();
        Designators::parse(&page[..end]).unwrap().name()
    }

    #[test]
    fn an_naa_name_is_preferred_wherever_it_stands() {
        let naa = WorldWideName::new(Authority::Naa, &[0x50, 2, 3, 4, 5, 6, 7, 8]);
        assert!(naa.is_some());
        assert_eq!(name_of(&[&EUI, &NAA_5]), naa);
        assert_eq!(name_of(&[&NAA_5, &EUI]), naa);
        assert_eq!(
            name_of(&[&EUI]),
            WorldWideName::new(Authority::Eui64, &[1, 2, 3, 4, 5, 6, 7, 8])
        );
    }

    #[test]
    fn names_of_the_port_texts_and_zeros_are_left_out() {
        let of_the_port = [0x01, 0x13, 0, 8, 0x50, 2, 3, 4, 5, 6, 7, 8];
        let text = [0x02, 0x03, 0, 8, b'5', b'0', 0, 0, 0, 0, 0, 0];
        let zeros = [0x01, 0x02, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(name_of(&[&of_the_port, &text, &zeros]), None);
    }

    #[test]
    fn names_of_the_wrong_length_and_cut_ones_are_left_out() {
        assert_eq!(name_of(&[&[0x01, 0x03, 0, 4, 0x50, 1, 2, 3]]), None);
        assert_eq!(name_of(&[&NAA_5[..11]]), None);
    }
}
