//! From a logical unit of which nothing is known to a disk with a geometry.
//!
//! A machine without I/O: INQUIRY, TEST UNIT READY until the unit is ready (within a budget),
//! READ CAPACITY, one READ whose data nobody gets, MODE SENSE for write protection, and the vital
//! product data of a disk that can be expected to have some. Every failure is weighed by its sense
//! data; what a device does not know costs nothing but the question, and what harms it is not asked
//! ([`Quirks`]). Read SPC-4 §5.2 and SBC-3 §4.4 first.

mod caches;
mod face;
mod failures;
mod neighbours;

use caches::Caches;
pub use face::{Action, BringUpError, Found, Input, Manner, ModeForm};
pub use neighbours::{Neighbours, Search};

use super::capacity::{Capacity, Capacity10, CapacityFault};
use super::cdb::{
    Command, Extent, ModePage, PowerChange, inquiry, mode_sense_6, mode_sense_10, read,
    read_capacity_10, read_capacity_16, report_luns, start_stop_unit, test_unit_ready,
};
use super::details::Pages;
use super::inquiry::{DeviceType, Inquiry, Presence};
use super::transport::{Completion, SCRATCH, Status};
use crate::storage::quirks::Quirks;
use crate::time::Instant;

/// How often a unit is asked that says that it has no medium. Policy: Netac sticks say so twice
/// before they have looked.
const NO_MEDIUM_TRIES: u8 = 3;

/// Bytes asked of MODE SENSE: all pages in 192, as every device is used to
/// (from a report about sticks that stall at other lengths).
const MODE_ALLOCATION: u8 = 192;

/// The first version of INQUIRY data that promises vital product data (SPC-3). Policy: older
/// devices are not asked, nor removable ones, since sticks claim any version and some die of it.
const HAS_DETAILS: u8 = 5;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Inquiry,
    /// REPORT LUNS.
    Units,
    Ready,
    Start,
    Capacity10,
    /// READ CAPACITY (10) could not say it.
    Capacity16 {
        block_length: u32,
    },
    /// READ CAPACITY (10) may not say the truth, or not all of it; this is what it said, if it was
    /// asked.
    MoreCapacity(Option<Capacity>),
    FirstRead,
    ModeSense,
    /// The caching page, where all pages together did not have it or may not be asked.
    Caching,
    Details,
}

/// What a unit is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Questions {
    All,
    /// Only what must be known to read and write.
    Essential,
}

/// The bring-up of one unit.
#[derive(Clone, Copy, Debug)]
pub struct BringUp {
    phase: Phase,
    deadline: Instant,
    failures: u8,
    attentions: u8,
    no_medium: u8,
    /// START was sent since the last pause.
    start_sent: bool,
    /// It had no medium before, and may have none now.
    looking: bool,
    questions: Questions,
    /// Its pages have told it from others before.
    has_name: bool,
    /// READ CAPACITY (16) has said more than (10) before.
    was_widened: bool,
    quirks: Quirks,
    mode_form: ModeForm,
    manner: Manner,
    /// Whether the device's other units are looked for, beginning with this one.
    search: Search,
    /// What was found by it and not told yet.
    neighbours: Option<Neighbours>,
    inquiry: Option<Inquiry>,
    capacity: Option<Capacity>,
    write_protected: bool,
    caches: Caches,
    pages: Pages,
}

impl BringUp {
    /// A bring-up that must be done by `deadline`.
    #[must_use]
    pub fn new(deadline: Instant) -> Self {
        Self {
            phase: Phase::Inquiry,
            deadline,
            failures: 0,
            attentions: 0,
            no_medium: 0,
            start_sent: false,
            looking: false,
            questions: Questions::All,
            has_name: false,
            was_widened: false,
            quirks: Quirks::empty(),
            mode_form: ModeForm::Six,
            manner: Manner::Cautious,
            search: Search::None,
            neighbours: None,
            inquiry: None,
            capacity: None,
            write_protected: false,
            caches: Caches::default(),
            pages: Pages::default(),
        }
    }

    /// Minds the policies of its device, whose mode parameters are asked for in this form. To be said
    /// before the beginning, as what follows.
    pub fn mind(&mut self, quirks: Quirks, mode_form: ModeForm) {
        (self.quirks, self.mode_form) = (quirks, mode_form);
        if quirks.contains(Quirks::FIX_INQUIRY) {
            self.inquiry = Some(Inquiry::ASSUMED);
            self.phase = Phase::Ready;
        }
    }

    /// Leaves out what a disk can be used without: for a device that an earlier bring-up has upset.
    pub fn keep_to_essentials(&mut self) {
        self.questions = Questions::Essential;
    }

