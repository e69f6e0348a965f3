//! Bounds of a host's configuration, with unit and reason.

/// Most directories that a host admits: a lookup walks them all.
pub const ADMITTED_ROOTS_MAX: usize = 256;
