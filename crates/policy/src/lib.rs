//! The host's configuration snapshot: the embedded default binding, launch policy and profile with their digests, and admitted roots.
//!
//! **Owns** what a host defines ([`Definitions`]), its configuration file ([`Config`]), what one
//! launch sees of both ([`Snapshot`]) and the check of a request against it ([`resolve`]).
//! **Never** lets a request choose: it names what it was made for, and anything else is refused.
//! **Limitations**: one driver binding with one profile a host, and no driver that is configured;
//! whether an admitted directory exists is asked when a grant on it is resolved.
//!
//! Reading order: `snapshot`, `definitions`, `resolve` and what it asks in its order (`placement`,
//! `allowed`, `preferences`, `gateway`, `tools`), `roots`, `config`, `limits`.
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

mod allowed;
mod config;
mod definitions;
mod gateway;
mod limits;
mod placement;
mod preferences;
mod refusal;
mod resolve;
mod roots;
mod snapshot;
#[cfg(test)]
mod testing;
mod tools;

pub use allowed::check_measurable;
pub use config::{
    AdmittedTable, Config, ConfigError, EnvironmentTable, HostTable, ResourceMode, ResourcesTable,
};
pub use definitions::{
    BINDING_REVISION, Definition, Definitions, POLICY_REVISION, PROFILE_REVISION,
};
pub use gateway::HostGateway;
pub use limits::{ADMITTED_ROOTS_MAX, CONFIG_BYTES_MAX};
pub use placement::check_hint;
pub use preferences::apply_preferences;
pub use resolve::{Resolved, resolve};
pub use roots::AdmittedRoot;
pub use snapshot::{Named, SEARCH_PATH_DEFAULT, Snapshot};
