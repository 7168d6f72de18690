//! Transfers of a driver's function on its pipes: handed to the controller as they come.
//!
//! Called by the transports. The bus keeps nothing of a transfer; its end comes by [`Bus::take_end`] or
//! [`Bus::poll`], with the function and the tag that it was queued with. The pipe is the proof that its
//! device was configured: a controller refuses one whose endpoint has gone.

use super::{Bus, Driver, Pipe, token};
use crate::dma::Segment;
use crate::host::{Handling, HostError, Report, Token, Transfer};
use crate::time::Instant;

impl<C: Driver> Bus<'_, C> {
    /// Queues a transfer on a pipe for `function`, which gets `tag` back. The controller may not
    /// see it before [`Bus::kick`].
    ///
    /// # Errors
    ///
    /// As [`Endpoints::submit`](crate::host::Endpoints::submit): nothing was queued.
    #[inline]
    pub fn submit(
        &mut self,
        pipe: &Pipe,
        function: u8,
        tag: u16,
        segments: &[Segment],
        report: Report,
    ) -> Result<(), HostError> {
        self.submit_on(pipe, 0, function, tag, segments, report)
    }

    /// The same on a stream of the pipe; 0 for a pipe without.
    ///
    /// # Errors
    ///
    /// As [`Endpoints::submit`](crate::host::Endpoints::submit): nothing was queued.
    #[inline]
    pub fn submit_on(
        &mut self,
        pipe: &Pipe,
        stream: u16,
        function: u8,
        tag: u16,
        segments: &[Segment],
        report: Report,
    ) -> Result<(), HostError> {
        let transfer = transfer_of(pipe, stream, function, tag, segments, report);
        self.transfer_driver(pipe.controller)?
            .submit(pipe.handle, &transfer)
    }

    /// Queues a transfer as [`Bus::submit`] does, and lets the controller see it.
    ///
    /// # Errors
    ///
    /// As [`Endpoints::submit`](crate::host::Endpoints::submit): nothing was queued.
    #[inline]
    pub fn send(
        &mut self,
        pipe: &Pipe,
        function: u8,
        tag: u16,
        segments: &[Segment],
        report: Report,
    ) -> Result<(), HostError> {
        self.send_on(pipe, 0, function, tag, segments, report)
    }

    /// The same on a stream of the pipe; 0 for a pipe without.
    ///
    /// # Errors
    ///
    /// As [`Endpoints::submit`](crate::host::Endpoints::submit): nothing was queued.
    #[inline(never)]
    pub fn send_on(
        &mut self,
        pipe: &Pipe,
        stream: u16,
        function: u8,
        tag: u16,
        segments: &[Segment],
        report: Report,
    ) -> Result<(), HostError> {
        let transfer = transfer_of(pipe, stream, function, tag, segments, report);
        self.transfer_driver(pipe.controller)?
            .send(pipe.handle, &transfer)
    }

    /// The same for one segment, as most transfers are, on a stream of the pipe; 0 for a pipe without.
    ///
    /// # Errors
    ///
    /// As [`Endpoints::submit`](crate::host::Endpoints::submit): nothing was queued.
    #[inline(never)]
    pub fn send_segment(
        &mut self,
        pipe: &Pipe,
        stream: u16,
        token: Token,
        segment: Segment,
        report: Report,
    ) -> Result<(), HostError> {
        let handling = Handling {
            stream,
            direction: pipe.address.direction(),
            report,
        };
        self.transfer_driver(pipe.controller)?
            .send_segment(pipe.handle, token, segment, handling)
    }

    /// Queues a segment behind the newest transfer of a pipe, to be seen by the controller when that one has
    /// ended well.
    ///
    /// # Errors
    ///
    /// As [`Endpoints::hold_segment`](crate::host::Endpoints::hold_segment): nothing was queued.
    pub fn hold_segment(
        &mut self,
        pipe: &Pipe,
        token: Token,
        segment: Segment,
    ) -> Result<(), HostError> {
        self.transfer_driver(pipe.controller)?
            .hold_segment(pipe.handle, token, segment)
    }

    /// Lets the controller see what was queued on a pipe.
    #[inline]
    pub fn kick(&mut self, pipe: &Pipe) {
        self.kick_stream(pipe, 0);
    }

    /// The same for a stream of the pipe; 0 for a pipe without.
    #[inline]
    pub fn kick_stream(&mut self, pipe: &Pipe, stream: u16) {
        if let Ok(driver) = self.transfer_driver(pipe.controller) {
            driver.kick(pipe.handle, stream);
        }
    }

    /// Somebody will have to kick a pipe that it has queued something on: at the next poll, which is due now.
    #[inline]
    pub fn promise_kick(&mut self) {
        self.owes_kick = true;
        self.wake = Instant::from_micros(0);
    }

    /// Whether that was promised since the last call.
    #[inline]
    pub fn take_promise(&mut self) -> bool {
        let owes_kick = self.owes_kick;
        if owes_kick {
            self.owes_kick = false;
            // Unless events were left, which is due now.
            if self.behind == 0 {
                self.wake = self.earliest(Instant::NEVER);
            }
        }
        owes_kick
    }

    /// Names a stream of a pipe whose transfers the next operation on the pipe takes back, and those
    /// of no other stream but of others that are named too.
    pub fn name_stream(&mut self, pipe: &Pipe, stream: u16) {
        if let Ok(driver) = self.transfer_driver(pipe.controller) {
            driver.name_stream(pipe.handle, stream);
        }
    }

    /// The quiet transfers of a pipe are known to be done.
    #[inline]
    pub fn retire(&mut self, pipe: &Pipe) {
        if let Ok(driver) = self.transfer_driver(pipe.controller) {
            driver.retire(pipe.handle);
        }
    }

    /// A transfer of a pipe took too long: is it the controller that is dead? If so, it is stopped
    /// as the next [`Bus::poll`] finds out.
    pub fn check_controller(&mut self, pipe: &Pipe) {
        if let Some(driver) = self.driver(pipe.controller) {
            driver.check_alive();
        }
    }
}

#[inline]
fn transfer_of<'t>(
    pipe: &Pipe,
    stream: u16,
    function: u8,
    tag: u16,
    segments: &'t [Segment],
    report: Report,
) -> Transfer<'t> {
    Transfer {
        token: token::function(function, tag),
        setup: None,
        direction: pipe.address.direction(),
        segments,
        report,
        stream,
    }
}
