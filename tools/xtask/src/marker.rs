//! The marker lines that a board image prints for the host: `docs/demo-protocol.md`.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow};

/// Keys whose value runs to the end of the line.
const FREE_TEXT: [&str; 3] = ["path", "name", "reason"];

/// One marker line: a word, and values by key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    word: String,
    values: BTreeMap<String, String>,
}

impl Marker {
    /// Reads a console line; `None` where it is not a marker.
    pub fn parse(line: &str) -> Option<Self> {
        let line = line.trim_end_matches(['\r', '\n']).strip_prefix('@')?;
        let (word, mut rest) = line.split_once(' ').unwrap_or((line, ""));
        if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return None;
        }
        let mut values = BTreeMap::new();
        while !rest.trim_start().is_empty() {
            let (key, after) = rest.trim_start().split_once('=')?;
            let is_last_value = FREE_TEXT.contains(&key) && !is_plain_name(word, key);
            let (value, left) = if is_last_value {
                (after, "")
            } else {
                after.split_once(' ').unwrap_or((after, ""))
            };
            values.insert(key.to_owned(), value.to_owned());
            rest = left;
        }
        Some(Self {
            word: word.to_owned(),
            values,
        })
    }

    /// The word after the `@`.
    pub fn word(&self) -> &str {
        &self.word
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// When the line has no such key.
    pub fn value(&self, key: &str) -> Result<&str> {
        let value = self.values.get(key);
        value
            .map(String::as_str)
            .with_context(|| format!("@{} without {key}=", self.word))
    }

    /// The number of a key.
    ///
    /// # Errors
    ///
    /// When the line has no such key, or its value is no number.
    pub fn number<Number: FromStr>(&self, key: &str) -> Result<Number> {
        let value = self.value(key)?;
        value
            .parse()
            .map_err(|_| anyhow!("@{}: {key}={value} is no number", self.word))
    }

    /// The CRC-32 of the key `crc32`.
    ///
    /// # Errors
    ///
    /// When the line has none, or it is not hexadecimal.
    pub fn checksum(&self) -> Result<u32> {
        let value = self.value("crc32")?;
        u32::from_str_radix(value, 16)
            .map_err(|_| anyhow!("@{}: crc32={value} is no checksum", self.word))
    }

    /// The `reason`, or words for its absence.
    pub fn reason(&self) -> &str {
        self.value("reason").unwrap_or("no reason given")
    }
}

/// In `@perf`, `name` is the measurement's name: one word, and not the last key.
fn is_plain_name(word: &str, key: &str) -> bool {
    word == "perf" && key == "name"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_key_may_hold_spaces() {
        let marker = Marker::parse("@file disk=0 partition=1 bytes=12 path=/A b=c.TXT\r").unwrap();
        assert_eq!(marker.word(), "file");
        assert_eq!(marker.number::<u64>("bytes").unwrap(), 12);
        assert_eq!(marker.value("path").unwrap(), "/A b=c.TXT");
    }

    #[test]
    fn a_measurement_has_its_name_in_the_middle() {
        let marker = Marker::parse("@perf disk=0 name=random-read block=4096").unwrap();
        assert_eq!(marker.value("name").unwrap(), "random-read");
        assert_eq!(marker.number::<u32>("block").unwrap(), 4096);
    }

    #[test]
    fn ordinary_lines_are_no_markers() {
        for line in [
            "",
            "hello",
            "@",
            "@ tree",
            " @done result=ok",
            "@Done x=1",
            "mail@host",
        ] {
            assert_eq!(Marker::parse(line), None, "{line}");
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let marker = Marker::parse("@sum bytes=many crc32=xyz").unwrap();
        assert_eq!(
            marker.value("path").unwrap_err().to_string(),
            "@sum without path="
        );
        let error = marker.number::<u64>("bytes").unwrap_err();
        assert_eq!(error.to_string(), "@sum: bytes=many is no number");
        assert!(marker.checksum().is_err());
    }
}
