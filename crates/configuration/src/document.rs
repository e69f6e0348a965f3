//! What a text can be wrong with before anybody looks at what it says.

use placement_contract::limits::COMPOSED_BYTES_MAX;

/// In which form a file holds its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// JSON, without comments.
    Json,
    /// TOML.
    Toml,
}

/// Why a text cannot be used as a document. Says nothing of what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is above the bound.
    #[error("the document is larger than {COMPOSED_BYTES_MAX} bytes")]
    TooLarge,
    /// It is not text.
    #[error("the document is not UTF-8")]
    NotText,
    /// It breaks the rules of its form.
    #[error("the document is not well-formed")]
    NotWellFormed,
    /// One of its tables has a name twice, so that nobody can tell which one counts.
    #[error("the document has a name twice in one table")]
    NameTwice,
    /// Its values are nested deeper than the bound.
    #[error("the document is nested too deep")]
    TooDeep,
    /// It holds one value where a table of names is wanted.
    #[error("the document is not a table of names")]
    NotATable,
}

impl TextFormat {
    /// Tells the form of a file by the end of its name; `None` for any other.
    pub fn of_name(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1 {
            "json" => Some(Self::Json),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }
}

/// Takes bytes for text within the bound.
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str, DocumentError> {
    if bytes.len() > COMPOSED_BYTES_MAX {
        return Err(DocumentError::TooLarge);
    }
    std::str::from_utf8(bytes).map_err(|_| DocumentError::NotText)
}
