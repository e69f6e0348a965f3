//! How a delivered file is joined with one that is there.

use crate::exact::{DecodeError, Line, invalid, list, some_list};
use crate::limits::{COMPOSITION_OPERATIONS_MAX, KEY_BYTES_MAX, KEY_PATH_MAX};
use crate::request::RelativePath;
use crate::state::labels;
use serde::{Deserialize, Serialize};

labels! {
    /// What an operation does at its place.
    OperationKind {
        /// Keeps what is equal and refuses what differs.
        Default = "default",
        /// Refuses what is there.
        Insert = "insert",
        /// Lengthens a list.
        Append = "append",
        /// Replaces what is there.
        Set = "set",
    }
}

/// How a delivered file is joined with the one at `base_path`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub enum Composition {
    /// The base is taken as it is.
    Copy {
        /// The base.
        base_path: RelativePath,
    },
    /// The content is inserted into a TOML document.
    TomlInsert {
        /// The base.
        base_path: RelativePath,
        /// The place.
        path: KeyPath,
    },
    /// Places of the content change a JSON document.
    JsonPatch {
        /// The base.
        base_path: RelativePath,
        /// The operations, 1 to 16.
        operations: Vec<Operation>,
    },
    /// Places of the content change a TOML document.
    TomlPatch {
        /// The base.
        base_path: RelativePath,
        /// The operations, 1 to 16.
        operations: Vec<Operation>,
    },
}

/// One change at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// What it does.
    pub kind: OperationKind,
    /// The place.
    pub path: KeyPath,
}

/// The keys that lead to a place in a document: 1 to 8 of 1 to 128 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyPath(
    #[serde(deserialize_with = "list::<_, _, 1, KEY_PATH_MAX>")] Vec<Line<KEY_BYTES_MAX>>,
);

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    Copy,
    TomlInsert,
    JsonPatch,
    TomlPatch,
}

/// The fields of every form, of which one form's are there.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    kind: Form,
    base_path: RelativePath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<KeyPath>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_list::<_, _, 1, COMPOSITION_OPERATIONS_MAX>"
    )]
    operations: Option<Vec<Operation>>,
}

impl KeyPath {
    /// Returns the keys.
    pub fn keys(&self) -> &[Line<KEY_BYTES_MAX>] {
        &self.0
    }

    /// Says whether one of both places is the other one or lies in it.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0) || other.0.starts_with(&self.0)
    }
}

impl Composition {
    /// Returns the base.
    pub const fn base_path(&self) -> &RelativePath {
        match self {
            Self::Copy { base_path }
            | Self::TomlInsert { base_path, .. }
            | Self::JsonPatch { base_path, .. }
            | Self::TomlPatch { base_path, .. } => base_path,
        }
    }

    /// Returns the operations of a patch.
    pub fn operations(&self) -> &[Operation] {
        match self {
            Self::Copy { .. } | Self::TomlInsert { .. } => &[],
            Self::JsonPatch { operations, .. } | Self::TomlPatch { operations, .. } => operations,
        }
    }

    pub(super) fn check(&self, field: &str) -> Result<(), DecodeError> {
        let operations = self.operations();
        for (index, operation) in operations.iter().enumerate() {
            if operations[..index].iter().any(|other| other.path.overlaps(&operation.path)) {
                let field = format!("{field}.operations");
                return Err(invalid(field, "must not have a place twice or within another one"));
            }
        }
        Ok(())
    }
}

impl TryFrom<Fields> for Composition {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        let Fields { kind, base_path, path, operations } = fields;
        match (kind, path, operations) {
            (Form::Copy, None, None) => Ok(Self::Copy { base_path }),
            (Form::TomlInsert, Some(path), None) => Ok(Self::TomlInsert { base_path, path }),
            (Form::JsonPatch, None, Some(operations)) => {
                Ok(Self::JsonPatch { base_path, operations })
            }
            (Form::TomlPatch, None, Some(operations)) => {
                Ok(Self::TomlPatch { base_path, operations })
            }
            (Form::Copy, ..) => Err("must have base_path and no other field"),
            (Form::TomlInsert, ..) => Err("must have base_path and path and no other field"),
            (Form::JsonPatch | Form::TomlPatch, ..) => {
                Err("must have base_path and operations and no other field")
            }
        }
    }
}

impl From<Composition> for Fields {
    fn from(composition: Composition) -> Self {
        let (kind, base_path, path, operations) = match composition {
            Composition::Copy { base_path } => (Form::Copy, base_path, None, None),
            Composition::TomlInsert { base_path, path } => {
                (Form::TomlInsert, base_path, Some(path), None)
            }
            Composition::JsonPatch { base_path, operations } => {
                (Form::JsonPatch, base_path, None, Some(operations))
            }
            Composition::TomlPatch { base_path, operations } => {
                (Form::TomlPatch, base_path, None, Some(operations))
            }
        };
        Self { kind, base_path, path, operations }
    }
}
