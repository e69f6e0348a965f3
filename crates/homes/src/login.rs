//! Logins: what a home is seeded with, and how it is told later that it was.

mod attempt;
mod look;
mod retained;
mod seed;

pub use look::RetainedSeed;
pub use retained::{LoginPolicy, Seeded};
pub use seed::{LoginSeed, LoginSeedError};

use std::io;

use placement_contract::authority::LoginFile;
use placement_contract::request::RelativePath;
use placement_paths::{CreateError, IoFailure, OpenError, PrivateError, PublishError, ReadError};

use crate::files::ParentError;

/// Name of the file in a retained home that says by which login it was seeded; written last.
pub const LOGIN_MARKER: &str = ".bee-retained-login-ready.json";

/// Why a home was not seeded, or not surely. Says nothing of the login.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// The root is not ours alone.
    #[error("the root directory is not private")]
    Root(#[source] PrivateError),
    /// The home is prepared for another login file.
    #[error("the home is prepared for another login")]
    OtherLogin,
    /// The login is needed and its source is missing.
    #[error("the login is missing")]
    MissingLogin,
    /// The login is not the JSON that it must be.
    #[error("the login is not well-formed")]
    NotWellFormed,
    /// The home was seeded by another login, or by another revision of its definition.
    #[error("the home was seeded by another login")]
    SourceChanged,
    /// The home was seeded in part, or its login is gone.
    #[error("the home was seeded in part, or its login is gone")]
    Incomplete,
    /// What stands in the place of the marker or cannot be read is none.
    #[error("the marker of the home cannot be read")]
    Marker(#[source] ReadError),
    /// What stands in the place of the login is a directory, a link or a device.
    #[error("what stands in the place of the login is not a regular file")]
    LoginNotAFile,
    /// Something in the home cannot be looked at; the errno's name says why.
    #[error("the home cannot be looked at ({0})")]
    Unknown(&'static str),
    /// What is on the way to the login cannot be opened, or is a link or no directory.
    #[error("the way to the login cannot be opened")]
    Way(#[source] OpenError),
    /// There is no directory for one of the files.
    #[error("there is no directory for a file of the login")]
    Parent(#[source] ParentError),
    /// One of the files is there already; it was left alone.
    #[error("a file of the login exists already")]
    AlreadyExists,
    /// One of the files could not be created.
    #[error("a file of the login could not be created")]
    Create(#[source] CreateError),
    /// One of the files could not be written.
    #[error("a file of the login could not be written")]
    Write(#[source] io::Error),
    /// One of the files could not be published; what was there before stands.
    #[error("a file of the login could not be published")]
    Publish(#[source] PublishError),
    /// A login whose source is gone could not be removed.
    #[error("the former login could not be removed")]
    Remove(#[source] CreateError),
    /// One of the files stands under its name, but may be lost by power failure.
    #[error("a file of the login was published, but its directory could not be synced")]
    PublishedNotSynced(#[source] io::Error),
    /// The former login was removed, but may come back by power failure.
    #[error("the former login was removed, but its directory could not be synced")]
    RemovedNotSynced(#[source] IoFailure),
}

/// Returns where a login and what comes with it go.
pub(crate) fn paths_of(login: &LoginFile) -> impl Iterator<Item = &RelativePath> {
    std::iter::once(&login.path).chain(login.initialize.iter().map(|with| &with.path))
}

impl SeedError {
    pub(super) fn of_publication(error: PublishError) -> Self {
        match error {
            PublishError::PublishedNotSynced { source, .. } => Self::PublishedNotSynced(source),
            PublishError::AlreadyExists { .. } => Self::AlreadyExists,
            PublishError::TargetNotAFile { .. } => Self::LoginNotAFile,
            error @ (PublishError::Parent(_)
            | PublishError::CreateParent(_)
            | PublishError::Step { .. }) => Self::Publish(error),
        }
    }
}
