//! What the documents promise about the code, held to it.

use std::fs;
use std::path::{Path, PathBuf};

const PAGES: [&str; 10] = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/architecture.md",
    "docs/boards.md",
    "docs/demo-protocol.md",
    "docs/performance.md",
    "docs/porting.md",
    "docs/specs.md",
    "docs/tooling.md",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All Rust sources, by their paths from the root.
fn sources() -> Vec<PathBuf> {
    let mut folders: Vec<_> = ["src", "platforms", "tests", "tools"]
        .map(|folder| root().join(folder))
        .to_vec();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                files.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    files
}

/// What stands between backquotes.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
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
    for page in PAGES {
        let text = read(page);
        let folder = root().join(page).parent().unwrap().to_owned();
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

#[test]
fn every_path_of_the_repository_that_a_document_names_is_there() {
    let folders = ["src/", "platforms/", "tests/", "tools/", "docs/", "linker/"];
    let plain = |name: &&str| {
        folders.iter().any(|folder| name.starts_with(folder)) && !name.contains(['*', '<', ' '])
    };
    let mut count = 0;
    for page in PAGES {
        let text = read(page);
        for path in text.lines().flat_map(spans).filter(plain) {
            count += 1;
            assert!(root().join(path).exists(), "{page} names {path}");
        }
    }
    assert!(count > 20, "found only {count}");
}

/// A module's head may have a table of its files.
#[test]
fn every_file_in_the_table_of_a_module_s_head_is_there() {
    let is_head = |line: &&str| {
        let heads = [" | file |", " | module |", " | room |"];
        heads.iter().any(|head| line.starts_with(head))
    };
    let mut count = 0;
    for source in sources() {
        let text = read(source.to_str().unwrap());
        let head = text.lines().map_while(|line| line.strip_prefix("//!"));
        let table = head.skip_while(|line| !is_head(line)).skip(2);
        let folder = root().join(source.parent().unwrap());
        for row in table.map_while(|line| line.strip_prefix(" | ")) {
            for name in spans(row.split(" | ").next().unwrap()) {
                count += 1;
                let name = name.trim_start_matches("mod@");
                let is_there =
                    folder.join(name).is_dir() || folder.join(name).with_extension("rs").exists();
                assert!(is_there, "the head of {} names {name}", source.display());
            }
        }
    }
    assert!(count > 100, "found only {count}");
}

/// A text as one line, without the marks of comments.
fn unwrapped(text: &str) -> String {
    let marks = ['/', '!', ' '];
    let lines = text.lines().map(|line| line.trim_start_matches(marks));
    lines.collect::<Vec<_>>().join(" ")
}

/// A section belongs to the document that is named before it; "and", "to" or a comma go on with the one
/// before.
#[test]
fn every_document_that_the_code_cites_is_in_the_list() {
    let list = read("docs/specs.md");
    let rows = list.lines().filter(|line| line.starts_with("| `"));
    let names: Vec<&str> = rows
        .flat_map(|row| spans(row.split(" | ").next().unwrap()))
        .map(|name| name.trim_end_matches(['§', ' ']))
        .collect();
    let mut count = 0;
    for source in sources() {
        let text = unwrapped(&read(source.to_str().unwrap()));
        for (at, _) in text.match_indices(" §") {
            let before = &text[..at];
            let word = before.rsplit([' ', '(', '`', '"', '[']).next().unwrap();
            let is_name = |first: char| first.is_ascii_uppercase() || first.is_ascii_digit();
            if word.starts_with(is_name) && !word.ends_with([',', ';', ':', '.', ')', '*']) {
                count += 1;
                let is_listed = names.iter().any(|name| before.ends_with(name));
                let start = text.floor_char_boundary(at.saturating_sub(60));
                assert!(is_listed, "{}: {}", source.display(), &text[start..at]);
            }
        }
    }
    assert!(count > 500, "found only {count}");
}
