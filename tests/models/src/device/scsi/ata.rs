//! The ATA disk behind a bridge: ATA PASS-THROUGH with IDENTIFY DEVICE and SMART (SAT-3 §12.2,
//! ACS-3 §7.12, §7.48).
//!
//! Strict about what a bridge is strict about: protocol, direction and length must be those of the
//! ATA command, and SMART wants its signature. A wrong one is refused and recorded.

use super::super::{MINUTE, Nanoseconds, Violations};
use super::sense::{Registers, Sense};
use super::target::{Execution, Intent};
use super::unit::LogicalUnit;

/// How a bridge brings the output registers of an ATA command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bringing {
    /// In the ATA Status Return descriptor.
    Descriptor,
    /// In the fields of the fixed format.
    Fixed,
    /// Not at all: good status in their place.
    Nothing,
}

/// An ATA disk behind a bridge.
#[derive(Clone, Debug)]
pub struct AtaDisk {
    /// Whether the bridge knows the form of 16 bytes, and that of 12.
    pub forms: (bool, bool),
    /// How registers come.
    pub bringing: Bringing,
    /// Whether SMART is there, and switched on.
    pub smart: (bool, bool),
    /// Whether the bridge passes SMART on, or refuses it with 5/24/00.
    pub passes_smart: bool,
    /// Whether an attribute has passed its limit.
    pub is_failing: bool,
    /// Attributes by id, with their raw values.
    pub attributes: Vec<(u8, u64)>,
    /// How long a short and an extended test of itself take.
    pub test_times: (Nanoseconds, Nanoseconds),
    /// The execution status of the last test that ended.
    pub test_status: u8,
    /// Whether sectors of data come damaged.
    pub damages_data: bool,
    /// The test under way: when it began, and how long it takes.
    pub test: Option<(Nanoseconds, Nanoseconds)>,
}

impl Default for AtaDisk {
    /// A healthy disk at 31 degrees, 12345 hours old.
    fn default() -> Self {
        Self {
            forms: (true, true),
            bringing: Bringing::Descriptor,
            smart: (true, true),
            passes_smart: true,
            is_failing: false,
            attributes: vec![(5, 0), (9, 12345), (194, 0x0030_0012_001f), (197, 0)],
            test_times: (2 * MINUTE, 90 * MINUTE),
            test_status: 0,
            damages_data: false,
            test: None,
        }
    }
}

/// The fields of a pass-through that matter here.
struct Task {
    protocol: u8,
    flags: u8,
    features: u8,
    count: u8,
    /// Low, mid, high.
    lba: [u8; 3],
    command: u8,
}

impl Task {
    fn of(cdb: &[u8]) -> Option<Self> {
        // ATA PASS-THROUGH (16) and (12) of SAT: the same registers, in the long form behind their upper halves.
        let (protocol, flags, [features, count, low, mid, high, command]) = match *cdb {
            [
                0x85,
                protocol,
                flags,
                _,
                features,
                _,
                count,
                _,
                low,
                _,
                mid,
                _,
                high,
                _,
                command,
                _,
            ] => (protocol, flags, [features, count, low, mid, high, command]),
            [
                0xa1,
                protocol,
                flags,
                features,
                count,
                low,
                mid,
                high,
                _,
                command,
                ..,
            ] => (protocol, flags, [features, count, low, mid, high, command]),
            _ => return None,
        };
        Some(Self {
            protocol: protocol >> 1 & 0x0f,
            flags,
            features,
            count,
            lba: [low, mid, high],
            command,
        })
    }

    /// Non-data, and a length of none.
    fn moves_nothing(&self) -> bool {
        self.protocol == 3 && self.flags & 0x03 == 0
    }

    /// PIO data-in of one sector that the count tells.
    fn reads_a_sector(&self) -> bool {
        self.protocol == 4 && self.flags & 0x0f == 0x0e && self.count == 1
    }
}

