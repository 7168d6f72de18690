//! Packages of the machine's own archive that are unpacked, not installed: what the machine's apt
//! would not offer (another suite, another architecture), fetched by package lists of our own.
//!
//! The lists lie below the build directory and are made from the mirror address in the machine's
//! sources. The machine's own sources, lists, architectures and packages stay as they are.

mod sources;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use self::sources::Source;
use crate::command;
use crate::progress::{Step, say};
use crate::workspace;

/// The main archives that the machine is set up for.
#[derive(Clone, Debug)]
pub(crate) struct Archives(Vec<Source>);

impl Archives {
    /// Reads the machine's sources.
    ///
    /// # Errors
    ///
    /// When this is no Debian machine, or its sources name no main archive.
    pub(crate) fn of_this_machine() -> Result<Self> {
        command::find("dpkg-deb").context("not a Debian machine (no dpkg-deb)")?;
        let archives = sources::main_archives(Path::new("/etc"));
        if archives.is_empty() {
            bail!("the machine's apt sources name no main archive");
        }
        Ok(Self(archives))
    }

    /// Lists of our own for one suite. `architecture` is Debian's word for one that is not the
    /// machine's.
    ///
    /// # Errors
    ///
    /// When their directory can't be made.
    pub(crate) fn suite(
        &self,
        suite: &'static str,
        architecture: Option<&'static str>,
    ) -> Result<PrivateLists> {
        let name = format!("{suite}-{}", architecture.unwrap_or("native"));
        let directory = workspace::output("packages")?.join(name);
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(directory.join(part))?;
        }
        let stanzas: Vec<_> = self.0.iter().map(|archive| archive.stanza(suite)).collect();
        fs::write(directory.join("private.sources"), stanzas.join("\n"))?;
        Ok(PrivateLists {
            directory,
            suite,
            architecture,
        })
    }
}

/// Package lists of one suite that only we use.
pub(crate) struct PrivateLists {
    directory: PathBuf,
    suite: &'static str,
    architecture: Option<&'static str>,
}

impl PrivateLists {
    /// Renews the lists and finds the first version of `package` that `fits`; `None`, and a line for
    /// the user if the suite can't be used, where there is none.
    ///
    /// # Errors
    ///
    /// When apt can't be started.
    pub(crate) fn find(
        &self,
        package: &str,
        fits: impl Fn(&str) -> bool,
    ) -> Result<Option<String>> {
        let step = Step::start(format!("Reading the package lists of {}", self.suite));
        let update = command::quiet(self.apt("apt-get").arg("update"), "apt-private-lists");
        let known = command::capture(self.apt("apt-cache").args(["madison", package]))?;
        let found = version(&String::from_utf8_lossy(&known.stdout), fits);
        match (found, update) {
            (Some(version), _) => {
                step.done();
                Ok(Some(version))
            }
            (None, Ok(_)) => Ok(None),
            (None, Err(error)) => {
                say(format!("The suite {} can't be used: {error:#}", self.suite));
                Ok(None)
            }
        }
    }

    /// Downloads a version of a package and unpacks it; gives back the directory that then holds
    /// what would be installed below `/`.
    ///
    /// # Errors
    ///
    /// When it can't be downloaded or unpacked.
    pub(crate) fn download_and_unpack(&self, package: &str, version: &str) -> Result<PathBuf> {
        let unpacked = self.directory.join("unpacked");
        remove_directory(&unpacked)?;
        fs::create_dir_all(&unpacked)?;
        let mut download = self.apt("apt-get");
        download
            .current_dir(&unpacked)
            .arg("download")
            .arg(format!("{package}={version}"));
        command::quiet(&mut download, "apt-download")?;
        let file = the_package_in(&unpacked)?;
        let mut unpack = command::tool("dpkg-deb");
        command::quiet(unpack.arg("-x").arg(&file).arg(&unpacked), "dpkg-deb")?;
        fs::remove_file(file)?;
        Ok(unpacked)
    }

    /// Removes the lists and what was unpacked.
    ///
    /// # Errors
    ///
    /// When they can't be removed.
    pub(crate) fn remove(self) -> Result<()> {
        remove_directory(&self.directory)
    }

    /// An apt program that sees our lists and sources only. Pinning, proxies and credentials of
    /// the machine stay in force, and so does the check of signatures.
    fn apt(&self, program: &str) -> Command {
        let path = |name: &str| self.directory.join(name).display().to_string();
        let mut command = command::tool(program);
        let mut options = vec![
            format!("Dir::Etc::sourcelist={}", path("private.sources")),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State::lists={}", path("lists")),
            format!("Dir::Cache={}", path("cache")),
            "Acquire::Languages=none".to_owned(),
            // The build directory may lie where apt's own user can't go.
            "APT::Sandbox::User=root".to_owned(),
        ];
        if let Some(architecture) = self.architecture {
            options.push(format!("APT::Architecture={architecture}"));
            options.push(format!("APT::Architectures={architecture}"));
            // What is installed here is of other architectures.
            options.push("Dir::State::status=/dev/null".to_owned());
        }
        for option in options {
            command.arg("-o").arg(option);
        }
        command
    }
}

/// Picks the version that fits from the lines of `apt-cache madison`.
fn version(madison: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
    let mut versions = madison
        .lines()
        .filter_map(|line| line.split('|').nth(1))
        .map(str::trim);
    versions.find(|version| fits(version)).map(str::to_owned)
}

fn the_package_in(directory: &Path) -> Result<PathBuf> {
    let mut files = fs::read_dir(directory)?.flatten().map(|entry| entry.path());
    files
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .context("apt-get download left no package")
}

/// Removes a directory, if it is there.
///
/// # Errors
///
/// When it can't be removed.
pub(crate) fn remove_directory(path: &Path) -> Result<()> {
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
";

    #[test]
    fn the_first_version_that_fits_is_taken() {
        let any = version(MADISON, |_| true);
        assert_eq!(any.as_deref(), Some("1.96.1+dfsg1-2~bpo13+1"));
        let exact = version(MADISON, |version| version.starts_with("1.95"));
        assert_eq!(exact.as_deref(), Some("1.95.0+dfsg1-2~bpo13+1"));
        assert_eq!(version("", |_| true), None);
    }
}
