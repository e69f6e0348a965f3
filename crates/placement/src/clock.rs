//! The host's wall clock.

use placement_contract::{Clock, Timestamp};
use std::time::SystemTime;

/// The system's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(unix_ms())
    }
}

/// Returns milliseconds since 1970, negative before it.
#[expect(clippy::disallowed_methods, reason = "this is the clock that the others take")]
pub(crate) fn unix_ms() -> i64 {
    let bounded = |ms: u128| i64::try_from(ms).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => bounded(since.as_millis()),
        Err(before) => -bounded(before.duration().as_millis()),
    }
}
