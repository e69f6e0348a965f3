//! The bounds of this crate, each with its unit and its reason.

use std::time::Duration;

/// How long one step of a probe may take; each takes a few milliseconds on an idle machine, and a
/// machine that is slower than this cannot keep a stop's grace either.
pub(crate) const PROBE_STEP_MAX: Duration = Duration::from_secs(5);

/// Pause between two looks at what gives no event, far below what a caller would notice.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(1);
