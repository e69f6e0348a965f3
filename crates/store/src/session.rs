//! Sessions: which attempt holds one, and which digest a file of its retained home first had.

use crate::error::StoreError;
use crate::sql::{columns, failed, parsed};
use crate::write::{Durability, Store};
use placement_contract::request::RelativePath;
use placement_contract::{
    AttemptId, AttemptState, CleanupState, Code, Digest, ExecutionState, OwnerId, Refusal,
    SessionRef, Timestamp,
};
use rusqlite::{OptionalExtension as _, Transaction, params};
use std::fmt;

/// The attempt that holds a session: it has not exited, or is not cleaned up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHolder {
    /// The session.
    pub session_ref: SessionRef,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Its states.
    pub state: AttemptState,
    /// When its intent was recorded.
    pub created_at: Timestamp,
}

/// What became of the digest of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundFile {
    /// It is the first one, and recorded now.
    First,
    /// The same one was recorded before.
    Again,
}

/// The digest of a file was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum BindFileError {
    /// The file of this session was first recorded with another digest.
    #[error("the file was recorded with another digest before")]
    Differs,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<BindFileError> for Refusal {
    fn from(error: BindFileError) -> Self {
        match error {
            BindFileError::Differs => Self::new(Code::Conflict, error.to_string()),
            BindFileError::Store(error) => error.into(),
        }
    }
}

impl SessionHolder {
    /// Says what lets go of the session.
    pub fn hint(&self) -> String {
        let id = &self.attempt_id;
        match self.state.execution {
            ExecutionState::Intended
            | ExecutionState::Starting
            | ExecutionState::Running
            | ExecutionState::Stopping => "stop it, or wait with --wait-session".to_owned(),
            ExecutionState::Exited => {
                format!("`placement cleanup {id}` lets go of it, or wait with --wait-session")
            }
            ExecutionState::Uncertain => {
                format!(
                    "`placement reconcile {id}` settles it, or `placement resolve`; then clean it up"
                )
            }
        }
    }
}

impl From<&SessionHolder> for Refusal {
    fn from(holder: &SessionHolder) -> Self {
        Self::new(Code::Conflict, holder.to_string()).with_hint(holder.hint())
    }
}

/// Names the session, the attempt, its state and since when it is recorded.
impl fmt::Display for SessionHolder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (session, id) = (&self.session_ref, &self.attempt_id);
        let (state, since) = (self.state.execution, &self.created_at);
        write!(formatter, "session \"{session}\" is held by attempt {id} ({state}, ")?;
        match state {
            ExecutionState::Intended => write!(formatter, "recorded {since})"),
            ExecutionState::Exited => {
                write!(formatter, "cleanup {}, started {since})", self.state.cleanup)
            }
            ExecutionState::Starting
            | ExecutionState::Running
            | ExecutionState::Stopping
            | ExecutionState::Uncertain => write!(formatter, "started {since})"),
        }
    }
}

impl Store {
    /// Finds the attempt that holds a session of an owner.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where its row is malformed.
    pub fn session_holder(
        &self,
        owner: &OwnerId,
        session: &SessionRef,
    ) -> Result<Option<SessionHolder>, StoreError> {
        self.read(|transaction| holder(transaction, owner, session))
    }

    /// Records the digest with which a file of a retained home is first seeded, or finds the same
    /// one recorded.
    ///
    /// One transaction; survives the death of every process. What is recorded stays, whatever becomes
    /// of attempts.
    ///
    /// # Errors
    /// [`BindFileError::Differs`]; the first digest stands.
    pub fn bind_session_file(
        &self,
        owner: &OwnerId,
        session: &SessionRef,
        path: &RelativePath,
        digest: &Digest,
    ) -> Result<BoundFile, BindFileError> {
        self.write("session-file", Durability::Normal, |transaction| {
            let key = [owner.as_str(), session.as_str(), path.as_str()];
            match first_digest(transaction, key)? {
                Some(first) if first == *digest => return Ok(BoundFile::Again),
                Some(_) => return Err(BindFileError::Differs),
                None => {}
            }
            transaction
                .execute(
                    "INSERT INTO placement_session_files
                        (owner_id, session_ref, path, digest, created_at)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![key[0], key[1], key[2], digest.as_str(), self.now().as_str()],
                )
                .map_err(failed("record the digest of a file"))?;
            Ok(BoundFile::First)
        })
    }
}

fn first_digest(
    transaction: &Transaction<'_>,
    key: [&str; 3],
) -> Result<Option<Digest>, StoreError> {
    let text: Option<String> = transaction
        .query_row(
            "SELECT digest FROM placement_session_files
             WHERE owner_id = ?1 AND session_ref = ?2 AND path = ?3",
            key,
            |row| row.get(0),
        )
        .optional()
        .map_err(failed("read the digest of a file"))?;
    text.map(|text| Digest::parse(&text).ok_or(StoreError::Corrupt { column: "digest" }))
        .transpose()
}

columns! {
    /// The columns that tell of a holder.
    Of { attempt_id, session_ref, execution_state, cleanup_state, created_at }
}

/// Finds the holder by the index of those that hold one, whose words these are.
pub(crate) fn holder(
    transaction: &Transaction<'_>,
    owner: &OwnerId,
    session: &SessionRef,
) -> Result<Option<SessionHolder>, StoreError> {
    let sql = format!(
        "SELECT {} FROM placement_attempts
         WHERE owner_id = ?1 AND session_ref = ?2
             AND (execution_state <> 'exited' OR cleanup_state <> 'complete')",
        Of::SELECTED
    );
    let mut statement =
        transaction.prepare_cached(&sql).map_err(failed("look for the holder of a session"))?;
    let mut found = statement
        .query([owner.as_str(), session.as_str()])
        .map_err(failed("look for the holder of a session"))?;
    found.next().map_err(failed("look for the holder of a session"))?.map(decode).transpose()
}

fn decode(row: &rusqlite::Row<'_>) -> Result<SessionHolder, StoreError> {
    Ok(SessionHolder {
        session_ref: parsed(row, Of::session_ref, |text| SessionRef::parse(text).ok())?,
        attempt_id: parsed(row, Of::attempt_id, |text| AttemptId::parse(text).ok())?,
        state: AttemptState {
            execution: parsed(row, Of::execution_state, ExecutionState::from_label)?,
            cleanup: parsed(row, Of::cleanup_state, CleanupState::from_label)?,
        },
        created_at: parsed(row, Of::created_at, Timestamp::parse)?,
    })
}
