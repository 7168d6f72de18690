//! The tags of one UAS function: which command in flight has which name.
//!
//! A tag is taken when a command begins and given back when its nexus has certainly ended; until
//! then no other command gets it, or a late answer would end the wrong one. Tags are handed out
//! round and round, so that one which was just given back rests as long as possible. The tag of a
//! command that ended without a status is not handed out any more while there are others, whether it was late
//! itself or its unit was reset for another's sake: the device has said that it has forgotten it, and some send its
//! status all the same.
//!
//! | tags, of `limit` | use |
//! |---|---|
//! | 1 to `limit` - 2 | commands |
//! | `limit` - 1 | ABORT TASK |
//! | `limit` | LOGICAL UNIT RESET, when even that had no answer |
//!
//! So commands leave the two highest tags alone, which is Linux's margin for bridges that are off by
//! one about their own number of streams; only a device that is in trouble already meets them.

use super::wire::Tag;

/// The most tags of a function.
pub const MAX_TAGS: u8 = 16;

/// Tags that commands do not use.
pub const MARGIN: u8 = 2;

/// The most commands in flight on a function.
pub const MAX_DEPTH: u8 = MAX_TAGS - MARGIN;

/// After so many commands within what the device has said it can hold, one more at a time is tried: it may
/// have been full for another reason. Policy: the refusal of one of them is not felt.
const PATIENCE: u16 = 512;

/// A set of tags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TagSet(u16);

impl TagSet {
    /// No tag.
    pub const EMPTY: Self = Self(0);

    /// Tags 1 to `count`, at most [`MAX_TAGS`].
    #[must_use]
    pub const fn first(count: u8) -> Self {
        if count >= MAX_TAGS {
            Self(u16::MAX)
        } else {
            Self((1 << count) - 1)
        }
    }

    const fn bit(tag: Tag) -> u16 {
        match tag.number() {
            number @ 1..=16 => 1 << (number - 1),
            _ => 0,
        }
    }

    /// One tag, up to [`MAX_TAGS`].
    #[inline]
    #[must_use]
    pub const fn of(tag: Tag) -> Self {
        Self(Self::bit(tag))
    }

    /// Adds a tag, up to [`MAX_TAGS`].
    #[inline]
    pub fn insert(&mut self, tag: Tag) {
        self.0 |= Self::bit(tag);
    }

    /// Takes a tag out.
    #[inline]
    pub fn remove(&mut self, tag: Tag) {
        self.0 &= !Self::bit(tag);
    }

    /// Whether the tag is in it.
    #[inline]
    #[must_use]
    pub const fn contains(self, tag: Tag) -> bool {
        self.0 & Self::bit(tag) != 0
    }

    /// Whether no tag is in it.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many tags are in it.
    #[must_use]
    pub const fn count(self) -> u8 {
        self.0.count_ones() as u8
    }

    /// The lowest tag in it.
    #[inline]
    #[must_use]
    pub const fn lowest(self) -> Option<Tag> {
        if self.0 == 0 {
            return None;
        }
        Tag::new(self.0.trailing_zeros() as u16 + 1)
    }

    /// The tags that are in both.
    #[inline]
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The tags that are in either.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The tags of this one that are not in the other.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl Iterator for TagSet {
    type Item = Tag;

    /// Takes the lowest tag out.
    fn next(&mut self) -> Option<Tag> {
        let tag = self.lowest()?;
        self.remove(tag);
        Some(tag)
    }
}

/// The tags of a function.
#[derive(Clone, Copy, Debug)]
pub struct Tags {
    free: TagSet,
    depth: u8,
    /// As many commands as the device can hold: less than `depth` once it has said so.
    allowed: u8,
    /// Commands that began since then, or since one more was allowed.
    begun: u16,
    /// Tags up to this one were handed out in this round.
    cursor: u8,
    /// Tags of commands that were given up. They are not free.
    resting: TagSet,
}

impl Tags {
    /// Tags 1 to `limit`: the smallest of what the device, the controller, the pool and the policy
    /// allow. `None` if nothing is left for commands.
    #[must_use]
    pub const fn new(limit: u8) -> Option<Self> {
        let limit = if limit < MAX_TAGS { limit } else { MAX_TAGS };
        if limit <= MARGIN {
            return None;
        }
        let depth = limit - MARGIN;
        Some(Self {
            free: TagSet::first(depth),
            depth,
            allowed: depth,
            begun: 0,
            cursor: 0,
            resting: TagSet::EMPTY,
        })
    }