    /// Asks in any case what told the unit from others before its device was opened again, nothing else proves that
    /// it is the same: the pages with its names, and a size that only READ CAPACITY (16) knows.
    pub fn prove(&mut self, before: &Found) {
        let details = &before.details;
        self.has_name = details.serial.is_some() || details.name.is_some();
        self.was_widened = before.capacity.blocks() > u64::from(u32::MAX);
    }

    /// Only looks whether there is a medium now in a unit that had none when it was asked last.
    pub fn look(&mut self, inquiry: Inquiry) {
        self.phase = Phase::Ready;
        self.inquiry = Some(inquiry);
        self.no_medium = NO_MEDIUM_TRIES - 1;
        self.looking = true;
    }

    /// Whether all that is known is still that it had no medium.
    #[must_use]
    pub fn is_looking(&self) -> bool {
        self.looking && self.phase == Phase::Ready
    }

    /// What its INQUIRY data say, once there.
    #[must_use]
    pub fn inquiry(&self) -> Option<Inquiry> {
        self.inquiry
    }

    /// Takes what happened, and says what to do next.
    pub fn step(&mut self, input: Input<'_>, now: Instant) -> Action {
        match input {
            Input::Begin | Input::Time => Action::Issue(self.command()),
            Input::Ended(Err(error), _) => self.transport_failed(error, now),
            Input::Ended(
                Ok(Completion {
                    status: Status::Good,
                    ..
                }),
                data,
            ) => self.good(data),
            Input::Ended(
                Ok(Completion {
                    status: Status::Check(sense),
                    ..
                }),
                data,
            ) => self.check(sense, data, now),
        }
    }

    fn command(&self) -> Command {
        match self.phase {
            Phase::Inquiry => inquiry(),
            Phase::Units => report_luns(),
            Phase::Ready => test_unit_ready(),
            Phase::Start => start_stop_unit(PowerChange::Start),
            Phase::Capacity10 => read_capacity_10(),
            Phase::Capacity16 { .. } | Phase::MoreCapacity(_) => read_capacity_16(),
            Phase::FirstRead => self.first_read().unwrap_or(test_unit_ready()),
            Phase::ModeSense => self.mode_sense(ModePage::All),
            Phase::Caching => self.mode_sense(ModePage::Caching),
            Phase::Details => self.pages.command().unwrap_or(test_unit_ready()),
        }
    }

    fn mode_sense(&self, page: ModePage) -> Command {
        match self.mode_form {
            ModeForm::Six => mode_sense_6(page, MODE_ALLOCATION),
            ModeForm::Ten => mode_sense_10(page, u16::from(MODE_ALLOCATION)),
        }
    }

    /// Block 0, if it fits into the transport's memory.
    fn first_read(&self) -> Option<Command> {
        let length = self.capacity?.block_length();
        let extent = Extent::new(0, 1, length)?;
        (extent.bytes() as usize <= SCRATCH).then(|| read(extent))
    }

    #[inline(never)]
    fn go_on(&mut self, phase: Phase) -> Action {
        self.phase = phase;
        self.failures = 0;
        Action::Issue(self.command())
    }

    fn good(&mut self, data: &[u8]) -> Action {
        match self.phase {
            Phase::Inquiry => self.inquired(data),
            Phase::Units => self.units_listed(data),
            Phase::Ready => self.ask_capacity(),
            Phase::Start => self.go_on(Phase::Ready),
            Phase::Capacity10 => match Capacity::parse_10(data) {
                Ok(Capacity10::Known(capacity)) if self.may_widen() => {
                    self.go_on(Phase::MoreCapacity(Some(capacity)))
                }
                Ok(Capacity10::Known(capacity)) => self.sized(capacity),
                Ok(Capacity10::AskSixteen) => {
                    let block_length = crate::bytes::u32_be_at(data, 4).unwrap_or(0);
                    if self.may_ask_sixteen() {
                        self.go_on(Phase::Capacity16 { block_length })
                    } else {
                        self.at_least(block_length)
                    }
                }
                Err(fault) => self.bad_capacity(fault),
            },
            Phase::Capacity16 { .. } => match Capacity::parse_16(data) {
                Ok(capacity) => self.sized(capacity),
                Err(fault) => self.bad_capacity(fault),
            },
            Phase::MoreCapacity(known) => {
                let sixteen = Capacity::parse_16(data).ok();
                let better = match known {
                    Some(known) => sixteen.and_then(|sixteen| known.widened(sixteen)),
                    None => sixteen,
                };
                self.no_more_capacity(better.or(known))
            }
            Phase::FirstRead => self.ask_mode(),
            Phase::ModeSense => {
                self.take_mode(data);
                self.ask_caching()
            }
            Phase::Caching => {
                self.take_mode(data);
                self.ask_details()
            }
            Phase::Details => {
                self.pages.answered(data);
                self.next_detail()
            }
        }
    }

