#![doc = include_str!("../README.md")]

mod beneath;
mod create;
mod dir;
mod entries;
mod errno;
mod failure;
mod fs_kind;
mod limits;
mod physical;
mod private;
mod publish;
mod read;
mod relative;
mod remove;
mod roots;

pub use create::CreateError;
pub use dir::{Dir, DirectoryId, EntryKind, Existence, Facts};
pub use entries::Entries;
pub use errno::{errno_in, errno_name};
pub use failure::{IoFailure, OpenError, Place};
pub use fs_kind::{FsKind, fs_kind};
pub use limits::{PATH_BYTES_MAX, RELATIVE_BYTES_MAX, WRITE_ROOTS_MAX};
pub use physical::{PhysicalDir, ResolveError, WithinError, directory_within, resolve_directory};
pub use private::{PrivateDir, PrivateError};
pub use publish::{PublishError, PublishStep, Replacement};
pub use read::{Access, ReadError};
pub use relative::{PathRefused, RelativePath};
pub use remove::{LeftReason, RemoveError, Removed};
pub use roots::{NotAdmitted, WriteRoots, WriteRootsError};
