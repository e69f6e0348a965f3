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

/// Files whose digests are kept: more programs than one host launches in turns, in some 32 KiB.
pub(crate) const KNOWN_SLOTS: u32 = 256;
/// How long a file must have been left alone before its digest is kept, in milliseconds: far more
/// than one tick of any file system's clock.
pub(crate) const QUIET_MS: i64 = 2_000;

const _: () = assert!(READ_BYTES <= STEP_BYTES_MAX);
const _: () = assert!(SCRIPT_HEAD_BYTES <= READ_BYTES);
