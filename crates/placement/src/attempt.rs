//! The handle of one attempt.

use crate::end::End;
use crate::error::Error;
use crate::host::Placement;
use crate::launching::Rules;
use crate::link::{InputOutcome, Link, LinkEnd, ResizeOutcome};
use crate::output::{Output, Text};
use placement_contract::{Attempt, AttemptId, Code, OnHostLoss, Refusal, StreamName, WindowSize};
use placement_service::{InputRefused, ResizeRefused, StopMode, Streams};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

/// One attempt, with its streams.
///
/// May be used from several threads at once: one reads output, another writes input, a third stops.
/// Dropping it detaches from the attempt or asks for its stop, as the launch says of the loss of its
/// host; that never blocks, and the child is reaped by its runner whatever happens here.
#[derive(Debug)]
#[must_use = "dropping it stops the attempt or detaches from it"]
pub struct AttemptHandle {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    host: Placement,
    attempt_id: AttemptId,
    replay: bool,
    had_ended: bool,
    rules: Rules,
    link: Mutex<Option<Arc<Link>>>,
    let_go: AtomicBool,
}

/// Writes the input of one attempt, from any thread; does not keep the attempt.
#[derive(Debug, Clone)]
pub struct Input {
    inner: Weak<Inner>,
}

impl AttemptHandle {
    pub(crate) fn attached(host: Placement, streams: Streams, rules: Rules, replay: bool) -> Self {
        let attempt_id = streams.attempt_id().clone();
        let link = Arc::new(Link::new(streams, rules.has_input));
        Self::new(host, attempt_id, rules, replay, Some(link))
    }

    /// The streams of an ended attempt are opened when somebody asks for them.
    pub(crate) fn ended(host: Placement, attempt_id: AttemptId, rules: Rules) -> Self {
        Self::new(host, attempt_id, rules, true, None)
    }

    fn new(
        host: Placement,
        attempt_id: AttemptId,
        rules: Rules,
        replay: bool,
        link: Option<Arc<Link>>,
    ) -> Self {
        let had_ended = link.is_none();
        let link = Mutex::new(link);
        let let_go = AtomicBool::new(false);
        let inner = Arc::new(Inner { host, attempt_id, replay, had_ended, rules, link, let_go });
        Self { inner }
    }

    /// Returns the attempt's id.
    pub fn id(&self) -> &AttemptId {
        &self.inner.attempt_id
    }

    /// Says whether the attempt was recorded before.
    pub fn is_replay(&self) -> bool {
        self.inner.replay
    }

    /// Says whether a launch found that the attempt recorded under its key had ended: nothing was
    /// attached to, and an observer tells everything that it has said.
    pub fn is_ended_replay(&self) -> bool {
        self.inner.had_ended
    }

    /// Says whether only the attempt's receipt is left: it was pruned, and its output is gone.
    ///
    /// # Errors
    /// STORAGE for a damaged row.
    pub fn is_pruned(&self) -> Result<bool, Error> {
        Ok(self.attempt()?.pruned)
    }

    /// Returns what is recorded of the attempt now.
    ///
    /// # Errors
    /// STORAGE for a damaged row.
    pub fn attempt(&self) -> Result<Attempt, Error> {
        self.inner.host.attempt(self.id())
    }

