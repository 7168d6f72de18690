//! QEMU's control socket: JSON commands, replies and events, a line each (QMP).

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Policy: QEMU answers commands from its main loop, at once unless the machine is overloaded.
const REPLY_DEADLINE: Duration = Duration::from_secs(20);

/// A connection that has been through the greeting.
pub struct Qmp {
    stream: BufReader<UnixStream>,
    events: VecDeque<Value>,
}

impl Qmp {
    pub(super) fn connect(socket: &Path) -> Result<Self> {
        let stream = BufReader::new(UnixStream::connect(socket)?);
        let mut qmp = Self {
            stream,
            events: VecDeque::new(),
        };
        let greeting = qmp.read(Instant::now() + REPLY_DEADLINE)?;
        if greeting.get("QMP").is_none() {
            bail!("the control socket greets with {greeting}");
        }
        qmp.execute("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Executes a command and gives back what it returns.
    ///
    /// # Errors
    ///
    /// When QEMU refuses it (with its words), or does not answer.
    pub fn execute(&mut self, command: &str, arguments: Value) -> Result<Value> {
        self.send(command, arguments)?;
        let deadline = Instant::now() + REPLY_DEADLINE;
        loop {
            let message = self.read(deadline)?;
            if let Some(error) = message.get("error") {
                let words = error
                    .get("desc")
                    .and_then(Value::as_str)
                    .unwrap_or("refused");
                bail!("QEMU refuses {command}: {words}");
            }
            match message.get("return") {
                Some(value) => return Ok(value.clone()),
                None => self.events.push_back(message),
            }
        }
    }

    /// Has the emulator end. It may be gone before its answer is.
    ///
    /// # Errors
    ///
    /// When it has ended before.
    pub fn quit(&mut self) -> Result<()> {
        self.send("quit", json!({}))
    }

    fn send(&mut self, command: &str, arguments: Value) -> Result<()> {
        let mut line = json!({ "execute": command, "arguments": arguments }).to_string();
        line.push('\n');
        let stream = self.stream.get_mut();
        stream.write_all(line.as_bytes()).context("QEMU has ended")
    }

    /// Waits for an event of that name whose data `fits`; other events are dropped.
    ///
    /// # Errors
    ///
    /// When it does not come within `within`.
    pub fn wait_for_event(
        &mut self,
        name: &str,
        fits: impl Fn(&Value) -> bool,
        within: Duration,
    ) -> Result<()> {
        let deadline = Instant::now() + within;
        loop {
            let event = match self.events.pop_front() {
                Some(event) => event,
                None => self
                    .read(deadline)
                    .with_context(|| format!("waiting for {name}"))?,
            };
            if event["event"] == name && fits(&event["data"]) {
                return Ok(());
            }
        }
    }

    fn read(&mut self, deadline: Instant) -> Result<Value> {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = left.max(Duration::from_millis(1));
        self.stream.get_ref().set_read_timeout(Some(left))?;
        let mut line = String::new();
        let length = self
            .stream
            .read_line(&mut line)
            .context("QEMU does not answer")?;
        if length == 0 {
            bail!("QEMU has ended");
        }
        serde_json::from_str(&line).with_context(|| format!("QEMU says {line}"))
    }
}
