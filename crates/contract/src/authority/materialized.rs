//! What a credential broker hands out for one projection, once.

use super::format::{ContentFormat, CredentialFormat};
use super::materialized_fields::Fields;
use super::projection::ProjectionKind;
use crate::canonical::Digest;
use crate::exact::{self, DecodeError, Exact, Line, invalid};
use crate::id::{Id, ProjectionId};
use crate::limits::{
    DEFINITION_BYTES_MAX, ID_BYTES_MAX, LOGIN_FILE_BYTES_MAX, SECRET_VALUE_BYTES_MAX,
    SUBPATH_BYTES_MAX,
};
use crate::request::RelativePath;
use crate::secret::Secret;
use crate::state::labels;
use serde::{Deserialize, Serialize};

/// Longest key under which bytes are asked for: an attempt id, a colon and a number, in bytes.
pub(super) const GENERATION_KEY_BYTES_MAX: usize = ID_BYTES_MAX + 8;

labels! {
    /// What the bytes of a credential are.
    Encoding {
        /// Text.
        Utf8 = "utf-8",
        /// Anything.
        Bytes = "bytes",
    }
}

/// What a broker says with the bytes of a projection; the bytes themselves are beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct MaterializedCredential {
    /// The projection.
    pub projection_id: ProjectionId,
    /// The variable or the file's name.
    pub destination: Line<SUBPATH_BYTES_MAX>,
    /// How it reaches the program.
    pub projection_kind: ProjectionKind,
    /// What the bytes are.
    pub encoding: Encoding,
    /// The generation of the bytes, at least 1.
    pub generation: u64,
    /// The key under which they were asked for, as it was given.
    pub generation_key: Line<GENERATION_KEY_BYTES_MAX>,
    /// In which form.
    pub format: CredentialFormat,
    /// Whether there are bytes.
    pub present: bool,
    /// Whether there may be none.
    pub optional: bool,
    /// What is said of a file only.
    pub file: Option<MaterializedFile>,
}

/// What a broker says of a login file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaterializedFile {
    /// The definition of the credential.
    pub definition_id: Id,
    /// Its revision, at least 1.
    pub definition_revision: u64,
    /// The provider.
    pub provider: Id,
    /// Where it comes from on the host.
    pub source_path: RelativePath,
    /// Whether the source is there.
    pub source_present: bool,
    /// The digest of the source.
    pub source_digest: Option<Digest>,
    /// Whether a changed one is taken back.
    pub write_back: bool,
}

impl MaterializedCredential {
    /// Decodes an answer exactly and checks the bytes that came with it.
    ///
    /// # Errors
    /// [`DecodeError`] names the field and the rule that it breaks, never a byte of the value.
    pub fn decode(bytes: &[u8], value: Option<&Secret>) -> Result<Self, DecodeError> {
        let said: Self = exact::decode(bytes)?;
        said.check_value(value.map(Secret::expose))?;
        Ok(said)
    }

    fn check_value(&self, value: Option<&[u8]>) -> Result<(), DecodeError> {
        let Some(value) = value else {
            if self.present {
                return Err(invalid("value", "must be given where present is true"));
            }
            return Ok(());
        };
        if !self.present {
            return Err(invalid("value", "must be left out where present is false"));
        }
        if self.encoding == Encoding::Utf8 && std::str::from_utf8(value).is_err() {
            return Err(invalid("value", "must be UTF-8"));
        }
        match self.projection_kind {
            ProjectionKind::Environment => {
                let fine = (1..=SECRET_VALUE_BYTES_MAX).contains(&value.len())
                    && !value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'));
                if !fine {
                    return Err(invalid("value", "must be 1 to 8192 bytes without NUL, CR and LF"));
                }
            }
            ProjectionKind::File => {
                if value.len() > LOGIN_FILE_BYTES_MAX {
                    return Err(invalid("value", "must be at most 65536 bytes"));
                }
            }
        }
        Ok(())
    }

    fn check_file(&self, file: &MaterializedFile) -> Result<(), DecodeError> {
        let Some(declared) = &self.format.file else {
            return Err(invalid("format.file", "is needed for a file"));
        };
        let expected = match declared.content_format {
            ContentFormat::Json => Encoding::Utf8,
            ContentFormat::Opaque => Encoding::Bytes,
        };
        if self.encoding != expected {
            return Err(invalid("encoding", "must be bytes for opaque content and utf-8 for JSON"));
        }
        if !self.present && file.source_present {
            return Err(invalid("present", "must be true where the source is there"));
        }
        Ok(())
    }
}

impl Exact for MaterializedCredential {
    const NAME: &str = "credential";
    const BYTES_MAX: usize = DEFINITION_BYTES_MAX;

    fn check(&self) -> Result<(), DecodeError> {
        self.format.check_within("format")?;
        if !self.present && !self.optional {
            return Err(invalid("present", "must be true where it is not optional"));
        }
        match (self.projection_kind, &self.file) {
            (ProjectionKind::Environment, Some(_)) => {
                Err(invalid("source_path", "is for a file only"))
            }
            (ProjectionKind::File, None) => Err(invalid("source_path", "is needed for a file")),
            (ProjectionKind::File, Some(file)) => self.check_file(file),
            (ProjectionKind::Environment, None) if self.encoding != Encoding::Utf8 => {
                Err(invalid("encoding", "must be utf-8 for a variable"))
            }
            (ProjectionKind::Environment, None) => Ok(()),
        }
    }
}
