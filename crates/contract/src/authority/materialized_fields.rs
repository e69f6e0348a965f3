//! The answer to a materialization as it is written.

use super::format::CredentialFormat;
use super::materialized::{
    Encoding, GENERATION_KEY_BYTES_MAX, MaterializedCredential, MaterializedFile,
};
use super::projection::ProjectionKind;
use crate::canonical::Digest;
use crate::exact::{Line, ranged, some_ranged};
use crate::id::{Id, ProjectionId};
use crate::limits::{INTEGER_MAX, SUBPATH_BYTES_MAX};
use crate::request::RelativePath;
use serde::{Deserialize, Serialize};

/// The answer as it is written: the fields of a file are all there or none of them.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fields {
    projection_id: ProjectionId,
    destination: Line<SUBPATH_BYTES_MAX>,
    projection_kind: ProjectionKind,
    encoding: Encoding,
    #[serde(deserialize_with = "ranged::<_, 1, INTEGER_MAX>")]
    generation: u64,
    generation_key: Line<GENERATION_KEY_BYTES_MAX>,
    format: CredentialFormat,
    present: bool,
    optional: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition_id: Option<Id>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_ranged::<_, 1, INTEGER_MAX>"
    )]
    definition_revision: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_path: Option<RelativePath>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_present: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_digest: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    write_back: Option<bool>,
}

impl TryFrom<Fields> for MaterializedCredential {
    type Error = &'static str;

    fn try_from(given: Fields) -> Result<Self, Self::Error> {
        let file = match (
            given.definition_id,
            given.definition_revision,
            given.provider,
            given.source_path,
            given.source_present,
            given.write_back,
        ) {
            (
                Some(definition_id),
                Some(definition_revision),
                Some(provider),
                Some(source_path),
                Some(source_present),
                Some(write_back),
            ) => Some(MaterializedFile {
                definition_id,
                definition_revision,
                provider,
                source_path,
                source_present,
                source_digest: given.source_digest,
                write_back,
            }),
            (None, None, None, None, None, None) if given.source_digest.is_none() => None,
            _ => return Err("must have every field of a file or none of them"),
        };
        Ok(Self {
            projection_id: given.projection_id,
            destination: given.destination,
            projection_kind: given.projection_kind,
            encoding: given.encoding,
            generation: given.generation,
            generation_key: given.generation_key,
            format: given.format,
            present: given.present,
            optional: given.optional,
            file,
        })
    }
}

impl From<MaterializedCredential> for Fields {
    fn from(said: MaterializedCredential) -> Self {
        let file = said.file;
        Self {
            projection_id: said.projection_id,
            destination: said.destination,
            projection_kind: said.projection_kind,
            encoding: said.encoding,
            generation: said.generation,
            generation_key: said.generation_key,
            format: said.format,
            present: said.present,
            optional: said.optional,
            source_present: file.as_ref().map(|it| it.source_present),
            definition_revision: file.as_ref().map(|it| it.definition_revision),
            write_back: file.as_ref().map(|it| it.write_back),
            definition_id: file.as_ref().map(|it| it.definition_id.clone()),
            provider: file.as_ref().map(|it| it.provider.clone()),
            source_path: file.as_ref().map(|it| it.source_path.clone()),
            source_digest: file.and_then(|it| it.source_digest),
        }
    }
}
