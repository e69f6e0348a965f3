#![doc = include_str!("../README.md")]
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
mod session_root;
mod snapshot;
#[cfg(test)]
mod testing;
mod tools;

pub use allowed::check_measurable;
pub use config::{
    AdmittedTable, Config, ConfigError, EnvironmentTable, HostTable, ResourceMode, ResourcesTable,
};
pub use definitions::{
    DRIVER_BINDING_REVISION, DRIVER_PROFILE_REVISION, Definition, Definitions, POLICY_REVISION,
};
pub use gateway::HostGateway;
pub use limits::{ADMITTED_ROOTS_MAX, CONFIG_BYTES_MAX};
pub use placement::check_hint;
pub use preferences::apply_preferences;
pub use resolve::{Resolved, resolve};
pub use roots::AdmittedRoot;
pub use session_root::{SESSION_ROOT, check_session_root, is_session_root};
pub use snapshot::{Named, SEARCH_PATH_DEFAULT, Snapshot};
