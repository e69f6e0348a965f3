//! What a broker gave for a home.

use placement_contract::authority::{
    ContentFormat, Initializer, LoginFile, MaterializedCredential,
};
use placement_contract::canonical::canonical_json;
use placement_contract::limits::LOGIN_FILE_BYTES_MAX;
use placement_contract::request::RelativePath;
use placement_contract::{Digest, Secret};
use serde::Serialize;
use serde::de::IgnoredAny;

use crate::limits::MARKER_BYTES_MAX;

/// A login and what comes with it, as a broker gave it for one attempt.
#[derive(Debug, Clone, Copy)]
pub struct LoginSeed<'a> {
    provider: &'a str,
    definition_id: &'a str,
    definition_revision: u64,
    optional: bool,
    file: &'a LoginFile,
    login: Option<&'a Secret>,
}

/// Why what a broker gave is no login of a home. Says nothing of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LoginSeedError {
    /// It is no file.
    #[error("the credential is no login file")]
    NotAFile,
    /// It is said to be there and was not given, or the other way round.
    #[error("the credential and its bytes contradict each other")]
    Contradicts,
    /// It is needed and missing.
    #[error("the login is missing")]
    Missing,
    /// It has no bytes.
    #[error("the login is empty")]
    Empty,
    /// It is above the bound.
    #[error("the login is larger than {LOGIN_FILE_BYTES_MAX} bytes")]
    TooLarge,
}

/// What the marker holds: by what a home was seeded, and nothing of the login.
#[derive(Serialize)]
struct Identity<'a> {
    provider: &'a str,
    definition_id: &'a str,
    definition_revision: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    optional: Option<bool>,
}

impl<'a> LoginSeed<'a> {
    /// Takes what a broker gave.
    ///
    /// # Errors
    /// [`LoginSeedError`]; an optional login without bytes is none.
    pub fn of(
        credential: &'a MaterializedCredential,
        login: Option<&'a Secret>,
    ) -> Result<Self, LoginSeedError> {
        let (Some(said), Some(file)) = (&credential.file, &credential.format.file) else {
            return Err(LoginSeedError::NotAFile);
        };
        if credential.present != login.is_some() {
            return Err(LoginSeedError::Contradicts);
        }
        match login.map(|login| login.expose().len()) {
            None if !credential.optional => return Err(LoginSeedError::Missing),
            Some(0) => return Err(LoginSeedError::Empty),
            Some(bytes) if bytes > LOGIN_FILE_BYTES_MAX => return Err(LoginSeedError::TooLarge),
            None | Some(_) => {}
        }
        Ok(Self {
            provider: said.provider.as_str(),
            definition_id: said.definition_id.as_str(),
            definition_revision: said.definition_revision,
            optional: credential.optional,
            file,
            login,
        })
    }

    /// Returns the login file and what comes with it.
    pub fn file(&self) -> &'a LoginFile {
        self.file
    }

    /// Returns the digest of each file that comes with the login: what is bound to a retained home
    /// before anything of a first seed is written, and by which a base is read later.
    pub fn initializer_digests(&self) -> Vec<(&'a RelativePath, Digest)> {
        let initializers = self.file.initialize.iter();
        initializers.map(|with| (&with.path, Digest::of_bytes(with.content.as_bytes()))).collect()
    }

    pub(crate) fn login(&self) -> Option<&'a [u8]> {
        self.login.map(Secret::expose)
    }

    pub(crate) fn is_optional(&self) -> bool {
        self.optional
    }

    /// Returns the files that come with the login as it is: with a missing one only some of them.
    pub(crate) fn initializers(&self) -> impl Iterator<Item = &'a Initializer> {
        let present = self.login.is_some();
        self.file.initialize.iter().filter(move |with| present || with.on_missing_login)
    }

    /// Says whether the login is what its format says; nobody looks into an opaque one.
    pub(crate) fn is_well_formed(&self) -> bool {
        match (self.file.content_format, self.login()) {
            (ContentFormat::Json, Some(login)) => {
                serde_json::from_slice::<IgnoredAny>(login).is_ok()
            }
            (ContentFormat::Json | ContentFormat::Opaque, _) => true,
        }
    }

    /// Writes what the marker of a home holds that was seeded by this.
    pub(crate) fn marker(&self) -> Vec<u8> {
        let identity = Identity {
            provider: self.provider,
            definition_id: self.definition_id,
            definition_revision: self.definition_revision,
            optional: self.optional.then_some(true),
        };
        let marker = canonical_json(&identity).expect("ids and a bounded number have one form");
        assert!(marker.len() <= MARKER_BYTES_MAX, "two ids fit into a marker");
        marker
    }
}
