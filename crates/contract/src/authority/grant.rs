//! What a resource authority answers for one grant.

use crate::canonical::Digest;
use crate::clock::Timestamp;
use crate::error::{Code, Refusal};
use crate::exact::{self, DecodeError, Exact, invalid, ranged, sized};
use crate::id::{GrantRef, Id, ResourceName, RootRef};
use crate::limits::{DEFINITION_BYTES_MAX, INTEGER_MAX, PATH_BYTES_MAX};
use crate::request::{Access, Purpose, ResourceGrant, Subpath};
use serde::{Deserialize, Serialize};

/// What a resource authority answers for one grant; its root and subpath replace the caller's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantReply {
    /// The grant.
    pub grant_id: GrantRef,
    /// The workspace that it belongs to.
    pub workspace_id: Id,
    /// The name of the resource there.
    pub name: ResourceName,
    /// The root.
    pub root_ref: RootRef,
    /// The digest of the root's definition.
    pub root_digest: Digest,
    /// The directory of the root as it is declared, 1 to 8192 bytes.
    #[serde(deserialize_with = "sized::<_, 1, PATH_BYTES_MAX>")]
    pub directory: String,
    /// The directory below the root.
    #[serde(default)]
    pub subpath: Subpath,
    /// What is allowed.
    pub access: Access,
    /// What it is for.
    pub purpose: Purpose,
    /// The association that grants it.
    pub association_id: Id,
    /// Its revision, at least 1.
    #[serde(deserialize_with = "ranged::<_, 1, INTEGER_MAX>")]
    pub association_revision: u64,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Counts what the authority revoked.
    #[serde(deserialize_with = "ranged::<_, 0, INTEGER_MAX>")]
    pub authorization_epoch: u64,
}

/// What is recorded of a resolved grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedGrant {
    /// The grant.
    pub grant_id: GrantRef,
    /// The root.
    pub root_ref: RootRef,
    /// The digest of the root's definition.
    pub root_digest: Digest,
    /// The directory below the root.
    pub subpath: Subpath,
    /// What the launch may do, which is what it asked for.
    pub access: Access,
    /// The revision of the association.
    pub association_revision: u64,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl GrantReply {
    /// Decodes an answer exactly.
    ///
    /// # Errors
    /// [`DecodeError`] names the field and the rule that it breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        exact::decode(bytes)
    }

    /// Holds the answer against what a launch asked for.
    ///
    /// # Errors
    /// UNAVAILABLE for the answer to another grant, FORBIDDEN where writing is asked for and
    /// reading granted.
    pub fn admit(&self, asked: &ResourceGrant) -> Result<RecordedGrant, Refusal> {
        if self.grant_id != asked.grant_ref {
            let message =
                format!("grant of {}: the authority answered for another one", asked.name);
            return Err(Refusal::new(Code::Unavailable, message));
        }
        if asked.access > self.access {
            let message = format!("grant of {}: allows reading only", asked.name);
            return Err(Refusal::new(Code::Forbidden, message));
        }
        Ok(RecordedGrant {
            grant_id: self.grant_id.clone(),
            root_ref: self.root_ref.clone(),
            root_digest: self.root_digest.clone(),
            subpath: self.subpath.clone(),
            access: asked.access,
            association_revision: self.association_revision,
            expires_at: self.expires_at.clone(),
        })
    }
}

impl Exact for GrantReply {
    const NAME: &str = "grant";
    const BYTES_MAX: usize = DEFINITION_BYTES_MAX;

    fn check(&self) -> Result<(), DecodeError> {
        if self.directory.chars().any(char::is_control) {
            return Err(invalid("directory", "must not contain control characters"));
        }
        Ok(())
    }
}
