//! Imports in the library go down, never up.
//!
//! The table below is the rule: for each room, the rooms that it may import from. A path that starts
//! with `crate::`, or with enough `super::` to leave its room, counts as an import wherever it stands;
//! words in docs do not. Naming a room that is not in the table is a finding too, so that a new room
//! gets its line here.

use std::path::Path;

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};

use super::{Finding, scan};

/// A room: modules of the library that share a place in the order.
struct Room {
    name: &'static str,
    /// Its modules, as paths below the crate's root. The longest path decides.
    modules: &'static [&'static str],
    /// The rooms that it may import from, besides itself.
    below: &'static [&'static str],
}

/// From the top down. `scsi` looks *up* to `block`, whose requests it turns into commands, and
/// `storage` to `scsi`, whose commands it carries: in both the owner of the words is the lower one.
/// `stack` alone sees them all: it carries what one reports to the next.
const ROOMS: [Room; 15] = [
    Room {
        name: "stack",
        modules: &["stack"],
        below: &[
            "storage",
            "quirks",
            "scsi",
            "block",
            "usb",
            "host",
            "usb words",
            "policy",
            "platform",
            "dma",
            "mmio",
            "time",
            "trace",
            "bytes",
        ],
    },
    Room {
        name: "storage",
        modules: &["storage"],
        below: &[
            "quirks",
            "scsi",
            "block",
            "usb",
            "policy",
            "host",
            "usb words",
            "platform",
            "dma",
            "mmio",
            "time",
            "trace",
            "bytes",
        ],
    },
    Room {
        name: "scsi",
        modules: &["scsi"],
        below: &[
            "quirks", "block", "policy", "platform", "dma", "time", "trace", "bytes",
        ],
    },
    // What devices need, by its names: bring-up honours it as the transports do.
    Room {
        name: "quirks",
        modules: &["storage::quirks"],
        below: &["usb words", "bytes"],
    },
    Room {
        name: "block",
        modules: &["block"],
        below: &["dma", "time", "trace", "bytes"],
    },
    Room {
        name: "usb",
        modules: &["usb"],
        below: &[
            "host",
            "usb words",
            "platform",
            "dma",
            "mmio",
            "time",
            "trace",
            "bytes",
        ],
    },
    Room {
        name: "host",
        modules: &["host"],
        below: &[
            "usb words",
            "platform",
            "dma",
            "mmio",
            "arch",
            "time",
            "trace",
            "bytes",
        ],
    },
    // What the specification's chapter 9 calls things: the controllers speak of them too.
    Room {
        name: "usb words",
        modules: &["usb::descriptor", "usb::setup", "usb::speed"],
        below: &["bytes"],
    },
    Room {
        name: "soc",
        modules: &["soc"],
        below: &["platform", "dma", "mmio", "arch", "time", "trace", "bytes"],
    },
    Room {
        name: "policy",
        modules: &["policy"],
        below: &["time"],
    },
    Room {
        name: "platform",
        modules: &["platform"],
        below: &["dma", "mmio", "arch", "time", "trace", "bytes"],
    },
    Room {
        name: "dma",
        modules: &["dma"],
        below: &["arch", "bytes"],
    },
    Room {
        name: "mmio",
        modules: &["mmio"],
        below: &["arch", "bytes"],
    },
    Room {
        name: "arch",
        modules: &["arch"],
        below: &[],
    },
    Room {
        name: "words of all",
        modules: &["bytes", "text", "time", "trace"],
        below: &[],
    },
];

/// Every import of the library that goes up.
///
/// # Errors
///
/// When a file can't be read.
pub fn findings(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for source in scan::sources(root, "src")? {
        let module = module_path(&source.file);
        // The root of the crate is the table of contents: it names every room.
        if module.is_empty() {
            continue;
        }
        let mut imports = Vec::new();
        collect(source.tokens, &module, &mut imports);
        findings.extend(
            imports
                .into_iter()
                .filter_map(|import| judge(&source.file, &module, import)),
        );
    }
    Ok(findings)
}

/// A path of at least one name below the crate's root.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Import {
    path: Vec<String>,
    line: usize,
}

