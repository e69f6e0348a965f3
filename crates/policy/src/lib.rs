//! The host's configuration snapshot: the embedded default binding, launch policy and profile with their digests, and admitted roots.
//!
//! **Owns** what a host offers ([`Definitions`]), what one launch sees of it ([`Snapshot`]) and the
//! check of a request against it ([`resolve`]). **Never** lets a request choose: it names what it
//! was made for, and anything else is refused. **Limitations**: one binding, one profile and one
//! policy a host; whether an admitted directory exists is asked when a grant on it
//! is resolved.
//!
//! Reading order: `snapshot`, `definitions`, `resolve`, `limits`.
//!
//! ```
//! use placement_contract::Access;
//! use placement_policy::Snapshot;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut snapshot = Snapshot::embedded().with_search_path("/usr/bin:/bin");
//! let root_ref = snapshot.admit("/srv/project", Access::Write)?;
//! assert_eq!(snapshot.root(&root_ref).map(|root| root.access), Some(Access::Write));
//! assert_eq!(snapshot.policy().r#ref.as_str(), "placement.default");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod definitions;
mod limits;
mod resolve;
mod snapshot;

pub use definitions::{
    BINDING_REVISION, Definition, Definitions, LaunchPolicy, POLICY_REVISION, PROFILE_REVISION,
};
pub use limits::ADMITTED_ROOTS_MAX;
pub use resolve::resolve;
pub use snapshot::{AdmittedRoot, Named, SEARCH_PATH_DEFAULT, Snapshot};
