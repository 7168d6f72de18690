//! Whether what a board said about a demo disk is true.

use anyhow::{Context, Result, bail, ensure};

use crate::disk::{FAT_PARTITION, Layout, SCRATCH_PARTITION, contents};
use crate::marker::Marker;
use crate::progress::say;
use crate::transcript::Transcript;

/// The measurements of the throughput table.
const MEASUREMENTS: [&str; 4] = [
    "sequential-read",
    "random-read",
    "sequential-write",
    "random-write",
];
/// Its block lengths in bytes.
const MEASURED_BLOCKS: [u32; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// What was found true.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// How many files were listed.
    pub files: usize,
    checksum: u32,
}

impl Verdict {
    /// Judges a run of mode `demo` over one demo disk with 512-byte blocks.
    ///
    /// # Errors
    ///
    /// Names the first thing that is missing or untrue.
    pub fn of_demo(transcript: &Transcript, layout: &Layout) -> Result<Self> {
        if let Some(skip) = transcript.all("skip").next() {
            bail!(
                "the board left out {}: {}",
                skip.value("what")?,
                skip.reason()
            );
        }
        let verdict = Self::of_reading(transcript, layout)?;
        expect_throughput(transcript)?;
        expect_scratch(transcript)?;
        expect_copy(transcript)?;
        expect_flush(transcript)?;
        Ok(verdict)
    }

    /// Judges the reading part over one demo disk with 512-byte blocks.
    ///
    /// # Errors
    ///
    /// As [`Verdict::of_demo`].
    pub fn of_reading(transcript: &Transcript, layout: &Layout) -> Result<Self> {
        expect_disk(transcript, layout)?;
        expect_partitions(transcript, layout)?;
        let files = expect_files(transcript)?;
        let checksum = expect_large_file(transcript.only("sum")?)?;
        expect_next_stage(transcript)?;
        Ok(Self { files, checksum })
    }

    /// Says what was found true.
    pub fn say(&self) {
        say(format!(
            "  {} files as made; CRC-32 of {} is {:08x} on both sides",
            self.files,
            contents::LARGE_PATH,
            self.checksum
        ));
    }
}

/// Judges the reading part over one disk of the user's, of which we know no more than its length,
/// if that.
///
/// # Errors
///
/// When no disk was found, or one of another length.
pub fn expect_users_disk(transcript: &Transcript, length: Option<u64>) -> Result<()> {
    let disk = transcript.only("disk")?;
    let found = disk.number::<u64>("block")? * disk.number::<u64>("blocks")?;
    match length {
        Some(length) => ensure!(
            found == length,
            "the disk has {length} bytes, the board found {found}"
        ),
        None => ensure!(found > 0, "the board found an empty disk"),
    }
    Ok(())
}

/// Judges whether the stage behind the stack found its memory left alone.
///
/// # Errors
///
/// When it was written to, or was never looked at.
pub fn expect_next_stage(transcript: &Transcript) -> Result<()> {
    let marker = transcript.only("payload")?;
    ensure!(marker.number::<u64>("bytes")? > 0, "the old pool is empty");
    expect_number(marker, "changed", 0)
}

fn expect_disk(transcript: &Transcript, layout: &Layout) -> Result<()> {
    let marker = transcript.only("disk")?;
    let driver = marker.value("driver")?;
    ensure!(
        transcript.with("tree", "driver", driver).next().is_some(),
        "the tree shows no device with the driver {driver}"
    );
    expect_number(marker, "block", layout.block_size.into())?;
    expect_number(marker, "blocks", layout.blocks())
}

/// Judges the two partitions.
///
/// # Errors
///
/// When one is missing, or elsewhere than the disk has it.
pub fn expect_partitions(transcript: &Transcript, layout: &Layout) -> Result<()> {
    for partition in layout.partitions() {
        let number = partition.number.to_string();
        let marker = transcript
            .with("partition", "number", &number)
            .next()
            .with_context(|| format!("partition {number} was not found"))?;
        let kind = marker.value("kind")?;
        ensure!(
            kind == partition.kind,
            "partition {number} is {kind} to the board"
        );
        expect_number(marker, "first", partition.first)?;
        expect_number(marker, "blocks", partition.blocks)?;
    }
    Ok(())
}