fn judge(file: &str, module: &[String], import: Import) -> Option<Finding> {
    let finding = |what| {
        Some(Finding {
            file: file.to_owned(),
            line: import.line,
            what,
        })
    };
    let path = import.path.join("::");
    let Some(from) = room_of(module) else {
        return finding(format!(
            "the module {} is in no room: give it its line in tools/xtask/src/check/layers.rs",
            module.join("::")
        ));
    };
    let Some(to) = room_of(&import.path) else {
        return finding(format!(
            "crate::{path} is in no room: name the module that it lives in, or give a new room its \
             line in tools/xtask/src/check/layers.rs"
        ));
    };
    if from.name == to.name || from.below.iter().any(|name| is_named(to, name)) {
        return None;
    }
    finding(format!(
        "{} must not import crate::{path}: {} may use {}",
        module.join("::"),
        from.name,
        from.below.join(", ")
    ))
}

/// A room goes by its own name or by that of one of its modules.
fn is_named(room: &Room, name: &str) -> bool {
    room.name == name || room.modules.contains(&name)
}

fn room_of(path: &[String]) -> Option<&'static Room> {
    let covers = |module: &str| {
        let mut names = path.iter();
        module
            .split("::")
            .all(|name| names.next().is_some_and(|found| found == name))
    };
    let length = |room: &Room| {
        room.modules
            .iter()
            .filter(|module| covers(module))
            .map(|module| module.len())
            .max()
    };
    ROOMS
        .iter()
        .filter(|room| length(room).is_some())
        .max_by_key(|room| length(room))
}

/// `src/usb/hub/mod.rs` is `usb::hub`; the root of the crate is the empty path.
fn module_path(file: &str) -> Vec<String> {
    let inner = file.trim_start_matches("src/").trim_end_matches(".rs");
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    match inner {
        "lib" | "mod" => Vec::new(),
        path => path.split('/').map(str::to_owned).collect(),
    }
}

fn collect(tokens: TokenStream, module: &[String], imports: &mut Vec<Import>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut place = 0;
    while let Some(token) = tokens.get(place) {
        match token {
            TokenTree::Ident(word) if word == "mod" => {
                if let [TokenTree::Ident(name), TokenTree::Group(body), ..] = &tokens[place + 1..] {
                    let inner = [module, &[name.to_string()]].concat();
                    collect(body.stream(), &inner, imports);
                    place += 2;
                }
            }
            TokenTree::Ident(word) if word == "crate" || word == "super" => {
                place += collect_path(&tokens[place..], module, imports);
                continue;
            }
            TokenTree::Group(group) => collect(group.stream(), module, imports),
            _ => {}
        }
        place += 1;
    }
}

/// Reads a path that starts with `crate` or `super`; gives back how many tokens to pass over. A
/// group at its end is left to the caller unless it belongs to the path.
fn collect_path(tokens: &[TokenTree], module: &[String], imports: &mut Vec<Import>) -> usize {
    let mut base = module.to_vec();
    let mut place = 0;
    loop {
        match tokens.get(place) {
            Some(TokenTree::Ident(word)) if word == "crate" => base.clear(),
            Some(TokenTree::Ident(word)) if word == "super" => {
                base.pop();
            }
            _ => break,
        }
        if !is_path_separator(&tokens[place + 1..]) {
            return place + 1;
        }
        place += 3;
    }
    place + collect_tree(&tokens[place..], &base, imports)
}

/// Reads what follows a path separator: a name with more behind it, or a group of such trees.
fn collect_tree(tokens: &[TokenTree], base: &[String], imports: &mut Vec<Import>) -> usize {
    match tokens.first() {
        Some(TokenTree::Ident(name)) => {
            let path = [base, &[name.to_string()]].concat();
            if is_path_separator(&tokens[1..]) && path.len() < 2 {
                return 3 + collect_tree(&tokens[3..], &path, imports);
            }
            imports.push(Import {
                path,
                line: name.span().start().line,
            });
            1
        }
        Some(TokenTree::Group(group)) => {
            let inner: Vec<_> = group.stream().into_iter().collect();
            let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ',');
            for tree in inner.split(is_comma) {
                collect_tree(tree, base, imports);
            }
            1
        }
        // A glob: all of what is named so far.
        Some(TokenTree::Punct(mark)) if mark.as_char() == '*' && !base.is_empty() => {
            imports.push(Import {
                path: base.to_vec(),
                line: mark.span().start().line,
            });
            1
        }
        _ => 0,
    }
}

