//! What disks reach on the timed models, beside what people published for real ones.
//!
//! The figures are `tests/throughput`'s, whose tests hold their limits; this takes its table over.

use anyhow::{Result, ensure};

use super::table::Place;
use crate::command;

/// Where the tables stand in the document.
pub const PLACE: Place = Place {
    begin: "<!-- cargo xtask bench, timed models: begin -->",
    end: "<!-- cargo xtask bench, timed models: end -->",
};

/// Runs the models and gives back their tables, as Markdown.
///
/// # Errors
///
/// When the test program does not build, or misses one of its own limits.
pub fn measure() -> Result<String> {
    let mut command = command::cargo();
    command.args([
        "test",
        "--package",
        "rootport",
        "--test",
        "throughput",
        "--",
    ]);
    command.args(["--nocapture", "--test-threads=1"]);
    let output = command::quiet(&mut command, "throughput")?;
    let text = tables(&output);
    ensure!(!text.is_empty(), "the test program printed no table");
    Ok(text)
}

/// The lines of headings and tables among a test program's own.
fn tables(output: &str) -> String {
    let mut text = String::new();
    for line in output.lines() {
        // The first test's name may stand before the first heading.
        let line = line.find("### ").map_or(line, |at| &line[at..]);
        if line.starts_with('#') {
            let apart = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{apart}{line}\n\n"));
        } else if line.starts_with('|') {
            text.push_str(&format!("{line}\n"));
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::tables;

    #[test]
    fn headings_and_rows_are_taken_and_the_harness_s_words_are_not() {
        let output = "running 2 tests\ntest a ... ### One\n\n| a |\n|---|\n### Two\n\n| b |\nok\n";
        let expected = "### One\n\n| a |\n|---|\n\n### Two\n\n| b |\n\n";
        assert_eq!(tables(output), expected);
        assert_eq!(tables("ok"), "");
    }
}
