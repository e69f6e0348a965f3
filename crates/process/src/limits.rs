//! The bounds of this crate, each with its unit and its reason.

use std::time::Duration;

/// How long an opened gate may take to become a running program; an exec that reads its file from a
/// stalled network file system must not hold the runner's loop for ever.
pub(crate) const EXEC_WAIT_MAX: Duration = Duration::from_secs(10);

/// How long a process that was killed before it ran its program is waited for; it is gone within
/// milliseconds unless the kernel holds it in a read that nothing interrupts.
pub(crate) const NEWBORN_END_MAX: Duration = Duration::from_secs(5);

/// How long the init of a PID namespace may take to set it up and make its leader; it takes some
/// milliseconds, and a mount that waits for a stalled device must not hold the runner for ever.
pub(crate) const NAMESPACE_WAIT_MAX: Duration = Duration::from_secs(10);

/// How long a new process may take to lead a session on its terminal; a few system calls, behind
/// whatever else the machine has to do.
pub(crate) const SESSION_WAIT_MAX: Duration = Duration::from_secs(10);

/// Processes that one look at a tree takes in; the default `pid_max` of a large machine is 4 Mi,
/// and a tree of this size is past every limit an agent needs.
pub(crate) const TREE_MEMBERS_MAX: usize = 65_536;

/// Pidfds open at once while members are confirmed; a process has 1024 descriptors by default.
pub(crate) const CONFIRMED_AT_ONCE: usize = 128;

/// Depth of control groups that a child made inside its leaf and that are taken away with it; each
/// level holds one descriptor.
pub(crate) const NESTED_DEPTH_MAX: usize = 64;

/// Control groups inside one leaf that are looked at.
pub(crate) const NESTED_GROUPS_MAX: usize = 16_384;

/// Bytes read of one file of the cgroup file system or of a children list; 65 536 numbers of seven
/// digits and a separator.
pub(crate) const LIST_BYTES_MAX: u64 = 512 * 1024;

/// Bytes read of `/proc/self/mountinfo`; the kernel allows 100 000 mounts in a namespace.
pub(crate) const MOUNTINFO_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Bytes of a leaf's name; the kernel's file names end at 255.
pub(crate) const LEAF_NAME_BYTES_MAX: usize = 200;
