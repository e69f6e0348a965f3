//! One attempt as the store keeps it, decoded exactly.

use crate::error::StoreError;
use crate::record::Attachment;
use crate::sql::{Column, column, columns, number, optional, optional_number, parsed};
use camino::Utf8PathBuf;
use placement_contract::{
    ActionId, Attempt, AttemptId, AttemptState, CleanupScope, CleanupState, Digest, ExecutionState,
    Exit, ExitObservation, ExitSource, Generation, IdempotencyKey, LaunchRequest, Mechanism,
    OwnerId, RecipientId, RunnerId, SessionRef, Timestamp,
};
use placement_identity::{Observer, Pid, ProcessIdentity};
use placement_transitions::{Folded, RecordedIdentity};
use serde::de::DeserializeOwned;

/// Everything that is recorded of an attempt, but its evidence and its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The owner.
    pub owner_id: OwnerId,
    /// The owner's incarnation.
    pub owner_incarnation: u64,
    /// The owner's action.
    pub action_id: ActionId,
    /// The key under which it was launched.
    pub idempotency_key: IdempotencyKey,
    /// The digest of the admitted request.
    pub request_digest: Digest,
    /// The request as it was resolved; [`Row::request`] decodes it.
    pub request_json: String,
    /// The grants as they were resolved, in the words of whoever resolved them; [`Row::grants`]
    /// decodes them.
    pub grants_json: Option<String>,
    /// The program as the launch named it.
    pub program: String,
    /// Both states.
    pub state: AttemptState,
    /// The strongest scope that was measured when it was admitted.
    pub capability: CleanupScope,
    /// The scope that cleanup must prove gone.
    pub required_cleanup: CleanupScope,
    /// How its tree is contained.
    pub mechanism: Option<Mechanism>,
    /// How its exit is learnt.
    pub exit_observation: ExitObservation,
    /// Who learnt of the exit.
    pub exit_source: Option<ExitSource>,
    /// The exit, where it was observed.
    pub exit: Option<Exit>,
    /// By which proof the tree is gone.
    pub tree_gone_by: Option<String>,
    /// Who receives its output.
    pub attachment: Attachment,
    /// The runner that claimed it.
    pub runner: Option<RunnerRecord>,
    /// The leader.
    pub child: ChildIdentity,
    /// The init of its PID namespace, which was recorded with the leader.
    pub init: Option<ProcessIdentity>,
    /// The cgroup leaf of its tree.
    pub leaf: Option<Leaf>,
    /// The retained session that it holds until it is exited and cleaned up.
    pub session_ref: Option<SessionRef>,
    /// The key of its home.
    pub home_key: Option<String>,
    /// The key of its temporary directory.
    pub tmp_key: Option<String>,
    /// How many rows of evidence there are.
    pub evidence_count: u64,
    /// The chain value of the last one.
    pub chain_head: Digest,
    /// When the intent was recorded.
    pub created_at: Timestamp,
    /// When the last row of evidence was recorded.
    pub updated_at: Timestamp,
    /// When a repeated observation was last made.
    pub last_observed_at: Option<Timestamp>,
}

/// The runner that claimed an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerRecord {
    /// The runner.
    pub id: RunnerId,
    /// Its process, as it measured itself.
    pub identity: ProcessIdentity,
    /// Whether its end is recorded.
    pub finished: bool,
}

/// How much is recorded of the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildIdentity {
    /// No field at all.
    None,
    /// Some fields; they authorize nothing.
    Partial,
    /// Every field that the kernel gives.
    Complete(ProcessIdentity),
}

/// The cgroup leaf of an attempt's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Its directory, recorded before it is made.
    pub path: Utf8PathBuf,
    /// Its inode, once it was made.
    pub id: Option<u64>,
}

