//! Bounds of measuring, with unit and reason.

/// Most bytes that one step hashes: some 3 ms of work, so that a caller answers in between.
pub const STEP_BYTES_MAX: usize = 1024 * 1024;
/// Largest executable, in bytes: four times the largest real one, hashed within a start budget.
pub const EXECUTABLE_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Longest search path, in bytes: the kernel's bound of one environment string.
pub const SEARCH_PATH_BYTES_MAX: usize = 131_072;
/// Longest path that a lookup tries, in bytes: the kernel's `PATH_MAX`.
pub(crate) const PATH_BYTES_MAX: usize = 4_096;
/// Bytes of a script that the kernel looks at for its interpreter: `BINPRM_BUF_SIZE`.
pub(crate) const SCRIPT_HEAD_BYTES: usize = 256;
/// Bytes read at once, so that measuring does not grow a small process.
pub(crate) const READ_BYTES: usize = 64 * 1024;

const _: () = assert!(READ_BYTES <= STEP_BYTES_MAX);
const _: () = assert!(SCRIPT_HEAD_BYTES <= READ_BYTES);
