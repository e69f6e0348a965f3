//! The service itself: what it is opened with and what its operations share.

use crate::places::refuse_root;
use crate::refusal::{pruned_attempt, unknown_attempt};
use crate::runner_command::RunnerCommand;
use crate::warden::Warden;
use camino::Utf8PathBuf;
use placement_contract::{
    Attempt, AttemptId, CapabilityReport, Clock, Code, LaunchRequest, OwnerId, Refusal,
};
use placement_executable::KnownDigests;
use placement_policy::Snapshot;
use placement_store::{
    Change, Draft, Durability, Fields, RecordError, Role, Row, Store, StorePaths,
};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a service is opened with.
#[derive(Debug, Clone)]
pub struct ServiceConfig {
    /// The private root; made (0700) where it is missing.
    pub root: Utf8PathBuf,
    /// Whose attempts these are.
    pub owner: OwnerId,
    /// What the host offers and admits.
    pub snapshot: Snapshot,
    /// What is started as a runner.
    pub runner: RunnerCommand,
    /// The wall clock, for records only.
    pub clock: Arc<dyn Clock>,
    /// Where temporary directories go; below the root where absent.
    pub temporary_base: Option<Utf8PathBuf>,
}

/// One owner's way to the attempts of one root.
///
/// Cheap to clone and shared by threads; an operation holds the store for one transaction, never
/// over a socket call. Dropping the last clone ends no runner.
#[derive(Clone)]
pub struct Service {
    pub(crate) inner: Arc<Inner>,
}

/// What the clones of a service share.
pub(crate) struct Inner {
    pub(crate) owner: OwnerId,
    pub(crate) root_path: Utf8PathBuf,
    pub(crate) root: placement_homes::Root,
    pub(crate) paths: StorePaths,
    pub(crate) store: Store,
    /// A connection of its own, so that looking never waits behind a writer of this process.
    pub(crate) reader: Store,
    pub(crate) runner: RunnerCommand,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) temporary_base: Option<Utf8PathBuf>,
    pub(crate) known_digests: Option<KnownDigests>,
    pub(crate) warden: Warden,
    /// Attempts that a sweep is still busy with.
    pub(crate) being_swept: Mutex<BTreeSet<AttemptId>>,
    snapshot: Mutex<Snapshot>,
    pub(crate) capability: Mutex<Option<CapabilityReport>>,
    probes: AtomicU64,
}

