//! The bounds of this crate, each with its unit and its reason.

use std::time::Duration;

/// How long a writer waits for a store in which nobody writes: 64 writers at once waited at most
/// 0.2 s when tried.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(5);

/// How long a writer waits for a store in which others write all the time: 64 processes that start at
/// once on a machine that has other work.
pub(crate) const LOCK_WAIT_MAX: Duration = Duration::from_secs(30);

/// How long an opening host waits for another one that migrates.
pub(crate) const MIGRATE_WAIT: Duration = Duration::from_secs(30);

/// Shortest time between two tries of the lock: long enough to let its holder run.
pub(crate) const LOCK_TRY_MIN: Duration = Duration::from_micros(300);

/// How much longer a try may wait; writers that wait apart do not starve each other.
pub(crate) const LOCK_TRY_SPREAD_US: u64 = 700;

/// How much more often the lock is tried while other threads of the process wait behind.
pub(crate) const HURRY: u32 = 6;

/// Size of the write-ahead log, in bytes, above which it is taken into the database.
pub(crate) const WAL_BYTES_MAX: u32 = 4 * 1024 * 1024;

/// Most rows of evidence in one transaction; a whole exit record fits.
pub(crate) const ROWS_PER_CHANGE_MAX: usize = 256;

/// Largest exit record, in bytes: its rows with their details and JSON escapes.
pub const EXIT_RECORD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most attempts in one listing; a sweep takes them in turns.
pub(crate) const LIST_MAX: u32 = 10_000;

/// Most attempts in one page of those that may be pruned: each row holds its whole request.
pub(crate) const SETTLED_PAGE: u32 = 64;

/// Shortest and longest control token, in bytes.
pub(crate) const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=64;

const _: () = assert!(MIGRATE_WAIT.as_millis() > LOCK_WAIT.as_millis());
