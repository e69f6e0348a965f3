//! In which form a credential reaches a program.

use crate::exact::{self, DecodeError, Exact, invalid, list, sized};
use crate::limits::{DEFINITION_BYTES_MAX, INITIALIZERS_MAX, LOGIN_FILE_BYTES_MAX};
use crate::request::{EnvironmentName, RelativePath};
use crate::state::labels;
use serde::{Deserialize, Serialize};

/// The form of a credential's format.
pub const FORMAT_REVISION: &str = "bee.credential-format@1";
/// Longest name of a variable that receives a credential, in bytes.
const DESTINATION_BYTES_MAX: usize = 128;

labels! {
    /// What a login file holds.
    ContentFormat {
        /// JSON, which is text.
        Json = "json",
        /// Bytes that nobody looks into.
        Opaque = "opaque",
    }
}

/// In which form a credential reaches a program: as a variable, as a file, or either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialFormat {
    /// The form, `bee.credential-format@1`.
    pub schema_revision: String,
    /// The variable, at most 128 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment_destination: Option<EnvironmentName>,
    /// The file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<LoginFile>,
}

/// A login file and what comes with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginFile {
    /// Where it goes below the home.
    pub path: RelativePath,
    /// What it holds.
    pub content_format: ContentFormat,
    /// Files that come with it, at most 4.
    #[serde(default, deserialize_with = "list::<_, _, 0, INITIALIZERS_MAX>")]
    pub initialize: Vec<Initializer>,
}

/// A file that comes with a login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Initializer {
    /// Where it goes below the home.
    pub path: RelativePath,
    /// Its content.
    #[serde(deserialize_with = "sized::<_, 0, LOGIN_FILE_BYTES_MAX>")]
    pub content: String,
    /// Where it comes from on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_path: Option<RelativePath>,
    /// Whether it is written where the login is missing too.
    #[serde(default)]
    pub on_missing_login: bool,
}

impl CredentialFormat {
    /// Decodes a format exactly.
    ///
    /// # Errors
    /// [`DecodeError`] names the field and the rule that it breaks.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        exact::decode(bytes)
    }

    pub(super) fn check_within(&self, parent: &str) -> Result<(), DecodeError> {
        let at = |field: &str| match parent {
            "" => field.to_owned(),
            _ => format!("{parent}.{field}"),
        };
        if self.schema_revision != FORMAT_REVISION {
            return Err(invalid(at("schema_revision"), "must be bee.credential-format@1"));
        }
        let Some(file) = &self.file else {
            return match &self.environment_destination {
                None => Err(invalid(at("file"), "must be given or else environment_destination")),
                Some(name) => check_destination(name, &at("environment_destination")),
            };
        };
        if let Some(name) = &self.environment_destination {
            check_destination(name, &at("environment_destination"))?;
        }
        let total: usize = file.initialize.iter().map(|with| with.content.len()).sum();
        if total > LOGIN_FILE_BYTES_MAX {
            return Err(invalid(at("file.initialize"), "must be at most 65536 bytes together"));
        }
        let paths: Vec<_> = std::iter::once(&file.path)
            .chain(file.initialize.iter().map(|with| &with.path))
            .collect();
        for (index, path) in paths.iter().enumerate() {
            if paths[..index].iter().any(|other| other.overlaps(path)) {
                let rule = "must not have a path twice or below another one";
                return Err(invalid(at("file.initialize"), rule));
            }
        }
        Ok(())
    }
}

fn check_destination(name: &EnvironmentName, field: &str) -> Result<(), DecodeError> {
    if name.as_str().len() > DESTINATION_BYTES_MAX {
        return Err(invalid(field, "must be at most 128 bytes"));
    }
    Ok(())
}

impl Exact for CredentialFormat {
    const NAME: &str = "credential_format";
    const BYTES_MAX: usize = DEFINITION_BYTES_MAX;

    fn check(&self) -> Result<(), DecodeError> {
        self.check_within("")
    }
}
