//! The rungs of recovery that UAS has of its own: task management functions.
//!
//! | what happened | rung | then these tags are dead |
//! |---|---|---|
//! | a command is late, or its status is no unit | ABORT TASK | its own |
//! | ABORT TASK is refused, or has no answer | LOGICAL UNIT RESET | all of that unit |
//! | that is refused, or has no answer | a reset of the port, by the stack | all |
//! | a pipe cannot be made usable, the command pipe fails, OVERLAPPED TAG | the same at once | all |
//!
//! Each function is tried once in an episode: a command that was begun after ABORT TASK has helped, and is late as
//! well, has its unit reset at once; one that was begun after that, its port. An episode is over when the device
//! ends a command, be it badly, unless all that it says is that it was reset.
//!
//! The data of every command that a function gives up are taken back first, and none of them are queued
//! any more: of the late one before ABORT TASK, of all of the unit before LOGICAL UNIT RESET. A device
//! that gives a command up may forget that data of it wait at the host (QEMU 7.2's dies of that), and
//! without streams they would take what is meant for the next command. No other host is known to leave
//! them there. What moves no data is given up at once.
//!
//! A command whose SENSE comes while it is being aborted ends with that status: but not before the
//! function has ended, which could hit the next command of that tag otherwise. Functions run one at
//! a time; several late commands are aborted one after the other, as long as the device answers.
//!
//! Called by [`machine`](super::machine). Read UAS §6.2.3 and SAM-5 §7.

use super::machine::{Cause, Machine, Mode, Tried};
use super::nexus::{Data, Nexus, State};
use super::tags::TagSet;
use super::wire::{ResponseCode, Tag, TaskFunction};

/// What a task management function is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rung {
    AbortTask(Tag),
    UnitReset,
}

/// A task management function under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Task {
    pub(super) tag: Tag,
    pub(super) lun: u8,
    rung: Rung,
    /// It is on its way; if not, it waits for data to come back.
    sent: bool,
}

impl Task {
    pub(super) fn function(&self) -> TaskFunction {
        match self.rung {
            Rung::AbortTask(target) => TaskFunction::AbortTask(target),
            Rung::UnitReset => TaskFunction::LogicalUnitReset,
        }
    }
}

impl Machine {
    /// A deadline has passed.
    pub(super) fn late(&mut self, tag: Tag) {
        if self.task.is_some_and(|task| task.tag == tag) {
            return self.task_late();
        }
        let Some(nexus) = self.nexus_mut(tag) else {
            return;
        };
        match nexus.state {
            State::Open => self.abort(tag, Cause::Timeout),
            // Its data will not come any more.
            State::Answered(..) => {
                let pipe = nexus.data_pipe();
                if nexus.data == Data::Queued {
                    self.want_recall(pipe);
                }
            }
            State::Free | State::Aborting(_) | State::Dead(_) | State::Task | State::Lost => {}
        }
    }

    /// Ends a command that the device has.
    pub(super) fn abort(&mut self, tag: Tag, cause: Cause) {
        let Some(nexus) = self.nexus_mut(tag) else {
            return;
        };
        match nexus.state {
            State::Open => {}
            // What should have been a function's own answer.
            State::Task => return self.task_ended(ResponseCode::Failed),
            _ => return,
        }
        nexus.held = true;
        if self.withdraw(tag, cause) {
            self.due.abort.insert(tag);
            self.next_abort();
        }
    }

    /// Prepares an open command for a function that gives it up: its data come back, and no more of them
    /// are queued. `false` if the device never saw it, so that it has ended.
    fn withdraw(&mut self, tag: Tag, cause: Cause) -> bool {
        let Some(nexus) = self.nexus_mut(tag) else {
            return false;
        };
        nexus.state = State::Aborting(cause);
        let recall = (nexus.data == Data::Queued).then_some(nexus.data_pipe());
        if self.due.command.contains(tag) {
            self.release(tag, cause);
            return false;
        }
        self.due.data.remove(tag);
        if let Some(pipe) = recall {
            self.want_recall(pipe);
        }
        true
    }

    /// The same for all commands of a unit that is to be reset.
    fn withdraw_unit(&mut self, lun: u8) {
        for tag in TagSet::first(self.depth) {
            let is_its = |nexus: &mut Nexus| nexus.lun == lun && nexus.state == State::Open;
            if self.nexus_mut(tag).is_some_and(is_its) {
                self.withdraw(tag, Cause::Neighbour);
            }
        }
    }

    /// The tag of a rung's function: each has its own, because an answer that never came may come
    /// late.
    fn task_tag(&self, rung: Rung) -> Option<Tag> {
        let above = match rung {
            Rung::AbortTask(_) => 1,
            Rung::UnitReset => 2,
        };
        Tag::new(u16::from(self.depth) + above)
    }

    fn begin_task(&mut self, rung: Rung, lun: u8) {
        let Some(tag) = self.task_tag(rung) else {
            return self.give_up();
        };
        match self.nexus_mut(tag) {
            Some(nexus) if nexus.state == State::Free => {
                *nexus = Nexus {
                    state: State::Task,
                    lun,
                    ..Nexus::FREE
                };
                self.task = Some(Task {
                    tag,
                    lun,
                    rung,
                    sent: false,
                });
                if rung == Rung::UnitReset {
                    self.withdraw_unit(lun);
                }
                self.send_task();
            }
            // Its last answer is still missing.
            _ => self.next_rung(rung, lun),
        }
    }

