//! The sources of the standard library from the machine's own package archive.
//!
//! Debian packages them as `rust-src`. The newest compilers are in suites that the machine is not
//! set up for, so this uses package lists of its own (module `apt`). Only the tool chain's sysroot
//! gets a directory.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Compiler;
use crate::apt::{Archives, remove_directory};
use crate::command;
use crate::progress::{Step, say};

const PACKAGE: &str = "rust-src";

/// Where to look, nearest first: backports for the current stable releases have every recent
/// compiler, and their lists are short.
const SUITES: [&str; 4] = [
    "trixie-backports",
    "stable-backports",
    "testing",
    "unstable",
];

/// Puts the sources of the standard library into the compiler's sysroot.
pub(super) fn install_sources(compiler: &Compiler) -> Result<()> {
    let archives = Archives::of_this_machine()?;
    for suite in SUITES {
        let lists = archives.suite(suite, None)?;
        let found = lists.find(PACKAGE, |version| {
            is_revision_of(version, &compiler.version)
        })?;
        if let Some(package) = found {
            let step = Step::start(format!(
                "Installing {PACKAGE} {package} from {suite} into the tool chain"
            ));
            let unpacked = lists.download_and_unpack(PACKAGE, &package)?;
            step.done();
            let library = format!("usr/src/rustc-{}/library", compiler.version);
            put_into_sysroot(&unpacked.join(library), compiler)?;
            return lists.remove();
        }
    }
    bail!(
        "no {PACKAGE} {} in any of {}",
        compiler.version,
        SUITES.join(", ")
    )
}

/// Whether a package's version is the compiler's `version` in some revision.
fn is_revision_of(package: &str, version: &str) -> bool {
    let rest = package.strip_prefix(version);
    rest.is_some_and(|rest| rest.starts_with(['+', '-', '~']))
}

/// Copies beside the final place first, so that a half-copied library is never taken for one.
fn put_into_sysroot(sources: &Path, compiler: &Compiler) -> Result<()> {
    let place = compiler.library_sources();
    let parent = place.parent().context("a sysroot has directories")?;
    let by_hand = || format!("cannot write {}; run again as its owner", parent.display());
    fs::create_dir_all(parent).with_context(by_hand)?;
    let beside = parent.join(format!("library.{}", std::process::id()));
    command::quiet(
        Command::new("cp").arg("-a").arg(sources).arg(&beside),
        "copy-library",
    )
    .with_context(by_hand)?;
    if fs::rename(&beside, &place).is_err() {
        // Somebody else was faster, or an incomplete one is in the way.
        if !compiler.has_library_sources() {
            remove_directory(&place)?;
            fs::rename(&beside, &place).with_context(by_hand)?;
        }
        remove_directory(&beside)?;
    }
    say(format!(
        "The sources of core are now in {}",
        place.display()
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_same_upstream_version_is_taken() {
        assert!(is_revision_of("1.95.0+dfsg1-2~bpo13+1", "1.95.0"));
        for other in ["1.96.1+dfsg1-2~bpo13+1", "1.9.50-1", "1.95.01-1"] {
            assert!(!is_revision_of(other, "1.95.0"), "{other}");
        }
    }

    #[test]
    fn sources_replace_an_incomplete_library_in_the_sysroot() {
        let directory = tempfile::tempdir().unwrap();
        let compiler = Compiler {
            version: "1.95.0".into(),
            sysroot: directory.path().join("root"),
        };
        fs::create_dir_all(compiler.library_sources().join("half")).unwrap();
        let sources = directory.path().join("library");
        fs::create_dir_all(sources.join("core/src")).unwrap();
        fs::write(sources.join("core/src/lib.rs"), "").unwrap();
        fs::write(sources.join("Cargo.lock"), "").unwrap();
        put_into_sysroot(&sources, &compiler).unwrap();
        assert!(compiler.has_library_sources());
        assert!(!compiler.library_sources().join("half").exists());
    }
}
