//! Blocks given back, and blocks written all alike: UNMAP, WRITE SAME(16), and what pages B0 and B2
//! say about them (SBC-3 §4.7, §5.28, §5.42, §6.6.3, §6.6.4).
//!
//! Strict: what goes beyond the limits that the unit tells is refused and recorded as the host's
//! fault. Only whole granules are given back; the rest of a range keeps its data, as it may.

use core::ops::Range;

use super::super::{Nanoseconds, Violations};
use super::cdb::Extent;
use super::sense::Sense;
use super::target::{Execution, Intent};
use super::unit::LogicalUnit;

/// What blocks that were given back are full of where they need not read as zeros.
const ANYTHING: u8 = 0xdb;

/// How a unit gives blocks back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Provisioning {
    /// UNMAP is known (LBPU).
    pub knows_unmap: bool,
    /// WRITE SAME(16) may give back in place of writing (LBPWS).
    pub unmaps_by_write_same: bool,
    /// Blocks that were given back read as zeros (LBPRZ); else as anything.
    pub reads_zero: bool,
    /// The most blocks of one UNMAP.
    pub maximum_blocks: u32,
    /// The most ranges of one UNMAP.
    pub maximum_ranges: u32,
    /// Blocks of a granule, at least 1, and the first block at which one begins.
    pub granule: (u32, u32),
}

impl Default for Provisioning {
    /// As many SSDs: UNMAP of any block, zeros behind it.
    fn default() -> Self {
        Self {
            knows_unmap: true,
            unmaps_by_write_same: false,
            reads_zero: true,
            maximum_blocks: 0xffff_ffff,
            maximum_ranges: 1,
            granule: (1, 0),
        }
    }
}

impl Provisioning {
    fn filler(&self) -> u8 {
        if self.reads_zero { 0 } else { ANYTHING }
    }

    /// The whole granules of a range.
    fn granules(&self, range: Range<u64>) -> Range<u64> {
        let (blocks, first) = (u64::from(self.granule.0), u64::from(self.granule.1));
        let up = |lba: u64| lba.saturating_sub(first).div_ceil(blocks) * blocks + first;
        let start = up(range.start.max(first));
        let end = range.end.saturating_sub(first) / blocks * blocks + first;
        start..end.max(start)
    }
}

/// The body of page B2: which ways there are, and what is read behind them.
pub(super) fn provisioning_page(unit: &LogicalUnit) -> Vec<u8> {
    let mut body = vec![0; 4];
    if let Some(it) = unit.provisioning {
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        body[1] = flag(it.knows_unmap, 0x80)
            | flag(it.unmaps_by_write_same, 0x40)
            | flag(it.reads_zero, 0x04);
        body[2] = 0x02; // thin
    }
    body
}

/// The limits in page B0, whose body begins at its byte 4.
pub(super) fn limits(unit: &LogicalUnit, body: &mut [u8]) {
    if let Some(it) = unit.provisioning.filter(|it| it.knows_unmap) {
        body[16..20].copy_from_slice(&it.maximum_blocks.to_be_bytes());
        body[20..24].copy_from_slice(&it.maximum_ranges.to_be_bytes());
    }
    if let Some(it) = unit.provisioning {
        body[24..28].copy_from_slice(&it.granule.0.to_be_bytes());
        body[28..32].copy_from_slice(&(0x8000_0000 | it.granule.1).to_be_bytes());
    }
    if let Some(most) = unit.maximum_write_same {
        body[0] = 0x01; // WSNZ: 0 blocks are no range
        body[32..40].copy_from_slice(&most.to_be_bytes());
    }
}

/// Executes either command up to its data.
pub(super) fn execute(
    unit: &LogicalUnit,
    now: Nanoseconds,
    cdb: &[u8],
    violations: &Violations,
) -> Execution {
    if let Some(sense) = unit.not_ready(now) {
        return Execution::fail(Some(unit), now, sense);
    }
    if unit.read_only {
        return Execution::fail(Some(unit), now, Sense::WRITE_PROTECTED);
    }
    let wanted = match cdb[0] {
        0x42 => usize::from(u16::from_be_bytes([cdb[7], cdb[8]])),
        _ => match refuse_write_same(unit, now, cdb, violations) {
            Some(sense) => return Execution::fail(Some(unit), now, sense),
            None => unit.image.block_size(),
        },
    };
    Execution {
        intent: Intent::Out(wanted),
        wanted,
        ..Execution::nothing(Some(unit), now)
    }
}

/// The data of either command.
pub(super) fn write(
    unit: &mut LogicalUnit,
    now: Nanoseconds,
    cdb: &[u8],
    data: &[u8],
    violations: &Violations,
) -> Option<Sense> {
    match cdb[0] {
        0x42 => unmap(unit, now, data, violations),
        _ => write_same(unit, cdb, data),
    }
}

