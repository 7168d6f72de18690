//! INQUIRY, its VPD pages, and REPORT LUNS (SPC-4 §6.6, §6.33, §7.8; SBC-3 §6.6).

use super::super::Nanoseconds;
use super::sense::Sense;
use super::target::Execution;
use super::unit::LogicalUnit;
use super::{cdb, discard};

/// Standard INQUIRY data, or a VPD page.
pub(super) fn execute(unit: &LogicalUnit, now: Nanoseconds, cdb: &[u8]) -> Execution {
    let (vital, page) = (cdb[1] & 1 != 0, cdb[2]);
    let bytes = match (vital, page) {
        (false, 0) => Some(standard(unit)),
        (true, page) if unit.has_vital_pages => vital_page(unit, page),
        _ => None,
    };
    match bytes {
        Some(bytes) => Execution::parameters(Some(unit), now, cdb, bytes),
        None => Execution::fail(Some(unit), now, Sense::BAD_FIELD),
    }
}

/// INQUIRY data of a unit number that nobody has: qualifier 3, type 1F.
pub(super) fn nobody() -> Vec<u8> {
    let mut bytes = vec![0; 36];
    bytes[0] = 0x7f;
    bytes[2] = 6;
    bytes[3] = 2;
    bytes[4] = 31;
    bytes
}

fn standard(unit: &LogicalUnit) -> Vec<u8> {
    let removable = if unit.removable { 0x80 } else { 0 };
    let mut bytes = vec![unit.device_type, removable, unit.version, 2, 31, 0, 0, 0];
    for (text, width) in unit.identity.iter().zip([8, 16, 4]) {
        bytes.extend(padded(text, width));
    }
    bytes
}

/// ASCII, left-aligned, filled up with spaces (SPC-4 §4.4.1).
fn padded(text: &str, width: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(width, b' ');
    bytes
}

fn vital_page(unit: &LogicalUnit, page: u8) -> Option<Vec<u8>> {
    let body = match page {
        0x00 => vec![0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2],
        0x80 => unit.identity[3].as_bytes().to_vec(),
        0x83 => designators(unit),
        0xb0 => limits(unit),
        0xb1 => characteristics(),
        0xb2 => discard::provisioning_page(unit),
        _ => return None,
    };
    let length = u16::try_from(body.len()).ok()?.to_be_bytes();
    Some([&[unit.device_type, page, length[0], length[1]][..], &body].concat())
}

/// A T10 vendor designator, and an NAA one made of the serial number.
fn designators(unit: &LogicalUnit) -> Vec<u8> {
    let mut text = padded(&unit.identity[0], 8);
    text.extend(unit.identity[3].as_bytes());
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    let mut bytes = vec![0x02, 0x01, 0, length];
    bytes.extend(text);
    let seed = unit.identity[3].bytes().fold(0, |sum: u32, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(byte))
    });
    bytes.extend([0x01, 0x03, 0, 8, 0x50, 0x00, 0xc5, 0x00]);
    bytes.extend(seed.to_be_bytes());
    bytes
}

/// Block limits: 60 bytes (SBC-3 §6.6.3).
fn limits(unit: &LogicalUnit) -> Vec<u8> {
    let mut body = vec![0; 60];
    body[4..8].copy_from_slice(&unit.maximum_blocks.to_be_bytes());
    body[8..12].copy_from_slice(&unit.maximum_blocks.to_be_bytes());
    discard::limits(unit, &mut body);
    body
}

/// Block device characteristics: no rotation, 2.5 inch (SBC-3 §6.6.2).
fn characteristics() -> Vec<u8> {
    let mut body = vec![0; 60];
    body[0..2].copy_from_slice(&1_u16.to_be_bytes());
    body[3] = 3;
    body
}

/// The numbers of all units, by peripheral device addressing (SPC-4 §6.33).
pub(super) fn report_luns(
    unit: Option<&LogicalUnit>,
    now: Nanoseconds,
    cdb: &[u8],
    luns: usize,
) -> Execution {
    if cdb::allocation(cdb) < 16 || cdb.get(2).is_none_or(|select| *select > 2) {
        return Execution::fail(unit, now, Sense::BAD_FIELD);
    }
    let length = u32::try_from(luns * 8).unwrap_or(0);
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend([0; 4]);
    for lun in 0..=u8::try_from(luns - 1).unwrap_or(u8::MAX) {
        bytes.extend([0, lun, 0, 0, 0, 0, 0, 0]);
    }
    Execution::parameters(unit, now, cdb, bytes)
}
