//! What a launch may use of the machine.

use crate::exact::some_ranged;
use crate::limits::{CPU_MILLIS_MAX, CPU_MILLIS_MIN, MEMORY_BYTES_MAX, MEMORY_BYTES_MIN, PIDS_MAX};
use serde::{Deserialize, Serialize};

/// Bounds of what an attempt's tree may use; without bound where absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResourceLimits {
    /// Memory, in bytes, from 1 MiB to 16 TiB.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_ranged::<_, MEMORY_BYTES_MIN, MEMORY_BYTES_MAX>"
    )]
    pub memory_bytes: Option<u64>,
    /// Processes and threads, from 1 to 4 194 304.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_ranged::<_, 1, PIDS_MAX>"
    )]
    pub pids: Option<u64>,
    /// Processor time per time, in thousandths of one processor, from 10 to 8 192 000.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some_ranged::<_, CPU_MILLIS_MIN, CPU_MILLIS_MAX>"
    )]
    pub cpu_millis: Option<u64>,
}

impl ResourceLimits {
    /// Says whether nothing is bounded.
    pub fn is_unbounded(&self) -> bool {
        *self == Self::default()
    }
}
