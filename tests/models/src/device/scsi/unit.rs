//! A logical unit: its identity, its medium, and the ways in which it is not ready.
//!
//! Built by the `with`-less setters of [`LogicalUnit`] in one expression; changed later through the
//! public fields, for instance by a test that takes the card out.

use core::ops::Range;
use std::collections::BTreeMap;
use std::collections::VecDeque;

use super::super::{MICROSECOND, Nanoseconds};
use super::ata::AtaDisk;
use super::discard::Provisioning;
use super::image::Image;
use super::sense::Sense;

/// When a volatile write cache loses what was not flushed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheLoss {
    /// When power goes.
    PowerCycle,
    /// Already at a bus reset: the bridge restarts.
    BusReset,
    /// Already at LOGICAL UNIT RESET.
    UnitReset,
}

/// What the unit makes of forced unit access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forced {
    /// It honours it, and says so where it has a cache (DPOFUA).
    Honoured,
    /// It says that it honours it, and refuses it with 5/24/00.
    Refused,
    /// It says that it honours it, and leaves the data in its cache.
    Ignored,
}

/// When a unit attention condition goes away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attention {
    /// When a command failed with it (SAM-5 §5.14).
    OnceReported,
    /// Only when REQUEST SENSE fetched it.
    UntilSense,
}

/// A scripted answer to one SCSI command, in place of the usual one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scripted {
    /// Good status with these data, cut to the allocation length.
    Data(Vec<u8>),
    /// CHECK CONDITION.
    Fail(Sense),
}

/// How long the unit works on commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// From the command to the first byte of a read, or to the status without data.
    pub access: Nanoseconds,
    /// From the last byte of a write to its status.
    pub program: Nanoseconds,
    /// A cache flush with something to flush.
    pub flush: Nanoseconds,
    /// How fast the medium gives and takes; `None`: as fast as the wire.
    pub bytes_per_second: Option<u64>,
}

impl Default for Timing {
    /// A quick disk: 20 µs to answer, no slower than the wire.
    fn default() -> Self {
        let quick = 20 * MICROSECOND;
        Self {
            access: quick,
            program: quick,
            flush: quick,
            bytes_per_second: None,
        }
    }
}

/// One logical unit of a SCSI target.
#[derive(Clone, Debug)]
pub struct LogicalUnit {
    /// The medium's blocks.
    pub image: Image,
    /// How many there are.
    pub blocks: u64,
    /// log2 of logical blocks per physical block.
    pub physical_exponent: u8,
    /// Peripheral device type: 0 disk, 5 CD.
    pub device_type: u8,
    /// Vendor, product, revision (8, 16 and 4 characters), serial number.
    pub identity: [String; 4],
    /// The version field of INQUIRY: 2 old, 5 SPC-3, 6 SPC-4.
    pub version: u8,
    /// Whether the medium can be taken out (RMB).
    pub removable: bool,
    /// Whether there is a medium.
    pub has_medium: bool,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Time from power-on during which the unit is becoming ready.
    pub spin_up: Nanoseconds,
    /// Whether it waits for START UNIT.
    pub needs_start: bool,
    /// Whether power-on and bus reset leave a unit attention.
    pub attention_after_reset: bool,
    /// Which attention that is: 6/29/00, or 6/28/00 of sticks that say so at power-on.
    pub reset_sense: Sense,
    /// When an attention goes away.
    pub attention: Attention,
    /// Blocks that cannot be read or written.
    pub bad_blocks: Vec<Range<u64>>,
    /// When the volatile cache is lost.
    pub cache_loss: CacheLoss,
    /// Whether VPD pages are there (INQUIRY with EVPD).
    pub has_vital_pages: bool,
    /// The limit that VPD page B0 tells, in blocks, and that is enforced; 0: no limit.
    pub maximum_blocks: u32,
    /// Whether READ CAPACITY(16) and the 16-byte commands are known.
    pub knows_16: bool,
    /// Whether SYNCHRONIZE CACHE is known.
    pub knows_flush: bool,
    /// What it makes of forced unit access.
    pub forced: Forced,
    /// How it gives blocks back, if it can (VPD pages B0 and B2).
    pub provisioning: Option<Provisioning>,
    /// The most blocks of a WRITE SAME, as page B0 tells; `None`: the command is unknown.
    pub maximum_write_same: Option<u64>,
    /// The block of every WRITE SAME that came, oldest first.
    pub same_blocks: Vec<Vec<u8>>,
    /// The ATA disk behind it, if it is a bridge that passes ATA commands.
    pub ata: Option<AtaDisk>,
    /// How long commands take.
    pub timing: Timing,
    /// Answers by operation code in place of the usual ones.
    pub scripted: BTreeMap<u8, Scripted>,
    pub(super) state: UnitState,
}

