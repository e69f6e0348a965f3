//! Bounds of this crate, each with its unit and its reason.

/// Levels of lists and tables that a document has at most: real ones stay below 20, and nothing here
/// runs out of stack by then.
pub const NESTING_MAX: usize = 64;

/// Levels of lists and tables that a document has at most which is copied into a private home: what
/// nobody wrote by hand is not looked through.
pub const SCANNED_NESTING_MAX: usize = 32;

/// Longest file with its secrets and a line feed at its end, in bytes: as long as one without them.
pub const RENDERED_BYTES_MAX: usize = placement_contract::limits::DELIVERY_FILE_BYTES_MAX;

const _: () = assert!(SCANNED_NESTING_MAX <= NESTING_MAX);
// What is read as TOML is bounded by its reader as well, at 80 levels: the bound here comes first.
const _: () = assert!(NESTING_MAX < 80);
