//! The board's serial console, read as it comes and searched with deadlines.
//!
//! A thread of its own reads all that the board sends, so that a board never waits for us. What was
//! searched is behind a cursor and is not found again.

use std::fs::File;
use std::io::{Read, Write, stdout};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How many of the last lines an error quotes.
const QUOTED_LINES: usize = 3;

/// Whether the console is shown while it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// It is copied to our standard output.
    On,
    /// It goes to the log only.
    Off,
}

/// The serial console of a running board.
pub struct Console {
    shared: Arc<Shared>,
    input: ChildStdin,
    cursor: usize,
}

#[derive(Default)]
struct Shared {
    received: Mutex<Received>,
    changed: Condvar,
}

#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Console {
    pub(super) fn new(child: &mut Child, log: File, echo: Echo) -> Result<Self> {
        let input = child.stdin.take().context("the emulator has no input")?;
        let output = child.stdout.take().context("the emulator has no output")?;
        let shared = Arc::new(Shared::default());
        let of_reader = Arc::clone(&shared);
        std::thread::spawn(move || read_all(output, &of_reader, log, echo));
        Ok(Self {
            shared,
            input,
            cursor: 0,
        })
    }

    /// Waits until `pattern` comes, and gives back the text up to its end.
    ///
    /// # Errors
    ///
    /// When the console ends first, or `within` is over; the last lines are quoted.
    pub fn wait_for(&mut self, pattern: &str, within: Duration) -> Result<String> {
        let deadline = Instant::now() + within;
        let found = self.wait(deadline, |unread, _ended| {
            let start = unread
                .windows(pattern.len())
                .position(|window| window == pattern.as_bytes());
            start.map(|start| start + pattern.len())
        });
        match found {
            Some(text) => Ok(text),
            None => bail!("{pattern:?} did not come{}", self.quotation()),
        }
    }

    /// Waits for the next full line, without its end. `None` when the console has ended.
    ///
    /// # Errors
    ///
    /// When neither comes before the deadline; the last lines are quoted.
    pub fn next_line(&mut self, deadline: Instant) -> Result<Option<String>> {
        let line = self.wait(deadline, |unread, ended| {
            let end = unread
                .iter()
                .position(|&byte| byte == b'\n')
                .map(|end| end + 1);
            end.or(ended.then_some(unread.len()))
        });
        match line {
            Some(line) if line.is_empty() => Ok(None),
            Some(line) => Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned())),
            None => bail!("the console is silent{}", self.quotation()),
        }
    }

    /// Sends text to the board.
    ///
    /// # Errors
    ///
    /// When the emulator has ended.
    pub fn send(&mut self, text: &str) -> Result<()> {
        let sent = self
            .input
            .write_all(text.as_bytes())
            .and_then(|()| self.input.flush());
        sent.context("the console takes no more input")
    }

    /// Everything that has come so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.shared.lock().bytes).into_owned()
    }

    /// Waits until `find` says how many of the unread bytes to take. `None` at the deadline, or
    /// when the console has ended without it.
    fn wait(
        &mut self,
        deadline: Instant,
        find: impl Fn(&[u8], bool) -> Option<usize>,
    ) -> Option<String> {
        let mut received = self.shared.lock();
        loop {
            let unread = received.bytes.get(self.cursor..).unwrap_or_default();
            if let Some(length) = find(unread, received.ended) {
                let taken = unread.get(..length).unwrap_or(unread);
                let text = String::from_utf8_lossy(taken).into_owned();
                self.cursor += taken.len();
                return Some(text);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            if received.ended {
                return None;
            }
            let woken = self.shared.changed.wait_timeout(received, left);
            received = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn quotation(&self) -> String {
        let text = self.text();
        let lines: Vec<_> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let last = lines
            .get(lines.len().saturating_sub(QUOTED_LINES)..)
            .unwrap_or_default();
        match last {
            [] => "; the console said nothing".to_owned(),
            last => format!("; the console's last words: {}", last.join(" | ")),
        }
    }
}

fn read_all(mut output: ChildStdout, shared: &Shared, mut log: File, echo: Echo) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = output.read(&mut buffer) {
        let piece = buffer.get(..length).unwrap_or_default();
        shared.lock().bytes.extend_from_slice(piece);
        shared.changed.notify_all();
        // The log and the echo are for people: failing to write them fails nothing else.
        let _ = log.write_all(piece);
        if echo == Echo::On {
            let _ = stdout().write_all(piece).and_then(|()| stdout().flush());
        }
    }
    shared.lock().ended = true;
    shared.changed.notify_all();
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn console_of(script: &str) -> (Console, Child) {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let console = Console::new(&mut child, tempfile::tempfile().unwrap(), Echo::Off).unwrap();
        (console, child)
    }

    #[test]
    fn a_prompt_without_a_line_end_is_found_and_answered() {
        let (mut console, mut child) = console_of("printf 'boot\\n=> '; read word; echo got $word");
        assert_eq!(console.wait_for("=> ", SOON).unwrap(), "boot\n=> ");
        console.send("run\n").unwrap();
        console.wait_for("got run", SOON).unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn lines_come_one_by_one_and_then_the_end() {
        let (mut console, mut child) = console_of("printf 'one\\r\\ntwo'");
        let deadline = Instant::now() + SOON;
        assert_eq!(console.next_line(deadline).unwrap().as_deref(), Some("one"));
        assert_eq!(console.next_line(deadline).unwrap().as_deref(), Some("two"));
        assert_eq!(console.next_line(deadline).unwrap(), None);
        child.wait().unwrap();
    }

    #[test]
    fn what_does_not_come_ends_with_the_last_words() {
        let (mut console, mut child) = console_of("echo Panic; echo at line 3");
        let error = console.wait_for("@done", SOON).unwrap_err().to_string();
        assert_eq!(
            error,
            "\"@done\" did not come; the console's last words: Panic | at line 3"
        );
        child.wait().unwrap();
    }

    #[test]
    fn silence_ends_at_the_deadline() {
        let (mut console, mut child) = console_of("exec sleep 60");
        let deadline = Instant::now() + Duration::from_millis(50);
        let error = console.next_line(deadline).unwrap_err().to_string();
        assert_eq!(error, "the console is silent; the console said nothing");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
