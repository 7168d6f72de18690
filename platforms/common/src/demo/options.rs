//! What the host wants, out of the kernel command line (`docs/demo-protocol.md`).

use rootport::policy::Queueing;

use crate::bench::workload::Load;
use crate::power::Reason;

/// What the image does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Everything, with writes to the scratch partition and one new file.
    #[default]
    Demo,
    /// The reading part of it.
    Read,
    /// The first bytes of each disk, summed up.
    Raw,
    /// Reads for a while, whatever disks come and go.
    Endure,
    /// What the stack costs; writes to the whole first disk.
    Bench,
    /// What reads cost that go to several disks at once, at several depths.
    Spread,
    /// No USB at all.
    Hello,
    /// Blocks one by one, whatever errors there are.
    Scan,
    /// A pattern written and read back, wherever the host says.
    Pattern,
    /// The same in small pieces, with buffers at every place in a cache line.
    Offsets,
    /// Blocks unmapped, and others filled by WRITE SAME, wherever the host says.
    Discard,
    /// A panic on purpose, while a disk is read.
    Panic,
    /// A fault on purpose.
    Fault,
}

impl Mode {
    /// Whether it may write to disks.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(
            self,
            Self::Demo | Self::Bench | Self::Pattern | Self::Offsets | Self::Discard
        )
    }
}

/// Whether the stack keeps caches and devices in step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coherency {
    /// Hardware does: no cache maintenance. The machine must really be so.
    Hardware,
    /// The stack does, as the boards need it; also where it would not be due.
    #[default]
    Maintained,
}

/// How the stack is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exit {
    /// Everything is flushed and stopped.
    #[default]
    Shutdown,
    /// Nothing is: to show that the next stage notices.
    Running,
}

/// Where the image's buffers for transfers lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// In the image.
    #[default]
    Image,
    /// In RAM above 4 GiB.
    High,
}

/// How a wait for a disk is spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// Asleep, until a controller interrupts.
    #[default]
    Asleep,
    /// Polling: no interrupt of a controller is used.
    Polling,
    /// The same, with a short sleep between two polls.
    Dozing,
}

impl Waiting {
    /// Whether controllers are to interrupt.
    #[must_use]
    pub const fn interrupts(self) -> bool {
        matches!(self, Self::Asleep)
    }
}

/// The words of the command line that begin with `rootport.`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// `rootport.mode`
    pub mode: Mode,
    /// `rootport.disks`: disks to wait for.
    pub disks: usize,
    /// `rootport.bytes`: bytes of each disk in [`Mode::Raw`] and [`Mode::Endure`].
    pub bytes: u64,
    /// `rootport.seconds`: length of [`Mode::Endure`].
    pub seconds: u64,
    /// `rootport.dma`
    pub coherency: Coherency,
    /// `rootport.limit`: bytes of the largest file that are summed up at most.
    pub limit: u64,
    /// `rootport.wait`
    pub waiting: Waiting,
    /// `rootport.first`: the first block of each disk in [`Mode::Raw`], [`Mode::Scan`] and
    /// [`Mode::Pattern`].
    pub first: u64,
    /// `rootport.buffers`
    pub buffers: Placement,
    /// `rootport.reach`: the highest address that controllers are told they may form.
    pub reach: u64,
    /// `rootport.queue`: when data and status are queued; the board's own choice where it is `None`.
    pub queueing: Option<Queueing>,
    /// `rootport.leave`
    pub leave: Exit,
    /// `rootport.watch`: milliseconds for which the next stage watches its memory.
    pub watch: u64,
    /// `rootport.rounds`: how many times the shortest length of [`Mode::Bench`].
    pub rounds: u32,
    /// `rootport.depth`: commands in flight on a UAS disk at most; the stack's own choice where it is
    /// `None`.
    pub depth: Option<u8>,
    /// `rootport.only`: the only load of [`Mode::Bench`]; all of them where it is `None`.
    pub only: Option<Load>,
}

impl Options {
    /// What no command line means.
    pub const DEFAULT: Self = Self {
        mode: Mode::Demo,
        disks: 1,
        bytes: 4 << 20,
        seconds: 20,
        coherency: Coherency::Maintained,
        limit: 256 << 20,
        waiting: Waiting::Asleep,
        first: 0,
        buffers: Placement::Image,
        reach: u64::MAX,
        leave: Exit::Shutdown,
        watch: 200,
        queueing: None,
        rounds: 10,
        depth: None,
        only: None,
    };
}

impl Default for Options {
    fn default() -> Self {
        Self::DEFAULT
    }
}

const PREFIX: &str = "rootport.";

/// What comes before a string of quirks, as Linux has it.
const QUIRKS: &str = "usb-storage.quirks=";

/// The string of quirks in a command line, for `Host::set_quirks`: the last one, as Linux takes it;
/// empty if there is none.
#[must_use]
pub fn quirks(command_line: &str) -> &str {
    let mut backwards = command_line.split_ascii_whitespace().rev();
    backwards
        .find_map(|word| word.strip_prefix(QUIRKS))
        .unwrap_or_default()
}

impl Options {
    /// Takes the command line apart. Words of other programs are ignored; ours must be right.
    ///
    /// # Errors
    ///
    /// Names the word that is not understood.
    pub fn parse(command_line: &str) -> Result<Self, Reason> {
        Self::default().changed_by(command_line)
    }

