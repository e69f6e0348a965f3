//! One host: opening it, looking, settling; `launching` has the launch.

use crate::attempt::AttemptHandle;
use crate::attempts::Attempts;
use crate::builder::Builder;
use crate::end::End;
use crate::error::Error;
use crate::launching::Rules;
use crate::observer::Observer;
use camino::Utf8Path;
use placement_contract::limits::EVIDENCE_PAGE_MAX;
use placement_contract::{
    Attempt, AttemptId, Clock, Code, Digest, Evidence, OwnerId, PolicyRef, RecipientId, Refusal,
    Status,
};
use placement_policy::Snapshot;
use placement_service::{
    Adopted, Capabilities, ExecutableMeasurement, HostPlace, IfUncertain, Pruning, Service,
    StdinClosing, StopMode, StoreCheck, Streams, Sweep, Verified, Waited,
};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

/// A host of attempts on one private root.
///
/// Cheap to clone; may be used from any thread. Two hosts on one root are normal.
#[derive(Debug, Clone)]
pub struct Placement {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) service: Service,
    pub(crate) recipient: RecipientId,
    pub(crate) clock: Arc<dyn Clock>,
    /// What is offered before any launch named a directory.
    pub(crate) base: Snapshot,
    pub(crate) admitted: RwLock<()>,
}

impl Placement {
    /// Opens a host with the default settings; makes the root and the store on first use.
    ///
    /// # Errors
    /// As [`Builder::open`].
    pub fn open(root: impl AsRef<Utf8Path>) -> Result<Self, Error> {
        Self::builder().root(root).open()
    }

    /// Binds a root to this machine that was moved here from another one, on the word that nothing
    /// lives in it; durable.
    ///
    /// Attempts that lived there become uncertain with the next reconcile, since nothing of another
    /// machine can be observed. Until this is said, opening such a root is refused.
    ///
    /// # Errors
    /// CONFLICT where a runner of this machine lives in it; INVALID, STORAGE and UNAVAILABLE for a root
    /// that cannot be used.
    pub fn adopt_root(root: impl AsRef<Utf8Path>) -> Result<Adopted, Error> {
        Ok(placement_service::adopt_root(root.as_ref())?)
    }

