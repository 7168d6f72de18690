//! Where the transport's things lie: in its coherent memory, and in the caller's storage.
//!
//! Called by [`transport`](super::transport) only.

use super::machine::Mode;
use super::tags::{MARGIN, MAX_TAGS};
use super::wire::Tag;
use crate::dma::{Allocation, Mapping};
use crate::scsi::transport::{Client, Outcome, SCRATCH};
use crate::time::Instant;

/// Bytes kept for a unit that is sent.
const UNIT: usize = 32;

/// Bytes kept for a unit that comes on a stream: the longest, in whole cache lines.
const STREAM_STATUS: usize = 320;

/// Bytes of the one status read without streams: a whole packet of any speed.
const READY_STATUS: usize = 1024;

/// What is remembered of a command in flight. The caller of the stack provides a slice of them.
#[derive(Debug)]
pub struct CommandSlot {
    /// The function that has reserved it.
    pub(super) owner: Option<u8>,
    pub(super) client: Option<Client>,
    pub(super) deadline: Instant,
    pub(super) mapping: Option<Mapping>,
    pub(super) bounce: Option<Allocation>,
    /// How it ended, until that is taken.
    pub(super) outcome: Option<Outcome>,
}

impl CommandSlot {
    /// An unused slot.
    pub const EMPTY: Self = Self {
        owner: None,
        client: None,
        deadline: Instant::NEVER,
        mapping: None,
        bounce: None,
        outcome: None,
    };
}

/// Slots that a function leaves to those that come after it. Policy: one command in flight each for two
/// more disks, which costs a single disk little; whoever wants more for all has a longer table.
const SPARE: usize = 2;

/// Reserves slots in a row for a function: `depth` of them, or as many as there are but for those that
/// it leaves to others. Returns the first one's place, and how many.
///
/// It leaves [`SPARE`], or half where so few are left: so whoever comes next finds one as long as there
/// are two.
pub(super) fn reserve(commands: &mut [CommandSlot], function: u8, depth: u8) -> Option<(u16, u8)> {
    let free = commands.iter().filter(|slot| slot.owner.is_none()).count();
    let wanted = usize::from(depth).min(free - SPARE.min(free / 2));
    let (mut base, mut count) = (0, 0);
    let (mut best, mut most) = (0, 0);
    for (place, slot) in commands.iter().enumerate() {
        if slot.owner.is_some() {
            (base, count) = (place + 1, 0);
            continue;
        }
        count += 1;
        if count > most {
            (best, most) = (base, count);
        }
        if most == wanted {
            break;
        }
    }
    if most == 0 {
        return None;
    }
    for slot in commands.iter_mut().skip(best).take(most) {
        slot.owner = Some(function);
    }
    Some((best as u16, most as u8))
}

/// Gives the slots of a function back.
pub fn release(commands: &mut [CommandSlot], function: u8) {
    for slot in commands
        .iter_mut()
        .filter(|slot| slot.owner == Some(function))
    {
        *slot = CommandSlot::EMPTY;
    }
}

/// The slot of a tag, for a function whose first slot lies at `base`.
#[inline]
pub(super) fn slot_mut(
    commands: &mut [CommandSlot],
    base: u16,
    tag: Tag,
) -> Option<&mut CommandSlot> {
    commands.get_mut(usize::from(base) + usize::from(tag.number()) - 1)
}

/// How many tags have a bounce area. Policy: all where it is two cache lines; two where it is two
/// pages, since reads into buffers that are not aligned are rare and the pool is small.
pub(super) fn bounces(grain: usize, depth: u8) -> u8 {
    if grain <= 512 { depth } else { depth.min(2) }
}

/// Where things lie in the coherent memory: units to be sent, units that came, small data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    mode: Mode,
    scratch: u16,
}

impl Layout {
    const STATUS: usize = UNIT * MAX_TAGS as usize;

    pub(super) fn new(mode: Mode, depth: u8) -> Self {
        let status = match mode {
            Mode::Streams => usize::from(depth + MARGIN) * STREAM_STATUS,
            Mode::Ready => READY_STATUS,
        };
        Self {
            mode,
            scratch: (Self::STATUS + status) as u16,
        }
    }

    pub(super) fn length(self) -> usize {
        self.scratch() + SCRATCH
    }

    /// The unit to be sent with this tag.
    #[inline]
    pub(super) fn unit(self, tag: Tag) -> usize {
        (usize::from(tag.number()) - 1) * UNIT
    }

    /// The unit that comes on this stream.
    #[inline]
    pub(super) fn status(self, stream: Option<Tag>) -> usize {
        let number = stream.map_or(0, |tag| usize::from(tag.number()) - 1);
        Self::STATUS + number * STREAM_STATUS
    }

    #[inline]
    pub(super) fn status_length(self) -> usize {
        match self.mode {
            Mode::Streams => STREAM_STATUS,
            Mode::Ready => READY_STATUS,
        }
    }

    /// The data of small commands.
    #[inline]
    pub(super) fn scratch(self) -> usize {
        usize::from(self.scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::StatusUnit;
    use super::*;

    const NONE: CommandSlot = CommandSlot::EMPTY;

    #[test]
    fn a_function_gets_as_many_slots_in_a_row_as_it_wants_and_as_there_are_but_for_two() {
        let mut commands = [NONE; 10];
        assert_eq!(reserve(&mut commands, 0, 4), Some((0, 4)));
        assert_eq!(reserve(&mut commands, 1, 4), Some((4, 4)));
        for slot in &mut commands[..4] {
            *slot = NONE;
        }
        assert_eq!(reserve(&mut commands, 2, 14), Some((0, 4)));
    }

    #[test]
    fn there_is_a_slot_for_the_next_function_as_long_as_there_are_two() {
        for length in 0..40_usize {
            let mut commands: Vec<CommandSlot> = (0..length).map(|_| NONE).collect();
            let mut left = length;
            let mut function = 0;
            while let Some((_, count)) = reserve(&mut commands, function, 14) {
                let before = left;
                left -= usize::from(count);
                assert!(left >= 1 || before == 1, "{count} of {before} of {length}");
                assert!(left >= 2 || before < 4, "{count} of {before} of {length}");
                function += 1;
            }
            assert_eq!(left, 0);
        }
        let depths = |length: usize| {
            let mut commands: Vec<CommandSlot> = (0..length).map(|_| NONE).collect();
            [0, 1, 2].map(|function| reserve(&mut commands, function, 14).map_or(0, |it| it.1))
        };
        assert_eq!(depths(16), [14, 1, 1]);
        assert_eq!(depths(32), [14, 14, 2]);
        assert_eq!(depths(8), [6, 1, 1]);
        assert_eq!(depths(1), [1, 0, 0]);
    }

    #[test]
    fn nothing_in_the_coherent_memory_overlaps() {
        for mode in [Mode::Streams, Mode::Ready] {
            let layout = Layout::new(mode, 14);
            let tag = |number| Tag::new(number).unwrap();
            assert!(layout.unit(tag(16)) + UNIT <= layout.status(None));
            let last = match mode {
                Mode::Streams => Some(tag(16)),
                Mode::Ready => None,
            };
            assert!(layout.status(last) + layout.status_length() <= layout.scratch());
            assert!(StatusUnit::LONGEST <= layout.status_length());
        }
    }
}
