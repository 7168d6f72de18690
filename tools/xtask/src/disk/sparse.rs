//! Reading and copying parts of image files that are mostly holes.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result};

const CHUNK: usize = 1 << 16;

/// Copies `length` bytes between places in two files. Chunks that are alike already are not
/// written, so that holes stay holes.
pub(super) fn copy(from: (&Path, u64), to: (&Path, u64), length: u64) -> Result<()> {
    let mut source = open_at(OpenOptions::new().read(true), from)?;
    let mut old = open_at(OpenOptions::new().read(true), to)?;
    let mut target = open_at(OpenOptions::new().write(true), to)?;
    let mut chunk = vec![0; CHUNK];
    let mut present = vec![0; CHUNK];
    let mut copied = 0;
    while copied < length {
        let size = usize::try_from(length - copied).unwrap_or(CHUNK).min(CHUNK);
        let (chunk, present) = (&mut chunk[..size], &mut present[..size]);
        source
            .read_exact(chunk)
            .context("the image file is too short")?;
        old.read_exact(present)
            .context("the image file is too short")?;
        if chunk != present {
            target.seek(SeekFrom::Start(to.1 + copied))?;
            target.write_all(chunk)?;
        }
        copied += size as u64;
    }
    Ok(())
}

/// Reads `length` bytes from a place in a file.
pub(super) fn read(path: &Path, start: u64, length: usize) -> Result<Vec<u8>> {
    let mut file = open_at(OpenOptions::new().read(true), (path, start))?;
    let mut bytes = vec![0; length];
    file.read_exact(&mut bytes)
        .context("the image file is too short")?;
    Ok(bytes)
}

/// Writes bytes to a place in a file.
#[cfg(test)]
pub(super) fn write(path: &Path, start: u64, bytes: &[u8]) -> Result<()> {
    Ok(open_at(OpenOptions::new().write(true), (path, start))?.write_all(bytes)?)
}

fn open_at(options: &OpenOptions, (path, start): (&Path, u64)) -> Result<File> {
    let mut file = options
        .open(path)
        .with_context(|| format!("cannot open {}", path.display()))?;
    file.seek(SeekFrom::Start(start))?;
    Ok(file)
}