    /// Returns the output that nobody acknowledged, in order, as bytes.
    ///
    /// A chunk is acknowledged when the next one is asked for, the last one at the end; what was not
    /// acknowledged comes again to whoever attaches next. It ends when both streams have, or when
    /// another recipient took over ([`AttemptHandle::is_taken`]). Output that nobody reads waits on
    /// disk up to the launch's bound; beyond it the child waits.
    pub fn output(&self) -> Output<'_> {
        Output::new(self)
    }

    /// Returns the same output as text: UTF-8 is put together across chunks, each stream by itself,
    /// and only bytes that are really invalid become replacement characters.
    pub fn text(&self) -> Text<'_> {
        Text::new(self.output())
    }

    /// Says whether another recipient took the streams over.
    pub fn is_taken(&self) -> bool {
        self.inner.link_end() == Some(LinkEnd::Taken)
    }

    /// Says whether bytes may be missing at the end of a stream; nothing while it is open.
    pub fn is_truncated(&self, stream: StreamName) -> Option<bool> {
        self.inner.opened().and_then(|link| link.truncated(stream))
    }

    /// Writes bytes of any number to the child's input, and waits until they are in its pipe.
    ///
    /// A child that has ended, or reads no further, is an outcome and not an error.
    ///
    /// # Errors
    /// As [`Placement::attach`], for an ended attempt whose streams were not opened yet.
    pub fn write_input(&self, bytes: &[u8]) -> Result<InputOutcome, Error> {
        self.inner.write(bytes)
    }

    /// Asks to close the child's input after everything that was written to it.
    ///
    /// # Errors
    /// As [`AttemptHandle::write_input`].
    pub fn close_input(&self) -> Result<(), Error> {
        self.inner.link()?.close_input();
        Ok(())
    }

    /// Says whether the child runs in a window ([`crate::Launch::window`]).
    pub fn is_window(&self) -> bool {
        self.inner.rules.is_window
    }

    /// Gives the child's window another size, 1 to 1000 columns and 1 to 500 rows, and waits until it
    /// has it; its foreground program is told by SIGWINCH. The last size counts.
    ///
    /// A child that has ended or has no window is an outcome and not an error.
    ///
    /// # Errors
    /// INVALID for another size; else as [`AttemptHandle::write_input`].
    pub fn resize(&self, columns: u16, rows: u16) -> Result<ResizeOutcome, Error> {
        self.inner.resize(columns, rows)
    }

    /// Returns a writer of the child's input for another thread.
    pub fn input(&self) -> Input {
        Input { inner: Arc::downgrade(&self.inner) }
    }

    /// Asks for a cooperative stop: SIGTERM, the launch's grace, SIGKILL.
    ///
    /// Returns when the stop is accepted, not when it is over.
    ///
    /// # Errors
    /// As [`Placement::stop`].
    pub fn stop(&self) -> Result<Attempt, Error> {
        self.inner.host.stop(self.id(), StopMode::Cooperative)
    }

    /// Asks for SIGKILL at once.
    ///
    /// # Errors
    /// As [`AttemptHandle::stop`].
    pub fn stop_forced(&self) -> Result<Attempt, Error> {
        self.inner.host.stop(self.id(), StopMode::Forced)
    }

    /// Waits until the child has exited and its runner is gone. Nothing is cleaned up.
    ///
    /// Output need not be read for that, unless there is more than the launch's bound: then the
    /// child waits for a reader.
    ///
    /// # Errors
    /// STORAGE for a damaged row.
    pub fn wait(&self) -> Result<End, Error> {
        loop {
            if let Some(end) = self.inner.host.wait(self.id(), None)? {
                if let Some(link) = self.inner.opened() {
                    link.settle();
                }
                return Ok(end);
            }
        }
    }

    /// Waits for the end, proves that what had to go is gone and removes the home.
    ///
    /// What cannot be proven is kept: [`End::kept`] says why, and that is no error.
    ///
    /// # Errors
    /// As [`AttemptHandle::wait`].
    pub fn finish(self) -> Result<End, Error> {
        let ended = self.wait()?;
        self.inner.let_go.store(true, Ordering::Release);
        let host = &self.inner.host;
        match host.cleanup(self.id()) {
            Ok(attempt) => End::read(host, attempt, None),
            Err(error) if ended.is_uncertain() || is_expected(&error) => {
                End::read(host, host.attempt(self.id())?, Some(error.into()))
            }
            Err(error) => Err(error),
        }
    }

    /// Lets go of the attempt; it goes on, and waits for another recipient.
    ///
    /// With the default rule for the loss of the host it is stopped when this process ends.
    pub fn detach(self) {
        self.inner.let_go.store(true, Ordering::Release);
    }

    /// Says whether the child goes on when its host ends.
    pub fn outlives_host(&self) -> bool {
        self.inner.rules.on_host_loss == OnHostLoss::Keep
    }

    pub(crate) fn link(&self) -> Result<Arc<Link>, Error> {
        self.inner.link()
    }
}

