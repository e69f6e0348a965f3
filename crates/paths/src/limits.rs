//! Bounds of this crate, each with its unit and its reason.

/// Bytes of an absolute path that is resolved: the contract's bound, above Linux' own 4096.
pub const PATH_BYTES_MAX: usize = 8192;

/// Bytes of a relative path: the contract's bound for subpaths and file destinations.
pub const RELATIVE_BYTES_MAX: usize = 512;

/// Write roots of one launch: its grants and what its preparers add, far above real use.
pub const WRITE_ROOTS_MAX: usize = 256;

/// Tries of one `openat2` that answers EAGAIN because something beneath is being renamed.
pub(crate) const RESOLVE_TRIES_MAX: u32 = 64;

/// Directories of one removal whose descriptors stay open: well below the usual limit of 1024.
pub(crate) const REMOVE_OPEN_LEVELS_MAX: usize = 64;

/// Levels of one removal: bounds the memory for names; real trees stay below 100.
pub(crate) const REMOVE_DEPTH_MAX: usize = 65_536;

/// Subdirectory names remembered per level before they are removed: bounds memory in wide trees.
pub(crate) const REMOVE_BATCH_MAX: usize = 256;

/// Entries handled per listing: a listing that somebody keeps filling ends here and begins anew.
pub(crate) const REMOVE_LISTED_MAX: usize = 65_536;

/// Listings of one directory during its removal (a million subdirectories): ends a race against
/// somebody who keeps creating.
pub(crate) const REMOVE_PASSES_MAX: u32 = 4096;

/// Repeated listings only because entries appeared after the last one.
pub(crate) const REMOVE_RACES_MAX: u32 = 16;

const _: () = assert!(RELATIVE_BYTES_MAX < PATH_BYTES_MAX);
const _: () = assert!(REMOVE_OPEN_LEVELS_MAX < REMOVE_DEPTH_MAX);
const _: () = assert!(REMOVE_RACES_MAX < REMOVE_PASSES_MAX);
