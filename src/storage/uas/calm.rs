//! The short ways of a [`Machine`] that is calm: nearly every command begins and ends by them, and nothing is
//! due then that [`Machine::next_action`] would have to be asked for.
//!
//! Called by the transport. Each does what [`Machine::begin`] and [`Machine::step`] would come to, or nothing: then the
//! transport takes it there.

use super::machine::{Machine, Mode, Tried, UasPipe};
use super::nexus::{Data, Nexus, State};
use super::wire::Tag;
use crate::scsi::cdb::DataPhase;

impl Machine {
    /// Whether nothing is in the way of any command: commands begin with [`Machine::begin_at_once`] then, and
    /// their good ends may come by [`Machine::ready_at_once`], [`Machine::data_came`] and [`Machine::pass`].
    /// It stays so until [`Machine::step`] was called.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.is_quiet() && self.takes_commands() && self.tried == Tried::Nothing
    }

    /// Without streams: the device is ready for the data of a command, which are to be queued at once.
    /// `false`: nothing was done.
    #[inline]
    pub fn ready_at_once(&mut self, tag: Tag, pipe: UasPipe) -> bool {
        match self.nexus_mut(tag) {
            Some(nexus) if nexus.awaits_data_on(pipe) => {
                nexus.data = Data::Queued;
                true
            }
            _ => false,
        }
    }

    /// All data of a command has come, or been sent. `false`: nothing was done.
    #[inline]
    pub fn data_came(&mut self, tag: Tag, bytes: u32) -> bool {
        match self.nexus_mut(tag) {
            Some(nexus) if nexus.state == State::Open && nexus.data == Data::Queued => {
                nexus.moved = nexus.moved.saturating_add(bytes);
                nexus.data = Data::Done;
                true
            }
            _ => false,
        }
    }

    /// A command has ended at the device with a good status: ends it, if that is all that was to come, and
    /// all its data was moved. Returns how much that was. `None`: nothing was done.
    #[inline]
    pub fn pass(&mut self, tag: Tag) -> Option<u32> {
        let nexus = self.nexus_mut(tag)?;
        let moved = nexus.expected.length();
        let is_whole = nexus.state == State::Open && nexus.data == Data::Done;
        if !is_whole || nexus.moved != moved || nexus.fault.is_some() || nexus.held {
            return None;
        }
        nexus.leave();
        self.bad_units = 0;
        Some(moved)
    }

    /// Begins a command, whose tag is free, while the machine is calm. With streams its status read, its
    /// data and the command are to be queued at once, in this order; without, the command alone.
    #[inline]
    pub fn begin_at_once(&mut self, tag: Tag, lun: u8, expected: DataPhase) {
        let listening = self.mode == Mode::Streams;
        let data = match expected {
            DataPhase::None => Data::Done,
            DataPhase::In(_) | DataPhase::Out(_) if listening => Data::Queued,
            DataPhase::In(_) | DataPhase::Out(_) => Data::Due,
        };
        if let Some(nexus) = self.nexus_mut(tag) {
            *nexus = Nexus {
                state: State::Open,
                lun,
                expected,
                data,
                listening,
                ..Nexus::FREE
            };
        }
    }
}