impl AtaDisk {
    /// Whether the bridge knows this operation code.
    pub(super) fn knows(&self, opcode: u8) -> bool {
        match opcode {
            0x85 => self.forms.0,
            _ => self.forms.1,
        }
    }

    fn test_status(&self, now: Nanoseconds) -> u8 {
        match self.test {
            Some((began, takes)) if now.saturating_sub(began) < takes => {
                let left = takes - (now - began);
                0xf0 | u8::try_from(left.saturating_mul(10).div_ceil(takes).min(9)).unwrap_or(9)
            }
            Some(_) => 0x00,
            None => self.test_status,
        }
    }
}

/// ATA PASS-THROUGH, in either form.
pub(super) fn execute(
    unit: &mut LogicalUnit,
    now: Nanoseconds,
    cdb: &[u8],
    violations: &Violations,
) -> Execution {
    let identity = unit.identity.clone();
    let (Some(task), Some(ata)) = (Task::of(cdb), unit.ata.as_mut()) else {
        return Execution::fail(Some(unit), now, Sense::UNKNOWN_COMMAND);
    };
    let answer = match (task.command, task.features) {
        (0xec, _) => Answer::Sector(identify(ata, &identity)),
        (0xb0, _) if !ata.passes_smart => Answer::Refuse,
        (0xb0, _) if task.lba[1..] != [0x4f, 0xc2] => {
            let text = format!("SMART with address {:02x?}", task.lba);
            violations.record(now, "ACS-3 §7.48.1", text);
            Answer::Abort
        }
        (0xb0, _) if ata.smart != (true, true) => Answer::Abort,
        (0xb0, 0xd0) => Answer::Sector(smart_data(ata, now)),
        (0xb0, 0xd4) => execute_test(ata, now, task.lba[0]),
        (0xb0, 0xda) if ata.is_failing => Answer::Registers([task.lba[0], 0xf4, 0x2c]),
        (0xb0, 0xda) => Answer::Registers(task.lba),
        _ => Answer::Abort,
    };
    end(unit, now, &task, answer, violations)
}

/// What an ATA command does.
enum Answer {
    /// One sector in.
    Sector(Vec<u8>),
    /// No data; these address registers.
    Registers([u8; 3]),
    /// The disk aborts it.
    Abort,
    /// The bridge refuses it.
    Refuse,
}

fn end(
    unit: &LogicalUnit,
    now: Nanoseconds,
    task: &Task,
    answer: Answer,
    violations: &Violations,
) -> Execution {
    let fits = match answer {
        Answer::Sector(_) => task.reads_a_sector(),
        Answer::Registers(_) => task.moves_nothing(),
        Answer::Abort | Answer::Refuse => true,
    };
    if !fits {
        let text = format!(
            "ATA command {:#04x} with protocol {} and flags {:#04x}",
            task.command, task.protocol, task.flags
        );
        violations.record(now, "SAT-3 §12.2.2", text);
        return Execution::fail(Some(unit), now, Sense::BAD_FIELD);
    }
    let bringing = unit
        .ata
        .as_ref()
        .map_or(Bringing::Nothing, |ata| ata.bringing);
    let is_wanted = task.flags & 0x20 != 0 && bringing != Bringing::Nothing;
    let registers = |error, lba, status| Registers {
        error,
        count: 0,
        lba,
        device: 0xa0,
        status,
        in_descriptor: bringing == Bringing::Descriptor,
    };
    match answer {
        Answer::Sector(bytes) => Execution {
            wanted: bytes.len(),
            intent: Intent::In(bytes),
            ..Execution::nothing(Some(unit), now)
        },
        Answer::Registers(lba) if is_wanted => {
            let sense = Sense::ATA_INFORMATION.with(registers(0, lba, 0x50));
            Execution::fail(Some(unit), now, sense)
        }
        Answer::Registers(_) => Execution::nothing(Some(unit), now),
        Answer::Abort => {
            let sense = Sense::ABORTED.with(registers(0x04, task.lba, 0x51));
            Execution::fail(Some(unit), now, sense)
        }
        Answer::Refuse => Execution::fail(Some(unit), now, Sense::BAD_FIELD),
    }
}

