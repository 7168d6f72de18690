//! Real boot loaders: Debian's builds of U-Boot, and the files that they take.
//!
//! The builds for Allwinner's 32-bit chips come in a package of the architecture `armhf`. Packages
//! are unpacked below the build directory, not installed (module `apt`).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::apt::Archives;
use crate::command;
use crate::progress::Step;
use crate::workspace;

/// A package of builds.
struct Package {
    name: &'static str,
    /// Debian's word, where it is not the machine's.
    architecture: Option<&'static str>,
    /// Where to look, nearest first.
    suites: [&'static str; 2],
    /// What each build is called.
    file: &'static str,
}

const SUNXI: Package = Package {
    name: "u-boot-sunxi",
    architecture: Some("armhf"),
    suites: ["bookworm", "stable"],
    // SPL and U-Boot in one file, as the chip's boot ROM takes it.
    file: "u-boot-sunxi-with-spl.bin",
};
/// That of the published figures is 2025.01.
const QEMU: Package = Package {
    name: "u-boot-qemu",
    architecture: None,
    suites: ["trixie", "stable"],
    file: "u-boot.bin",
};

/// The U-Boot of one of the directories of Allwinner's chips, such as `orangepi_zero`.
///
/// # Errors
///
/// When the package can't be had, or has no such build.
pub fn sunxi(build: &str) -> Result<PathBuf> {
    let installed = Path::new("/usr/lib/u-boot").join(build).join(SUNXI.file);
    if installed.is_file() {
        return Ok(installed);
    }
    SUNXI.build(build)
}

/// The U-Boot of QEMU's `virt` machine with 64-bit processors.
///
/// # Errors
///
/// When the package can't be had.
pub fn qemu_arm64() -> Result<PathBuf> {
    QEMU.build("qemu_arm64")
}

impl Package {
    /// One of its builds, unpacked unless it is there already.
    fn build(&self, build: &str) -> Result<PathBuf> {
        let ours = workspace::output("u-boot")?;
        let file = ours.join(format!("{build}.bin"));
        if !file.is_file() {
            self.fetch(build, &file)
                .with_context(|| format!("no U-Boot for {build}"))?;
        }
        Ok(file)
    }

    fn fetch(&self, build: &str, file: &Path) -> Result<()> {
        let archives = Archives::of_this_machine()?;
        for suite in self.suites {
            let lists = archives.suite(suite, self.architecture)?;
            let Some(version) = lists.find(self.name, |_| true)? else {
                continue;
            };
            let step = Step::start(format!("Unpacking {} {version} from {suite}", self.name));
            let unpacked = lists.download_and_unpack(self.name, &version)?;
            let found = unpacked.join("usr/lib/u-boot").join(build).join(self.file);
            // Beside the final place first, so that half a file is never taken for one.
            let beside = file.with_extension(std::process::id().to_string());
            fs::copy(&found, &beside)
                .with_context(|| format!("{} {version} has no build {build}", self.name))?;
            fs::rename(&beside, file)?;
            step.done();
            return lists.remove();
        }
        anyhow::bail!("no {} in any of {}", self.name, self.suites.join(", "))
    }
}

/// What `mkimage` wraps.
#[derive(Clone, Copy, Debug)]
pub enum Wrap {
    /// A kernel for `bootm`, that runs at this address.
    Kernel(u64),
    /// A script.
    Script,
}

/// Wraps a file into U-Boot's legacy image format.
///
/// # Errors
///
/// When `mkimage` fails.
pub fn wrap(kind: Wrap, source: &Path, target: &Path) -> Result<()> {
    let mut mkimage = command::tool("mkimage");
    mkimage.args(["-A", "arm", "-C", "none", "-n", "rootport"]);
    match kind {
        Wrap::Kernel(address) => {
            let address = format!("{address:#x}");
            mkimage.args([
                "-O", "linux", "-T", "kernel", "-a", &address, "-e", &address,
            ])
        }
        Wrap::Script => mkimage.args(["-T", "script"]),
    };
    command::quiet(mkimage.arg("-d").arg(source).arg(target), "mkimage").map(|_| ())
}
