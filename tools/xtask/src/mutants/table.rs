//! The list of mutants.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The list, from the root of the repository.
pub(super) const FILE: &str = "tests/mutants.toml";

/// A mistake in a driver, and the test that notices it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mutant {
    /// The mistake, in words.
    pub(super) name: String,
    /// The file that it is in, from the root of the repository.
    pub(super) file: String,
    /// The lines that are right.
    pub(super) old: String,
    /// What stands in their place.
    pub(super) new: String,
    /// The test program: `lib`, or a name in `tests/`.
    pub(super) target: String,
    /// The test's whole name.
    pub(super) test: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

/// Reads the list of the repository at `root`.
///
/// # Errors
///
/// When it is not there or not in its form.
pub(super) fn read(root: &Path) -> Result<Vec<Mutant>> {
    let text = fs::read_to_string(root.join(FILE)).context(FILE)?;
    let list: List = toml::from_str(&text).context(FILE)?;
    Ok(list.mutant)
}

impl Mutant {
    /// The text of its file with the mistake in it.
    ///
    /// # Errors
    ///
    /// When the lines are not there, or there twice.
    pub(super) fn applied(&self, root: &Path) -> Result<String> {
        let text = fs::read_to_string(root.join(&self.file)).context(self.file.clone())?;
        let count = text.matches(&self.old).count();
        ensure!(
            count == 1,
            "its lines are {count} times in {}: change the list with the code",
            self.file
        );
        ensure!(self.old != self.new, "it changes nothing");
        Ok(text.replacen(&self.old, &self.new, 1))
    }
}
