//! `unsafe` has three rooms in the library: `dma`, `mmio` and `arch`. Boards and models may use it
//! too; the host tools and the QEMU tests have no need of it.

use std::path::Path;

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};

use super::{Finding, scan};

/// Where Rust sources without `unsafe` are.
const PLACES: [&str; 3] = ["src", "tools", "tests"];

/// The rooms below them where it may stand.
const ROOMS: [&str; 4] = ["src/arch/", "src/dma/", "src/mmio/", "tests/models/"];

/// Every `unsafe` outside the rooms.
///
/// # Errors
///
/// When a file can't be read.
pub fn findings(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for place in PLACES {
        for source in scan::sources(root, place)? {
            if !ROOMS.iter().any(|room| source.file.starts_with(room)) {
                collect(&source.file, source.tokens, &mut findings);
            }
        }
    }
    Ok(findings)
}

fn collect(file: &str, tokens: TokenStream, findings: &mut Vec<Finding>) {
    for token in tokens {
        match token {
            TokenTree::Ident(word) if word == "unsafe" => findings.push(Finding {
                file: file.to_owned(),
                line: word.span().start().line,
                what: format!("unsafe outside its rooms ({})", ROOMS.join(", ")),
            }),
            TokenTree::Group(group) => collect(file, group.stream(), findings),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn unsafe_is_found_in_blocks_functions_and_macros_with_its_line() {
        let text =
            "// unsafe\nfn a() { unsafe {} }\nunsafe fn b() {}\nm! { unsafe impl T for U {} }";
        let root = repository(&[("src/usb/hub.rs", text)]);
        let findings = findings(root.path()).unwrap();
        let lines: Vec<_> = findings.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [2, 3, 4]);
        assert_eq!(findings[0].file, "src/usb/hub.rs");
    }

    #[test]
    fn the_word_in_comments_strings_and_lint_names_is_none() {
        let text = "#![deny(unsafe_code)]\n/// unsafe\nconst A: &str = \"unsafe\";";
        let root = repository(&[("src/lib.rs", text), ("tools/x/src/lib.rs", text)]);
        assert_eq!(findings(root.path()).unwrap(), []);
    }

    #[test]
    fn the_rooms_may_use_it() {
        let text = "unsafe fn a() {}";
        let root = repository(&[
            ("src/dma/pool.rs", text),
            ("tests/models/src/memory.rs", text),
        ]);
        assert_eq!(findings(root.path()).unwrap(), []);
    }
}
