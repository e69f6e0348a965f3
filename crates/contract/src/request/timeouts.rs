//! Time limits of a launch.

use crate::limits::{DRAIN_MS_DEFAULT, RETAIN_MS_DEFAULT, START_MS_DEFAULT, STOP_GRACE_MS_DEFAULT};
use serde::{Deserialize, Deserializer, Serialize};
use std::time::Duration;

/// Time limits of a launch, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// From start to the runner's acknowledgment, 1 to 120 000.
    #[serde(deserialize_with = "ranged::<_, 1, 120_000>")]
    pub start_ms: u64,
    /// From a cooperative stop to SIGKILL, 0 to 60 000.
    #[serde(deserialize_with = "ranged::<_, 0, 60_000>")]
    pub stop_grace_ms: u64,
    /// Bound of the drain after the exit, 100 to 600 000.
    #[serde(deserialize_with = "ranged::<_, 100, 600_000>")]
    pub drain_ms: u64,
    /// How long bytes held in memory wait for a recipient after the exit, 100 to 600 000.
    #[serde(deserialize_with = "ranged::<_, 100, 600_000>")]
    pub retain_ms: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            start_ms: START_MS_DEFAULT,
            stop_grace_ms: STOP_GRACE_MS_DEFAULT,
            drain_ms: DRAIN_MS_DEFAULT,
            retain_ms: RETAIN_MS_DEFAULT,
        }
    }
}

impl Timeouts {
    /// Returns the start budget.
    pub const fn start(&self) -> Duration {
        Duration::from_millis(self.start_ms)
    }

    /// Returns the stop grace.
    pub const fn stop_grace(&self) -> Duration {
        Duration::from_millis(self.stop_grace_ms)
    }

    /// Returns the drain bound.
    pub const fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }

    /// Returns the retention bound.
    pub const fn retain(&self) -> Duration {
        Duration::from_millis(self.retain_ms)
    }
}

fn ranged<'de, D, const MIN: u64, const MAX: u64>(deserializer: D) -> Result<u64, D::Error>
where
    D: Deserializer<'de>,
{
    let value = u64::deserialize(deserializer)?;
    if (MIN..=MAX).contains(&value) {
        Ok(value)
    } else {
        Err(serde::de::Error::custom(format_args!("must be {MIN} to {MAX} milliseconds")))
    }
}