/// What a unit remembers while it runs.
#[derive(Clone, Debug, Default)]
pub(super) struct UnitState {
    pub(super) powered_at: Nanoseconds,
    pub(super) started: bool,
    pub(super) attentions: VecDeque<Sense>,
    /// Kept for REQUEST SENSE by a transport without autosense.
    pub(super) kept: Option<Sense>,
    /// The capacity in blocks that the host was last told.
    pub(super) told: Option<u64>,
}

impl LogicalUnit {
    /// A disk of `blocks` blocks of `block_size` bytes, with a pattern that names each block
    /// ([`super::pattern`]), an SPC-4 identity, ready at once.
    ///
    /// # Panics
    /// Unless the size is a power of two from 512 to 65536 and there is at least one block.
    #[must_use]
    pub fn disk(blocks: u64, block_size: usize) -> Self {
        assert!(block_size.is_power_of_two() && (512..=65536).contains(&block_size));
        assert!(
            blocks > 0,
            "a disk without blocks is `no_medium`, or scripted"
        );
        let mut image = Image::new(block_size);
        image.fill_with_pattern();
        Self {
            image,
            blocks,
            physical_exponent: 0,
            device_type: 0,
            identity: ["ROOTPORT", "Model disk", "1.0", "RP0001"].map(String::from),
            version: 6,
            removable: false,
            has_medium: true,
            read_only: false,
            spin_up: 0,
            needs_start: false,
            attention_after_reset: true,
            reset_sense: Sense::RESET,
            attention: Attention::OnceReported,
            bad_blocks: Vec::new(),
            cache_loss: CacheLoss::PowerCycle,
            has_vital_pages: true,
            maximum_blocks: 0,
            knows_16: true,
            knows_flush: true,
            forced: Forced::Honoured,
            provisioning: None,
            maximum_write_same: None,
            same_blocks: Vec::new(),
            ata: None,
            timing: Timing::default(),
            scripted: BTreeMap::new(),
            state: UnitState::default(),
        }
    }

    /// A memory stick as most are: removable, an old INQUIRY version, no VPD pages, no attention
    /// after reset, no 16-byte commands.
    #[must_use]
    pub fn stick(blocks: u64) -> Self {
        let disk = Self::disk(blocks, 512);
        Self {
            removable: true,
            version: 2,
            has_vital_pages: false,
            attention_after_reset: false,
            knows_16: false,
            ..disk
        }
    }

    /// A slot of a card reader without a card.
    #[must_use]
    pub fn empty_slot() -> Self {
        Self {
            has_medium: false,
            ..Self::stick(1)
        }
    }

    /// `bytes` on the medium from block 0 on.
    #[must_use]
    pub fn content(mut self, bytes: &[u8]) -> Self {
        self.image.load(0, bytes);
        self
    }

