//! What the bench image prints: `@@B` and `@@E` lines around each load, markers beside them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use crate::marker::Marker;

/// What one load took.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// As in `rr4k.1`.
    pub name: String,
    values: BTreeMap<String, u64>,
}

impl Sample {
    /// Reads an `@@E` line; `None` where it is another one.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.trim_end().strip_prefix("@@E bare.")?.split(' ');
        let name = words.next()?.to_owned();
        let values = words
            .filter_map(|word| word.split_once('='))
            .filter_map(|(key, value)| Some((key.to_owned(), value.parse().ok()?)))
            .collect();
        Some(Self { name, values })
    }

    /// A value of the whole load.
    ///
    /// # Errors
    ///
    /// When the line has no such key.
    pub fn value(&self, key: &str) -> Result<u64> {
        let value = self.values.get(key).copied();
        value.with_context(|| format!("the line of {} has no {key}=", self.name))
    }

    /// A value divided by the requests.
    ///
    /// # Errors
    ///
    /// As [`Sample::value`].
    pub fn each(&self, key: &str) -> Result<f64> {
        Ok(self.value(key)? as f64 / self.value("n")?.max(1) as f64)
    }
}

/// Everything that one run printed.
#[derive(Clone, Debug, Default)]
pub struct Report {
    samples: Vec<Sample>,
    /// The marker lines.
    pub markers: Vec<Marker>,
}

impl Report {
    /// Takes a line of the console.
    ///
    /// # Errors
    ///
    /// When a load had errors, or the board failed.
    pub fn take(&mut self, line: &str) -> Result<()> {
        if let Some(sample) = Sample::parse(line) {
            let errors = sample.value("err")?;
            if errors != 0 {
                bail!("{errors} requests of {} failed", sample.name);
            }
            self.samples.push(sample);
        }
        let Some(marker) = Marker::parse(line) else {
            return Ok(());
        };
        if marker.word() == "fail" {
            bail!("the board failed: {}", marker.reason());
        }
        self.markers.push(marker);
        Ok(())
    }

    /// The load of that name.
    ///
    /// # Errors
    ///
    /// When the run had none.
    pub fn sample(&self, name: &str) -> Result<&Sample> {
        let found = self.samples.iter().find(|sample| sample.name == name);
        found.with_context(|| format!("the board did not say what {name} took"))
    }

    /// Whether there is a marker with this word.
    pub fn has(&self, word: &str) -> bool {
        self.markers.iter().any(|marker| marker.word() == word)
    }

    /// All loads.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The first marker with this word for which `key` is `value`.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn marker(&self, word: &str, key: &str, value: &str) -> Result<&Marker> {
        let is_it = |marker: &&Marker| {
            marker.word() == word && marker.value(key).is_ok_and(|found| found == value)
        };
        let found = self.markers.iter().find(is_it);
        found.with_context(|| format!("the board did not say @{word} {key}={value}"))
    }

    /// The value of `key` in the only marker with this word.
    ///
    /// # Errors
    ///
    /// When there is no such marker.
    pub fn number(&self, word: &str, key: &str) -> Result<u64> {
        let found = self.markers.iter().find(|marker| marker.word() == word);
        found
            .with_context(|| format!("the board did not say @{word}"))?
            .number(key)
    }
}

/// What a poll that finds nothing costs while a transfer is under way, with its wait: a slower disk has
/// more of them and nothing else.
///
/// # Errors
///
/// When the slower disk was no slower.
pub fn cost_of_waiting(fast: &Sample, slow: &Sample) -> Result<f64> {
    let (instructions, waits) = (fast.each("insn")?, fast.each("waits")?);
    let more = slow.each("waits")? - waits;
    if more < waits / 10.0 {
        bail!("the slower disk was no slower");
    }
    Ok((slow.each("insn")? - instructions) / more)
}

/// A polled load's cost without the polls that found nothing, each of which costs `waiting`. Of a request's
/// waits `bare` came without a poll before them: they are the request's own.
///
/// # Errors
///
/// When the sample is not of a load.
pub fn without_waiting(sample: &Sample, waiting: f64, bare: f64) -> Result<f64> {
    let waits = (sample.each("waits")? - bare).max(0.0);
    Ok(sample.each("insn")? - waits * waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_read_with_its_values_per_request() {
        let line = "@@E bare.rr4k.1 n=1000 bytes=4096000 cnt=625 insn=1500000 waits=7 err=0\r";
        let sample = Sample::parse(line).unwrap();
        assert_eq!(sample.name, "rr4k.1");
        assert_eq!(sample.each("insn").unwrap(), 1500.0);
        assert!(sample.value("copied").is_err());
        assert_eq!(Sample::parse("@@B bare.rr4k.1"), None);
    }

    #[test]
    fn a_load_with_errors_fails_the_run() {
        let mut report = Report::default();
        let error = report.take("@@E bare.rw4k.1 n=10 err=3").unwrap_err();
        assert_eq!(error.to_string(), "3 requests of rw4k.1 failed");
        assert!(report.take("@fail reason=no disk").is_err());
    }

    #[test]
    fn what_waiting_costs_is_told_by_a_slower_disk() {
        let sample = |line| Sample::parse(line).unwrap();
        let fast = sample("@@E bare.rr4k.1 n=10 insn=30000 waits=100 err=0");
        let slow = sample("@@E bare.rr4k.1 n=10 insn=40000 waits=200 err=0");
        let waiting = cost_of_waiting(&fast, &slow).unwrap();
        assert_eq!(waiting, 100.0);
        assert_eq!(without_waiting(&fast, waiting, 0.0).unwrap(), 2_000.0);
        assert_eq!(without_waiting(&fast, waiting, 1.0).unwrap(), 2_100.0);
        assert!(cost_of_waiting(&fast, &fast).is_err());
    }
}