/// SMART EXECUTE OFF-LINE IMMEDIATE: a short or extended test in the background, or the end of one.
fn execute_test(ata: &mut AtaDisk, now: Nanoseconds, subcommand: u8) -> Answer {
    match subcommand {
        0x01 => ata.test = Some((now, ata.test_times.0)),
        0x02 => ata.test = Some((now, ata.test_times.1)),
        0x7f => {
            if ata.test.take().is_some() {
                ata.test_status = 0x10;
            }
        }
        _ => return Answer::Abort,
    }
    Answer::Registers([subcommand, 0x4f, 0xc2])
}

/// IDENTIFY DEVICE data with a checksum.
fn identify(ata: &AtaDisk, identity: &[String; 4]) -> Vec<u8> {
    let mut words = [0_u16; 256];
    let [_, model, revision, serial] = identity;
    put_text(&mut words, 10..20, serial);
    put_text(&mut words, 23..27, revision);
    put_text(&mut words, 27..47, model);
    let (there, on) = ata.smart;
    words[82] = u16::from(there);
    words[83] = 0x4000;
    words[84] = 0x4000 | if there { 0x0002 } else { 0 };
    words[85] = u16::from(there && on);
    words[87] = 0x4000;
    words[217] = 5400;
    words[255] = 0x00a5;
    summed(
        ata,
        words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    )
}

/// ASCII in words, the first character of each in the upper half, filled up with blanks.
fn put_text(words: &mut [u16; 256], place: core::ops::Range<usize>, text: &str) {
    let mut characters = text.bytes().chain(core::iter::repeat(b' '));
    for word in &mut words[place] {
        let pair = [characters.next(), characters.next()].map(Option::unwrap_or_default);
        *word = u16::from_be_bytes(pair);
    }
}

/// SMART READ DATA.
fn smart_data(ata: &AtaDisk, now: Nanoseconds) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[0] = 0x10;
    for ((id, raw), entry) in ata
        .attributes
        .iter()
        .zip(bytes[2..362].chunks_exact_mut(12))
    {
        entry[..5].copy_from_slice(&[*id, 0x32, 0x00, 100, 100]);
        entry[5..11].copy_from_slice(&raw.to_le_bytes()[..6]);
    }
    bytes[363] = ata.test_status(now);
    let minutes = |time: Nanoseconds| u8::try_from(time / MINUTE).unwrap_or(u8::MAX);
    bytes[372] = minutes(ata.test_times.0);
    bytes[373] = minutes(ata.test_times.1);
    summed(ata, bytes)
}

