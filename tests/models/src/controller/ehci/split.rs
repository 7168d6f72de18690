//! Split transactions: start-split and complete-split of a full- or low-speed endpoint behind a
//! high-speed hub (EHCI 1.0 §4.12).

use super::execute::{Went, count_nak, reload_errors};
use super::queue_head::Speed;
use super::token::{Pid, Token, status};
use super::translator::Job;
use super::{Ehci, List, timing};
use crate::broken::require;
use crate::controller::Surroundings;
use crate::device::Reply;

/// For full and low speed, bit 0 of the status: the translator answered ERR.
const TRANSLATOR_ERROR: u32 = status::PING;

impl Ehci {
    pub(super) fn execute_split(
        &mut self,
        around: &mut Surroundings<'_>,
        at: u64,
        list: List,
    ) -> Option<()> {
        let head = self.held.get(at)?.head;
        let place = (head.hub(), head.hub_port());
        require!(
            self.traits.translators.is_empty() || self.traits.translators.contains(&place),
            "EHCI 1.0 §3.6.2",
            "a split goes to port {} of the hub {}, which the device is not behind",
            place.1,
            place.0
        );
        let completes = head.token().has(status::COMPLETE_SPLIT);
        let microframe = self.operational.frame_index(around.now) & 7;
        match (list, completes) {
            (List::Asynchronous, false) => self.start_split(around, at),
            (List::Asynchronous, true) => self.complete_split(around, at),
            (List::Periodic, false) if head.start_mask() & 1 << microframe != 0 => {
                self.start_periodic_split(around, at)
            }
            (List::Periodic, true) if head.complete_mask() & 1 << microframe != 0 => {
                self.complete_periodic_split(around, at, microframe)
            }
            (List::Periodic, true) if head.start_mask() & 1 << microframe != 0 => {
                // A whole interval has passed without its complete-splits (§4.12.2.5).
                let mut token = head.token();
                token.set(status::MISSED_MICROFRAME, true);
                token.set(status::COMPLETE_SPLIT, false);
                self.finish(around, at, token)
            }
            (List::Periodic, _) => Some(()),
        }
    }

    /// Hands the next transaction to the translator: whether it took it.
    fn hand_over(
        &mut self,
        around: &mut Surroundings<'_>,
        at: u64,
        periodic: bool,
    ) -> Option<bool> {
        let head = self.held.get(at)?.head;
        let outgoing = self.outgoing(around, at)?;
        self.occupy(around, timing::split(outgoing.data.len()));
        let low_speed = head.speed() == Speed::Low;
        let endpoint = head.endpoint() | if outgoing.pid == Pid::In { 0x80 } else { 0 };
        let job = Job::new(head.device(), endpoint, outgoing, periodic);
        Some(
            self.translators
                .start(around.now, head.hub(), low_speed, job),
        )
    }

    /// §4.12.1.1.
    fn start_split(&mut self, around: &mut Surroundings<'_>, at: u64) -> Option<()> {
        let taken = self.hand_over(around, at, false)?;
        let head = &mut self.held.get_mut(at)?.head;
        let mut token = head.token();
        if taken {
            token.set(status::COMPLETE_SPLIT, true);
            reload_unless_setup(&mut token);
        } else {
            count_nak(head);
        }
        self.traversal.made_progress();
        self.finish(around, at, token)
    }

    /// §4.12.1.2.
    fn complete_split(&mut self, around: &mut Surroundings<'_>, at: u64) -> Option<()> {
        match self.ask_translator(around, at)? {
            None => {
                let mut token = self.held.get(at)?.head.token();
                reload_unless_setup(&mut token);
                self.traversal.made_progress();
                self.finish(around, at, token)
            }
            Some(went) => self.settle_split(around, at, went),
        }
    }

    /// §4.12.2.5, Do-Start-Split: no handshake follows.
    fn start_periodic_split(&mut self, around: &mut Surroundings<'_>, at: u64) -> Option<()> {
        self.hand_over(around, at, true)?;
        let head = &mut self.held.get_mut(at)?.head;
        head.set_progress_mask(0);
        let mut token = head.token();
        token.set(status::COMPLETE_SPLIT, true);
        self.finish(around, at, token)
    }

    /// §4.12.2.5, Do-Complete-Split: NYET in the last one is an error.
    fn complete_periodic_split(
        &mut self,
        around: &mut Surroundings<'_>,
        at: u64,
        microframe: u32,
    ) -> Option<()> {
        let head = &mut self.held.get_mut(at)?.head;
        head.set_progress_mask(head.progress_mask() | 1 << microframe);
        let last = head.progress_mask() == head.complete_mask();
        match self.ask_translator(around, at)? {
            None if last => self.settle_split(around, at, Went::Failed),
            None => {
                let token = self.held.get(at)?.head.token();
                self.finish(around, at, token)
            }
            Some(went) => self.settle_split(around, at, went),
        }
    }

    /// A complete-split: how the transaction went, if it is over.
    fn ask_translator(&mut self, around: &mut Surroundings<'_>, at: u64) -> Option<Option<Went>> {
        let head = self.held.get(at)?.head;
        let input = head.token().pid() == Some(Pid::In);
        let endpoint = head.endpoint() | if input { 0x80 } else { 0 };
        self.occupy(
            around,
            timing::split(if input { head.next_payload() } else { 0 }),
        );
        let job = self
            .translators
            .complete(around.now, head.hub(), head.device(), endpoint);
        match job {
            Err(went) => Some(Some(went)),
            Ok(None) => Some(None),
            Ok(Some(job)) => Some(Some(self.do_job(around, &job))),
        }
    }

    /// The transaction on the slow bus. A translator tries a control or bulk transaction three times,
    /// then answers STALL (USB 2.0 §11.17.1).
    fn do_job(&mut self, around: &mut Surroundings<'_>, job: &Job) -> Went {
        for _ in 0..if job.periodic { 1 } else { 3 } {
            let packet = job.outgoing.packet();
            let (reply, _) = self.transact(around, job.device, job.endpoint, packet);
            if !matches!(reply, Reply::Silent | Reply::Corrupt) {
                return job.outgoing.judge(reply);
            }
        }
        if job.periodic {
            Went::Failed
        } else {
            Went::Halts(0)
        }
    }

    /// A split transaction is over: the next one begins with a start-split.
    fn settle_split(&mut self, around: &mut Surroundings<'_>, at: u64, went: Went) -> Option<()> {
        let held = self.held.get_mut(at)?;
        let mut token = held.head.token();
        token.set(status::COMPLETE_SPLIT, false);
        token.set(TRANSLATOR_ERROR, went == Went::Failed);
        held.head.set_token(token);
        // Nobody knows when a device below a hub will be ready: a leap of a microframe at the most.
        let put_off = went == Went::PutOff && held.list == List::Asynchronous;
        held.quiet_until = put_off.then_some(around.now + timing::MICROFRAME);
        if !put_off {
            self.traversal.made_progress();
        }
        let pid = token.pid()?;
        if went == Went::Repeated {
            return self.finish(around, at, token);
        }
        self.settle(around, at, pid, went)
    }
}

/// §4.12.1.1: the error counter of a SETUP is not reloaded by the splits that carry it.
fn reload_unless_setup(token: &mut Token) {
    if token.pid() != Some(Pid::Setup) {
        reload_errors(token);
    }
}
