//! Everything that a board said in one run, from power-on to power-off.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::marker::Marker;
use crate::qemu::Machine;

/// How long a run may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Between two lines of the console.
    pub silence: Duration,
    /// From the start to the power-off.
    pub total: Duration,
}

impl Default for Patience {
    /// Policy: the board's own deadlines are below 30 seconds each; a busy CI machine doubles them.
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(60),
            total: Duration::from_secs(600),
        }
    }
}

/// Policy: from the last marker to QEMU's end there is nothing left to do.
const POWER_OFF_DEADLINE: Duration = Duration::from_secs(10);

/// The marker lines of a run that ended well.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    markers: Vec<Marker>,
}

impl Transcript {
    /// Listens until the board powers off.
    ///
    /// # Errors
    ///
    /// When the board says `@fail`, falls silent, takes too long, or ends without
    /// `@done result=ok`.
    pub fn of_run(machine: &mut Machine, patience: Patience) -> Result<Self> {
        let end = Instant::now() + patience.total;
        let mut transcript = Self::default();
        loop {
            let deadline = end.min(Instant::now() + patience.silence);
            let Some(line) = machine.console.next_line(deadline)? else {
                break;
            };
            let Some(marker) = Marker::parse(&line) else {
                continue;
            };
            if marker.word() == "fail" {
                bail!("the board failed: {}", marker.reason());
            }
            let last = marker.word() == "done";
            transcript.markers.push(marker);
            if last {
                machine.end_after_last_word()?;
            }
        }
        machine.wait_for_end(POWER_OFF_DEADLINE)?;
        transcript.expect_good_end()?;
        Ok(transcript)
    }

    fn expect_good_end(&self) -> Result<()> {
        match self.markers.last() {
            Some(last) if last.word() == "done" && last.value("result")? == "ok" => Ok(()),
            Some(last) => bail!(
                "the board stopped after @{} without @done result=ok",
                last.word()
            ),
            None => bail!("the board stopped without a word; see the console log"),
        }
    }

    /// All markers with this word, in their order.
    pub fn all<'a>(&'a self, word: &str) -> impl Iterator<Item = &'a Marker> {
        self.markers
            .iter()
            .filter(move |marker| marker.word() == word)
    }

    /// The markers with this word whose key has this value.
    pub fn with<'a>(
        &'a self,
        word: &str,
        key: &str,
        value: &str,
    ) -> impl Iterator<Item = &'a Marker> {
        self.all(word)
            .filter(move |marker| marker.value(key).is_ok_and(|found| found == value))
    }

    /// The same without what was said of other disks than the one with this number.
    #[must_use]
    pub fn of_disk(&self, number: u32) -> Self {
        let is_of_it = |marker: &&Marker| {
            let key = if marker.word() == "disk" {
                "number"
            } else {
                "disk"
            };
            let disk = marker.number::<u32>(key);
            disk.map_or(true, |disk| disk == number)
        };
        Self {
            markers: self.markers.iter().filter(is_of_it).cloned().collect(),
        }
    }

    /// The one marker with this word.
    ///
    /// # Errors
    ///
    /// When there is none, or several.
    pub fn only(&self, word: &str) -> Result<&Marker> {
        let mut found = self.all(word);
        let first = found
            .next()
            .with_context(|| format!("the board did not say @{word}"))?;
        match found.count() {
            0 => Ok(first),
            more => bail!("the board said @{word} {} times", more + 1),
        }
    }

    /// A transcript of given lines.
    #[cfg(test)]
    pub(crate) fn of_lines(text: &str) -> Self {
        Self {
            markers: text.lines().filter_map(Marker::parse).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_that_says_done_has_ended_well() {
        Transcript::of_lines("@boot level=1\n@done result=ok")
            .expect_good_end()
            .unwrap();
        for bad in [
            "",
            "@boot level=1",
            "@done result=no",
            "@done result=ok\n@gone disk=0",
        ] {
            assert!(
                Transcript::of_lines(bad).expect_good_end().is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn what_is_of_one_disk_is_kept_with_what_is_of_none() {
        let both = "@boot level=1\n@disk number=0\n@disk number=1\n@sum disk=0\n@sum disk=1";
        let second = Transcript::of_lines(both).of_disk(1);
        assert!(second.only("boot").is_ok());
        assert_eq!(second.only("disk").unwrap().value("number").unwrap(), "1");
        assert_eq!(second.only("sum").unwrap().value("disk").unwrap(), "1");
    }

    #[test]
    fn what_must_be_there_once_is_neither_missed_nor_doubled() {
        let transcript = Transcript::of_lines("@disk number=0\n@disk number=1\n@boot level=1");
        transcript.only("boot").unwrap();
        let doubled = transcript.only("disk").unwrap_err();
        assert_eq!(doubled.to_string(), "the board said @disk 2 times");
        assert!(transcript.only("sum").is_err());
    }
}