impl Row {
    /// Returns the public view.
    pub fn attempt(&self) -> Attempt {
        let unfinished = self.runner.as_ref().filter(|runner| !runner.finished);
        Attempt {
            attempt_id: self.attempt_id.clone(),
            action_id: self.action_id.clone(),
            owner_id: self.owner_id.clone(),
            owner_incarnation: self.owner_incarnation,
            request_digest: self.request_digest.clone(),
            program: self.program.clone(),
            execution_state: self.state.execution,
            cleanup_state: self.state.cleanup,
            capability: self.capability,
            required_cleanup: self.required_cleanup,
            mechanism: self.mechanism,
            exit_observation: self.exit_observation,
            exit_source: self.exit_source,
            exit: self.exit,
            tree_gone_by: self.tree_gone_by.clone(),
            attachment_generation: self.attachment.generation,
            home_ref: self.home_key.as_ref().map(|key| format!("home:{key}")),
            runner: unfinished.map(|runner| runner.id.clone()),
            evidence_count: self.evidence_count,
            chain_head: self.chain_head.clone(),
            created_at: self.created_at.clone(),
            updated_at: self.updated_at.clone(),
            last_observed_at: self.last_observed_at.clone(),
            session_ref: self.session_ref.clone(),
            notice: None,
            pruned: false,
        }
    }

    /// Decodes the stored request again, exactly, and compares it with the row.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where it does not decode or is another attempt's.
    pub fn request(&self) -> Result<LaunchRequest, StoreError> {
        let corrupt = StoreError::Corrupt { column: "request_json" };
        let Ok(request) = LaunchRequest::decode(self.request_json.as_bytes()) else {
            return Err(corrupt);
        };
        let same = request.attempt_id == self.attempt_id
            && request.owner_id == self.owner_id
            && request.action_id == self.action_id
            && request.session_ref == self.session_ref;
        if same { Ok(request) } else { Err(corrupt) }
    }

    /// Decodes the stored grants again; none where the row has none.
    ///
    /// Their type is of whoever resolved them.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where they do not decode.
    pub fn grants<G: DeserializeOwned>(&self) -> Result<Vec<G>, StoreError> {
        let Some(json) = &self.grants_json else { return Ok(Vec::new()) };
        serde_json::from_str(json).map_err(|_| StoreError::Corrupt { column: "grants_json" })
    }

    /// Says how much is recorded of the leader, as a proof of scope asks.
    pub fn recorded_identity(&self) -> RecordedIdentity {
        match &self.child {
            ChildIdentity::None => RecordedIdentity::None,
            ChildIdentity::Partial => RecordedIdentity::Partial,
            ChildIdentity::Complete(identity) => RecordedIdentity::Complete { pgid: identity.pgid },
        }
    }

    /// Returns what the row says of its evidence, to go on from.
    pub(crate) fn folded(&self) -> Folded {
        Folded {
            state: self.state,
            exit: self.exit,
            exit_source: self.exit_source,
            tree_gone_by: self.tree_gone_by.clone(),
            count: self.evidence_count,
            ..Folded::intended()
        }
    }
}

/// Where the last observation of each attempt is joined from.
pub(crate) const OBSERVED: &str = "LEFT JOIN placement_observations USING (attempt_id)";

columns! {
    /// The columns of an attempt.
    At {
        attempt_id, owner_id, owner_incarnation, action_id, idempotency_key, request_digest,
        request_json, grants_json, program, execution_state, cleanup_state, capability,
        required_cleanup, mechanism, exit_observation, exit_source, exit_code, exit_signal, exit_core,
        tree_gone_by, attachment_generation, recipient, runner_id, runner_pid, runner_pgid,
        runner_start_ticks, runner_boot_id, runner_pidfd_inode, runner_finished, pid, pgid,
        start_ticks, boot_id, pidfd_inode, init_pid, init_pgid, init_start_ticks, init_boot_id,
        init_pidfd_inode, observer_machine_id, observer_pid_namespace, observer_time_namespace,
        observer_cgroup_namespace, leaf_path, leaf_id, session_ref, home_key, tmp_key, evidence_count,
        chain_head, created_at, updated_at, observed_at,
    }
}

