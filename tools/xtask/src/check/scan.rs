//! Rust sources as tokens: comments, strings and docs are out of the way, macros are looked into.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, anyhow};
use proc_macro2::TokenStream;

/// A source file as tokens.
pub(super) struct Source {
    /// The path from the root of the repository, with slashes.
    pub(super) file: String,
    pub(super) tokens: TokenStream,
}

/// All Rust files below a directory, sorted by path. A missing directory has none.
pub(super) fn sources(root: &Path, directory: &str) -> Result<Vec<Source>> {
    let mut paths = Vec::new();
    collect(&root.join(directory), &mut paths)?;
    paths.sort();
    paths.iter().map(|path| read(root, path)).collect()
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}

fn read(root: &Path, path: &Path) -> Result<Source> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = path.strip_prefix(root)?.to_string_lossy().into_owned();
    let tokens = TokenStream::from_str(&text).map_err(|error| anyhow!("{file}: {error}"))?;
    Ok(Source { file, tokens })
}