fn expect_files(transcript: &Transcript) -> Result<usize> {
    let files = contents::files();
    for file in &files {
        let marker = transcript
            .with("file", "partition", &FAT_PARTITION.to_string())
            .find(|marker| marker.value("path").is_ok_and(|path| file.is_called(path)))
            .with_context(|| format!("the file {} was not listed", file.path))?;
        expect_number(marker, "bytes", file.length)?;
    }
    let listed = transcript.all("file").count();
    ensure!(
        listed == files.len(),
        "{listed} files were listed, {} are there",
        files.len()
    );
    Ok(listed)
}

fn expect_large_file(sum: &Marker) -> Result<u32> {
    let path = sum.value("path")?;
    ensure!(
        path.eq_ignore_ascii_case(contents::LARGE_PATH),
        "the largest file is not {path}"
    );
    let large = contents::large_file();
    expect_number(sum, "bytes", large.len() as u64)?;
    expect_checksum(sum, crc32fast::hash(&large))
}

/// Judges the throughput table: every cell is there, and no time is zero.
///
/// # Errors
///
/// Names the cell that is missing.
pub fn expect_throughput(transcript: &Transcript) -> Result<()> {
    for name in MEASUREMENTS {
        for block in MEASURED_BLOCKS {
            let marker = transcript
                .with("perf", "name", name)
                .find(|marker| {
                    marker
                        .number("block")
                        .is_ok_and(|found: u32| found == block)
                })
                .with_context(|| format!("{name} with blocks of {block} was not measured"))?;
            let microseconds: u64 = marker.number("microseconds")?;
            ensure!(
                microseconds > 0,
                "{name} with blocks of {block} took no time"
            );
            let operations: u64 = marker.number("operations")?;
            expect_number(marker, "bytes", operations * u64::from(block))?;
        }
    }
    Ok(())
}

/// Judges the scratch pattern as the board read it back.
///
/// # Errors
///
/// When it is missing or differs.
pub fn expect_scratch(transcript: &Transcript) -> Result<()> {
    let marker = transcript.only("scratch")?;
    let pattern = contents::scratch_pattern();
    expect_number(marker, "partition", SCRATCH_PARTITION.into())?;
    expect_number(marker, "bytes", pattern.len() as u64)?;
    expect_checksum(marker, crc32fast::hash(&pattern)).map(|_| ())
}

fn expect_copy(transcript: &Transcript) -> Result<()> {
    let marker = transcript.only("wrote")?;
    let large = contents::large_file();
    let copied = large.get(..contents::COPY_LENGTH).unwrap_or(&large);
    expect_number(marker, "bytes", copied.len() as u64)?;
    expect_checksum(marker, crc32fast::hash(copied)).map(|_| ())
}

fn expect_flush(transcript: &Transcript) -> Result<()> {
    let result = transcript.only("flush")?.value("result")?;
    ensure!(
        ["ok", "no-command"].contains(&result),
        "the flush ended with {result}"
    );
    Ok(())
}

fn expect_number(marker: &Marker, key: &str, expected: u64) -> Result<()> {
    let found: u64 = marker.number(key)?;
    ensure!(
        found == expected,
        "@{}: {key} is {found}, must be {expected}",
        marker.word()
    );
    Ok(())
}

