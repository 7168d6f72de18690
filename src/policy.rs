//! Every number that is a choice rather than a rule of a specification.

use crate::time::Duration;

/// When the data and status transfers are queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Queueing {
    /// When the command wrapper has arrived. Every device is used to it.
    #[default]
    AfterCommand,
    /// With the command wrapper: one interrupt less a command. The device sees IN tokens while it
    /// still takes the wrapper, which BOT 1.0 allows and some devices may not expect.
    Eager,
    /// One after the other: the data when the wrapper has arrived, the status when the data has.
    /// One interrupt more a command, for devices that cannot hold a transfer which waits behind
    /// another.
    AfterData,
    /// The data with the command wrapper, the status when the data has come: as many interrupts as
    /// [`Queueing::AfterCommand`], for devices that cannot hold a status read behind their data.
    /// QEMU's `usb-storage` is one (7.2 and 11.1 were tried): where the data takes a moment, a status
    /// read that is queued already is never answered, or is stalled before a write's data. Devices
    /// that are known to be so get it by a quirk
    /// ([`Quirks::STATUS_LAST`](crate::storage::quirks::Quirks::STATUS_LAST)).
    StatusLast,
}

impl Queueing {
    /// The same, but with the status behind the data.
    #[must_use]
    pub const fn with_status_last(self) -> Self {
        match self {
            Self::AfterCommand | Self::AfterData => Self::AfterData,
            Self::Eager | Self::StatusLast => Self::StatusLast,
        }
    }
}

/// Whether UAS is used: for boards on which nobody has seen it work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UasUse {
    /// Where device, controller and what is known of them allow it.
    #[default]
    WherePossible,
    /// Not at all: Bulk-Only only.
    Never,
}

/// Whom UAS's failures are blamed on: what is tried before UAS is left, and for how long it stays left
/// then ([`Policy::uas_resets`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UasFallback {
    /// The device: most bridges that hang under UAS do so on every controller. It is used over
    /// Bulk-Only until it is pulled, and its neighbours are left in peace for it.
    #[default]
    UntilUnplugged,
    /// Its controller, for chips whose streams are said to hang (RK3328). It is started again before
    /// UAS is left. Then every device that is plugged into it is used over Bulk-Only, if it can be,
    /// for as long as this host lives: until the next start of the machine, mostly.
    UntilRestart,
}

/// Which devices are asked questions that a disk can be used without, and sent commands that few
/// hosts send: REPORT LUNS, mode page 08, forced unit access, WRITE SAME.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Trust {
    /// Those that speak UAS. Many a Bulk-Only device dies of a question that its maker never heard.
    #[default]
    ByTransport,
    /// All, for enclosures that are known to stand it.
    Everyone,
}

/// Deadlines and limits of the stack. The defaults suit disks of every age; an embedder may change
/// any of them before the first device is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// A read or write may take so long. Policy: a disk that re-reads a bad block takes 7 s (the
    /// usual limit of its own error recovery).
    pub read_write: Duration,
    /// A command that is not essential may take so long, GET MAX LUN among them.
    pub optional: Duration,
    /// A flush may take so long: the whole write cache goes to the medium.
    pub flush: Duration,
    /// A command of bring-up may take so long. Policy: some disks answer TEST UNIT READY only when
    /// they have spun up.
    pub bring_up: Duration,
    /// A disk may take so long from its first command to being ready. Policy: disks that spin up
    /// took 6 to 10 s in reports; a margin of two.
    pub readiness: Duration,
    /// A unit without a medium is asked again so often: two short commands each time. Policy: a card
    /// is noticed within five seconds; [`Duration::MAX`] for never.
    pub medium_poll: Duration,
    /// A device may take so long to come back from a reset of its port, described and configured.
    pub reopen: Duration,
    /// No new rung of recovery is begun so long after the first fault of an episode.
    pub episode: Duration,
    /// The most bytes of one read or write below SuperSpeed. Policy: 240 sectors, because some
    /// bridges corrupt data silently above (Kingston 0951:1666 with 65535 blocks), and full-speed
    /// disks were five times slower above.
    pub transfer_high: u32,
    /// The most bytes of one read or write at SuperSpeed. Of either limit no more than 16 MiB count, and a
    /// block is moved whatever they say.
    pub transfer_super: u32,
    /// When Bulk-Only data and status are queued.
    pub queueing: Queueing,
    /// The most commands in flight on a UAS device. Policy: what QEMU and most bridges leave of
    /// their 16 streams, and as many as there are tags for: no more than 14 count, and at least one.
    pub depth: u8,
    /// A device may take so long to end commands early when it is told to: to answer ABORT TASK, and then
    /// LOGICAL UNIT RESET. No more than a quarter of [`Policy::episode`] counts.
    pub task_management: Duration,
    /// Whether UAS is used at all.
    pub uas: UasUse,
    /// A device that speaks UAS and had to be reset so often within [`Policy::uas_window`] is used
    /// over Bulk-Only from then on, if it can, for as long as [`Policy::uas_fallback`] says. What is
    /// tried after one fault counts once. Policy: one reset may be the cable's fault.
    pub uas_resets: u8,
    /// See [`Policy::uas_resets`]. [`Duration::MAX`]: all resets count, however long ago.
    pub uas_window: Duration,
    /// A device that speaks UAS and was brought back in step by ABORT TASK or LOGICAL UNIT RESET so often within
    /// [`Policy::uas_abort_window`] is used over Bulk-Only from then on, likewise: each such fault has cost a
    /// command's whole deadline. 0: however often. Policy: five in ten minutes is a habit.
    pub uas_aborts: u8,
    /// See [`Policy::uas_aborts`].
    pub uas_abort_window: Duration,
    /// Whom the resets are blamed on, and so for how long a fall-back is remembered.
    pub uas_fallback: UasFallback,
    /// Which devices are trusted with rare questions and commands.
    pub trust: Trust,
}

impl Policy {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        read_write: Duration::from_secs(10),
        optional: Duration::from_secs(3),
        flush: Duration::from_secs(60),
        bring_up: Duration::from_secs(10),
        readiness: Duration::from_secs(20),
        medium_poll: Duration::from_secs(5),
        reopen: Duration::from_secs(5),
        episode: Duration::from_secs(20),
        transfer_high: 240 * 512,
        transfer_super: 1 << 20,
        queueing: Queueing::AfterCommand,
        depth: 14,
        task_management: Duration::from_secs(2),
        uas: UasUse::WherePossible,
        uas_resets: 2,
        uas_window: Duration::from_secs(60),
        uas_aborts: 5,
        uas_abort_window: Duration::from_secs(600),
        uas_fallback: UasFallback::UntilUnplugged,
        trust: Trust::ByTransport,
    };
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}
