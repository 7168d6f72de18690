//! READ CAPACITY and MODE SENSE (SBC-3 §5.15, §5.16, §6.5; SPC-4 §6.13, §6.14).

use super::super::Nanoseconds;
use super::sense::Sense;
use super::target::Execution;
use super::unit::LogicalUnit;

/// READ CAPACITY(10), or service action 10h of SERVICE ACTION IN(16).
pub(super) fn read_capacity(unit: &mut LogicalUnit, now: Nanoseconds, cdb: &[u8]) -> Execution {
    if let Some(sense) = unit.not_ready(now) {
        return Execution::fail(Some(unit), now, sense);
    }
    let bytes = match cdb[0] {
        0x25 => short_capacity(unit),
        _ if cdb[1] & 0x1f == 0x10 => long_capacity(unit),
        _ => return Execution::fail(Some(unit), now, Sense::BAD_FIELD),
    };
    remember_capacity(unit, cdb, &bytes);
    Execution::parameters(Some(unit), now, cdb, bytes)
}

/// Notes which capacity the host was told, true or not: an address beyond it is the host's fault, one
/// beyond the true capacity only is not.
pub(super) fn remember_capacity(unit: &mut LogicalUnit, cdb: &[u8], bytes: &[u8]) {
    let last = match (cdb[0], bytes) {
        (0x25, [a, b, c, d, ..]) => u64::from(u32::from_be_bytes([*a, *b, *c, *d])),
        (0x9e, [a, b, c, d, e, f, g, h, ..]) => {
            u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h])
        }
        _ => return,
    };
    let told = last.saturating_add(1);
    // The largest answer counts: which of two is true is the host's to judge.
    unit.state.told = Some(unit.state.told.map_or(told, |known| known.max(told)));
}

fn short_capacity(unit: &LogicalUnit) -> Vec<u8> {
    let last = u32::try_from(unit.blocks - 1).unwrap_or(u32::MAX);
    [last.to_be_bytes(), block_length(unit)].concat()
}

fn long_capacity(unit: &LogicalUnit) -> Vec<u8> {
    let mut bytes = (unit.blocks - 1).to_be_bytes().to_vec();
    bytes.extend(block_length(unit));
    bytes.resize(32, 0);
    bytes[13] = unit.physical_exponent & 0x0f;
    if let Some(provisioning) = unit.provisioning {
        // LBPME, and LBPRZ where blocks that were given back read as zeros.
        bytes[14] = 0x80 | if provisioning.reads_zero { 0x40 } else { 0 };
    }
    bytes
}

fn block_length(unit: &LogicalUnit) -> [u8; 4] {
    u32::try_from(unit.image.block_size())
        .unwrap_or(0)
        .to_be_bytes()
}

/// MODE SENSE(6) and (10): current values of the caching page, alone or as all pages.
pub(super) fn mode_sense(unit: &LogicalUnit, now: Nanoseconds, cdb: &[u8]) -> Execution {
    let (control, page, subpage) = (cdb[2] >> 6, cdb[2] & 0x3f, cdb[3]);
    let pages = match (page, subpage) {
        (0x08, 0) | (0x3f, 0 | 0xff) => caching_page(unit, control),
        _ => return Execution::fail(Some(unit), now, Sense::BAD_FIELD),
    };
    if control == 3 {
        // 5/39/00: saving parameters is not supported.
        return Execution::fail(Some(unit), now, Sense::new(5, 0x39, 0x00));
    }
    if let Some(sense) = unit.not_ready(now) {
        return Execution::fail(Some(unit), now, sense);
    }
    let descriptor = if cdb[1] & 0x08 == 0 {
        block_descriptor(unit)
    } else {
        Vec::new()
    };
    let header = mode_header(unit, cdb[0] == 0x5a, descriptor.len(), pages.len());
    Execution::parameters(Some(unit), now, cdb, [header, descriptor, pages].concat())
}

fn mode_header(unit: &LogicalUnit, long: bool, descriptor: usize, pages: usize) -> Vec<u8> {
    let protected = if unit.read_only { 0x80 } else { 0 };
    let forced_unit_access = if unit.image.is_cached() { 0x10 } else { 0 };
    let specific = protected | forced_unit_access;
    let size = if long { 8 } else { 4 };
    let byte = |value: usize| u8::try_from(value).unwrap_or(u8::MAX);
    if long {
        vec![
            0,
            byte(size - 2 + descriptor + pages),
            0,
            specific,
            0,
            0,
            0,
            byte(descriptor),
        ]
    } else {
        vec![
            byte(size - 1 + descriptor + pages),
            0,
            specific,
            byte(descriptor),
        ]
    }
}

fn block_descriptor(unit: &LogicalUnit) -> Vec<u8> {
    let blocks = u32::try_from(unit.blocks).unwrap_or(u32::MAX);
    let mut length = block_length(unit);
    length[0] = 0; // density or reserved: the length has 24 bits
    [blocks.to_be_bytes(), length].concat()
}

/// Page 08h of 20 bytes: WCE where there is a cache. Changeable values are all zero.
fn caching_page(unit: &LogicalUnit, control: u8) -> Vec<u8> {
    let mut page = vec![0; 20];
    page[0] = 0x08;
    page[1] = 0x12;
    if control != 1 && unit.image.is_cached() {
        page[2] = 0x04;
    }
    page
}
