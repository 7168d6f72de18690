//! Long steps, shown with their elapsed time.
//!
//! On a terminal a step is a spinner; elsewhere (CI, a pipe) it is a line when it starts and one
//! when it ends. All of it goes to the standard error, the results to the standard output.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Steps shorter than this end without a line of their own where there is no terminal.
const WORTH_A_LINE: Duration = Duration::from_secs(1);

/// One step that may take long. Ends when it is dropped; [`Step::done`] says that it went well.
#[must_use]
pub struct Step {
    what: String,
    started: Instant,
    spinner: Option<ProgressBar>,
}

impl Step {
    /// Starts to show a step; `what` reads like "Installing qemu-system-arm".
    pub fn start(what: impl Into<String>) -> Self {
        let what = what.into();
        let spinner = stderr().is_terminal().then(|| spinner(&what));
        if spinner.is_none() {
            eprintln!("{what} ...");
        }
        Self {
            what,
            started: Instant::now(),
            spinner,
        }
    }

    /// Ends the step with a line that says how long it took.
    pub fn done(self) {
        let seconds = self.started.elapsed().as_secs_f32();
        let line = format!("{}: done in {seconds:.1} s", self.what);
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| eprintln!("{line}")),
            None if self.started.elapsed() >= WORTH_A_LINE => eprintln!("{line}"),
            None => {}
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

fn spinner(what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner()
        .with_style(style)
        .with_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Says one line about what is being done.
pub fn say(line: impl AsRef<str>) {
    eprintln!("{}", line.as_ref());
}
