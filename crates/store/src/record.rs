//! Adding evidence to an attempt, and with it everything that follows from it.

use crate::error::StoreError;
use crate::evidence::Tail;
use crate::find::load;
use crate::limits::ROWS_PER_CHANGE_MAX;
use crate::row::{ChildIdentity, Row};
use crate::save::{reload, save};
use crate::write::{Durability, Store};
use camino::Utf8PathBuf;
use placement_contract::{
    AttemptId, AttemptState, Code, EvidenceKind, ExecutionState, Exit, Generation, Mechanism,
    RecipientId, Refusal, RunnerId,
};
use placement_identity::ProcessIdentity;
use placement_transitions::{EXIT_NOT_KNOWN, FoldWhy, Refused};
use serde::{Deserialize, Serialize};

/// Rows of evidence for one attempt and what is recorded with them.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The attempt.
    pub attempt_id: &'a AttemptId,
    /// The states in which the change is meant; any where absent.
    pub expect: Option<&'a [ExecutionState]>,
    /// The attachment on which the change rests; any where absent.
    pub expect_generation: Option<Generation>,
    /// The rows, in their order: 1 to 256.
    pub rows: &'a [Draft],
    /// What is recorded with them.
    pub fields: &'a Fields,
}

/// One row of evidence before it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// What it says.
    pub kind: EvidenceKind,
    /// A fixed phrase with ids; cut at 2048 bytes.
    pub detail: String,
}

/// What is recorded beside the evidence. What is recorded once never changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fields {
    /// The runner that claims the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner: Option<RunnerClaim>,
    /// The leader; where it was measured must be where the runner was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<ProcessIdentity>,
    /// The init of the PID namespace that contains the tree, measured as the leader is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init: Option<ProcessIdentity>,
    /// Who receives the output; the only field that changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachment: Option<Attachment>,
    /// How the tree is contained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// The cgroup leaf that is about to be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_path: Option<Utf8PathBuf>,
    /// The inode of the leaf that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_id: Option<u64>,
    /// The key of the home.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home_key: Option<String>,
    /// The key of the temporary directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmp_key: Option<String>,
}

/// A runner that claims an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnerClaim {
    /// The runner.
    pub id: RunnerId,
    /// Its process, as it measured itself.
    pub identity: ProcessIdentity,
}

/// Who receives an attempt's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// The attachment's number.
    pub generation: Generation,
    /// The recipient; nobody where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<RecipientId>,
}

impl Draft {
    /// Makes a row.
    pub fn new(kind: EvidenceKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// Makes the row that tells that the tree is gone, and by which proof.
    pub fn tree_gone(mechanism: Mechanism, proof: &str) -> Self {
        Self::new(EvidenceKind::TreeGone, format!("{mechanism}: {proof}"))
    }

    /// Makes the row that tells an exit; absent where it could not be learnt.
    pub fn exited(exit: Option<Exit>) -> Self {
        let detail = exit.map_or_else(|| EXIT_NOT_KNOWN.to_owned(), |exit| exit.to_string());
        Self::new(EvidenceKind::ChildExited, detail)
    }
}

/// A change cannot be recorded; nothing was.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A row does not fit the state.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A row tells a second exit, or none in its one form.
    #[error("the exit is already recorded or is not one")]
    Exit,
    /// The attempt is in none of the states in which the change was meant.
    #[error("the attempt is {actual}, not {}", labels(expected))]
    Expected {
        /// The states that were found.
        actual: AttemptState,
        /// The states in which it was meant.
        expected: Vec<ExecutionState>,
    },
    /// Another attachment came first.
    #[error("the attachment is {actual}, not {expected}")]
    Generation {
        /// The attachment that was found.
        actual: Generation,
        /// The attachment on which the change rests.
        expected: Generation,
    },
    /// A field is recorded already with another value.
    #[error("{field} is already recorded")]
    AlreadySet {
        /// The field.
        field: &'static str,
    },
    /// There is no such attempt.
    #[error("there is no such attempt")]
    NotFound,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn labels(states: &[ExecutionState]) -> String {
    states.iter().map(|state| state.label()).collect::<Vec<_>>().join(" or ")
}

impl From<RecordError> for Refusal {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Refused(refused) => refused.into(),
            RecordError::Store(error) => error.into(),
            RecordError::NotFound => Self::new(Code::NotFound, error.to_string()),
            RecordError::Exit
            | RecordError::Expected { .. }
            | RecordError::Generation { .. }
            | RecordError::AlreadySet { .. } => Self::new(Code::Conflict, error.to_string()),
        }
    }
}