    /// Refuses writes with 7/27/00.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self {
            read_only: true,
            ..self
        }
    }

    /// 2/04/01 for this long after power-on.
    #[must_use]
    pub fn ready_after(self, spin_up: Nanoseconds) -> Self {
        Self { spin_up, ..self }
    }

    /// This attention after power-on and bus reset, which goes away as `until` says.
    #[must_use]
    pub fn attention_after_reset(self, sense: Sense, until: Attention) -> Self {
        Self {
            attention_after_reset: true,
            reset_sense: sense,
            attention: until,
            ..self
        }
    }

    /// 2/04/02 until START UNIT.
    #[must_use]
    pub fn needs_start(self) -> Self {
        Self {
            needs_start: true,
            ..self
        }
    }

    /// These blocks fail with 3/11/00 or 3/0C/00.
    #[must_use]
    pub fn bad_blocks(mut self, range: Range<u64>) -> Self {
        self.bad_blocks.push(range);
        self
    }

    /// A volatile write cache that is lost at `loss`.
    #[must_use]
    pub fn write_cache(mut self, loss: CacheLoss) -> Self {
        self.image.cache_writes();
        self.cache_loss = loss;
        self
    }

    /// Changed in a way that has no setter.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Gives blocks back.
    #[must_use]
    pub fn provisioned(self, provisioning: Provisioning) -> Self {
        Self {
            provisioning: Some(provisioning),
            ..self
        }
    }

    /// Passes ATA commands on to this disk.
    #[must_use]
    pub fn bridge_to(self, ata: AtaDisk) -> Self {
        Self {
            ata: Some(ata),
            ..self
        }
    }

    /// Answers this operation code so, in place of the usual.
    #[must_use]
    pub fn script(mut self, opcode: u8, answer: Scripted) -> Self {
        self.scripted.insert(opcode, answer);
        self
    }

    /// Commands take so long.
    #[must_use]
    pub fn timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// Adds a unit attention, reported by the next command that may report one.
    pub fn raise(&mut self, sense: Sense) {
        self.state.attentions.push_back(sense);
    }

    /// Puts a medium in: the next command is told 6/28/00.
    pub fn insert(&mut self, image: Image, blocks: u64) {
        (self.image, self.blocks, self.has_medium) = (image, blocks, true);
        self.state.told = None;
        self.raise(Sense::MEDIUM_CHANGED);
    }

    /// Takes the medium out.
    pub fn eject(&mut self) {
        self.has_medium = false;
        self.state.told = None;
    }

    /// Why the medium cannot be reached now, if it cannot.
    pub(super) fn not_ready(&self, now: Nanoseconds) -> Option<Sense> {
        if !self.has_medium {
            Some(Sense::NO_MEDIUM)
        } else if now.saturating_sub(self.state.powered_at) < self.spin_up {
            Some(Sense::BECOMING_READY)
        } else if self.needs_start && !self.state.started {
            Some(Sense::NEEDS_START)
        } else {
            None
        }
    }

    /// The first bad block of `range`.
    pub(super) fn first_bad(&self, range: Range<u64>) -> Option<u64> {
        let hits = self.bad_blocks.iter().filter_map(|bad| {
            let first = bad.start.max(range.start);
            (first < bad.end.min(range.end)).then_some(first)
        });
        hits.min()
    }

    pub(super) fn power_on(&mut self, now: Nanoseconds) {
        self.state = UnitState {
            powered_at: now,
            ..UnitState::default()
        };
        if self.attention_after_reset {
            self.raise(self.reset_sense);
        }
    }

    pub(super) fn power_off(&mut self) {
        self.image.drop_cache();
    }

    pub(super) fn bus_reset(&mut self) {
        if self.cache_loss != CacheLoss::PowerCycle && self.image.is_cached() {
            self.image.drop_cache();
            self.state.attentions.clear();
            self.raise(Sense::RESET);
        } else if self.attention_after_reset && self.state.attentions.is_empty() {
            self.raise(self.reset_sense);
        }
        self.state.kept = None;
    }

    /// LOGICAL UNIT RESET: the caller raises the attention for it (SAM-5 §5.14), or does not.
    pub(in crate::device) fn unit_reset(&mut self) {
        if self.cache_loss == CacheLoss::UnitReset {
            self.image.drop_cache();
        }
    }
}
