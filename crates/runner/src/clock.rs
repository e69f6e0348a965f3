//! The system's wall clock, for records only.

use placement_contract::{Clock, Timestamp};
use std::time::SystemTime;

/// The system's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that everything else takes")]
    fn now(&self) -> Timestamp {
        let bounded = |ms: u128| i64::try_from(ms).unwrap_or(i64::MAX);
        let unix_ms = match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => bounded(since.as_millis()),
            Err(before) => -bounded(before.duration().as_millis()),
        };
        Timestamp::from_unix_ms(unix_ms)
    }
}