    /// Sends the function under way, if that was not done, no data of what it gives up are at the host any
    /// more and no pipe of theirs is still being stopped.
    pub(super) fn send_task(&mut self) {
        let Some(task) = self.task.filter(|task| !task.sent) else {
            return;
        };
        let is_concerned = |nexus: &Nexus| match task.rung {
            // They have come back before.
            Rung::AbortTask(_) => false,
            Rung::UnitReset => nexus.lun == task.lun,
        };
        let waits = |nexus: &Nexus| {
            is_concerned(nexus)
                && (nexus.data == Data::Queued || self.running == Some(nexus.data_pipe()))
        };
        if self.nexuses.iter().any(waits) {
            return;
        }
        if self.mode() == Mode::Streams {
            self.due.status.insert(task.tag);
        }
        self.due.command.insert(task.tag);
        self.task = Some(Task { sent: true, ..task });
    }

    fn next_rung(&mut self, rung: Rung, lun: u8) {
        match rung {
            Rung::AbortTask(_) => {
                self.counters.unit_resets = self.counters.unit_resets.wrapping_add(1);
                self.begin_task(Rung::UnitReset, lun);
            }
            Rung::UnitReset => self.give_up(),
        }
    }

    /// The function under way was answered.
    pub(super) fn task_ended(&mut self, code: ResponseCode) {
        let Some(task) = self.task.take() else {
            return;
        };
        if let Some(nexus) = self.nexus_mut(task.tag) {
            nexus.state = State::Free;
        }
        match task.rung {
            Rung::AbortTask(target) => self.aborted(target, task, code),
            Rung::UnitReset if code.is_done() => self.unit_was_reset(task.lun),
            Rung::UnitReset => self.give_up(),
        }
        self.next_abort();
    }

    fn aborted(&mut self, target: Tag, task: Task, code: ResponseCode) {
        let state = self.nexus_mut(target).map(|nexus| nexus.state);
        match state {
            Some(State::Aborting(cause)) if code.is_done() => {
                self.tried = self.tried.max(Tried::Abort);
                self.release(target, cause);
            }
            Some(State::Aborting(_)) => self.next_rung(task.rung, task.lun),
            // It has ended by itself meanwhile.
            _ => self.let_go(target),
        }
    }

    /// All commands of a unit are dead.
    fn unit_was_reset(&mut self, lun: u8) {
        self.reset_units = self.reset_units.with(lun);
        self.tried = Tried::UnitReset;
        for tag in TagSet::first(self.depth) {
            let Some(nexus) = self.nexus_mut(tag).filter(|nexus| nexus.lun == lun) else {
                continue;
            };
            match nexus.state {
                State::Open => self.release(tag, Cause::Neighbour),
                State::Aborting(cause) => self.release(tag, cause),
                _ => self.let_go(tag),
            }
            self.due.abort.remove(tag);
        }
    }

    /// The function under way has no answer.
    fn task_late(&mut self) {
        let Some(task) = self.task.take() else {
            return;
        };
        let unsent = self.due.command.contains(task.tag);
        self.due.command.remove(task.tag);
        self.due.status.remove(task.tag);
        if let Some(nexus) = self.nexus_mut(task.tag) {
            nexus.state = if unsent { State::Free } else { State::Lost };
        }
        // Also where the command has ended by itself meanwhile: an ABORT TASK that is still to be
        // carried out could find the next command of that tag.
        self.next_rung(task.rung, task.lun);
    }

    /// Data may have come back: the function that waited for them is sent, and the next command that is late
    /// and whose data were taken back is aborted, if it has not ended by itself.
    pub(super) fn data_are_back(&mut self) {
        self.send_task();
        self.next_abort();
    }

    /// The next command that is late and whose data were taken back is aborted, if it has not ended by
    /// itself.
    fn next_abort(&mut self) {
        for tag in self.due.abort {
            if self.task.is_some() {
                return;
            }
            let Some(nexus) = self.nexus_mut(tag) else {
                continue;
            };
            let (lun, tried) = (nexus.lun, nexus.tried);
            match (nexus.state, nexus.data) {
                (State::Aborting(_), Data::Queued) => continue,
                (State::Aborting(_), _) => self.first_rung(tag, lun, tried),
                _ => self.let_go(tag),
            }
            self.due.abort.remove(tag);
        }
    }

    /// Begins with the first function that was not tried before the command, in this episode.
    fn first_rung(&mut self, tag: Tag, lun: u8, tried: Tried) {
        match tried.min(self.tried) {
            Tried::Nothing => {
                self.counters.aborts = self.counters.aborts.wrapping_add(1);
                self.begin_task(Rung::AbortTask(tag), lun);
            }
            Tried::Abort => self.next_rung(Rung::AbortTask(tag), lun),
            Tried::UnitReset => self.give_up(),
        }
    }

    /// No function is about the command any more, and it is dead.
    fn release(&mut self, tag: Tag, cause: Cause) {
        if let Some(nexus) = self.nexus_mut(tag) {
            nexus.held = false;
        }
        self.bury(tag, cause);
    }

    /// No function is about the command any more.
    fn let_go(&mut self, tag: Tag) {
        if let Some(nexus) = self.nexus_mut(tag) {
            nexus.held = false;
        }
        self.settle(tag);
    }
}