    /// The most commands in flight.
    #[must_use]
    pub const fn depth(&self) -> u8 {
        self.depth
    }

    /// Commands in flight.
    #[must_use]
    pub const fn in_flight(&self) -> u8 {
        self.depth - self.free.count() - self.resting.count()
    }

    /// Whether a command may begin.
    #[inline]
    #[must_use]
    pub const fn is_available(&self) -> bool {
        // Counting bits is no single instruction everywhere, and a device with less room is rare.
        !self.free.is_empty() && (self.allowed == self.depth || self.in_flight() < self.allowed)
    }

    /// The device had no room for one command more beside so many.
    pub fn lower(&mut self, beside: u8) {
        self.allowed = beside.clamp(1, self.allowed);
        self.begun = 0;
    }

    /// One more command has begun within what the device can hold.
    #[cold]
    fn count_towards_more(&mut self) {
        self.begun += 1;
        if self.begun >= PATIENCE {
            self.begun = 0;
            self.allowed += 1;
        }
    }

    /// Takes a tag for a command, one of `allowed`.
    #[inline]
    pub fn take(&mut self, allowed: TagSet) -> Option<Tag> {
        if !self.is_available() {
            return None;
        }
        let candidates = self.free.and(allowed);
        let fresh = candidates.without(TagSet::first(self.cursor));
        let tag = fresh.lowest().or(candidates.lowest())?;
        self.free.remove(tag);
        self.cursor = tag.number() as u8;
        if self.allowed != self.depth {
            self.count_towards_more();
        }
        Some(tag)
    }

    /// The command of a tag that was given back had been given up: the tag rests until the device is
    /// opened again. Where no other of `among` would be left, those that have rested longer are free
    /// again.
    pub fn rest(&mut self, tag: Tag, among: TagSet) {
        let mut alone = TagSet::EMPTY;
        alone.insert(tag);
        self.resting.insert(tag);
        let among = among.and(TagSet::first(self.depth));
        if among.without(self.resting).is_empty() {
            self.free = self.free.with(self.resting);
            self.resting = match among.without(alone).is_empty() {
                true => TagSet::EMPTY,
                false => alone,
            };
        }
        self.free = self.free.without(self.resting);
    }