/// Decodes a row; a value that is not exactly one is named, never guessed.
pub(crate) fn decode(row: &rusqlite::Row<'_>) -> Result<Row, StoreError> {
    let state = AttemptState {
        execution: parsed(row, At::execution_state, ExecutionState::from_label)?,
        cleanup: parsed(row, At::cleanup_state, CleanupState::from_label)?,
    };
    Ok(Row {
        attempt_id: parsed(row, At::attempt_id, |text| AttemptId::parse(text).ok())?,
        owner_id: parsed(row, At::owner_id, |text| OwnerId::parse(text).ok())?,
        owner_incarnation: positive(row, At::owner_incarnation)?,
        action_id: parsed(row, At::action_id, |text| ActionId::parse(text).ok())?,
        idempotency_key: parsed(row, At::idempotency_key, |text| IdempotencyKey::parse(text).ok())?,
        request_digest: parsed(row, At::request_digest, Digest::parse)?,
        request_json: column(row, At::request_json)?,
        grants_json: column(row, At::grants_json)?,
        program: column(row, At::program)?,
        state,
        capability: parsed(row, At::capability, CleanupScope::from_label)?,
        required_cleanup: parsed(row, At::required_cleanup, CleanupScope::from_label)?,
        mechanism: optional(row, At::mechanism, Mechanism::from_label)?,
        exit_observation: parsed(row, At::exit_observation, ExitObservation::from_label)?,
        exit_source: optional(row, At::exit_source, ExitSource::from_label)?,
        exit: exit(row, &EXIT)?,
        tree_gone_by: column(row, At::tree_gone_by)?,
        attachment: Attachment {
            generation: Generation::new(number(row, At::attachment_generation)?),
            recipient: optional(row, At::recipient, |text| RecipientId::parse(text).ok())?,
        },
        runner: runner(row)?,
        child: child(row)?,
        init: init(row)?,
        leaf: leaf(row)?,
        session_ref: optional(row, At::session_ref, |text| SessionRef::parse(text).ok())?,
        home_key: column(row, At::home_key)?,
        tmp_key: column(row, At::tmp_key)?,
        evidence_count: positive(row, At::evidence_count)?,
        chain_head: parsed(row, At::chain_head, Digest::parse)?,
        created_at: parsed(row, At::created_at, Timestamp::parse)?,
        updated_at: parsed(row, At::updated_at, Timestamp::parse)?,
        last_observed_at: optional(row, At::observed_at, Timestamp::parse)?,
    })
}

fn positive(row: &rusqlite::Row<'_>, column: At) -> Result<u64, StoreError> {
    match number(row, column)? {
        0 => Err(column.at().corrupt()),
        number => Ok(number),
    }
}

fn flag(row: &rusqlite::Row<'_>, column: Column) -> Result<Option<bool>, StoreError> {
    match optional_number(row, column)? {
        None => Ok(None),
        Some(0) => Ok(Some(false)),
        Some(1) => Ok(Some(true)),
        Some(_) => Err(column.corrupt()),
    }
}

/// The columns of one exit.
pub(crate) struct ExitColumns {
    pub(crate) code: Column,
    pub(crate) signal: Column,
    pub(crate) core: Column,
}

const EXIT: ExitColumns = ExitColumns {
    code: At::exit_code.at(),
    signal: At::exit_signal.at(),
    core: At::exit_core.at(),
};

pub(crate) fn exit(
    row: &rusqlite::Row<'_>,
    columns: &ExitColumns,
) -> Result<Option<Exit>, StoreError> {
    let code: Option<i32> = column(row, columns.code)?;
    let signal: Option<i32> = column(row, columns.signal)?;
    match (code, signal, flag(row, columns.core)?) {
        (None, None, None) => Ok(None),
        (Some(code), None, None) => Ok(Some(Exit::Code { code })),
        (None, Some(signal), Some(core)) => Ok(Some(Exit::Signal { signal, core })),
        (Some(_), Some(_), _) => Err(StoreError::Corrupt { column: "exit_code" }),
        (_, _, Some(_)) => Err(StoreError::Corrupt { column: "exit_core" }),
        (None, Some(_), None) => Err(StoreError::Corrupt { column: "exit_signal" }),
    }
}

