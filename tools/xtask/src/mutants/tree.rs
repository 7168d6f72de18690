//! A copy of the repository to make mistakes in.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::table::Mutant;
use crate::{command, workspace};

/// The copy. It stays, so that the next run builds only what has changed.
pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Brings the copy up to date with the repository, uncommitted changes included.
    ///
    /// # Errors
    ///
    /// When git does not list the files, or one can't be copied.
    pub(super) fn copy() -> Result<Self> {
        let root = workspace::output("mutants")?;
        let mut git = command::tool("git");
        git.current_dir(workspace::root());
        git.args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let listing = command::quiet(&mut git, "mutants-files")?;
        for file in listing.split('\0').filter(|file| !file.is_empty()) {
            bring(&workspace::root().join(file), &root.join(file)).context(file.to_owned())?;
        }
        Ok(Self { root })
    }

    /// Where it is.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Makes a mistake, until the value is dropped.
    ///
    /// # Errors
    ///
    /// When its lines are not there.
    pub(super) fn patch(&self, mutant: &Mutant) -> Result<Patched> {
        let text = mutant.applied(&self.root)?;
        let path = self.root.join(&mutant.file);
        let right = fs::read(&path)?;
        fs::write(&path, text)?;
        Ok(Patched { path, right })
    }
}

/// A file with a mistake in it; dropping it makes the file right again.
pub(super) struct Patched {
    path: PathBuf,
    right: Vec<u8>,
}

impl Drop for Patched {
    fn drop(&mut self) {
        // If it fails, the next copy of the tree mends it.
        let _ = fs::write(&self.path, &self.right);
    }
}

/// Copies a file if it differs, so that what is built of it stays as new as it is.
fn bring(from: &Path, to: &Path) -> Result<()> {
    // A file that git still lists may have been deleted.
    let Ok(content) = fs::read(from) else {
        return Ok(());
    };
    if fs::read(to).is_ok_and(|there| there == content) {
        return Ok(());
    }
    if let Some(directory) = to.parent() {
        fs::create_dir_all(directory)?;
    }
    Ok(fs::write(to, content)?)
}

/// Whether a source below `place` holds these words.
///
/// # Errors
///
/// When a directory can't be read.
pub(super) fn contains(place: &Path, words: &str) -> Result<bool> {
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        if path.is_dir() && contains(&path, words)? {
            return Ok(true);
        }
        if is_source && fs::read_to_string(&path)?.contains(words) {
            return Ok(true);
        }
    }
    Ok(false)
}