/// Says whether a cleanup was refused for want of proof, as opposed to failed.
fn is_expected(error: &Error) -> bool {
    match error.code() {
        Code::Conflict | Code::Uncertain | Code::UnsupportedCapability | Code::Unavailable => true,
        Code::Invalid
        | Code::Unauthenticated
        | Code::Forbidden
        | Code::Denied
        | Code::NotFound
        | Code::Storage
        | Code::Internal
        | Code::Unsupported
        | Code::ExecutableNotFound
        | Code::ExecutableRefused => false,
    }
}

impl Drop for AttemptHandle {
    fn drop(&mut self) {
        let inner = &self.inner;
        if inner.let_go.load(Ordering::Acquire) || inner.rules.on_host_loss == OnHostLoss::Keep {
            return;
        }
        match inner.link_end() {
            None | Some(LinkEnd::Failed(_)) if inner.opened().is_some() => {
                let (host, attempt_id) = (inner.host.clone(), inner.attempt_id.clone());
                // A stop waits for its reply. What is not reached has ended, or is stopped when
                // this process ends; so is what no thread could be had for.
                let asked = thread::Builder::new()
                    .spawn(move || host.stop(&attempt_id, StopMode::Cooperative).ok());
                drop(asked);
            }
            // It ended, or it is another's now, or it had ended before.
            None | Some(LinkEnd::Ended | LinkEnd::Taken | LinkEnd::Failed(_)) => {}
        }
    }
}

impl Inner {
    fn link(&self) -> Result<Arc<Link>, Error> {
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = &*link {
            return Ok(Arc::clone(link));
        }
        let opened = Arc::new(Link::new(self.host.attach_streams(&self.attempt_id)?, false));
        *link = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn opened(&self) -> Option<Arc<Link>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn link_end(&self) -> Option<LinkEnd> {
        self.opened()?.end()
    }

    fn write(&self, bytes: &[u8]) -> Result<InputOutcome, Error> {
        Ok(self.link()?.write(bytes))
    }

    fn resize(&self, columns: u16, rows: u16) -> Result<ResizeOutcome, Error> {
        let size = WindowSize::new(columns, rows).ok_or_else(|| {
            Refusal::new(Code::Invalid, "a window has 1 to 1000 columns and 1 to 500 rows")
        })?;
        if !self.rules.is_window {
            return Ok(ResizeOutcome::NotAccepted(ResizeRefused::NoWindow));
        }
        Ok(self.link()?.resize(size))
    }
}

impl Input {
    /// Writes as [`AttemptHandle::write_input`] does.
    ///
    /// # Errors
    /// As there.
    pub fn write(&self, bytes: &[u8]) -> Result<InputOutcome, Error> {
        match self.inner.upgrade() {
            Some(inner) => inner.write(bytes),
            None => Ok(InputOutcome::NotAccepted(InputRefused::NotBound)),
        }
    }

    /// Resizes as [`AttemptHandle::resize`] does.
    ///
    /// # Errors
    /// As there.
    pub fn resize(&self, columns: u16, rows: u16) -> Result<ResizeOutcome, Error> {
        match self.inner.upgrade() {
            Some(inner) => inner.resize(columns, rows),
            None => Ok(ResizeOutcome::NotAccepted(ResizeRefused::NotBound)),
        }
    }

    /// Closes as [`AttemptHandle::close_input`] does.
    ///
    /// # Errors
    /// As there.
    pub fn close(&self) -> Result<(), Error> {
        if let Some(inner) = self.inner.upgrade() {
            inner.link()?.close_input();
        }
        Ok(())
    }
}
