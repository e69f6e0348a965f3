//! Bounds of a host's configuration, with unit and reason.

/// Most directories that a host admits: a lookup walks them all.
pub const ADMITTED_ROOTS_MAX: usize = 256;

/// Most directories that a configuration file lists: as many again are left to what launches name.
pub(crate) const LISTED_ROOTS_MAX: usize = ADMITTED_ROOTS_MAX / 2;

/// Largest configuration file, in bytes: what a person writes is far below it.
pub const CONFIG_BYTES_MAX: usize = 1024 * 1024;

/// Longest search path of a configuration file, in bytes: it is a variable of every child.
pub(crate) const SEARCH_PATH_BYTES_MAX: usize = 16_384;

/// Most operators that a host names: each is a person or a service of the same team.
pub(crate) const OPERATORS_MAX: usize = 64;
