//! One file of a delivery.

use super::composition::{Composition, KeyPath};
use crate::canonical::Digest;
use crate::exact::{DecodeError, invalid, list, sized};
use crate::id::{Id, ProviderRef};
use crate::limits::{DELIVERY_FILE_BYTES_MAX, SECRET_FIELDS_MAX};
use crate::request::{Destination, RelativePath};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One file of a delivery, which is written into the private home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeliveredFile {
    /// The form of the file.
    pub revision: Id,
    /// Where it goes below the home.
    pub path: RelativePath,
    /// Its content, at most 8192 bytes; empty for a copy and only then.
    #[serde(deserialize_with = "sized::<_, 0, DELIVERY_FILE_BYTES_MAX>")]
    pub content: String,
    /// The SHA-256 of the content.
    pub digest: Digest,
    /// What it was made from.
    pub provider_ref: ProviderRef,
    /// Places that receive a secret, at most 8, each once.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, 1, SECRET_FIELDS_MAX>"
    )]
    pub secret_fields: Vec<SecretField>,
    /// How it is joined with what is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub composition: Option<Composition>,
}

/// A place in a JSON file that receives a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretField {
    /// The keys that lead to it; an empty text is there before.
    pub path: KeyPath,
    /// The variable that has the secret.
    pub environment: Destination,
    /// What comes before the secret, at most 64 bytes.
    #[serde(default, deserialize_with = "sized::<_, 0, 64>")]
    pub prefix: String,
}

impl DeliveredFile {
    pub(super) fn check(&self, field: &str) -> Result<(), DecodeError> {
        let of = |name: &str| format!("{field}.{name}");
        let copied = matches!(self.composition, Some(Composition::Copy { .. }));
        if copied != self.content.is_empty() {
            return Err(invalid(of("content"), "must be empty for a copy and only then"));
        }
        if Digest::of_bytes(self.content.as_bytes()) != self.digest {
            return Err(invalid(of("digest"), "must be the digest of the content"));
        }
        if let Some(composition) = &self.composition {
            if *composition.base_path() == self.path {
                return Err(invalid(of("composition.base_path"), "must not be the file itself"));
            }
            composition.check(&of("composition"))?;
        }
        self.check_secret_fields(&of("secret_fields"))
    }

    fn check_secret_fields(&self, field: &str) -> Result<(), DecodeError> {
        if self.secret_fields.is_empty() {
            return Ok(());
        }
        for (index, secret) in self.secret_fields.iter().enumerate() {
            if self.secret_fields[..index].iter().any(|other| other.path == secret.path) {
                return Err(invalid(field, "must not name a place twice"));
            }
        }
        let document: Value = serde_json::from_str(&self.content)
            .map_err(|_| invalid(field, "needs a file of JSON"))?;
        for (index, secret) in self.secret_fields.iter().enumerate() {
            let keys = secret.path.keys();
            let place = keys.iter().try_fold(&document, |value, key| value.get(key.as_str()));
            if place.and_then(Value::as_str) != Some("") {
                let field = format!("{field}[{index}].path");
                return Err(invalid(field, "must lead to an empty text"));
            }
        }
        Ok(())
    }
}
