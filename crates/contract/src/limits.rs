//! Every bound of the contract, with its unit and its reason.

/// Longest identifier, in bytes: ids are shown, indexed and compared, never parsed.
pub const ID_BYTES_MAX: usize = 160;
/// Longest recipient name, in bytes.
pub const RECIPIENT_BYTES_MAX: usize = 256;
/// Longest program name or argument, in bytes.
pub const ARGUMENT_BYTES_MAX: usize = 16_384;
/// Most arguments of one launch.
pub const ARGUMENTS_MAX: usize = 128;
/// Longest initial input that a request carries, in bytes: one pipe capacity.
pub const STDIN_BYTES_MAX: usize = 65_536;
/// Most environment names of one launch, by value and by reference each.
pub const ENVIRONMENT_MAX: usize = 64;
/// Longest environment value, in bytes.
pub const ENVIRONMENT_VALUE_BYTES_MAX: usize = 16_384;
/// Most resource grants of one launch.
pub const RESOURCES_MAX: usize = 16;
/// Longest subpath of a grant, in bytes.
pub const SUBPATH_BYTES_MAX: usize = 512;
/// Least memory that a launch may be limited to, in bytes: less than that starts nothing.
pub const MEMORY_BYTES_MIN: u64 = 1024 * 1024;
/// Most memory that a launch may be limited to, in bytes: 16 TiB, beyond any machine.
pub const MEMORY_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024 * 1024;
/// Most processes that a launch may be limited to: the kernel's own bound.
pub const PIDS_MAX: u64 = 1 << 22;
/// Least share of processors, in thousandths of one: the kernel's least quota of 1 ms in 100 ms.
pub const CPU_MILLIS_MIN: u64 = 10;
/// Largest share of processors, in thousandths of one: 8192 of them.
pub const CPU_MILLIS_MAX: u64 = 8_192_000;
/// Largest encoded launch request, in bytes: the sum of its parts with room for JSON escapes.
pub const REQUEST_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest reason of an operator, in bytes: it fits an evidence detail beside the operator's id.
pub const REASON_BYTES_MAX: usize = 1_024;
/// Longest evidence detail, in bytes; longer text is cut at a character boundary.
pub const DETAIL_BYTES_MAX: usize = 2_048;
/// Longest error message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 4_096;
/// Most evidence rows in one page.
pub const EVIDENCE_PAGE_MAX: u32 = 64;
/// Largest whole number of the contract: what every JSON reader keeps exact.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

/// Largest output chunk, in bytes: one pipe capacity.
pub const CHUNK_BYTES_MAX: usize = 65_536;
/// Most chunks that are sent and not acknowledged.
pub const OUTSTANDING_CHUNKS_MAX: usize = 4;
/// Longest time a partial chunk waits for more bytes, in milliseconds.
pub const COALESCE_MS: u64 = 5;
/// Largest single write to a child's stdin, in bytes.
pub const WRITE_BYTES_MAX: usize = 65_536;
/// Write ids that a runner remembers; an older one is refused, never written again.
pub const REMEMBERED_WRITES_MAX: usize = 256;
/// Bytes of output kept in memory when no spool file is used.
pub const MEMORY_SPOOL_BYTES_MAX: u64 = 262_144;
/// Unacknowledged bytes that the spool file holds unless the launch says otherwise.
pub const SPOOL_BYTES_DEFAULT: u64 = 64 * 1024 * 1024;
/// Acknowledged bytes that the transcript keeps unless the launch says otherwise.
pub const TRANSCRIPT_BYTES_DEFAULT: u64 = 64 * 1024 * 1024;
/// Largest spool or transcript that a launch may ask for, in bytes.
pub const SPOOL_BYTES_LIMIT: u64 = 16 * 1024 * 1024 * 1024;
/// Time in which a runner answers a control message, in milliseconds.
pub const FENCE_MS: u64 = 2_000;
/// Silence of the pipes after the exit that ends the drain, in milliseconds.
pub const DRAIN_IDLE_MS: u64 = 250;

/// Default time from start to the runner's acknowledgment, in milliseconds.
pub const START_MS_DEFAULT: u64 = 15_000;
/// Default time between a cooperative stop and SIGKILL, in milliseconds.
pub const STOP_GRACE_MS_DEFAULT: u64 = 5_000;
/// Default bound of the drain after the exit, in milliseconds.
pub const DRAIN_MS_DEFAULT: u64 = 5_000;
/// Default time that bytes held in memory wait for a recipient after the exit, in milliseconds.
pub const RETAIN_MS_DEFAULT: u64 = 30_000;
/// Longest run time that a launch may set as its deadline, in milliseconds: 30 days.
pub const DEADLINE_MS_MAX: u64 = 30 * 24 * 3_600 * 1_000;

const _: () = assert!(REASON_BYTES_MAX + ID_BYTES_MAX + 16 <= DETAIL_BYTES_MAX);
const _: () = assert!(RETAIN_MS_DEFAULT > DRAIN_MS_DEFAULT);
const _: () = assert!(MEMORY_SPOOL_BYTES_MAX >= (CHUNK_BYTES_MAX * OUTSTANDING_CHUNKS_MAX) as u64);
const _: () = assert!(DRAIN_MS_DEFAULT > DRAIN_IDLE_MS);
