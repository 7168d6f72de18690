//! What a host did wrong, kept until somebody looks.
//!
//! Devices and the SCSI target record here; tests that provoke a fault take the entries. Invariant:
//! a violation that nobody took fails the test at the latest when the device and all its handles are
//! dropped.

use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Nanoseconds;

/// One rule that the host broke.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The section that says so, as in `BOT 1.0 §5.1`.
    pub section: &'static str,
    /// What the host did, in one sentence.
    pub text: String,
    /// When.
    pub at: Nanoseconds,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}: {} (at {} ns)",
            self.section, self.text, self.at
        )
    }
}

/// A list of violations that device, target and test share. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Violations {
    list: Arc<List>,
}

#[derive(Debug, Default)]
struct List {
    entries: Mutex<Vec<Violation>>,
}

impl Violations {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry.
    pub fn record(&self, now: Nanoseconds, section: &'static str, text: impl Into<String>) {
        self.entries().push(Violation {
            section,
            text: text.into(),
            at: now,
        });
    }

    /// What was recorded so far, oldest first; the list keeps it.
    #[must_use]
    pub fn all(&self) -> Vec<Violation> {
        self.entries().clone()
    }

    /// Takes all entries out: the caller has looked at them, so they no longer fail the test.
    #[must_use]
    pub fn take(&self) -> Vec<Violation> {
        core::mem::take(&mut *self.entries())
    }

    /// Takes all entries out and panics unless there is at least one and all name `section`.
    ///
    /// # Panics
    /// If there is none, or one of another section.
    pub fn expect_only(&self, section: &str) {
        let found = self.take();
        assert!(
            !found.is_empty(),
            "nothing was recorded, expected a violation of {section}"
        );
        for violation in &found {
            assert_eq!(
                violation.section, section,
                "an unexpected violation: {violation}"
            );
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Violation>> {
        self.list
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for List {
    fn drop(&mut self) {
        let entries = self
            .entries
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if entries.is_empty() {
            return;
        }
        let mut report = String::from("the host broke these rules:");
        for violation in entries.iter() {
            report.push_str(&format!("\n  {violation}"));
        }
        if std::thread::panicking() {
            eprintln!("{report}");
        } else {
            panic!("{report}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "BOT 1.0 §5.1: a CBW of 30 bytes (at 7 ns)")]
    fn a_violation_that_nobody_took_fails_the_test() {
        let violations = Violations::new();
        violations.record(7, "BOT 1.0 §5.1", "a CBW of 30 bytes");
    }

    #[test]
    fn taken_violations_are_the_callers_business() {
        let violations = Violations::new();
        violations
            .clone()
            .record(7, "BOT 1.0 §5.1", "a CBW of 30 bytes");
        assert_eq!(violations.all().len(), 1);
        violations.expect_only("BOT 1.0 §5.1");
        assert!(violations.take().is_empty());
    }

    #[test]
    #[should_panic(expected = "nothing was recorded")]
    fn expecting_a_violation_that_did_not_happen_fails() {
        Violations::new().expect_only("BOT 1.0 §5.1");
    }
}