/// The last byte makes all of them add up to 0.
fn summed(ata: &AtaDisk, mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    bytes[511] = bytes[511].wrapping_sub(sum);
    if ata.damages_data {
        bytes[100] ^= 0x10;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::*;

    const IDENTIFY: [u8; 16] = [0x85, 8, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0];
    const READ_DATA: [u8; 12] = [0xa1, 8, 0x0e, 0xd0, 1, 0, 0x4f, 0xc2, 0, 0xb0, 0, 0];
    const STATUS: [u8; 16] = [
        0x85, 6, 0x20, 0, 0xda, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0,
    ];

    fn target(ata: AtaDisk) -> Target {
        let unit = LogicalUnit {
            attention_after_reset: false,
            ..LogicalUnit::disk(2048, 512).bridge_to(ata)
        };
        let mut target = Target::new(vec![unit], Violations::new());
        target.power_on(0);
        target
    }

    fn sector(execution: Execution) -> Vec<u8> {
        match execution.intent {
            Intent::In(bytes) if execution.failure.is_none() => bytes,
            _ => panic!("expected a sector, got {execution:?}"),
        }
    }

    #[test]
    fn sectors_add_up_unless_they_are_damaged() {
        let sum = |bytes: &[u8]| bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        let mut good = target(AtaDisk::default());
        for cdb in [&IDENTIFY[..], &READ_DATA] {
            let bytes = sector(good.execute(0, 0, cdb));
            assert_eq!((bytes.len(), sum(&bytes)), (512, 0));
        }
        let mut bad = target(AtaDisk {
            damages_data: true,
            ..AtaDisk::default()
        });
        assert_ne!(sum(&sector(bad.execute(0, 0, &IDENTIFY))), 0);
    }

    #[test]
    fn registers_come_as_the_bridge_brings_them() {
        let failing = |bringing| {
            let mut target = target(AtaDisk {
                bringing,
                is_failing: true,
                ..AtaDisk::default()
            });
            target.execute(0, 0, &STATUS).failure.map(|it| it.fixed())
        };
        let descriptor = failing(Bringing::Descriptor).expect("registers");
        assert_eq!(descriptor[..4], [0x72, 1, 0, 0x1d]);
        assert_eq!((descriptor[17], descriptor[19]), (0xf4, 0x2c));
        let fixed = failing(Bringing::Fixed).expect("registers");
        assert_eq!((fixed[0], fixed[13]), (0x70, 0x1d));
        assert_eq!((fixed[10], fixed[11]), (0xf4, 0x2c));
        assert_eq!(failing(Bringing::Nothing), None);
    }

    #[test]
    fn a_test_runs_in_the_background_and_can_be_ended() {
        let mut target = target(AtaDisk::default());
        let mut test = STATUS;
        (test[2], test[4]) = (0, 0xd4);
        let status = |target: &mut Target, now| sector(target.execute(now, 0, &READ_DATA))[363];
        for (subcommand, then) in [(0x01, 0x00), (0x02, 0xf9)] {
            test[8] = subcommand;
            assert_eq!(target.execute(0, 0, &test).failure, None);
            assert_eq!(status(&mut target, MINUTE) & 0xf0, 0xf0);
            assert_eq!(status(&mut target, 3 * MINUTE) & then, then);
        }
        test[8] = 0x7f;
        assert_eq!(target.execute(3 * MINUTE, 0, &test).failure, None);
        assert_eq!(status(&mut target, 4 * MINUTE), 0x10);
    }

    #[test]
    fn what_does_not_fit_the_ata_command_is_refused_and_recorded() {
        let mut protocol = IDENTIFY;
        protocol[1] = 6;
        let mut count = IDENTIFY;
        count[6] = 2;
        let mut moving = STATUS;
        moving[2] = 0x2e;
        for cdb in [protocol, count, moving] {
            let mut target = target(AtaDisk::default());
            let refused = target.execute(0, 0, &cdb).failure;
            assert_eq!(refused, Some(Sense::BAD_FIELD), "{cdb:02x?}");
            target.violations.expect_only("SAT-3 §12.2.2");
        }
        let mut target = target(AtaDisk::default());
        let mut signature = STATUS;
        signature[10] = 0x50;
        let aborted = target.execute(0, 0, &signature).failure;
        assert_eq!(aborted.map(|sense| sense.key), Some(0x0b));
        target.violations.expect_only("ACS-3 §7.48.1");
    }

    #[test]
    fn a_bridge_knows_its_forms_and_passes_what_it_passes() {
        let mut twelve = target(AtaDisk {
            forms: (false, true),
            passes_smart: false,
            ..AtaDisk::default()
        });
        let refused = |target: &mut Target, cdb: &[u8]| target.execute(0, 0, cdb).failure;
        assert_eq!(
            refused(&mut twelve, &IDENTIFY),
            Some(Sense::UNKNOWN_COMMAND)
        );
        assert_eq!(refused(&mut twelve, &READ_DATA), Some(Sense::BAD_FIELD));
        let mut none = target(AtaDisk::default());
        none.units[0].ata = None;
        assert_eq!(refused(&mut none, &READ_DATA), Some(Sense::UNKNOWN_COMMAND));
    }
}
