//! The table, as Markdown: on the console and in `docs/performance.md`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::figures::{Figure, Limit, Part};
use crate::workspace;

/// The parts, with their headings.
const PARTS: [(Part, &str); 10] = [
    (Part::Cost, "Instructions of a request"),
    (Part::Poll, "Instructions of an empty poll"),
    (Part::Traffic, "Register accesses of a request"),
    (Part::Copies, "Copies"),
    (
        Part::Arrival,
        "From the start of the host to the first block",
    ),
    (Part::Memory, "Memory"),
    (Part::Ehci, "EHCI"),
    (Part::Uas, "UAS"),
    (Part::Beside, "Beside U-Boot, by the clock"),
    (
        Part::Time,
        "Time in the plain emulator, polling, with cache maintenance",
    ),
];

/// Lines of the document between which a part of it is written.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The line before.
    pub begin: &'static str,
    /// The line after.
    pub end: &'static str,
}

/// Where the table stands.
pub const PLACE: Place = Place {
    begin: "<!-- cargo xtask bench: begin -->",
    end: "<!-- cargo xtask bench: end -->",
};

/// The figures as a document's part.
pub fn render(figures: &[Figure]) -> String {
    let mut text = String::new();
    for (part, heading) in PARTS {
        let mut rows = figures
            .iter()
            .filter(|figure| figure.part == part)
            .peekable();
        if rows.peek().is_some() {
            text.push_str(&section(heading, rows));
        }
    }
    text
}

fn section<'f>(heading: &str, rows: impl Iterator<Item = &'f Figure>) -> String {
    let mut text =
        format!("### {heading}\n\n| what | measured | at most | |\n|---|---:|---:|---|\n");
    for row in rows {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", line(row));
    }
    text.push('\n');
    text
}

fn line(figure: &Figure) -> String {
    let (limit, verdict) = match figure.limit {
        None => (String::new(), ""),
        Some(limit) if figure.misses() => (words(limit), "**missed**"),
        Some(limit) => (words(limit), "reached"),
    };
    format!(
        "| {} | {} {} | {limit} | {verdict} |",
        figure.what,
        number(figure.value),
        figure.unit,
    )
}

/// A limit under the heading "at most".
fn words(limit: Limit) -> String {
    match limit {
        Limit::AtMost(limit) => number(limit),
        Limit::AtLeast(limit) => format!("at least {}", number(limit)),
    }
}

/// Whole from 100 on, else with a digit or two; thousands apart.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let part = part.trim_end_matches('0');
    let whole = thousands(whole);
    if part.is_empty() {
        whole
    } else {
        format!("{whole}.{part}")
    }
}

fn thousands(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index != 0 && (digits.len() - index).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Puts a part into its place in `docs/performance.md`, and gives back the document's path.
///
/// # Errors
///
/// When the document has no place for it, or can't be written.
pub fn write(place: &Place, table: &str) -> Result<PathBuf> {
    let path = workspace::root().join("docs/performance.md");
    let told = || path.display().to_string();
    let document = fs::read_to_string(&path).with_context(told)?;
    let document = replaced(&document, place, table).with_context(told)?;
    fs::write(&path, document).with_context(told)?;
    Ok(path)
}

fn replaced(document: &str, place: &Place, table: &str) -> Result<String> {
    let Place { begin, end } = place;
    let (Some((before, _)), Some((_, after))) =
        (document.split_once(begin), document.split_once(end))
    else {
        bail!("no lines {begin} and {end}");
    };
    Ok(format!("{before}{begin}\n\n{table}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        for (value, text) in [
            (1_234_567.8, "1,234,568"),
            (-1_500.0, "-1,500"),
            (-150.0, "-150"),
            (61.26, "61.3"),
            (3.0, "3"),
            (3.056, "3.06"),
            (0.0, "0"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_table_replaces_the_one_before_and_nothing_else() {
        let Place { begin, end } = PLACE;
        let document = format!("words\n{begin}\nold\n{end}\nmore words\n");
        let new = replaced(&document, &PLACE, "new\n").unwrap();
        assert_eq!(new, format!("words\n{begin}\n\nnew\n{end}\nmore words\n"));
        assert!(replaced("words", &PLACE, "new").is_err());
    }

    #[test]
    fn a_missed_limit_is_said_so() {
        let figure = Figure {
            part: Part::Poll,
            what: "empty poll".into(),
            value: 198.0,
            unit: "instructions",
            limit: Some(Limit::AtMost(60.0)),
        };
        assert_eq!(
            line(&figure),
            "| empty poll | 198 instructions | 60 | **missed** |"
        );
    }
}
