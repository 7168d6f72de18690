//! The machine's own apt sources, read to learn which mirror it uses.
//!
//! Both forms of apt's `sources.list(5)` are read: one-line files (`*.list`) and deb822 stanzas
//! (`*.sources`). Nothing here writes to them.

use std::fs;
use std::path::Path;

/// One archive that the machine is set up for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The base address.
    pub(super) uri: String,
    /// The path of the keyring that signs it, if the source names one.
    pub(super) signed_by: Option<String>,
    suites: Vec<String>,
    components: Vec<String>,
}

impl Source {
    /// A source in apt's deb822 form for one other suite of the same archive, component `main`.
    pub(super) fn stanza(&self, suite: &str) -> String {
        let signed_by = self
            .signed_by
            .as_ref()
            .map_or(String::new(), |key| format!("Signed-By: {key}\n"));
        format!(
            "Types: deb\nURIs: {}\nSuites: {suite}\nComponents: main\n{signed_by}",
            self.uri
        )
    }

    /// Whether this is the distribution's main archive, and not updates, security or a vendor's.
    fn is_main_archive(&self, codename: &str) -> bool {
        let has = |list: &[String], word: &str| list.iter().any(|item| item == word);
        has(&self.suites, codename) && has(&self.components, "main")
    }
}

/// The main archives among the sources below `etc` (`/etc`), in the order of their files.
pub(super) fn main_archives(etc: &Path) -> Vec<Source> {
    let Some(codename) = codename(&etc.join("os-release")) else {
        return Vec::new();
    };
    let mut files = vec![etc.join("apt/sources.list")];
    if let Ok(entries) = fs::read_dir(etc.join("apt/sources.list.d")) {
        files.extend(entries.flatten().map(|entry| entry.path()));
    }
    files.sort();
    let mut archives = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        let sources = match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => one_line_sources(&text),
            Some("sources") => stanza_sources(&text),
            _ => continue,
        };
        archives.extend(
            sources
                .into_iter()
                .filter(|source| source.is_main_archive(&codename)),
        );
    }
    archives
}

fn codename(os_release: &Path) -> Option<String> {
    let text = fs::read_to_string(os_release).ok()?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    Some(value.trim_matches('"').to_owned())
}

/// `deb [signed-by=KEY other=x] URI SUITE COMPONENT…`, a line each.
fn one_line_sources(text: &str) -> Vec<Source> {
    text.lines().filter_map(one_line_source).collect()
}

fn one_line_source(line: &str) -> Option<Source> {
    let line = line.split('#').next()?.trim();
    let rest = line.strip_prefix("deb ")?.trim();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(bracket) => bracket.split_once(']')?,
        None => ("", rest),
    };
    let signed_by = options
        .split_whitespace()
        .find_map(|option| option.strip_prefix("signed-by="))
        .map(str::to_owned);
    let mut words = rest.split_whitespace().map(str::to_owned);
    Some(Source {
        uri: words.next()?,
        signed_by,
        suites: vec![words.next()?],
        components: words.collect(),
    })
}

/// Stanzas of `Field: value` lines, separated by empty lines.
fn stanza_sources(text: &str) -> Vec<Source> {
    let without_comments: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::trim_end)
        .collect();
    without_comments
        .split(|line| line.is_empty())
        .flat_map(stanza_source)
        .collect()
}

fn stanza_source(lines: &[&str]) -> Vec<Source> {
    let words = |field: &str| -> Vec<String> {
        let value = lines.iter().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(field).then_some(value)
        });
        value
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    };
    let is_off = words("Enabled").first().is_some_and(|word| word == "no");
    if is_off || !words("Types").iter().any(|word| word == "deb") {
        return Vec::new();
    }
    // A key written into the stanza itself goes on in indented lines: that is no path.
    let signed_by = words("Signed-By")
        .into_iter()
        .next()
        .filter(|key| key.starts_with('/'));
    let source = |uri| Source {
        uri,
        signed_by: signed_by.clone(),
        suites: words("Suites"),
        components: words("Components"),
    };
    words("URIs").into_iter().map(source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn etc_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let etc = tempfile::tempdir().unwrap();
        fs::create_dir_all(etc.path().join("apt/sources.list.d")).unwrap();
        fs::write(
            etc.path().join("os-release"),
            "NAME=x\nVERSION_CODENAME=bookworm\n",
        )
        .unwrap();
        for (name, text) in files {
            fs::write(etc.path().join("apt").join(name), text).unwrap();
        }
        etc
    }

    #[test]
    fn the_mirror_of_a_stanza_is_found_and_its_key_kept() {
        let etc = etc_with(&[(
            "sources.list.d/debian.sources",
            "Types: deb\n# a remark\nURIs: http://mirror/debian\nSuites: bookworm bookworm-updates\n\
             Components: main\nSigned-By: /usr/share/keyrings/archive.gpg\n\n\
             Types: deb\nURIs: http://mirror/security\nSuites: bookworm-security\nComponents: main\n",
        )]);
        let archives = main_archives(etc.path());
        assert_eq!(archives.len(), 1);
        assert_eq!(
            archives[0].stanza("trixie-backports"),
            "Types: deb\nURIs: http://mirror/debian\nSuites: trixie-backports\nComponents: main\n\
             Signed-By: /usr/share/keyrings/archive.gpg\n"
        );
    }

    #[test]
    fn the_mirror_of_a_one_line_source_is_found() {
        let etc = etc_with(&[(
            "sources.list",
            "# deb http://off/debian bookworm main\n\
             deb-src http://source/debian bookworm main\n\
             deb [arch=amd64 signed-by=/k.gpg] http://mirror/debian bookworm main contrib\n",
        )]);
        let archives = main_archives(etc.path());
        assert_eq!(archives.len(), 1);
        assert_eq!(archives[0].uri, "http://mirror/debian");
        assert_eq!(archives[0].signed_by.as_deref(), Some("/k.gpg"));
    }

    #[test]
    fn vendors_disabled_and_source_only_stanzas_are_left_out() {
        let etc = etc_with(&[
            (
                "sources.list.d/a.list",
                "deb http://vendor/apt stable main\n",
            ),
            (
                "sources.list.d/b.list",
                "deb http://vendor/apt bookworm stable\n",
            ),
            (
                "sources.list.d/c.sources",
                "Enabled: no\nTypes: deb\nURIs: http://off\nSuites: bookworm\nComponents: main\n\n\
                 Types: deb-src\nURIs: http://src\nSuites: bookworm\nComponents: main\n",
            ),
        ]);
        assert_eq!(main_archives(etc.path()), []);
    }

    #[test]
    fn a_machine_without_a_code_name_has_no_archives() {
        let etc = etc_with(&[("sources.list", "deb http://mirror/debian bookworm main\n")]);
        fs::write(etc.path().join("os-release"), "NAME=x\n").unwrap();
        assert_eq!(main_archives(etc.path()), []);
    }
}
