//! The sources of the standard library from the machine's own package archive.
//!
//! Debian packages them as `rust-src`. The newest compilers are in suites that the machine is not
//! set up for, so this uses package lists of its own, below the build directory, made from the
//! mirror address in the machine's sources. The machine's own sources, lists and packages stay as
//! they are; only the tool chain's sysroot gets a directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Compiler;
use super::sources::{self, Source};
use crate::command;
use crate::progress::{Step, say};
use crate::workspace;

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
    command::find("dpkg-deb").context("not a Debian machine (no dpkg-deb)")?;
    let archives = sources::main_archives(Path::new("/etc"));
    if archives.is_empty() {
        bail!("the machine's apt sources name no main archive");
    }
    for suite in SUITES {
        let lists = PrivateLists::make(&archives, suite)?;
        if let Some(package) = lists.find_package(&compiler.version)? {
            let sources = lists.download_and_unpack(&package, &compiler.version)?;
            put_into_sysroot(&sources, compiler)?;
            return lists.remove();
        }
    }
    bail!(
        "no rust-src {} in any of {}",
        compiler.version,
        SUITES.join(", ")
    )
}

/// Package lists of one suite that only we use.
struct PrivateLists {
    directory: PathBuf,
    suite: &'static str,
}

impl PrivateLists {
    fn make(archives: &[Source], suite: &'static str) -> Result<Self> {
        let directory = workspace::output("packages")?.join(suite);
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(directory.join(part))?;
        }
        let stanzas: Vec<_> = archives
            .iter()
            .map(|archive| archive.stanza(suite))
            .collect();
        fs::write(directory.join("private.sources"), stanzas.join("\n"))?;
        Ok(Self { directory, suite })
    }

    /// The full version of the `rust-src` package for this compiler, if the suite has it.
    fn find_package(&self, version: &str) -> Result<Option<String>> {
        let step = Step::start(format!("Reading the package lists of {}", self.suite));
        let update = command::quiet(self.apt("apt-get").arg("update"), "apt-private-lists");
        let known = command::capture(self.apt("apt-cache").args(["madison", "rust-src"]))?;
        let found = package_version(&String::from_utf8_lossy(&known.stdout), version);
        match (found, update) {
            (Some(package), _) => {
                step.done();
                Ok(Some(package))
            }
            (None, Ok(_)) => Ok(None),
            (None, Err(error)) => {
                say(format!("The suite {} can't be used: {error:#}", self.suite));
                Ok(None)
            }
        }
    }

    fn download_and_unpack(&self, package: &str, version: &str) -> Result<PathBuf> {
        let step = Step::start(format!(
            "Installing rust-src {package} from {} into the tool chain",
            self.suite
        ));
        let unpacked = self.directory.join("unpacked");
        remove_directory(&unpacked)?;
        fs::create_dir_all(&unpacked)?;
        let mut download = self.apt("apt-get");
        download
            .current_dir(&unpacked)
            .arg("download")
            .arg(format!("rust-src={package}"));
        command::quiet(&mut download, "apt-download")?;
        let file = the_package_in(&unpacked)?;
        let mut unpack = command::tool("dpkg-deb");
        command::quiet(unpack.arg("-x").arg(&file).arg(&unpacked), "dpkg-deb")?;
        fs::remove_file(file)?;
        step.done();
        Ok(unpacked.join(format!("usr/src/rustc-{version}/library")))
    }

    /// Removes the lists and what was unpacked: the sysroot has all that is needed.
    fn remove(self) -> Result<()> {
        remove_directory(&self.directory)
    }

    /// An apt program that sees our lists and sources only. Pinning, proxies and credentials of
    /// the machine stay in force, and so does the check of signatures.
    fn apt(&self, program: &str) -> Command {
        let path = |name: &str| self.directory.join(name).display().to_string();
        let mut command = command::tool(program);
        for option in [
            format!("Dir::Etc::sourcelist={}", path("private.sources")),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State::lists={}", path("lists")),
            format!("Dir::Cache={}", path("cache")),
            "Acquire::Languages=none".to_owned(),
            // The build directory may lie where apt's own user can't go.
            "APT::Sandbox::User=root".to_owned(),
        ] {
            command.arg("-o").arg(option);
        }
        command
    }
}

/// Picks, from the lines of `apt-cache madison`, the package whose upstream version is `version`.
fn package_version(madison: &str, version: &str) -> Option<String> {
    let mut packages = madison
        .lines()
        .filter_map(|line| line.split('|').nth(1))
        .map(str::trim);
    let found = packages.find(|package| {
        let rest = package.strip_prefix(version);
        rest.is_some_and(|rest| rest.starts_with(['+', '-', '~']))
    });
    found.map(str::to_owned)
}

fn the_package_in(directory: &Path) -> Result<PathBuf> {
    let mut files = fs::read_dir(directory)?.flatten().map(|entry| entry.path());
    files
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .context("apt-get download left no package")
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

fn remove_directory(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADISON: &str = "\
  rust-src | 1.96.1+dfsg1-2~bpo13+1 | http://mirror/debian trixie-backports/main amd64 Packages
  rust-src | 1.95.0+dfsg1-2~bpo13+1 | http://mirror/debian trixie-backports/main amd64 Packages
  rust-src | 1.9.50-1 | http://mirror/debian trixie-backports/main amd64 Packages
";

    #[test]
    fn only_the_very_same_upstream_version_is_taken() {
        assert_eq!(
            package_version(MADISON, "1.95.0").as_deref(),
            Some("1.95.0+dfsg1-2~bpo13+1")
        );
        assert_eq!(package_version(MADISON, "1.9.5"), None);
        assert_eq!(package_version(MADISON, "1.97.0"), None);
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
