//! Where things are in the repository and in the build directory.
//!
//! Everything that xtask writes goes below [`output`], so that `cargo clean` removes it; the one
//! exception is the `rust-src` of the tool chain (see [`crate::toolchain`]).

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The root of the repository.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .ancestors()
        .nth(2)
        .unwrap_or(manifest)
        .to_path_buf()
}

/// Cargo's build directory: `CARGO_TARGET_DIR`, or `target` in the repository.
pub fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// The build directory of the bare-metal images.
///
/// Apart from the host's, because these builds may set `RUSTC_BOOTSTRAP`, on which the build
/// scripts of some host crates depend: in one directory each kind of build would undo the other.
pub fn bare_metal_target() -> PathBuf {
    target().join("bare-metal")
}

/// The directory of a kind of xtask's own output (`logs`, `disks`, `images`, …), made if missing.
///
/// # Errors
///
/// When it can't be made.
pub fn output(kind: &str) -> Result<PathBuf> {
    let directory = target().join("xtask").join(kind);
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    Ok(directory)
}

/// The cargo that runs us, or else the one on the `PATH`.
pub fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
