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
/// Most credential projections of one launch.
pub const PROJECTIONS_MAX: usize = 8;
/// Most tools of a gateway.
pub const GATEWAY_TOOLS_MAX: usize = 16;
/// Most hook events of a gateway.
pub const GATEWAY_HOOKS_MAX: usize = 8;
/// Longest address of a gateway, in bytes.
pub const ENDPOINT_BYTES_MAX: usize = 2_048;
/// Most files that a launch requires, that tell of a login, or that a provider's home has.
pub const HOME_FILES_MAX: usize = 8;
/// Most environment variables that point into a provider's home besides the first.
pub const EXTRA_VARIABLES_MAX: usize = 4;
/// Most alternatives by which a login is told.
pub const LOGIN_ALTERNATIVES_MAX: usize = 8;
/// Longest command, argument or directory of a login's alternatives, in bytes.
pub const LOGIN_LINE_BYTES_MAX: usize = 128;
/// Most environment names of one alternative of a login.
pub const LOGIN_NAMES_MAX: usize = 16;
/// Most options of saved preferences: eight, and one from before they were counted.
pub const PREFERENCE_OPTIONS_MAX: usize = 9;
/// Most tools that preferences select.
pub const PREFERENCE_TOOLS_MAX: usize = 64;
/// Longest name of an option, in bytes.
pub const OPTION_NAME_BYTES_MAX: usize = 80;
/// Longest text of an option, in bytes.
pub const OPTION_TEXT_BYTES_MAX: usize = 512;
/// Longest instructions, in bytes, joined ones as well.
pub const INSTRUCTIONS_BYTES_MAX: usize = 4_096;
/// Longest subpath of a grant, in bytes.
pub const SUBPATH_BYTES_MAX: usize = 512;
/// Most arguments of a delivery.
pub const DELIVERY_ARGUMENTS_MAX: usize = 32;
/// Most bytes of a delivery's arguments together.
pub const DELIVERY_ARGUMENTS_BYTES_MAX: usize = 16_384;
/// Most files of a delivery.
pub const DELIVERY_FILES_MAX: usize = 8;
/// Longest content of one file of a delivery, in bytes.
pub const DELIVERY_FILE_BYTES_MAX: usize = 8_192;
/// Most bytes of a delivery's files together.
pub const DELIVERY_FILES_BYTES_MAX: usize = 24_576;
/// Longest environment value of a delivery, in bytes.
pub const DELIVERY_VALUE_BYTES_MAX: usize = 4_096;
/// Largest encoded delivery, in bytes: the sum of its parts with room for JSON escapes.
pub const DELIVERY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most secret fields of one file.
pub const SECRET_FIELDS_MAX: usize = 8;
/// Most operations of one composition.
pub const COMPOSITION_OPERATIONS_MAX: usize = 16;
/// Most keys on the way to a place in a document.
pub const KEY_PATH_MAX: usize = 8;
/// Longest of those keys, in bytes.
pub const KEY_BYTES_MAX: usize = 128;
/// Largest document of a composition, before and after, in bytes.
pub const COMPOSED_BYTES_MAX: usize = 131_072;
/// Largest definition or reply of an authority, in bytes.
pub const DEFINITION_BYTES_MAX: usize = 1024 * 1024;
/// Longest path, in bytes.
pub const PATH_BYTES_MAX: usize = 8_192;
/// Most mounts of a container profile.
pub const MOUNTS_MAX: usize = 16;
/// Most profiles that a launch policy admits.
pub const POLICY_PROFILES_MAX: usize = 64;
/// Most options that a launch policy declares or sets.
pub const POLICY_OPTIONS_MAX: usize = 64;
/// Most names that a list of a launch policy has.
pub const POLICY_NAMES_MAX: usize = 256;
/// Most names of the host's environment that a launch policy passes to children: half of
/// [`ENVIRONMENT_MAX`], the other half is the host's own.
pub const ENVIRONMENT_PASS_MAX: usize = ENVIRONMENT_MAX / 2;
/// Most values of an option that a launch policy allows.
pub const OPTION_VALUES_MAX: usize = 32;
/// Longest arguments of an instruction builder, in bytes of canonical JSON.
pub const BUILDER_ARGUMENTS_BYTES_MAX: usize = 4_096;
/// Longest secret in the environment, in bytes.
pub const SECRET_VALUE_BYTES_MAX: usize = 8_192;
/// Longest login file, in bytes.
pub const LOGIN_FILE_BYTES_MAX: usize = 65_536;
/// Most files that come with a login.
pub const INITIALIZERS_MAX: usize = 4;
/// Longest token of a gateway, in bytes.
pub const TOKEN_BYTES_MAX: usize = 128;
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
/// Widest window, in columns.
pub const WINDOW_COLUMNS_MAX: u64 = 1_000;
/// Highest window, in rows.
pub const WINDOW_ROWS_MAX: u64 = 500;
/// Longest name of a kind of terminal, in bytes.
pub const TERM_BYTES_MAX: usize = 64;
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

/// Time between two sweeps of one host, in milliseconds: a lost runner is noticed within it.
pub const SWEEP_DELAY_MS: u64 = 30_000;

/// Longest that a sweep waits for one attempt, in milliseconds; no answer in time is no answer.
pub const SWEEP_RECONCILE_MS: u64 = 5_000;

/// Most attempts that one sweep takes, so that a pass is bounded; the next one takes others.
pub const SWEEP_ATTEMPTS_MAX: u32 = 64;
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
