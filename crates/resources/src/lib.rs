//! Resource grants in host-configured form: admission against the host's roots and their physical resolution.
//!
//! **Owns** the answer to one question, asked twice: which directory is this grant, and is it
//! inside what the host admits? [`admit`] asks it before anything is recorded, [`reopen`] asks it
//! again right before a child uses the directory and holds on to what it opened.
//!
//! **Never** lets a request widen a root, creates a directory, or trusts a recorded path.
//! **Limitations**: with host-configured roots a grant's name is correlation only; write access is
//! what the host allows, not what the file system will.
//!
//! ```
//! use placement_contract::{Access, ResourceGrant};
//! use placement_policy::Snapshot;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = tempfile::tempdir()?;
//! # let directory = placement_paths::resolve_directory(scratch.path())?.as_path().to_owned();
//! let mut snapshot = Snapshot::embedded();
//! let root_ref = snapshot.admit(&directory, Access::Read)?;
//! let asked: ResourceGrant = serde_json::from_value(serde_json::json!({
//!     "name": "project", "grant_ref": "cli", "root_ref": root_ref.as_str(),
//!     "access": "read", "purpose": "project",
//! }))?;
//! let grants = placement_resources::admit(&[asked], &snapshot)?;
//! assert_eq!(grants[0].directory, directory);
//! let held = placement_resources::reopen(&grants[0])?;
//! assert_eq!(held.path()?, directory);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod admit;
mod reopen;

pub use admit::{ResolvedGrant, admit};
pub use reopen::{ReopenError, reopen};