impl Service {
    /// Opens a root and its store, making both where they are missing.
    ///
    /// # Errors
    /// INVALID where the root is no directory, not private to this user or on a network file
    /// system; STORAGE where it cannot be written or the store cannot be opened; UNAVAILABLE where
    /// no descriptor can be had.
    pub fn open(config: ServiceConfig) -> Result<Self, Refusal> {
        let ServiceConfig { root: root_path, owner, snapshot, runner, clock, temporary_base } =
            config;
        let root = placement_homes::Root::open(&root_path).map_err(|error| refuse_root(&error))?;
        // The physical path: the runner opens it from another working directory.
        let root_path = root.path().to_owned();
        let paths = StorePaths::below(&root_path);
        // With attempts and without a store, a key that was used would be free again.
        let is_new = || root.attempt_keys().is_ok_and(|keys| keys.is_empty());
        let store = Store::open_or_make(&paths, Arc::clone(&clock), is_new)?;
        let reader = Store::open(&paths, Role::Service, Arc::clone(&clock))?;
        let warden = Warden::new()
            .map_err(|_| Refusal::new(Code::Unavailable, "no event descriptor could be had"))?;
        let known_digests = root.digests().map(|file| KnownDigests::new(file, Arc::clone(&clock)));
        let inner = Inner {
            owner,
            root_path,
            root,
            paths,
            store,
            reader,
            runner,
            clock,
            temporary_base,
            known_digests,
            warden,
            being_swept: Mutex::default(),
            snapshot: Mutex::new(snapshot),
            capability: Mutex::default(),
            probes: AtomicU64::new(1),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns whose attempts these are.
    pub fn owner(&self) -> &OwnerId {
        &self.inner.owner
    }

    /// Returns a copy of what the host offers and admits now.
    pub fn snapshot(&self) -> Snapshot {
        self.inner.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes what the host offers and admits; launches that are prepared later see it.
    pub fn change_snapshot<T>(&self, change: impl FnOnce(&mut Snapshot) -> T) -> T {
        change(&mut self.inner.snapshot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns what is recorded of an attempt, or its receipt, without looking at anything else.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown and a foreign attempt alike; STORAGE.
    pub fn recorded(&self, attempt_id: &AttemptId) -> Result<Attempt, Refusal> {
        Ok(match self.find(attempt_id)? {
            Found::Row(row) => row.attempt(),
            Found::Pruned(attempt) => *attempt,
        })
    }

    /// Returns the request of an attempt as it was admitted.
    ///
    /// # Errors
    /// `NOT_FOUND`; STORAGE where it does not decode any more.
    pub fn request(&self, attempt_id: &AttemptId) -> Result<LaunchRequest, Refusal> {
        Ok(self.look(attempt_id)?.request()?)
    }

    /// Reads an attempt's row.
    pub(crate) fn row(&self, attempt_id: &AttemptId) -> Result<Row, Refusal> {
        match self.inner.store.find(&self.inner.owner, attempt_id)? {
            Some(row) => Ok(row),
            None => Err(self.refuse_absent(attempt_id)),
        }
    }

    /// Reads a row again, whoever owns the attempt.
    pub(crate) fn reread(&self, row: &Row) -> Result<Row, Refusal> {
        let found = self.inner.store.find_any(&row.attempt_id)?;
        found.ok_or_else(|| pruned_attempt(&row.attempt_id))
    }

    /// Reads an attempt's row without waiting behind a writer of this process.
    pub(crate) fn look(&self, attempt_id: &AttemptId) -> Result<Row, Refusal> {
        match self.inner.reader.find(&self.inner.owner, attempt_id)? {
            Some(row) => Ok(row),
            None => Err(self.refuse_absent(attempt_id)),
        }
    }

    /// Reads an attempt's row, or its receipt, without waiting behind a writer of this process.
    pub(crate) fn find(&self, attempt_id: &AttemptId) -> Result<Found, Refusal> {
        if let Some(row) = self.inner.reader.find(&self.inner.owner, attempt_id)? {
            return Ok(Found::Row(Box::new(row)));
        }
        match self.pruned(attempt_id)? {
            Some(pruned) => Ok(Found::Pruned(Box::new(pruned.attempt))),
            None => Err(unknown_attempt(attempt_id)),
        }
    }

    /// Words that there is no row; of a pruned attempt its owner is told what became of it.
    fn refuse_absent(&self, attempt_id: &AttemptId) -> Refusal {
        match self.pruned(attempt_id) {
            Ok(Some(_)) => pruned_attempt(attempt_id),
            Ok(None) => unknown_attempt(attempt_id),
            Err(refusal) => refusal,
        }
    }

    /// Records rows where the attempt still is as `row` says, in its state and its attachment.
    pub(crate) fn record_on(
        &self,
        row: &Row,
        rows: &[Draft],
        fields: &Fields,
        durability: Durability,
    ) -> Result<Row, RecordError> {
        let expect = [row.state.execution];
        let change = Change {
            attempt_id: &row.attempt_id,
            expect: Some(&expect),
            expect_generation: Some(row.attachment.generation),
            rows,
            fields,
        };
        self.inner.store.record(&change, durability)
    }

    /// Records rows as [`Service::record_on`] does; nothing where somebody else has changed the
    /// attempt meanwhile.
    pub(crate) fn commit(
        &self,
        row: &Row,
        rows: &[Draft],
        fields: &Fields,
        durability: Durability,
    ) -> Result<Option<Row>, Refusal> {
        unless_overtaken(self.record_on(row, rows, fields, durability))
    }

    /// Numbers a call, so that its answer is told from an older one.
    pub(crate) fn next_probe(&self) -> u64 {
        self.inner.probes.fetch_add(1, Ordering::Relaxed)
    }
}

/// What is there of an attempt.
pub(crate) enum Found {
    /// Everything that is recorded.
    Row(Box<Row>),
    /// A receipt; nothing can become of it any more.
    Pruned(Box<Attempt>),
}

/// Says whether somebody else has changed the attempt meanwhile, so that it is to be read again.
pub(crate) fn was_overtaken(error: &RecordError) -> bool {
    match error {
        RecordError::Refused(_)
        | RecordError::Exit
        | RecordError::Expected { .. }
        | RecordError::Generation { .. }
        | RecordError::AlreadySet { .. } => true,
        RecordError::NotFound | RecordError::Store(_) => false,
    }
}

/// Returns nothing where somebody else has changed the attempt meanwhile, so that it is to be read
/// again.
pub(crate) fn unless_overtaken(recorded: Result<Row, RecordError>) -> Result<Option<Row>, Refusal> {
    match recorded {
        Ok(row) => Ok(Some(row)),
        Err(error) if was_overtaken(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Service")
            .field("root", &self.inner.root_path)
            .field("owner", &self.inner.owner)
            .field("warden", &self.inner.warden)
            .finish_non_exhaustive()
    }
}