fn is_path_separator(tokens: &[TokenTree]) -> bool {
    let is_colon =
        |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ':');
    matches!(tokens, [first, second, ..] if is_colon(first) && is_colon(second))
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    fn imports_of(text: &str, module: &str) -> Vec<String> {
        let module: Vec<_> = module.split("::").map(str::to_owned).collect();
        let mut imports = Vec::new();
        collect(TokenStream::from_str(text).unwrap(), &module, &mut imports);
        imports
            .into_iter()
            .map(|import| import.path.join("::"))
            .collect()
    }

    fn findings_in(file: &str, text: &str) -> Vec<Finding> {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        findings(root.path()).unwrap()
    }

    #[test]
    fn paths_are_found_in_use_trees_expressions_and_macros() {
        let text = "use crate::{dma::{Pool, region::X}, time};\nfn a() { crate::arch::hint(); }\n\
                    m!(crate::mmio::Bus);";
        assert_eq!(
            imports_of(text, "usb"),
            [
                "dma::Pool",
                "dma::region",
                "time",
                "arch::hint",
                "mmio::Bus"
            ]
        );
    }

    #[test]
    fn super_is_followed_out_of_its_room_and_through_inline_modules() {
        assert_eq!(imports_of("use super::host::A;", "usb"), ["host::A"]);
        assert_eq!(
            imports_of("use super::speed::A;", "usb::hub"),
            ["usb::speed"]
        );
        assert_eq!(
            imports_of(
                "mod tests { use super::*; use super::super::host::A; }",
                "usb"
            ),
            ["usb", "host::A"]
        );
    }

    #[test]
    fn visibilities_and_docs_are_no_imports() {
        assert!(
            imports_of(
                "/// crate::usb::x\npub(crate) fn a() {} pub(super) fn b() {}",
                "dma"
            )
            .is_empty()
        );
    }

    #[test]
    fn an_upward_import_is_found_with_its_place() {
        let findings = findings_in("src/dma/pool.rs", "\nuse crate::usb::hub::Hub;\n");
        assert_eq!(findings.len(), 1);
        assert_eq!(
            (findings[0].file.as_str(), findings[0].line),
            ("src/dma/pool.rs", 2)
        );
        assert_eq!(
            findings[0].what,
            "dma::pool must not import crate::usb::hub: dma may use arch, bytes"
        );
    }

    #[test]
    fn controllers_may_use_the_words_of_usb_but_not_its_machinery() {
        assert_eq!(
            findings_in("src/host/types.rs", "use crate::usb::speed::Speed;"),
            []
        );
        assert_eq!(
            findings_in("src/host/types.rs", "use crate::usb::hub::Hub;").len(),
            1
        );
        assert_eq!(
            findings_in("src/usb/speed.rs", "use crate::usb::hub::Hub;").len(),
            1
        );
    }

    #[test]
    fn a_disk_implements_the_block_trait_and_never_the_other_way_round() {
        assert_eq!(
            findings_in("src/scsi/disk.rs", "use crate::block::BlockDevice;"),
            []
        );
        assert_eq!(
            findings_in("src/block/queue.rs", "use crate::scsi::disk::Disk;").len(),
            1
        );
        assert_eq!(
            findings_in("src/scsi/disk.rs", "use crate::storage::bot;").len(),
            1
        );
    }

    #[test]
    fn a_new_room_and_a_name_from_the_root_ask_for_their_place() {
        assert_eq!(
            findings_in("src/net/mod.rs", "use crate::dma::Pool;").len(),
            1
        );
        let findings = findings_in("src/usb/hub.rs", "use crate::Platform;");
        assert!(
            findings[0]
                .what
                .starts_with("crate::Platform is in no room")
        );
    }

    #[test]
    fn the_page_about_the_rooms_has_the_same_table() {
        let page = crate::workspace::root().join("docs/architecture.md");
        let page = std::fs::read_to_string(page).unwrap();
        let common = ["bytes", "time", "trace"];
        for room in ROOMS.iter().filter(|room| room.name != "words of all") {
            let start = format!("| `{}` |", room.name);
            let row = page.lines().find(|line| line.starts_with(&start));
            let mut named: Vec<_> = row.unwrap()[start.len()..].split('`').collect();
            named.retain(|word| ROOMS.iter().any(|room| is_named(room, word)));
            let below = room.below.iter().copied();
            let below: Vec<_> = below.filter(|name| !common.contains(name)).collect();
            assert_eq!(named, below, "{}", room.name);
        }
    }

    #[test]
    fn every_room_that_the_table_names_is_in_it() {
        for room in &ROOMS {
            for name in room.below {
                assert!(ROOMS.iter().any(|room| is_named(room, name)), "{name}");
            }
        }
    }
}