    /// Starts to describe a host with other settings.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(service: Service, clock: Arc<dyn Clock>) -> Self {
        let recipient = RecipientId::parse(&format!("host:{}", std::process::id()))
            .expect("a short ASCII text is an id");
        let base = service.snapshot();
        let admitted = RwLock::new(());
        Self { shared: Arc::new(Shared { service, recipient, clock, base, admitted }) }
    }

    /// Takes over the streams of a recorded attempt, and the host's place.
    ///
    /// Output goes on where the acknowledgments ended; whoever had the streams is told.
    ///
    /// # Errors
    /// `NOT_FOUND`, CONFLICT for an attempt that was never started, UNAVAILABLE where a live runner
    /// did not answer.
    pub fn attach(&self, attempt_id: &AttemptId) -> Result<AttemptHandle, Error> {
        let rules = Rules::of(&self.service().request(attempt_id)?);
        let streams = self.attach_streams(attempt_id)?;
        Ok(AttemptHandle::attached(self.clone(), streams, rules, true))
    }

    /// Watches the output of an attempt from the first byte that is still kept.
    ///
    /// Watching acknowledges nothing, takes nothing over and never slows the child.
    ///
    /// # Errors
    /// `NOT_FOUND`, and CONFLICT where nothing is kept on disk.
    pub fn observe(&self, attempt_id: &AttemptId) -> Result<Observer, Error> {
        Ok(Observer::new(self.service().observe(attempt_id)?))
    }

    /// Returns the attempts of this owner.
    pub const fn attempts(&self) -> Attempts<'_> {
        Attempts::new(self)
    }

    /// Returns what is recorded of an attempt.
    ///
    /// # Errors
    /// `NOT_FOUND`, and STORAGE for a damaged row.
    pub fn attempt(&self, attempt_id: &AttemptId) -> Result<Attempt, Error> {
        Ok(self.service().recorded(attempt_id)?)
    }

    /// Returns what is recorded of an attempt and beside it one fresh observation.
    ///
    /// # Errors
    /// `NOT_FOUND`, and STORAGE for a damaged row.
    pub fn status(&self, attempt_id: &AttemptId) -> Result<Status, Error> {
        Ok(self.service().status(attempt_id)?)
    }

    /// Asks for the end of an attempt; returns when the stop is accepted, not when it is over.
    ///
    /// A cooperative stop is SIGTERM, the launch's grace and SIGKILL; a forced one is SIGKILL.
    ///
    /// # Errors
    /// `NOT_FOUND`, and UNAVAILABLE where a living runner does not answer. A stop that cannot be
    /// proven to reach anything is no error: the attempt is returned as uncertain.
    pub fn stop(&self, attempt_id: &AttemptId, mode: StopMode) -> Result<Attempt, Error> {
        Ok(self.service().stop(attempt_id, mode, IfUncertain::Leave)?)
    }

    /// Kills an attempt; where its state is uncertain also the processes that carry its marker.
    ///
    /// # Errors
    /// As [`Placement::stop`].
    pub fn stop_survivors(&self, attempt_id: &AttemptId) -> Result<Attempt, Error> {
        Ok(self.service().stop(attempt_id, StopMode::Forced, IfUncertain::EndSurvivors)?)
    }

    /// Waits until the child has exited and its runner is gone; nothing at the deadline.
    ///
    /// # Errors
    /// `NOT_FOUND`, and STORAGE for a damaged row.
    pub fn wait(
        &self,
        attempt_id: &AttemptId,
        deadline: Option<Instant>,
    ) -> Result<Option<End>, Error> {
        match self.service().wait_ended(attempt_id, deadline)? {
            Waited::Ended => {
                let mut attempt = self.attempt(attempt_id)?;
                if attempt.execution_state.is_live() {
                    // Its runner did not end in order; what became of the child is found out now.
                    attempt = self.reconcile(attempt_id)?;
                }
                Ok(Some(End::read(self, attempt, None)?))
            }
            Waited::DeadlineElapsed => Ok(None),
        }
    }

    /// Proves the required scope gone and removes the home.
    ///
    /// # Errors
    /// CONFLICT while the attempt may run and where the proof is missing, and nothing is removed
    /// then; UNAVAILABLE where the removal failed.
    pub fn cleanup(&self, attempt_id: &AttemptId) -> Result<Attempt, Error> {
        Ok(self.service().cleanup(attempt_id)?)
    }

    /// Looks again at what became of an attempt whose runner is gone.
    ///
    /// # Errors
    /// `NOT_FOUND`, and STORAGE for a damaged row.
    pub fn reconcile(&self, attempt_id: &AttemptId) -> Result<Attempt, Error> {
        Ok(self.service().reconcile(attempt_id)?)
    }

    /// Looks once at the live attempts of all owners that were not observed for the longest time, at
    /// most 64, and settles those whose runner is gone.
    ///
    /// For a loop with [`SWEEP_DELAY`](crate::SWEEP_DELAY) between two passes, in one of the hosts
    /// of a root. A pass that waits for an attempt gives up after 5 seconds.
    ///
    /// # Errors
    /// STORAGE where the store cannot be read or written.
    pub fn sweep(&self) -> Result<Sweep, Error> {
        Ok(self.service().sweep()?)
    }

    /// Settles an uncertain attempt as exited on an operator's word, with a reason of 1 to 1024 bytes.
    ///
    /// That the caller is this operator is the host's to know; who may be one is what it was opened
    /// with, else [`Placement::root_owner`]. Nothing is removed: a cleanup still asks for its proof.
    ///
    /// # Errors
    /// DENIED for anybody else; INVALID for the reason; `NOT_FOUND`; CONFLICT for an attempt that is
    /// not uncertain, or is seen alive.
    pub fn resolve(
        &self,
        attempt_id: &AttemptId,
        operator: &OwnerId,
        reason: &str,
    ) -> Result<Attempt, Error> {
        Ok(self.service().resolve(attempt_id, operator, reason)?)
    }

    /// Returns as whom this host may settle an uncertain attempt by a word: its owner where operators
    /// are named, else the user who owns the root.
    pub fn operator(&self) -> OwnerId {
        self.service().own_operator()
    }

    /// Returns the launch policy of who names none.
    pub fn default_policy(&self) -> PolicyRef {
        self.service().snapshot().policy().r#ref.clone()
    }

    /// Returns where programs are looked for, absolute directories between colons.
    pub fn search_path(&self) -> String {
        self.service().snapshot().search_path().to_owned()
    }

    /// Returns the user who owns the root, as an operator is named.
    pub fn root_owner(&self) -> OwnerId {
        self.service().root_owner()
    }

    /// Closes a child's input, after everything that was written to it.
    ///
    /// # Errors
    /// `NOT_FOUND`; CONFLICT for an attempt that was not started, and where its runner does not
    /// answer; `UNSUPPORTED_CAPABILITY` for a window. An input that cannot be closed any more is an answer and not an error.
    pub fn close_stdin(&self, attempt_id: &AttemptId) -> Result<StdinClosing, Error> {
        Ok(self.service().close_stdin(attempt_id)?)
    }

    /// Removes attempts that are ended, cleaned up and unchanged for so long, and leaves one receipt
    /// each, which answers a retry with the same key; some 1000 a call.
    ///
    /// # Errors
    /// STORAGE. What keeps one attempt is in the answer.
    pub fn prune(&self, older_than: Duration) -> Result<Pruning, Error> {
        Ok(self.service().prune(older_than)?)
    }

    /// Measures a program, for [`Launch::measured`](crate::Launch::measured); a relative path is taken from the current
    /// directory.
    ///
    /// # Errors
    /// UNAVAILABLE for what cannot be measured, and DENIED where the policy lists other programs.
    pub fn measure(&self, path: impl AsRef<Utf8Path>) -> Result<ExecutableMeasurement, Error> {
        let path = camino::absolute_utf8(path.as_ref()).map_err(|_| {
            Refusal::new(Code::Unavailable, "the path is empty or the current directory is gone")
        })?;
        Ok(self.service().measure_executable(&path)?)
    }

    /// Returns the evidence of an attempt after a row, at most so many rows.
    ///
    /// # Errors
    /// `NOT_FOUND`, and STORAGE for a damaged row.
    pub fn evidence(
        &self,
        attempt_id: &AttemptId,
        after: u64,
        limit: Option<u32>,
    ) -> Result<Vec<Evidence>, Error> {
        let mut rows: Vec<Evidence> = Vec::new();
        let mut after = after;
        loop {
            let have = u32::try_from(rows.len()).unwrap_or(u32::MAX);
            let wanted = limit.map_or(EVIDENCE_PAGE_MAX, |limit| limit.saturating_sub(have));
            if wanted == 0 {
                return Ok(rows);
            }
            let page = self.service().evidence(attempt_id, after, wanted.min(EVIDENCE_PAGE_MAX))?;
            rows.extend(page.evidence);
            match page.next_after {
                Some(next) => after = next,
                None => return Ok(rows),
            }
        }
    }

    /// Recomputes the evidence chain of an attempt, folds it into a state and compares both with
    /// what is recorded, and the head with one that was kept elsewhere.
    ///
    /// # Errors
    /// `NOT_FOUND`. What is wrong is a finding of the answer, not an error.
    pub fn verify(&self, attempt_id: &AttemptId, head: Option<&Digest>) -> Result<Verified, Error> {
        Ok(self.service().verify(attempt_id, head)?)
    }

    /// Looks at every page of the store, and for attempt directories of which it knows nothing, for
    /// some seconds at most; changes nothing.
    ///
    /// # Errors
    /// STORAGE where the store cannot be read. What is wrong is a finding of the answer.
    pub fn check_store(&self) -> Result<StoreCheck, Error> {
        Ok(self.service().check_store()?)
    }

    /// Returns what was measured here; measures once per host.
    ///
    /// # Errors
    /// UNAVAILABLE where the probe did not answer.
    pub fn capabilities(&self) -> Result<Capabilities, Error> {
        Ok(self.service().capabilities()?)
    }

    /// Returns the owner of this host's attempts.
    pub fn owner(&self) -> &OwnerId {
        self.service().owner()
    }

    pub(crate) fn service(&self) -> &Service {
        &self.shared.service
    }

    pub(crate) fn attach_streams(&self, attempt_id: &AttemptId) -> Result<Streams, Refusal> {
        let recipient = &self.shared.recipient;
        Ok(self.service().attach(attempt_id, recipient, HostPlace::Adopt)?.streams)
    }
}