fn refuse_write_same(
    unit: &LogicalUnit,
    now: Nanoseconds,
    cdb: &[u8],
    violations: &Violations,
) -> Option<Sense> {
    let extent = Extent::of(cdb)?;
    let refuse = |text: String| {
        violations.record(now, "SBC-3 §5.42", text);
        Some(Sense::BAD_FIELD)
    };
    let unmaps = cdb[1] & 0x08 != 0;
    let may_unmap = unit.provisioning.is_some_and(|it| it.unmaps_by_write_same);
    if cdb[1] & 0x10 != 0 || (unmaps && !may_unmap) {
        return refuse(format!("WRITE SAME with flags {:#04x}", cdb[1]));
    }
    if extent.blocks == 0 {
        return refuse("WRITE SAME of no blocks, which is no range here".to_owned());
    }
    match unit.maximum_write_same {
        Some(most) if most != 0 && u64::from(extent.blocks) > most => {
            return refuse(format!("WRITE SAME of {} blocks of {most}", extent.blocks));
        }
        _ => {}
    }
    (extent.end() > unit.blocks).then_some(Sense::OUT_OF_RANGE)
}

fn write_same(unit: &mut LogicalUnit, cdb: &[u8], data: &[u8]) -> Option<Sense> {
    let extent = Extent::of(cdb)?;
    let range = extent.lba..extent.end();
    unit.same_blocks.push(data.to_vec());
    if let Some(lba) = unit.first_bad(range.clone()) {
        return Some(Sense::WRITE_ERROR.at(lba));
    }
    let provisioning = unit.provisioning.filter(|_| cdb[1] & 0x08 != 0);
    if let Some(provisioning) = provisioning {
        let granules = provisioning.granules(range);
        unit.image.give_back(granules, provisioning.filler());
    } else if data.len() == unit.image.block_size() {
        range.for_each(|lba| unit.image.write(lba, data));
    }
    None
}

/// The ranges of a parameter list, if its lengths are right and its reserved bytes zero.
fn ranges(list: &[u8]) -> Option<Vec<Range<u64>>> {
    let length = |at: usize| usize::from(u16::from_be_bytes([list[at], list[at + 1]]));
    if list.len() < 8 || length(0) != list.len() - 2 || length(2) != list.len() - 8 {
        return None;
    }
    if list[4..8] != [0; 4] || length(2) % 16 != 0 {
        return None;
    }
    list[8..]
        .chunks_exact(16)
        .map(|descriptor| {
            let [a, b, c, d, e, f, g, h, k, l, m, n, 0, 0, 0, 0] = *descriptor else {
                return None;
            };
            let lba = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            let blocks = u32::from_be_bytes([k, l, m, n]);
            Some(lba..lba.saturating_add(blocks.into()))
        })
        .collect()
}

