//! Wall time that a test sets.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Counts milliseconds since 1970 as a test tells it to; never moves on its own.
///
/// A test wraps it in the clock that its crate takes.
#[derive(Debug, Default)]
pub struct FakeTime {
    unix_ms: AtomicI64,
}

impl FakeTime {
    /// Starts at a moment in milliseconds since 1970.
    pub const fn at(unix_ms: i64) -> Self {
        Self { unix_ms: AtomicI64::new(unix_ms) }
    }

    /// Returns the moment in milliseconds since 1970.
    pub fn unix_ms(&self) -> i64 {
        self.unix_ms.load(Ordering::SeqCst)
    }

    /// Jumps to a moment, back in time too.
    pub fn set(&self, unix_ms: i64) {
        self.unix_ms.store(unix_ms, Ordering::SeqCst);
    }

    /// Moves on by a duration, in whole milliseconds.
    ///
    /// # Panics
    ///
    /// When the duration has more milliseconds than 63 bits hold.
    pub fn advance(&self, by: Duration) {
        let by_ms = i64::try_from(by.as_millis()).expect("a test's duration fits 63 bits");
        self.unix_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_only_when_told() {
        let time = FakeTime::at(5);
        time.advance(Duration::from_secs(2));
        assert_eq!(time.unix_ms(), 2_005);
        time.set(-1);
        assert_eq!(time.unix_ms(), -1);
    }
}
