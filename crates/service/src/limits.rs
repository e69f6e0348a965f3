//! The bounds of this crate, each with its unit and its reason.

use placement_contract::limits::{DEADLINE_MS_MAX, FENCE_MS, SWEEP_RECONCILE_MS};
use std::time::Duration;

/// How long a control call may take, connecting included: the fence of the contract.
pub(crate) const FENCE: Duration = Duration::from_millis(FENCE_MS);

/// How long a killed leaf or PID namespace may take to become empty: the kernel ends its members at
/// once, unless one sleeps in a driver. What remains is found again by the next look.
pub(crate) const TREE_EMPTY: Duration = Duration::from_millis(2_500);

/// How long a probe may measure: three mechanisms and a group, each a process that starts and ends.
pub(crate) const PROBE: Duration = Duration::from_secs(10);

/// Time between two looks at a lock that no event tells of; short against every grace.
pub(crate) const LOOK: Duration = Duration::from_millis(5);

/// What a cleanup waits for a finishing runner beyond the launch's own drain and grace: its last
/// commits.
pub(crate) const FINISH_EXTRA: Duration = Duration::from_secs(1);

/// How long the data link of a runner may take to be connected: as long as it may take to answer.
pub(crate) const CONNECT: Duration = FENCE;

/// How long a leader may take to go after its runner: the kernel has sent it SIGKILL by then.
pub(crate) const PARENT_DEATH: Duration = Duration::from_millis(250);

/// How long a reply to a stop waits for the runner's commit: the runner acts after 250 ms even
/// without it.
pub(crate) const STOP_RECORDED: Duration = Duration::from_millis(500);

/// How long ended members of a group may wait for their reaper.
pub(crate) const GROUP_ZOMBIES: Duration = Duration::from_secs(1);

/// How long the cursor of a log may still be held after it was let go of.
pub(crate) const CURSOR: Duration = Duration::from_millis(250);

/// How long a start waits for the claim of another one that came first: starting a program and one
/// synced commit.
pub(crate) const OTHER_START: Duration = Duration::from_secs(2);

/// How long a sweep waits for what it settles: attempts are settled side by side, so each has all of
/// it.
pub(crate) const SWEEP: Duration = Duration::from_millis(SWEEP_RECONCILE_MS);

/// How long a launch may wait for its session: as long as the attempt that holds it may run.
pub(crate) const SESSION_WAIT_MAX: Duration = Duration::from_millis(DEADLINE_MS_MAX);

// The longest look: a runner that is asked and ends without an answer, then its leader, then its tree.
// What it comes to is heard by the sweep that began it.
const _: () = assert!(
    FENCE.as_millis() + PARENT_DEATH.as_millis() + TREE_EMPTY.as_millis() < SWEEP.as_millis()
);
