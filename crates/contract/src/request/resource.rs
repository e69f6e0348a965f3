//! Directories that a launch may use.

use super::path::Subpath;
use crate::id::{GrantRef, ResourceName, RootRef};
use crate::state::labels;
use serde::{Deserialize, Serialize};

labels! {
    /// What a grant allows.
    Access {
        /// Reading.
        Read = "read",
        /// Reading and writing.
        Write = "write",
    }
    /// What a grant is for.
    Purpose {
        /// The project that is worked on.
        Project = "project",
        /// Where results go.
        Output = "output",
        /// What may be thrown away.
        Cache = "cache",
        /// The retained home of a session.
        Session = "session",
    }
}

/// One directory that a launch may use, named below a root that the host admits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceGrant {
    /// Its name within the launch.
    pub name: ResourceName,
    /// The owner's name for the grant; with host-configured roots it grants nothing.
    pub grant_ref: GrantRef,
    /// The root.
    pub root_ref: RootRef,
    /// The directory below the root; empty for the root itself.
    #[serde(default)]
    pub subpath: Subpath,
    /// What is allowed.
    pub access: Access,
    /// What it is for.
    pub purpose: Purpose,
}
