//! The bounds of this crate, each with its unit and its reason.

/// Bytes read of one `/proc/PID/stat`; the kernel's line has 52 numbers and a name of 64 bytes.
pub(crate) const STAT_BYTES_MAX: u64 = 4096;

/// Bytes read of one `/proc/PID/environ`; `execve` takes at most 6 MiB of arguments and environment
/// together, and a process with more cannot be judged.
pub(crate) const ENVIRON_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Bytes read of `/proc/self/mountinfo`; the kernel allows 100 000 mounts in a namespace and a busy
/// container host has a few thousand.
pub(crate) const MOUNTINFO_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Bytes read of small one-line files such as the boot id and the machine id.
pub(crate) const LINE_BYTES_MAX: u64 = 256;

/// Bytes read of `/proc/self/status`.
pub(crate) const STATUS_BYTES_MAX: u64 = 64 * 1024;

/// Bytes of a boot id or machine id that is taken as one.
pub(crate) const ID_BYTES_MAX: usize = 64;
