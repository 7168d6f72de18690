//! The boards' real boot loader: Debian's builds of U-Boot, and the files that it takes.
//!
//! The builds for Allwinner's 32-bit chips come in a package of the architecture `armhf`. It is
//! unpacked below the build directory, not installed (module `apt`).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::apt::Archives;
use crate::command;
use crate::progress::Step;
use crate::workspace;

const PACKAGE: &str = "u-boot-sunxi";
const ARCHITECTURE: &str = "armhf";
/// Where to look, nearest first.
const SUITES: [&str; 2] = ["bookworm", "stable"];
/// SPL and U-Boot in one file, as the chip's boot ROM takes it.
const FILE: &str = "u-boot-sunxi-with-spl.bin";

/// The U-Boot of one of the package's directories, such as `orangepi_zero`.
///
/// # Errors
///
/// When the package can't be had, or has no such build.
pub fn sunxi(build: &str) -> Result<PathBuf> {
    let installed = Path::new("/usr/lib/u-boot").join(build).join(FILE);
    if installed.is_file() {
        return Ok(installed);
    }
    let ours = workspace::output("u-boot")?;
    let file = ours.join(format!("{build}.bin"));
    if !file.is_file() {
        fetch(build, &file).with_context(|| format!("no U-Boot for {build}"))?;
    }
    Ok(file)
}

fn fetch(build: &str, file: &Path) -> Result<()> {
    let archives = Archives::of_this_machine()?;
    for suite in SUITES {
        let lists = archives.suite(suite, Some(ARCHITECTURE))?;
        let Some(version) = lists.find(PACKAGE, |_| true)? else {
            continue;
        };
        let step = Step::start(format!(
            "Unpacking {PACKAGE}:{ARCHITECTURE} {version} from {suite}"
        ));
        let unpacked = lists.download_and_unpack(PACKAGE, &version)?;
        let found = unpacked.join("usr/lib/u-boot").join(build).join(FILE);
        // Beside the final place first, so that half a file is never taken for one.
        let beside = file.with_extension(std::process::id().to_string());
        fs::copy(&found, &beside)
            .with_context(|| format!("{PACKAGE} {version} has no build {build}"))?;
        fs::rename(&beside, file)?;
        step.done();
        return lists.remove();
    }
    anyhow::bail!(
        "no {PACKAGE}:{ARCHITECTURE} in any of {}",
        SUITES.join(", ")
    )
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
