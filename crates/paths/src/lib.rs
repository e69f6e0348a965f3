//! Directories held by descriptor: physical resolution, write-root containment, no-follow opens, atomic publication and removal that never follows a link.
//!
//! A path is a promise somebody else can break between two calls. This crate opens a directory
//! once, keeps the descriptor, and does everything below it relative to that descriptor.
//!
//! It owns:
//! * [`Dir`] and [`PrivateDir`]: a directory by descriptor, and one proven to be ours alone;
//! * [`RelativePath`]: a path that is safe to resolve below a directory;
//! * publication (temporary file, sync, rename, sync of the directory), each step named when it fails;
//! * removal of a whole tree without ever following a link or leaving the mount;
//! * [`PhysicalDir`] and [`WriteRoots`]: what lies physically inside what;
//! * [`fs_kind`]: whether a file system is local, on a network, or read-only.
//!
//! It never knows what an attempt is, never follows a symbolic link below a [`Dir`], and never
//! widens a mode beyond the one asked for, not even for a moment.
//!
//! Limitations: Linux only. A process of the same user that renames directories while they are
//! being created or removed can make a call fail; it cannot make one act outside the [`Dir`].
//! [`PhysicalDir`] describes the moment in which it was resolved.
//!
//! Reading order: `relative`, `dir`, `beneath`, `create`, `read`, `publish`, `remove`, `private`,
//! `physical`, `roots`, `fs_kind`.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = tempfile::tempdir()?;
//! # let path = scratch.path().join("home");
//! # let project = scratch.path().canonicalize()?;
//! # let candidate = project.join("home");
//! use placement_paths::{PrivateDir, WriteRoots};
//!
//! let home = PrivateDir::create_or_open(&path)?; // 0700, owned by us, held by descriptor
//! home.publish("app/settings.json", b"{}")?; // no link followed, atomic, durable
//!
//! let inside = WriteRoots::new([project])?.admit(candidate)?;
//! assert!(inside.as_path().ends_with("home"));
//! # Ok(())
//! # }
//! ```

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
pub use dir::{Dir, EntryKind, Existence, Facts};
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
