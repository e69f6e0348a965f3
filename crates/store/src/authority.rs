//! The token by which a runner knows that a control message comes from its host.

use crate::error::StoreError;
use crate::find::exists;
use crate::limits::TOKEN_BYTES;
use crate::sql::failed;
use crate::write::{Durability, Store};
use placement_contract::{AttemptId, Code, Refusal, Secret};
use rusqlite::{OptionalExtension as _, Transaction, params};

/// A token cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The token is shorter than 16 bytes or longer than 64.
    #[error("the control token must have 16 to 64 bytes")]
    Length,
    /// There is no such attempt.
    #[error("there is no such attempt")]
    NotFound,
    /// Another attempt has this token.
    #[error("the control token is already another attempt's")]
    Reused,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<AuthorityError> for Refusal {
    fn from(error: AuthorityError) -> Self {
        match error {
            AuthorityError::Length | AuthorityError::Reused => {
                Self::new(Code::Internal, error.to_string())
            }
            AuthorityError::NotFound => Self::new(Code::NotFound, error.to_string()),
            AuthorityError::Store(error) => error.into(),
        }
    }
}

impl Store {
    /// Records a fresh token unless one is recorded, and returns the recorded one, so that every
    /// start of an attempt uses the same.
    ///
    /// # Errors
    /// [`AuthorityError`]; the token is in none of them.
    pub fn authority(
        &self,
        attempt_id: &AttemptId,
        fresh: &Secret,
    ) -> Result<Secret, AuthorityError> {
        if !TOKEN_BYTES.contains(&fresh.expose().len()) {
            return Err(AuthorityError::Length);
        }
        self.write("authority", Durability::Normal, |transaction| {
            transaction
                .execute(
                    "INSERT OR IGNORE INTO placement_runner_authorities
                        (attempt_id, control_token)
                     SELECT attempt_id, ?2 FROM placement_attempts WHERE attempt_id = ?1",
                    params![attempt_id.as_str(), fresh.expose()],
                )
                .map_err(failed("record the control token"))?;
            match load(transaction, attempt_id)? {
                Some(recorded) => Ok(recorded),
                None if exists(transaction, attempt_id)? => Err(AuthorityError::Reused),
                None => Err(AuthorityError::NotFound),
            }
        })
    }

    /// Finds the recorded token.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn find_authority(&self, attempt_id: &AttemptId) -> Result<Option<Secret>, StoreError> {
        self.read(|transaction| load(transaction, attempt_id))
    }
}

fn load(
    transaction: &Transaction<'_>,
    attempt_id: &AttemptId,
) -> Result<Option<Secret>, StoreError> {
    let token: Option<Vec<u8>> = transaction
        .query_row(
            "SELECT control_token FROM placement_runner_authorities WHERE attempt_id = ?1",
            [attempt_id.as_str()],
            |row| row.get(0),
        )
        .optional()
        .map_err(failed("read the control token"))?;
    match token.map(Secret::new) {
        Some(token) if !TOKEN_BYTES.contains(&token.expose().len()) => {
            Err(StoreError::Corrupt { column: "control_token" })
        }
        token => Ok(token),
    }
}
