//! `core` for the bare-metal targets.
//!
//! [`bare_metal_core`] takes the first way that works:
//!
//! 1. the targets are installed: cargo needs nothing more;
//! 2. the sources of the standard library are there: cargo builds `core` from them;
//! 3. `rustup target add`, unless the machine's owner has turned rustup's automatic installation off
//!    (`RUSTUP_AUTO_INSTALL=0`): ours would be one;
//! 4. where rustup can't download: the sources from the machine's own package archive, in exactly
//!    the compiler's version (`archive.rs`), then as 2.
//!
//! Building `core` uses `-Zbuild-std`, which a stable compiler allows under `RUSTC_BOOTSTRAP`; only
//! these builds get the variable. `rust-toolchain.toml` says why the compiler is pinned.

mod archive;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::command;
use crate::progress::Step;
use crate::workspace;

/// How cargo gets `core` for a bare-metal target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    /// It is installed.
    Installed,
    /// Cargo builds it from the sources in the sysroot.
    FromSource,
}

impl Core {
    /// Starts a cargo command line for bare-metal targets: `subcommand` with what this way needs,
    /// and the build directory of its own.
    pub fn cargo(self, subcommand: &str) -> Command {
        let mut command = command::cargo();
        command
            .arg(subcommand)
            .env("CARGO_TARGET_DIR", workspace::bare_metal_target());
        if self == Self::FromSource {
            command.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=core");
            // Cargo would report on every build what later compilers will say about `core` itself.
            command.env("CARGO_FUTURE_INCOMPAT_REPORT_FREQUENCY", "never");
        }
        command
    }
}

/// Sees to it that `core` can be had for all of `targets`, and says how.
///
/// # Errors
///
/// One line that says what to type, when no way works.
pub fn bare_metal_core(targets: &[&str]) -> Result<Core> {
    let compiler = Compiler::ask()?;
    if targets.iter().all(|target| compiler.has_target(target)) {
        return Ok(Core::Installed);
    }
    if compiler.has_library_sources() {
        return Ok(Core::FromSource);
    }
    let by_rustup = match add_targets(targets) {
        Ok(()) if targets.iter().all(|target| compiler.has_target(target)) => {
            return Ok(Core::Installed);
        }
        Ok(()) => "did not install them".to_owned(),
        Err(error) => format!("{error:#}"),
    };
    match archive::install_sources(&compiler) {
        Ok(()) => Ok(Core::FromSource),
        Err(error) => bail!(
            "no core for {} (rustup: {by_rustup}; package archive: {error:#}); type: rustup target add {}",
            targets.join(", "),
            targets.join(" "),
        ),
    }
}

/// The compiler that cargo uses here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compiler {
    /// As in "1.95.0".
    version: String,
    sysroot: PathBuf,
}

impl Compiler {
    fn ask() -> Result<Self> {
        let verbose = ask_rustc(&["--version", "--verbose"])?;
        let version = verbose
            .lines()
            .find_map(|line| line.strip_prefix("release: "))
            .context("rustc does not tell its release")?;
        let sysroot = ask_rustc(&["--print", "sysroot"])?;
        Ok(Self {
            version: version.to_owned(),
            sysroot: PathBuf::from(sysroot.trim()),
        })
    }

    fn has_target(&self, target: &str) -> bool {
        let libraries = self.sysroot.join("lib/rustlib").join(target).join("lib");
        let Ok(entries) = std::fs::read_dir(libraries) else {
            return false;
        };
        entries
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with("libcore-"))
    }

    /// Where cargo looks for the sources of the standard library.
    fn library_sources(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib/src/rust/library")
    }

    fn has_library_sources(&self) -> bool {
        let library = self.library_sources();
        library.join("core/src/lib.rs").is_file() && library.join("Cargo.lock").is_file()
    }
}

fn ask_rustc(arguments: &[&str]) -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    let output = command::capture(command.current_dir(workspace::root()).args(arguments))?;
    if !output.status.success() {
        bail!(
            "rustc {} failed; is the tool chain installed?",
            arguments.join(" ")
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Policy: three small targets take seconds to download; a rustup that has not come back after
/// this long is behind a network that swallows packets.
const RUSTUP_DEADLINE: Duration = Duration::from_secs(120);

fn add_targets(targets: &[&str]) -> Result<()> {
    let rustup = command::find("rustup").context("not there")?;
    if std::env::var("RUSTUP_AUTO_INSTALL").is_ok_and(|value| value == "0") {
        bail!("automatic installation is turned off");
    }
    let step = Step::start(format!(
        "Installing the targets {} (rustup)",
        targets.join(", ")
    ));
    let log = workspace::output("logs")?.join("rustup.log");
    let mut child = Command::new(rustup)
        .current_dir(workspace::root())
        .args(["target", "add"])
        .args(targets)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log)?)
        .spawn()?;
    let deadline = Instant::now() + RUSTUP_DEADLINE;
    loop {
        if let Some(status) = child.try_wait()? {
            if status.success() {
                step.done();
                return Ok(());
            }
            bail!("{}", rustup_complaint(&log));
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            bail!("no answer in {} s", RUSTUP_DEADLINE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn rustup_complaint(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let complaint = text.lines().find_map(|line| line.strip_prefix("error: "));
    complaint.unwrap_or("cannot download").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiler_in(sysroot: &Path) -> Compiler {
        Compiler {
            version: "1.95.0".into(),
            sysroot: sysroot.into(),
        }
    }

    #[test]
    fn a_target_counts_as_installed_only_with_its_core() {
        let sysroot = tempfile::tempdir().unwrap();
        let compiler = compiler_in(sysroot.path());
        let libraries = sysroot.path().join("lib/rustlib/armv7a-none-eabi/lib");
        std::fs::create_dir_all(&libraries).unwrap();
        assert!(!compiler.has_target("armv7a-none-eabi"));
        std::fs::write(libraries.join("libcore-0123.rlib"), "").unwrap();
        assert!(compiler.has_target("armv7a-none-eabi"));
        assert!(!compiler.has_target("aarch64-unknown-none"));
    }

    #[test]
    fn library_sources_count_only_with_their_lock_file() {
        let sysroot = tempfile::tempdir().unwrap();
        let compiler = compiler_in(sysroot.path());
        let core = compiler.library_sources().join("core/src");
        std::fs::create_dir_all(&core).unwrap();
        std::fs::write(core.join("lib.rs"), "").unwrap();
        assert!(!compiler.has_library_sources());
        std::fs::write(compiler.library_sources().join("Cargo.lock"), "").unwrap();
        assert!(compiler.has_library_sources());
    }

    #[test]
    fn only_a_build_from_source_unlocks_unstable_options() {
        let unlocked = |core: Core| {
            core.cargo("build")
                .get_envs()
                .any(|(name, value)| name == "RUSTC_BOOTSTRAP" && value.is_some())
        };
        assert!(unlocked(Core::FromSource));
        assert!(!unlocked(Core::Installed));
    }
}