fn unmap(
    unit: &mut LogicalUnit,
    now: Nanoseconds,
    list: &[u8],
    violations: &Violations,
) -> Option<Sense> {
    let provisioning = unit.provisioning?;
    let refuse = |text: String| {
        violations.record(now, "SBC-3 §5.28", text);
        Some(Sense::BAD_PARAMETER)
    };
    let Some(ranges) = ranges(list) else {
        return refuse(format!("an UNMAP parameter list of {list:02x?}"));
    };
    let blocks: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    if blocks > provisioning.maximum_blocks.into()
        || ranges.len() as u64 > provisioning.maximum_ranges.into()
    {
        return refuse(format!(
            "UNMAP of {blocks} blocks in {} ranges",
            ranges.len()
        ));
    }
    if ranges.iter().any(|range| range.end > unit.blocks) {
        return Some(Sense::OUT_OF_RANGE);
    }
    for range in ranges {
        let granules = provisioning.granules(range);
        unit.image.give_back(granules, provisioning.filler());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::{Target, pattern};
    use super::*;

    fn target(provisioning: Provisioning) -> Target {
        let unit = LogicalUnit {
            attention_after_reset: false,
            maximum_write_same: Some(16),
            ..LogicalUnit::disk(2048, 512).provisioned(provisioning)
        };
        let mut target = Target::new(vec![unit], Violations::new());
        target.power_on(0);
        target
    }

    fn list(ranges: &[(u64, u32)]) -> Vec<u8> {
        let length = u16::try_from(ranges.len() * 16).unwrap();
        let mut bytes = (length + 6).to_be_bytes().to_vec();
        bytes.extend(length.to_be_bytes());
        bytes.extend([0; 4]);
        for (lba, blocks) in ranges {
            bytes.extend(lba.to_be_bytes());
            bytes.extend(blocks.to_be_bytes());
            bytes.extend([0; 4]);
        }
        bytes
    }

    fn unmap(target: &mut Target, list: &[u8]) -> Option<Sense> {
        let [high, low] = u16::try_from(list.len()).unwrap().to_be_bytes();
        let cdb = [0x42, 0, 0, 0, 0, 0, 0, high, low, 0];
        let execution = target.execute(0, 0, &cdb);
        assert_eq!(execution.intent, Intent::Out(list.len()));
        target.write(0, 0, &cdb, list).failure
    }

    fn write_same(target: &mut Target, flags: u8, lba: u8, blocks: u8) -> Option<Sense> {
        let cdb = [0x93, flags, 0, 0, 0, 0, 0, 0, 0, lba, 0, 0, 0, blocks, 0, 0];
        let execution = target.execute(0, 0, &cdb);
        execution
            .failure
            .or_else(|| target.write(0, 0, &cdb, &[7; 512]).failure)
    }

    fn block(target: &Target, lba: u64) -> Vec<u8> {
        target.units[0].image.block(lba)
    }

    #[test]
    fn blocks_that_were_given_back_read_as_the_unit_says() {
        for (reads_zero, byte) in [(true, 0), (false, ANYTHING)] {
            let mut target = target(Provisioning {
                reads_zero,
                ..Provisioning::default()
            });
            assert_eq!(unmap(&mut target, &list(&[(8, 2)])), None);
            assert_eq!(block(&target, 9), vec![byte; 512]);
            assert_eq!(block(&target, 10), pattern(10, 512));
        }
    }

    #[test]
    fn only_whole_granules_are_given_back() {
        let mut target = target(Provisioning {
            granule: (8, 3),
            ..Provisioning::default()
        });
        assert_eq!(unmap(&mut target, &list(&[(5, 20)])), None);
        let given_back: Vec<u64> = (0..40)
            .filter(|lba| target.units[0].image.is_given_back(*lba))
            .collect();
        assert_eq!(given_back, (11..19).collect::<Vec<u64>>());
    }

    #[test]
    fn a_list_beyond_the_limits_or_with_wrong_lengths_is_refused_and_recorded() {
        let provisioning = Provisioning {
            maximum_blocks: 8,
            maximum_ranges: 2,
            ..Provisioning::default()
        };
        let mut wrong = list(&[(0, 1)]);
        wrong[1] += 1;
        let mut reserved = list(&[(0, 1)]);
        reserved[23] = 1;
        for list in [
            list(&[(0, 9)]),
            list(&[(0, 5), (8, 4)]),
            list(&[(0, 1), (2, 1), (4, 1)]),
            wrong,
            reserved,
            vec![0; 4],
        ] {
            let mut target = target(provisioning);
            assert_eq!(unmap(&mut target, &list), Some(Sense::BAD_PARAMETER));
            target.violations.expect_only("SBC-3 §5.28");
        }
        let mut target = target(provisioning);
        let beyond = unmap(&mut target, &list(&[(2047, 2)]));
        assert_eq!(beyond, Some(Sense::OUT_OF_RANGE));
    }

    #[test]
    fn one_block_is_written_to_all_of_a_range() {
        let mut target = target(Provisioning::default());
        assert_eq!(write_same(&mut target, 0, 4, 3), None);
        assert_eq!(block(&target, 3), pattern(3, 512));
        assert_eq!(block(&target, 6), vec![7; 512]);
        assert_eq!(block(&target, 7), pattern(7, 512));
    }

    #[test]
    fn write_same_may_give_back_where_page_b2_says_so() {
        let mut target = target(Provisioning {
            unmaps_by_write_same: true,
            ..Provisioning::default()
        });
        assert_eq!(write_same(&mut target, 0x08, 4, 3), None);
        assert!(target.units[0].image.is_given_back(6));
    }

    #[test]
    fn write_same_beyond_its_limits_is_refused_and_recorded() {
        for (flags, blocks) in [(0x08, 1), (0x10, 1), (0, 0), (0, 17)] {
            let mut target = target(Provisioning::default());
            let refused = write_same(&mut target, flags, 0, blocks);
            assert_eq!(refused, Some(Sense::BAD_FIELD), "{flags:#x} {blocks}");
            target.violations.expect_only("SBC-3 §5.42");
        }
    }

    #[test]
    fn both_pages_tell_what_is_enforced() {
        let mut target = target(Provisioning {
            maximum_blocks: 4096,
            maximum_ranges: 3,
            granule: (8, 1),
            ..Provisioning::default()
        });
        let mut page = |code| match target.execute(0, 0, &[0x12, 1, code, 0, 64, 0]).intent {
            Intent::In(bytes) => bytes,
            other => panic!("{other:?}"),
        };
        let limits = page(0xb0);
        assert_eq!(limits[20..28], [0, 0, 16, 0, 0, 0, 0, 3]);
        assert_eq!(limits[28..36], [0, 0, 0, 8, 0x80, 0, 0, 1]);
        assert_eq!((limits[4], limits[43]), (1, 16));
        assert_eq!(page(0xb2)[5..7], [0x84, 2]);
    }
}
