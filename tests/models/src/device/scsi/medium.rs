//! Commands on the medium: readiness, reads, writes, verification, flush, start and stop
//! (SBC-3 §5).

use super::super::{Nanoseconds, Violations};
use super::cdb::Extent;
use super::sense::Sense;
use super::target::{Execution, Intent};
use super::unit::{Forced, LogicalUnit};

/// Executes a command that was checked for reserved bits.
pub(super) fn execute(
    unit: &mut LogicalUnit,
    now: Nanoseconds,
    cdb: &[u8],
    violations: &Violations,
) -> Execution {
    if cdb[0] == 0x1b {
        return start_stop(unit, now, cdb);
    }
    if let Some(sense) = unit.not_ready(now) {
        return Execution::fail(Some(unit), now, sense);
    }
    let Some(extent) = Extent::of(cdb) else {
        // TEST UNIT READY, and PREVENT ALLOW MEDIUM REMOVAL, which is remembered nowhere.
        return Execution::nothing(Some(unit), now);
    };
    if let Some(sense) = out_of_bounds(unit, now, cdb[0], extent, violations) {
        return Execution::fail(Some(unit), now, sense);
    }
    match cdb[0] {
        0x28 | 0x88 => read(unit, now, extent),
        0x2a | 0x8a if cdb[1] & 0x08 != 0 && unit.forced == Forced::Refused => {
            Execution::fail(Some(unit), now, Sense::BAD_FIELD)
        }
        0x2a | 0x8a => start_write(unit, now, extent),
        0x35 | 0x91 => flush(unit, now, extent),
        _ => verify(unit, now, extent),
    }
}

/// The data of a WRITE: stored as far as whole blocks came and none was bad.
pub(super) fn write(unit: &mut LogicalUnit, cdb: &[u8], data: &[u8]) -> Option<Sense> {
    let extent = Extent::of(cdb)?;
    let forced = cdb[1] & 0x08 != 0 && unit.forced == Forced::Honoured;
    let bad = unit.first_bad(extent.lba..extent.end());
    let block_size = unit.image.block_size();
    for (lba, block) in (extent.lba..).zip(data.chunks_exact(block_size)) {
        if Some(lba) == bad {
            return Some(Sense::WRITE_ERROR.at(lba));
        }
        if forced {
            unit.image.write_through(lba, block);
        } else {
            unit.image.write(lba, block);
        }
    }
    None
}

fn out_of_bounds(
    unit: &LogicalUnit,
    now: Nanoseconds,
    opcode: u8,
    extent: Extent,
    violations: &Violations,
) -> Option<Sense> {
    let beyond_told = unit.state.told.is_some_and(|told| extent.end() > told);
    if beyond_told {
        let text = format!(
            "command {opcode:#04x} at block {} of {} blocks goes beyond the capacity",
            extent.lba, extent.blocks
        );
        violations.record(now, "SBC-3 §4.5", text);
    }
    if extent.end() > unit.blocks || extent.lba.checked_add(extent.blocks.into()).is_none() {
        return Some(Sense::OUT_OF_RANGE);
    }
    let moves = matches!(opcode, 0x28 | 0x2a | 0x88 | 0x8a);
    if moves && unit.maximum_blocks != 0 && extent.blocks > unit.maximum_blocks {
        let text = format!(
            "{} blocks where page B0 allows {}",
            extent.blocks, unit.maximum_blocks
        );
        violations.record(now, "SBC-3 §6.6.3", text);
        return Some(Sense::BAD_FIELD);
    }
    None
}

fn read(unit: &LogicalUnit, now: Nanoseconds, extent: Extent) -> Execution {
    let bad = unit.first_bad(extent.lba..extent.end());
    let end = bad.unwrap_or(extent.end());
    let bytes: Vec<u8> = (extent.lba..end)
        .flat_map(|lba| unit.image.block(lba))
        .collect();
    Execution {
        intent: if extent.blocks == 0 {
            Intent::Nothing
        } else {
            Intent::In(bytes)
        },
        wanted: extent.blocks as usize * unit.image.block_size(),
        failure: bad.map(|lba| Sense::READ_ERROR.at(lba)),
        ..Execution::nothing(Some(unit), now)
    }
}

fn start_write(unit: &LogicalUnit, now: Nanoseconds, extent: Extent) -> Execution {
    if unit.read_only {
        return Execution::fail(Some(unit), now, Sense::WRITE_PROTECTED);
    }
    let wanted = extent.blocks as usize * unit.image.block_size();
    let intent = if wanted == 0 {
        Intent::Nothing
    } else {
        Intent::Out(wanted)
    };
    Execution {
        intent,
        wanted,
        ..Execution::nothing(Some(unit), now)
    }
}

/// SYNCHRONIZE CACHE: 0 blocks means to the end (SBC-3 §5.22).
fn flush(unit: &mut LogicalUnit, now: Nanoseconds, extent: Extent) -> Execution {
    let end = if extent.blocks == 0 {
        u64::MAX
    } else {
        extent.end()
    };
    let busy = unit.image.unflushed() > 0;
    unit.image.flush(extent.lba..end);
    let time = if busy {
        unit.timing.flush
    } else {
        unit.timing.access
    };
    let ready_at = now.saturating_add(time);
    Execution {
        ready_at,
        ..Execution::nothing(Some(unit), now)
    }
}

fn verify(unit: &LogicalUnit, now: Nanoseconds, extent: Extent) -> Execution {
    match unit.first_bad(extent.lba..extent.end()) {
        Some(lba) => Execution::fail(Some(unit), now, Sense::READ_ERROR.at(lba)),
        None => Execution::nothing(Some(unit), now),
    }
}

/// START STOP UNIT with START, and with LOEJ the loading or ejecting (SBC-3 §5.25). Stopping flushes.
fn start_stop(unit: &mut LogicalUnit, now: Nanoseconds, cdb: &[u8]) -> Execution {
    let (start, eject) = (cdb[4] & 1 != 0, cdb[4] & 2 != 0);
    if !unit.has_medium {
        return Execution::fail(Some(unit), now, Sense::NO_MEDIUM);
    }
    if cdb[4] & 0xf0 == 0 {
        unit.state.started = start;
        if !start {
            unit.image.flush(0..u64::MAX);
            unit.needs_start = true;
        }
        if eject && !start && unit.removable {
            unit.eject();
        }
    }
    Execution::nothing(Some(unit), now)
}