fn expect_checksum(marker: &Marker, expected: u32) -> Result<u32> {
    let found = marker.checksum()?;
    ensure!(
        found == expected,
        "@{}: the board's CRC-32 is {found:08x}, the host's {expected:08x}",
        marker.word()
    );
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    fn good_run() -> String {
        let large = crc32fast::hash(&contents::large_file());
        let copy = crc32fast::hash(&contents::large_file()[..contents::COPY_LENGTH]);
        let scratch = crc32fast::hash(&contents::scratch_pattern());
        let mut text = "\
@boot protocol=1 board=qemu-virt level=1
@tree port=1 speed=super id=46f4:0001 driver=bot
@disk number=0 port=1 driver=bot block=512 blocks=655360 writable=yes name=QEMU HARDDISK
@partition disk=0 number=1 first=2048 blocks=589824 kind=fat
@partition disk=0 number=2 first=591872 blocks=49152 kind=scratch
"
        .to_owned();
        for file in contents::files() {
            let path = file.path.replace("A longer name.txt", "ALONGE~1.TXT");
            writeln!(
                text,
                "@file disk=0 partition=1 bytes={} path={path}",
                file.length
            )
            .unwrap();
        }
        writeln!(
            text,
            "@sum disk=0 partition=1 bytes=5243201 crc32={large:08x} path=/BIG.BIN"
        )
        .unwrap();
        for name in MEASUREMENTS {
            for block in MEASURED_BLOCKS {
                writeln!(
                    text,
                    "@perf disk=0 name={name} block={block} operations=2 bytes={} microseconds=9",
                    2 * block
                )
                .unwrap();
            }
        }
        writeln!(
            text,
            "@scratch disk=0 partition=2 bytes=1048576 crc32={scratch:08x}"
        )
        .unwrap();
        writeln!(
            text,
            "@wrote disk=0 partition=1 bytes=1048699 crc32={copy:08x} path=/COPY.BIN"
        )
        .unwrap();
        text + "\
@flush disk=0 result=ok
@payload bytes=1048576 milliseconds=200 changed=0
@done result=ok
"
    }

    fn judge(text: &str) -> Result<Verdict> {
        Verdict::of_demo(&Transcript::of_lines(text), &Layout { block_size: 512 })
    }

    #[test]
    fn a_true_run_is_found_true() {
        assert_eq!(judge(&good_run()).unwrap().files, 6);
    }

    #[test]
    fn every_line_of_a_true_run_is_needed() {
        let run = good_run();
        let needed = |line: &&str| !line.starts_with("@boot") && !line.starts_with("@done");
        for line in run.lines().filter(needed) {
            let without = run.replace(&format!("{line}\n"), "");
            assert!(judge(&without).is_err(), "not missed: {line}");
        }
    }

    #[test]
    fn every_untrue_number_is_found() {
        let run = good_run();
        for (truth, lie) in [
            ("block=512", "block=4096"),
            ("blocks=655360", "blocks=655359"),
            ("first=2048", "first=63"),
            ("kind=scratch", "kind=fat"),
            ("bytes=0 path=/EMPTY", "bytes=1 path=/EMPTY"),
            ("bytes=5243201 crc32=", "bytes=5243201 crc32=00000000 was="),
            ("microseconds=9", "microseconds=0"),
            ("operations=2", "operations=3"),
            ("bytes=1048699", "bytes=1048576"),
            ("result=ok\n@payload", "result=failed\n@payload"),
            ("changed=0", "changed=1"),
        ] {
            assert!(run.contains(truth), "{truth}");
            assert!(
                judge(&run.replace(truth, lie)).is_err(),
                "{lie} was believed"
            );
        }
    }

    #[test]
    fn a_users_disk_must_be_found_with_its_length() {
        let transcript = Transcript::of_lines("@disk number=0 block=512 blocks=8");
        expect_users_disk(&transcript, Some(4096)).unwrap();
        expect_users_disk(&transcript, None).unwrap();
        assert!(expect_users_disk(&transcript, Some(4608)).is_err());
        assert!(expect_users_disk(&Transcript::of_lines("@done result=ok"), None).is_err());
    }

    #[test]
    fn a_part_that_was_left_out_is_no_success() {
        let run = good_run() + "@skip disk=0 what=files reason=4096-byte sectors\n";
        let error = judge(&run).unwrap_err().to_string();
        assert_eq!(error, "the board left out files: 4096-byte sectors");
    }
}