    /// Gives back the tag of a nexus that has certainly ended.
    #[inline]
    pub fn give_back(&mut self, tag: Tag) {
        if tag.number() <= u16::from(self.depth) {
            self.free.insert(tag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> TagSet {
        TagSet::first(MAX_TAGS)
    }

    #[test]
    fn two_tags_of_the_limit_are_left_to_recovery() {
        for (limit, depth) in [(3, 1), (4, 2), (15, 13), (16, 14), (17, 14), (255, 14)] {
            assert_eq!(Tags::new(limit).map(|tags| tags.depth()), Some(depth));
        }
        for limit in [0, 1, 2] {
            assert!(
                Tags::new(limit).is_none(),
                "{limit} leave none for commands"
            );
        }
    }

    #[test]
    fn every_tag_is_handed_out_once_before_any_is_again() {
        let mut tags = Tags::new(6).unwrap();
        let mut numbers = [0; 10];
        for number in &mut numbers {
            let tag = tags.take(all()).unwrap();
            tags.give_back(tag);
            *number = tag.number();
        }
        assert_eq!(numbers, [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]);
    }

    #[test]
    fn a_tag_in_flight_is_not_handed_out_however_long_it_takes() {
        let mut tags = Tags::new(5).unwrap();
        let held = tags.take(all()).unwrap();
        for _ in 0..9 {
            let tag = tags.take(all()).unwrap();
            assert_ne!(tag, held);
            tags.give_back(tag);
        }
        let others = [tags.take(all()), tags.take(all()), tags.take(all())];
        assert!(others[1].is_some() && others[2].is_none());
        assert_eq!(tags.in_flight(), 3);
    }

    #[test]
    fn tags_of_recovery_are_never_given_to_commands() {
        let mut tags = Tags::new(4).unwrap();
        for number in [0, 3, 4, 5, 300] {
            if let Some(tag) = Tag::new(number) {
                tags.give_back(tag);
            }
        }
        assert_eq!(tags.take(all()).map(Tag::number), Some(1));
        assert_eq!(tags.take(all()).map(Tag::number), Some(2));
        assert_eq!(tags.take(all()), None);
    }

    #[test]
    fn a_choice_may_be_limited_to_some_tags() {
        let mut tags = Tags::new(8).unwrap();
        assert_eq!(tags.take(TagSet::first(2)).map(Tag::number), Some(1));
        assert_eq!(tags.take(TagSet::first(2)).map(Tag::number), Some(2));
        assert_eq!(tags.take(TagSet::first(2)), None);
        assert!(tags.is_available());
    }

    #[test]
    fn a_device_that_is_full_gets_no_more_than_it_had() {
        let mut tags = Tags::new(8).unwrap();
        let taken = [1, 2, 3].map(|_| tags.take(all()).unwrap());
        tags.lower(2);
        assert!(!tags.is_available(), "it is sent again itself");
        tags.give_back(taken[2]);
        assert!(!tags.is_available());
        assert_eq!(tags.take(all()), None);
        tags.give_back(taken[1]);
        assert!(tags.is_available());
        tags.give_back(taken[0]);
        tags.lower(0);
        assert!(tags.take(all()).is_some(), "one is always allowed");
        assert!(!tags.is_available());
    }

    #[test]
    fn a_device_that_was_full_once_gets_more_again_after_a_while_one_by_one() {
        let mut tags = Tags::new(5).unwrap();
        let tag = tags.take(all()).unwrap();
        tags.lower(0);
        tags.give_back(tag);
        let mut at_once = || {
            let taken: Vec<Tag> = core::iter::from_fn(|| tags.take(all())).collect();
            for tag in &taken {
                tags.give_back(*tag);
            }
            taken.len()
        };
        let depths: Vec<usize> = (0..2000).map(|_| at_once()).collect();
        assert_eq!((depths[0], depths[500], depths[1999]), (1, 1, 3));
        assert!(depths.is_sorted() && depths.contains(&2));
    }

    #[test]
    fn the_tag_of_a_command_that_was_given_up_rests_while_there_are_others() {
        let mut tags = Tags::new(5).unwrap();
        let give_up = |tags: &mut Tags| {
            let tag = tags.take(all()).unwrap();
            tags.give_back(tag);
            tags.rest(tag, all());
            tag.number()
        };
        assert_eq!(give_up(&mut tags), 1);
        for _ in 0..4 {
            let tag = tags.take(all()).unwrap();
            assert_ne!(tag.number(), 1);
            tags.give_back(tag);
        }
        assert_eq!((tags.in_flight(), tags.is_available()), (0, true));
        // The last one that is left: the others come back, and it rests alone.
        let given_up = [give_up(&mut tags), give_up(&mut tags)];
        let next: Vec<u16> = (0..4)
            .map(|_| {
                let tag = tags.take(all()).unwrap();
                tags.give_back(tag);
                tag.number()
            })
            .collect();
        assert!(!next.contains(&given_up[1]), "{next:?}, {given_up:?}");
        assert!(next.contains(&1) && next.contains(&given_up[0]));
    }

    #[test]
    fn of_those_that_some_commands_need_one_is_always_free() {
        for (limit, needed) in [(3, 1), (6, 1), (6, 2), (16, 2), (16, 14)] {
            let needed = TagSet::first(needed);
            let mut tags = Tags::new(limit).unwrap();
            for _ in 0..40 {
                let tag = tags.take(needed).expect("one is free");
                tags.give_back(tag);
                tags.rest(tag, needed);
            }
            assert_eq!(tags.in_flight(), 0);
        }
    }

    #[test]
    fn a_device_that_is_full_and_gives_up_commands_is_always_given_one_more() {
        let mut tags = Tags::new(6).unwrap();
        for _ in 0..12 {
            let tag = tags.take(all()).unwrap();
            tags.lower(0);
            tags.give_back(tag);
            assert!(tags.is_available());
            let tag = tags.take(all()).unwrap();
            tags.give_back(tag);
            tags.rest(tag, all());
            assert!(tags.is_available());
        }
    }

    #[test]
    fn a_set_gives_its_tags_in_order() {
        let mut set = TagSet::EMPTY;
        for number in [16, 3, 9] {
            set.insert(Tag::new(number).unwrap());
        }
        assert_eq!(set.count(), 3);
        assert!(set.map(Tag::number).eq([3, 9, 16]));
        let mut beyond = TagSet::EMPTY;
        beyond.insert(Tag::new(17).unwrap());
        assert!(beyond.is_empty());
    }
}