impl Store {
    /// Records rows of evidence and everything that follows from them, all or nothing.
    ///
    /// The states, the exit, its source, the proof of an empty tree and the end of the runner are
    /// taken from the rows. Returns the attempt as it is then.
    ///
    /// # Errors
    /// [`RecordError`] says what stands against it; evidence, states and fields are as they were.
    ///
    /// # Panics
    /// Where there is no row, or more than 256: a state never changes without evidence.
    pub fn record(&self, change: &Change<'_>, durability: Durability) -> Result<Row, RecordError> {
        assert!(!change.rows.is_empty(), "a change has evidence");
        assert!(change.rows.len() <= ROWS_PER_CHANGE_MAX, "a change is bounded");
        let last = change.rows.last().expect("a change has evidence");
        self.write(last.kind.label(), durability, |transaction| {
            let row = load(transaction, change.attempt_id)?.ok_or(RecordError::NotFound)?;
            check_expected(&row, change)?;
            check_fields(&row, change.fields)?;
            let now = self.now();
            let mut tail = Tail::of(&row);
            for draft in change.rows {
                tail.add(transaction, draft.kind, &draft.detail, &now)?.map_err(refused)?;
            }
            save(transaction, &tail, change.attempt_id, change.fields, &now)?;
            reload(transaction, change.attempt_id)
        })
    }
}

fn check_expected(row: &Row, change: &Change<'_>) -> Result<(), RecordError> {
    if let Some(expected) = change.expect
        && !expected.contains(&row.state.execution)
    {
        return Err(RecordError::Expected { actual: row.state, expected: expected.to_vec() });
    }
    match change.expect_generation {
        Some(expected) if expected != row.attachment.generation => {
            Err(RecordError::Generation { actual: row.attachment.generation, expected })
        }
        Some(_) | None => Ok(()),
    }
}

/// Keeps what is recorded once: two runners never share a claim, and no identity is replaced.
pub(crate) fn check_fields(row: &Row, fields: &Fields) -> Result<(), RecordError> {
    let set = |field, free: bool| {
        if free { Ok(()) } else { Err(RecordError::AlreadySet { field }) }
    };
    set("the runner", fields.runner.is_none() || row.runner.is_none())?;
    set("the identity of the child", child_is_free(row, fields))?;
    set("the identity of the init", once(row.init.as_ref(), fields.init.as_ref()))?;
    set("where it was observed from", observer_is_one(row, fields))?;
    set("the mechanism", once(row.mechanism.as_ref(), fields.mechanism.as_ref()))?;
    let leaf = row.leaf.as_ref();
    set("the leaf", once(leaf.map(|leaf| &leaf.path), fields.leaf_path.as_ref()))?;
    set("the leaf's id", once(leaf.and_then(|leaf| leaf.id.as_ref()), fields.leaf_id.as_ref()))?;
    set("the leaf's id", leaf.is_some() || fields.leaf_path.is_some() || fields.leaf_id.is_none())?;
    set("the home", once(row.home_key.as_ref(), fields.home_key.as_ref()))?;
    set("the temporary directory", once(row.tmp_key.as_ref(), fields.tmp_key.as_ref()))
}

fn once<T: PartialEq>(recorded: Option<&T>, new: Option<&T>) -> bool {
    match (recorded, new) {
        (Some(recorded), Some(new)) => recorded == new,
        (None, _) | (_, None) => true,
    }
}

fn child_is_free(row: &Row, fields: &Fields) -> bool {
    match (&row.child, &fields.child) {
        (_, None) | (ChildIdentity::None, Some(_)) => true,
        (ChildIdentity::Complete(recorded), Some(new)) => recorded == new,
        (ChildIdentity::Partial, Some(_)) => false,
    }
}

/// The row has one observer for the runner, its child and its init, since it measures them all.
fn observer_is_one(row: &Row, fields: &Fields) -> bool {
    let recorded = match (&row.runner, &row.child) {
        (Some(runner), _) => Some(&runner.identity.observer),
        (None, ChildIdentity::Complete(child)) => Some(&child.observer),
        (None, ChildIdentity::None | ChildIdentity::Partial) => None,
    };
    let runner = fields.runner.as_ref().map(|runner| &runner.identity.observer);
    let child = fields.child.as_ref().map(|child| &child.observer);
    let init = fields.init.as_ref().map(|init| &init.observer);
    [runner, child, init].into_iter().all(|new| once(recorded, new))
        && once(runner, child)
        && once(runner, init)
        && once(child, init)
}

pub(crate) fn refused(why: FoldWhy) -> RecordError {
    match why {
        FoldWhy::Kind(refused) => RecordError::Refused(refused),
        FoldWhy::Exit | FoldWhy::First | FoldWhy::Sequence | FoldWhy::From | FoldWhy::To => {
            RecordError::Exit
        }
    }
}
