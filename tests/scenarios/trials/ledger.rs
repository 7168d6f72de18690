//! What is known of the blocks of a disk: what each may hold, and what must be told when it holds
//! something older.
//!
//! Independent of the library's own bookkeeping: only what a caller saw goes in. Every write has a
//! number of its own, which fills its blocks together with the block's address.

use std::collections::BTreeSet;

use rootport_models::device::scsi::pattern;

/// The number of what was on the medium from the beginning.
const ORIGINAL: u32 = 0;

/// Bytes of a block.
pub(super) const BLOCK: usize = 512;

#[derive(Clone)]
struct Known {
    /// What a read may bring, and a power cut may leave.
    possible: BTreeSet<u32>,
    /// What it must hold if nothing was lost: the last good write, and any that failed since.
    owed: BTreeSet<u32>,
}

/// The blocks of one disk.
pub(super) struct Ledger {
    blocks: Vec<Known>,
    /// A block was seen without a write that had ended well. The next good end of a flush would be
    /// a lie.
    loss_seen: Option<u64>,
    newest: u32,
}

/// What a write puts into a block.
pub(super) fn content(lba: u64, number: u32) -> Vec<u8> {
    if number == ORIGINAL {
        return pattern(lba, BLOCK);
    }
    let words = (0..BLOCK as u32 / 8).map(|word| {
        let head = u64::from(number) << 32;
        head | (lba << 8) | u64::from(word)
    });
    words.flat_map(u64::to_be_bytes).collect()
}

impl Ledger {
    /// A disk that nobody has written to yet.
    pub(super) fn new(blocks: usize) -> Self {
        let fresh = Known {
            possible: [ORIGINAL].into(),
            owed: [ORIGINAL].into(),
        };
        Self {
            blocks: vec![fresh; blocks],
            loss_seen: None,
            newest: ORIGINAL,
        }
    }

    /// A number for the next write.
    pub(super) fn next(&mut self) -> u32 {
        self.newest += 1;
        self.newest
    }

    /// A write has ended.
    pub(super) fn wrote(&mut self, lba: u64, blocks: u64, number: u32, is_good: bool) {
        for known in self.range(lba, blocks) {
            known.possible.insert(number);
            if is_good {
                known.owed.clear();
            }
            known.owed.insert(number);
        }
    }

    /// A read has ended well: its bytes are those of some write that may still be there.
    pub(super) fn read(&mut self, lba: u64, bytes: &[u8]) -> Result<(), String> {
        for (lba, block) in (lba..).zip(bytes.chunks(BLOCK)) {
            let known = &self.blocks[lba as usize];
            let found = found(known, lba, block)?;
            if !known.owed.contains(&found) {
                self.loss_seen = Some(lba);
            }
        }
        Ok(())
    }

    /// A flush has ended well: `durable` is what a power cut would leave.
    pub(super) fn flushed(&mut self, durable: impl Fn(u64) -> Vec<u8>) -> Result<(), String> {
        if let Some(lba) = self.loss_seen {
            return Err(format!(
                "block {lba} had lost a write, and a flush was good"
            ));
        }
        for (lba, known) in (0..).zip(&mut self.blocks) {
            let found = found(known, lba, &durable(lba))?;
            if !known.owed.contains(&found) {
                let owed = &known.owed;
                return Err(format!(
                    "block {lba} holds {found} of {owed:?} after a good flush"
                ));
            }
            known.possible = [found].into();
            known.owed = [found].into();
        }
        Ok(())
    }

    /// The caller was told that writes may be lost: by a flush, or because the disk had gone.
    pub(super) fn loss_told(&mut self) {
        self.loss_seen = None;
        for known in &mut self.blocks {
            known.owed = known.possible.clone();
        }
    }

    fn range(&mut self, lba: u64, blocks: u64) -> &mut [Known] {
        &mut self.blocks[lba as usize..(lba + blocks) as usize]
    }
}

/// Which write a block is of.
fn found(known: &Known, lba: u64, block: &[u8]) -> Result<u32, String> {
    let mut numbers = known.possible.iter().copied();
    let number = numbers.find(|number| content(lba, *number) == block);
    number.ok_or_else(|| {
        let possible = &known.possible;
        format!(
            "block {lba} holds none of {possible:?}, but {:02x?}",
            &block[..16]
        )
    })
}

#[test]
fn a_block_without_its_good_write_is_a_loss_that_must_be_told() {
    let mut ledger = Ledger::new(4);
    let number = ledger.next();
    ledger.wrote(1, 2, number, true);
    let old = |lba| content(lba, ORIGINAL);
    assert!(ledger.flushed(old).is_err());
    ledger.read(2, &old(2)).unwrap();
    assert!(ledger.flushed(|lba| content(lba, number)).is_err());
    ledger.loss_told();
    ledger.flushed(old).unwrap();
    assert!(ledger.read(2, &content(2, number)).is_err(), "it was lost");
}

#[test]
fn a_write_that_failed_may_be_there_or_not() {
    let mut ledger = Ledger::new(1);
    let (good, bad) = (ledger.next(), ledger.next());
    ledger.wrote(0, 1, good, true);
    ledger.wrote(0, 1, bad, false);
    ledger.read(0, &content(0, good)).unwrap();
    ledger.read(0, &content(0, bad)).unwrap();
    ledger.flushed(|lba| content(lba, bad)).unwrap();
    assert!(ledger.read(0, &content(0, good)).is_err());
}