    /// READ CAPACITY (10) first, since every device knows it, unless it is known to lie.
    fn ask_capacity(&mut self) -> Action {
        if self.quirks.contains(Quirks::NEEDS_CAP16) && self.may_ask_sixteen() {
            self.go_on(Phase::MoreCapacity(None))
        } else {
            self.go_on(Phase::Capacity10)
        }
    }

    /// Whether READ CAPACITY (16) may say more than (10) has.
    fn may_widen(&self) -> bool {
        let is_due = self.questions == Questions::All && self.has_details();
        (is_due || self.was_widened) && self.may_ask_sixteen()
    }

    fn may_ask_sixteen(&self) -> bool {
        !self.quirks.contains(Quirks::NO_READ_CAPACITY_16)
    }

    /// What READ CAPACITY (16) said, or (10) before it; if neither is known, (10) is asked.
    fn no_more_capacity(&mut self, known: Option<Capacity>) -> Action {
        match known {
            Some(capacity) => self.sized(capacity),
            None => self.go_on(Phase::Capacity10),
        }
    }

    /// All that is known is that there are at least so many blocks as 32 bits can say.
    fn at_least(&mut self, block_length: u32) -> Action {
        match Capacity::new(u64::from(u32::MAX), block_length) {
            Ok(capacity) => self.sized(capacity),
            Err(fault) => Action::Fail(BringUpError::Capacity(fault)),
        }
    }

    /// Whether the unit can be expected to stand questions that go beyond SPC-2.
    fn has_details(&self) -> bool {
        let inquiry = self.inquiry.as_ref();
        (self.questions == Questions::All || self.has_name)
            && inquiry.is_some_and(|it| it.version >= HAS_DETAILS && !it.removable)
    }

    fn inquired(&mut self, data: &[u8]) -> Action {
        let Ok(inquiry) = Inquiry::parse(data) else {
            return self.again(BringUpError::NoInquiryData);
        };
        if inquiry.presence != Presence::Connected {
            return Action::Skip;
        }
        self.inquiry = Some(inquiry);
        self.look_around()
    }

    /// The unit is there, and its neighbours were looked for.
    fn identified(&mut self) -> Action {
        let disks = [
            DeviceType::Disk,
            DeviceType::ReducedDisk,
            DeviceType::Optical,
        ];
        if self
            .inquiry
            .is_some_and(|it| disks.contains(&it.device_type))
        {
            self.go_on(Phase::Ready)
        } else {
            Action::Skip
        }
    }

    fn sized(&mut self, capacity: Capacity) -> Action {
        self.capacity = Some(self.corrected(capacity));
        match self.questions {
            Questions::All if self.first_read().is_some() => self.go_on(Phase::FirstRead),
            Questions::All => self.ask_mode(),
            Questions::Essential => self.ask_details(),
        }
    }

    fn corrected(&self, capacity: Capacity) -> Capacity {
        let is_odd = capacity.blocks() % 2 == 1;
        if self.quirks.contains(Quirks::FIX_CAPACITY)
            || (is_odd && self.quirks.contains(Quirks::CAPACITY_HEURISTICS))
        {
            capacity.without_last()
        } else {
            capacity
        }
    }

    fn ask_mode(&mut self) -> Action {
        if self
            .quirks
            .intersects(Quirks::NO_WP_DETECT | Quirks::ALWAYS_SYNC)
        {
            self.ask_caching()
        } else {
            self.go_on(Phase::ModeSense)
        }
    }

    fn ask_details(&mut self) -> Action {
        if self.has_details() {
            self.pages = Pages::default();
            self.go_on(Phase::Details)
        } else {
            self.found()
        }
    }

    fn next_detail(&mut self) -> Action {
        match self.pages.command() {
            Some(_) => self.go_on(Phase::Details),
            None => self.found(),
        }
    }

    fn bad_capacity(&mut self, fault: CapacityFault) -> Action {
        match (fault, self.inquiry) {
            (CapacityFault::NoMedium, Some(inquiry)) => Action::Empty(inquiry),
            _ => self.again(BringUpError::Capacity(fault)),
        }
    }

    fn found(&mut self) -> Action {
        match (self.inquiry, self.capacity) {
            (Some(inquiry), Some(capacity)) => Action::Ready(Found {
                inquiry,
                capacity,
                write_protected: self.write_protected,
                details: self.caches.told_in(self.pages.details()),
            }),
            _ => Action::Fail(BringUpError::NoInquiryData),
        }
    }
}

#[cfg(test)]
#[path = "bring_up_tests/mod.rs"]
mod tests;
