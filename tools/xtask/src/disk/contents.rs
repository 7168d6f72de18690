//! What is on the demo disk, and what the board is to write there.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The large file.
pub const LARGE_PATH: &str = "/BIG.BIN";
/// Its length: no multiple of any block or cluster.
pub const LARGE_LENGTH: usize = (5 << 20) + 321;
/// The file that the board writes in mode `demo`.
pub const COPY_PATH: &str = "/COPY.BIN";
/// How much of the large file it copies: no multiple of a block either.
pub const COPY_LENGTH: usize = 1_048_699;

const SCRATCH_PATTERN_LENGTH: u64 = 1 << 20;
const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;

const TEXT_FILES: [(&str, &str); 5] = [
    ("README.TXT", "This disk was made by cargo xtask demo.\n"),
    ("EMPTY.TXT", ""),
    (
        "DOCS/NOTES.TXT",
        "Blocks come in sizes from 512 bytes up.\n",
    ),
    (
        "DOCS/A longer name.txt",
        "A name that does not fit into eight and three letters.\n",
    ),
    ("DOCS/GUIDE/START.TXT", "Start with README.TXT.\n"),
];

/// The name that a FAT crate without long names gives to the file with one.
const SHORT_NAMES: [(&str, &str); 1] = [("/DOCS/A longer name.txt", "/DOCS/ALONGE~1.TXT")];

/// A file of the demo disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoFile {
    /// Its path from the root, with its long name.
    pub path: String,
    /// Its bytes.
    pub length: u64,
}

impl DemoFile {
    /// Whether a board may call it so: FAT knows no case, and not every crate knows long names.
    pub fn is_called(&self, path: &str) -> bool {
        let short = SHORT_NAMES.iter().find(|(long, _)| *long == self.path);
        self.path.eq_ignore_ascii_case(path)
            || short.is_some_and(|(_, short)| short.eq_ignore_ascii_case(path))
    }
}

/// All files.
pub fn files() -> Vec<DemoFile> {
    let texts = TEXT_FILES.iter().map(|(path, text)| (*path, text.len()));
    let all = texts.chain([(LARGE_PATH.trim_start_matches('/'), LARGE_LENGTH)]);
    all.map(|(path, length)| DemoFile {
        path: format!("/{path}"),
        length: length as u64,
    })
    .collect()
}

/// The large file: pseudo-random, the same every time.
pub fn large_file() -> Vec<u8> {
    let words = (1..=LARGE_LENGTH.div_ceil(8) as u64).map(mixed);
    let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    bytes.truncate(LARGE_LENGTH);
    bytes
}

/// The pattern at the start of the scratch partition.
pub fn scratch_pattern() -> Vec<u8> {
    let words = 1..=SCRATCH_PATTERN_LENGTH / 8;
    words
        .flat_map(|number| number.wrapping_mul(GOLDEN_RATIO).to_le_bytes())
        .collect()
}

/// The output function of the SplitMix64 generator, for the n-th word.
fn mixed(number: u64) -> u64 {
    let mut word = number.wrapping_mul(GOLDEN_RATIO);
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// Writes the files below a directory, which is made.
pub(super) fn write_tree(root: &Path) -> Result<()> {
    let write = |path: &str, bytes: &[u8]| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().context("a file has a directory")?)?;
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    };
    for (path, text) in TEXT_FILES {
        write(path, text.as_bytes())?;
    }
    write(LARGE_PATH.trim_start_matches('/'), &large_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scratch_pattern_starts_as_the_protocol_says() {
        let pattern = scratch_pattern();
        assert_eq!(pattern.len(), 1 << 20);
        assert_eq!(pattern[..8], GOLDEN_RATIO.to_le_bytes());
        assert_eq!(pattern[8..16], GOLDEN_RATIO.wrapping_mul(2).to_le_bytes());
    }

    #[test]
    fn no_two_blocks_of_the_large_file_are_alike() {
        let large = large_file();
        assert_eq!(large.len(), LARGE_LENGTH);
        let blocks: std::collections::HashSet<_> = large.chunks(512).collect();
        assert_eq!(blocks.len(), LARGE_LENGTH.div_ceil(512));
    }
}