fn leaf(row: &rusqlite::Row<'_>) -> Result<Option<Leaf>, StoreError> {
    let path: Option<String> = column(row, At::leaf_path)?;
    match (path, optional_number(row, At::leaf_id)?) {
        (Some(path), id) => Ok(Some(Leaf { path: path.into(), id })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(StoreError::Corrupt { column: "leaf_id" }),
    }
}

/// The columns of one identity.
struct Columns {
    pid: Column,
    pgid: Column,
    start_ticks: Column,
    boot_id: Column,
    pidfd_inode: Column,
}

const CHILD: Columns = Columns {
    pid: At::pid.at(),
    pgid: At::pgid.at(),
    start_ticks: At::start_ticks.at(),
    boot_id: At::boot_id.at(),
    pidfd_inode: At::pidfd_inode.at(),
};

const RUNNER: Columns = Columns {
    pid: At::runner_pid.at(),
    pgid: At::runner_pgid.at(),
    start_ticks: At::runner_start_ticks.at(),
    boot_id: At::runner_boot_id.at(),
    pidfd_inode: At::runner_pidfd_inode.at(),
};

const INIT: Columns = Columns {
    pid: At::init_pid.at(),
    pgid: At::init_pgid.at(),
    start_ticks: At::init_start_ticks.at(),
    boot_id: At::init_boot_id.at(),
    pidfd_inode: At::init_pidfd_inode.at(),
};

fn child(row: &rusqlite::Row<'_>) -> Result<ChildIdentity, StoreError> {
    identity(row, &CHILD)
}

/// A claim has all of a runner or nothing; what is between was not written by this crate.
fn runner(row: &rusqlite::Row<'_>) -> Result<Option<RunnerRecord>, StoreError> {
    let id = optional(row, At::runner_id, |text| RunnerId::parse(text).ok())?;
    let finished =
        flag(row, At::runner_finished.at())?.ok_or_else(|| At::runner_finished.at().corrupt())?;
    match (id, identity(row, &RUNNER)?) {
        (None, ChildIdentity::None) => Ok(None),
        (Some(id), ChildIdentity::Complete(identity)) => {
            Ok(Some(RunnerRecord { id, identity, finished }))
        }
        (None, ChildIdentity::Partial | ChildIdentity::Complete(_))
        | (Some(_), ChildIdentity::None | ChildIdentity::Partial) => {
            Err(StoreError::Corrupt { column: "runner_id" })
        }
    }
}

/// It comes whole with the leader or not at all.
fn init(row: &rusqlite::Row<'_>) -> Result<Option<ProcessIdentity>, StoreError> {
    match identity(row, &INIT)? {
        ChildIdentity::None => Ok(None),
        ChildIdentity::Complete(identity) => Ok(Some(identity)),
        ChildIdentity::Partial => Err(StoreError::Corrupt { column: "init_pid" }),
    }
}

fn identity(row: &rusqlite::Row<'_>, columns: &Columns) -> Result<ChildIdentity, StoreError> {
    let pid = process_number(row, columns.pid)?;
    let pgid = process_number(row, columns.pgid)?;
    let start_ticks = optional_number(row, columns.start_ticks)?;
    let boot_id: Option<String> = column(row, columns.boot_id)?;
    let pidfd_inode = optional_number(row, columns.pidfd_inode)?;
    let observer = observer(row)?;
    match (pid, pgid, start_ticks, boot_id, observer) {
        (None, None, None, None, _) if pidfd_inode.is_none() => Ok(ChildIdentity::None),
        (Some(pid), Some(pgid), Some(start_ticks), Some(boot_id), Some(observer)) => {
            let identity =
                ProcessIdentity { pid, pgid, start_ticks, boot_id, pidfd_inode, observer };
            Ok(ChildIdentity::Complete(identity))
        }
        (_, _, _, _, _) => Ok(ChildIdentity::Partial),
    }
}

fn process_number(row: &rusqlite::Row<'_>, column: Column) -> Result<Option<Pid>, StoreError> {
    let number = optional_number(row, column)?;
    number
        .map(|number| {
            let number = u32::try_from(number).map_err(|_| column.corrupt())?;
            Pid::try_from(number).map_err(|_| column.corrupt())
        })
        .transpose()
}

fn observer(row: &rusqlite::Row<'_>) -> Result<Option<Observer>, StoreError> {
    let machine_id = column(row, At::observer_machine_id)?;
    let time_namespace = optional_number(row, At::observer_time_namespace)?;
    let cgroup_namespace = optional_number(row, At::observer_cgroup_namespace)?;
    let pid_namespace = optional_number(row, At::observer_pid_namespace)?;
    Ok(pid_namespace.map(|pid_namespace| Observer {
        machine_id,
        pid_namespace,
        time_namespace,
        cgroup_namespace,
    }))
}
