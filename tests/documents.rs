//! What the documents promise about the code, held to it.

use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names behind `fn ` in a source text.
fn methods(source: &str) -> Vec<&str> {
    let lines = source.lines().map(str::trim_start);
    let heads = lines.filter_map(|line| line.strip_prefix("fn "));
    heads.filter_map(|head| head.split('(').next()).collect()
}

#[test]
fn every_method_of_the_controller_traits_is_mapped_to_three_controllers() {
    let traits = read("src/host/traits.rs");
    let methods = methods(&traits);
    assert!(methods.len() > 25, "found only {methods:?}");
    let page = read("docs/architecture.md");
    let map = page
        .split("## The controller traits, mapped")
        .nth(1)
        .unwrap();
    for method in methods {
        let row = map
            .lines()
            .find(|line| line.starts_with(&format!("| `{method}` |")))
            .unwrap_or_else(|| panic!("docs/architecture.md has no row for {method}"));
        let cells = row.trim_matches('|').split(" | ").skip(1);
        let filled = cells.filter(|cell| !cell.trim().is_empty()).count();
        assert_eq!(filled, 3, "the row of {method}: xHCI, EHCI, OHCI");
    }
}

#[test]
fn the_quick_start_has_at_most_25_lines() {
    let readme = read("README.md");
    let block = readme.split("```rust\n").nth(1).unwrap();
    let lines = block.split("```").next().unwrap().lines().count();
    assert!(lines <= 25, "{lines} lines");
}

#[test]
fn every_link_between_the_documents_leads_to_a_file() {
    let pages = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs/architecture.md",
        "docs/boards.md",
        "docs/porting.md",
        "docs/specs.md",
        "docs/tooling.md",
        "docs/demo-protocol.md",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for page in pages {
        let text = read(page);
        let folder = root.join(page).parent().unwrap().to_owned();
        let ends = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for target in ends.filter(|target| !target.contains("://")) {
            let path = target.split('#').next().unwrap();
            assert!(
                path.is_empty() || folder.join(path).exists(),
                "{page} leads to {target}"
            );
        }
    }
}
