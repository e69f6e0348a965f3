//! What a credential broker says of a projection before any byte of it is asked for.

use super::format::CredentialFormat;
use crate::canonical::Digest;
use crate::clock::Timestamp;
use crate::error::{Code, Refusal};
use crate::exact::{self, DecodeError, Exact, Line, invalid, ranged};
use crate::id::{AttemptId, Id, OwnerId, ProfileId, ProjectionId};
use crate::limits::{DEFINITION_BYTES_MAX, INTEGER_MAX, SUBPATH_BYTES_MAX};
use crate::request::{EnvironmentName, LaunchRequest, RelativePath};
use crate::state::labels;
use serde::{Deserialize, Serialize};

labels! {
    /// How a credential reaches a program.
    ProjectionKind {
        /// As an environment variable.
        Environment = "environment",
        /// As a file in its home.
        File = "file",
    }
}

/// What a broker says of a projection; holds no bytes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckedProjection {
    /// The projection.
    pub projection_id: ProjectionId,
    /// The workspace that it belongs to.
    pub workspace_id: Id,
    /// Its name there.
    pub name: Id,
    /// The definition of the credential.
    pub definition_id: Id,
    /// The revision of the definition, at least 1.
    #[serde(deserialize_with = "ranged::<_, 1, INTEGER_MAX>")]
    pub definition_revision: u64,
    /// Who issued it.
    pub issuer_owner: OwnerId,
    /// The incarnation of the issuer, at least 1.
    #[serde(deserialize_with = "ranged::<_, 1, INTEGER_MAX>")]
    pub issuer_incarnation: u64,
    /// For whom it was issued.
    pub subject: OwnerId,
    /// Who may use it.
    pub audience: OwnerId,
    /// The attempt that may use it.
    pub attempt_id: AttemptId,
    /// The profile of that launch.
    pub profile_id: ProfileId,
    /// The digest of the profile.
    pub profile_digest: Digest,
    /// The digest of the binding.
    pub binding_digest: Digest,
    /// The digest of the launch policy.
    pub launch_policy_digest: Digest,
    /// The provider.
    pub provider: Id,
    /// How it reaches the program.
    pub projection_kind: ProjectionKind,
    /// The variable or the file's name.
    pub destination: Line<SUBPATH_BYTES_MAX>,
    /// What makes it.
    pub materializer: Id,
    /// Counts how often it was made.
    #[serde(deserialize_with = "ranged::<_, 0, INTEGER_MAX>")]
    pub materialization_generation: u64,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Counts what the broker revoked.
    #[serde(deserialize_with = "ranged::<_, 0, INTEGER_MAX>")]
    pub authorization_epoch: u64,
    /// In which form.
    pub format: CredentialFormat,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// When it was issued.
    pub created_at: Timestamp,
    /// Whether the source is there; of a file only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_present: Option<bool>,
}

/// The launch that a projection is held against.
#[derive(Debug, Clone, Copy)]
pub struct ProjectionScope<'a> {
    /// The request.
    pub request: &'a LaunchRequest,
    /// Where the login goes, where the broker says it by a file.
    pub login_path: Option<&'a RelativePath>,
}

impl CheckedProjection {
    /// Decodes an answer exactly.
    ///
    /// # Errors
    /// [`DecodeError`] names the field and the rule that it breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        exact::decode(bytes)
    }

    /// Checks that the projection was issued for this launch and has where to go.
    ///
    /// # Errors
    /// DENIED, naming the projection and what differs.
    pub fn admit(&self, scope: &ProjectionScope<'_>) -> Result<(), Refusal> {
        let request = scope.request;
        if self.subject != request.owner_id || self.audience != request.owner_id {
            return Err(self.denied("was issued for another owner"));
        }
        if self.attempt_id != request.attempt_id {
            return Err(self.denied("was issued for another attempt"));
        }
        if self.profile_id != request.profile_id || self.profile_digest != request.profile_digest {
            return Err(self.denied("was issued for another profile"));
        }
        if self.binding_digest != request.binding_digest {
            return Err(self.denied("was issued for another binding"));
        }
        match self.projection_kind {
            ProjectionKind::Environment => Ok(()),
            ProjectionKind::File => self.admit_file(scope),
        }
    }

    fn admit_file(&self, scope: &ProjectionScope<'_>) -> Result<(), Refusal> {
        let request = scope.request;
        let home = request.launch.provider_home.as_ref();
        let retained = request.retained_session().is_some();
        if !retained && !home.is_some_and(|home| home.private) {
            return Err(self.denied("needs a retained session or a private home"));
        }
        if home.is_some_and(|home| home.provider != self.provider) {
            return Err(self.denied("is of another provider"));
        }
        let name = scope.login_path.and_then(|path| path.as_str().rsplit('/').next());
        if name != Some(self.destination.as_str()) {
            return Err(self.denied("is not named like the login file"));
        }
        Ok(())
    }

    fn denied(&self, rule: &str) -> Refusal {
        Refusal::new(Code::Denied, format!("projection {}: {rule}", self.projection_id))
    }
}

impl Exact for CheckedProjection {
    const NAME: &str = "projection";
    const BYTES_MAX: usize = DEFINITION_BYTES_MAX;

    fn check(&self) -> Result<(), DecodeError> {
        self.format.check_within("format")?;
        let destination = self.destination.as_str();
        match self.projection_kind {
            ProjectionKind::Environment => {
                if self.source_present.is_some() {
                    return Err(invalid("source_present", "is for a file only"));
                }
                if EnvironmentName::parse(destination).is_none() {
                    return Err(invalid("destination", "must be an environment name"));
                }
            }
            ProjectionKind::File => {
                if self.source_present.is_none() {
                    return Err(invalid("source_present", "is needed for a file"));
                }
                if destination.contains('/') || RelativePath::parse(destination).is_err() {
                    return Err(invalid("destination", "must be the name of a file"));
                }
            }
        }
        Ok(())
    }
}
