//! Programs of the system that the demo and the tests need.
//!
//! [`ensure`] looks for each of them; what is missing is installed with the machine's own package
//! manager where we may (as root, or by `sudo` without a password), else the one line to type is
//! the error. Nothing is installed that is there already, from whatever source.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::command;
use crate::progress::Step;

/// A program or a file that we need, and the Debian package that brings it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// A program's name, or an absolute path.
    pub what: &'static str,
    /// The package.
    pub package: &'static str,
}

const fn need(what: &'static str, package: &'static str) -> Need {
    Need { what, package }
}

/// The emulator.
pub const QEMU: [Need; 1] = [need("qemu-system-aarch64", "qemu-system-arm")];

/// What makes and checks disk images.
pub const DISK_TOOLS: [Need; 4] = [
    need("sfdisk", "fdisk"),
    need("mkfs.vfat", "dosfstools"),
    need("fsck.vfat", "dosfstools"),
    need("mcopy", "mtools"),
];

/// What makes SD cards, beside the [`DISK_TOOLS`].
pub const CARD_TOOLS: [Need; 4] = [
    need("sfdisk", "fdisk"),
    need("mkfs.vfat", "dosfstools"),
    need("mcopy", "mtools"),
    need("mkimage", "u-boot-tools"),
];

/// The real U-Boot for QEMU's `virt` machine.
pub const U_BOOT_QEMU: Need = need("/usr/lib/u-boot/qemu_arm64/u-boot.bin", "u-boot-qemu");

/// Sees to it that everything in `needs` is there.
///
/// # Errors
///
/// One line that says what to type, when something is missing and can't be installed.
pub fn ensure(needs: &[Need]) -> Result<()> {
    let packages = missing_packages(needs);
    if packages.is_empty() {
        return Ok(());
    }
    let by_hand = format!(
        "apt-get install --no-install-recommends {}",
        packages.join(" ")
    );
    let Some(apt) = Apt::find() else {
        bail!("{} missing; as root, type: {by_hand}", packages.join(", "));
    };
    if let Err(error) = apt.install(&packages) {
        bail!(
            "{} could not be installed ({error:#}); as root, type: {by_hand}",
            packages.join(", ")
        );
    }
    match missing_packages(needs).as_slice() {
        [] => Ok(()),
        still => bail!(
            "{} installed, but its programs are not found",
            still.join(", ")
        ),
    }
}

fn missing_packages(needs: &[Need]) -> Vec<&'static str> {
    let mut packages: Vec<_> = needs
        .iter()
        .filter(|need| !is_there(need.what))
        .map(|need| need.package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn is_there(what: &str) -> bool {
    if what.starts_with('/') {
        Path::new(what).is_file()
    } else {
        command::find(what).is_some()
    }
}

/// An `apt-get` that we may use to install.
struct Apt {
    /// The words before `apt-get`: nothing as root, else sudo's.
    before: &'static [&'static str],
}

/// Policy: another package manager at work (a machine's first boot, unattended upgrades) is
/// waited for this long, in seconds.
const LOCK_TIMEOUT: &str = "DPkg::Lock::Timeout=300";

impl Apt {
    fn find() -> Option<Self> {
        command::find("apt-get")?;
        let says_yes = |command: &mut Command| {
            command::capture(command).is_ok_and(|output| output.status.success())
        };
        let is_root = command::capture(Command::new("id").arg("-u"))
            .is_ok_and(|output| output.stdout.trim_ascii() == b"0");
        if is_root {
            Some(Self { before: &[] })
        } else if says_yes(Command::new("sudo").args(["-n", "true"])) {
            Some(Self {
                before: &["sudo", "-n"],
            })
        } else {
            None
        }
    }

    /// Installs; where that fails, the machine's package lists may be missing or old, so they are
    /// renewed once.
    fn install(&self, packages: &[&str]) -> Result<()> {
        let first = self.try_install(packages);
        if first.is_ok() {
            return first;
        }
        let step = Step::start("Renewing the machine's package lists (apt-get update)");
        command::quiet(&mut self.command(&["update"]), "apt-update")?;
        step.done();
        self.try_install(packages)
    }

    fn try_install(&self, packages: &[&str]) -> Result<()> {
        let step = Step::start(format!(
            "Installing {} (apt-get install)",
            packages.join(" ")
        ));
        let mut command = self.command(&["install", "-y", "--no-install-recommends"]);
        command::quiet(command.args(packages), "apt-install")?;
        step.done();
        Ok(())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut words = self.before.to_vec();
        words.extend([
            "env",
            "DEBIAN_FRONTEND=noninteractive",
            "apt-get",
            "-o",
            LOCK_TIMEOUT,
        ]);
        words.extend(arguments);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_installed_and_packages_are_named_once() {
        let needs = [
            need("sh", "dash"),
            need("no-such-tool-a", "tools-b"),
            need("/no/such/file", "tools-a"),
            need("no-such-tool-c", "tools-b"),
        ];
        assert_eq!(missing_packages(&needs), ["tools-a", "tools-b"]);
    }

    #[test]
    fn nothing_happens_when_everything_is_there() {
        ensure(&[need("sh", "dash")]).unwrap();
    }
}