    /// The same, where the words that are not there mean something else than usual.
    ///
    /// # Errors
    ///
    /// Names the word that is not understood.
    pub fn changed_by(self, command_line: &str) -> Result<Self, Reason> {
        let mut options = self;
        for word in command_line.split_ascii_whitespace() {
            if let Some(setting) = word.strip_prefix(PREFIX) {
                options
                    .set(setting)
                    .ok_or_else(|| Reason::new(format_args!("command line: what is {word}?")))?;
            }
        }
        Ok(options)
    }

    fn set(&mut self, setting: &str) -> Option<()> {
        let (key, value) = setting.split_once('=')?;
        match key {
            "mode" => self.mode = mode(value)?,
            "disks" => self.disks = value.parse().ok()?,
            "bytes" => self.bytes = value.parse().ok()?,
            "seconds" => self.seconds = value.parse().ok()?,
            "dma" => self.coherency = coherency(value)?,
            "limit" => self.limit = value.parse().ok()?,
            "wait" => self.waiting = waiting(value)?,
            "first" => self.first = value.parse().ok()?,
            "buffers" => self.buffers = placement(value)?,
            "leave" => self.leave = exit(value)?,
            "watch" => self.watch = value.parse().ok()?,
            "reach" => self.reach = reach(value)?,
            "queue" => self.queueing = Some(queueing(value)?),
            "depth" => self.depth = Some(value.parse().ok()?),
            "rounds" => self.rounds = value.parse().ok()?,
            "only" => self.only = Some(Load::named(value)?),
            _ => return None,
        }
        Some(())
    }
}

fn mode(word: &str) -> Option<Mode> {
    Some(match word {
        "demo" => Mode::Demo,
        "read" => Mode::Read,
        "raw" => Mode::Raw,
        "io" => Mode::Endure,
        "bench" => Mode::Bench,
        "spread" => Mode::Spread,
        "hello" => Mode::Hello,
        "scan" => Mode::Scan,
        "pattern" => Mode::Pattern,
        "offsets" => Mode::Offsets,
        "discard" => Mode::Discard,
        "panic" => Mode::Panic,
        "fault" => Mode::Fault,
        _ => return None,
    })
}

fn exit(word: &str) -> Option<Exit> {
    Some(match word {
        "shutdown" => Exit::Shutdown,
        "running" => Exit::Running,
        _ => return None,
    })
}

fn placement(word: &str) -> Option<Placement> {
    Some(match word {
        "image" => Placement::Image,
        "high" => Placement::High,
        _ => return None,
    })
}

/// The highest address of so many bits, 32 or 64.
fn reach(word: &str) -> Option<u64> {
    Some(match word {
        "32" => u64::from(u32::MAX),
        "64" => u64::MAX,
        _ => return None,
    })
}

fn waiting(word: &str) -> Option<Waiting> {
    Some(match word {
        "asleep" => Waiting::Asleep,
        "polling" => Waiting::Polling,
        "dozing" => Waiting::Dozing,
        _ => return None,
    })
}

fn queueing(word: &str) -> Option<Queueing> {
    Some(match word {
        "after-command" => Queueing::AfterCommand,
        "after-data" => Queueing::AfterData,
        "status-last" => Queueing::StatusLast,
        "eager" => Queueing::Eager,
        _ => return None,
    })
}

fn coherency(word: &str) -> Option<Coherency> {
    Some(match word {
        "coherent" => Coherency::Hardware,
        "maintained" => Coherency::Maintained,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::format;

    use super::{Mode, Options, Placement, quirks};

    #[test]
    fn the_last_string_of_quirks_counts_however_long_it_is() {
        let long = "174c:55aa:u,".repeat(40);
        let line = format!("quiet usb-storage.quirks=1:2:u usb-storage.quirks={long} ro");
        assert_eq!(quirks(&line), long);
        assert_eq!(quirks("quiet usb-storage.delay_use=1"), "");
    }

    #[test]
    fn no_command_line_means_the_whole_demo() {
        let options = Options::parse("").unwrap();
        assert_eq!((options.mode, options.disks), (Mode::Demo, 1));
        assert!(options.mode.writes());
    }

    #[test]
    fn buffers_and_reach_are_chosen_apart() {
        let options = Options::parse("rootport.buffers=high rootport.reach=32").unwrap();
        assert_eq!(options.buffers, Placement::High);
        assert_eq!(options.reach, u64::from(u32::MAX));
        assert_eq!(Options::DEFAULT.reach, u64::MAX);
    }

    #[test]
    fn words_of_others_are_ignored() {
        let options = Options::parse("console=ttyAMA0 rootport.mode=raw quiet rootport.disks=2");
        assert_eq!(
            (options.as_ref().unwrap().mode, options.unwrap().disks),
            (Mode::Raw, 2)
        );
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for word in [
            "rootport.mode=dance",
            "rootport.colour=red",
            "rootport.mode",
            "rootport.reach=31",
            "rootport.buffers=anywhere",
        ] {
            let reason = Options::parse(word).unwrap_err();
            assert!(format!("{reason}").contains(word));
        }
    }

    #[test]
    fn reading_modes_write_nothing() {
        for word in [
            "read", "raw", "io", "scan", "hello", "panic", "fault", "spread",
        ] {
            let options = Options::parse(&format!("rootport.mode={word}")).unwrap();
            assert!(!options.mode.writes(), "{word}");
        }
    }
}
