//! How long a writer waits for others.

use crate::limits::LOCK_WAIT_MAX;
use camino::Utf8Path;
use std::time::{Duration, Instant, SystemTime};

/// A deadline that moves on while the store does.
///
/// One that stands still for so long is in the hands of somebody who does not go on. One in which
/// others write is only busy, and whoever waits has its turn, if not before the last bound.
#[derive(Debug)]
pub(crate) struct Patience<'a> {
    log: Option<&'a Utf8Path>,
    wait: Duration,
    until: Instant,
    give_up_at: Instant,
    seen: Option<(u64, SystemTime)>,
}

impl<'a> Patience<'a> {
    /// Waits so long since the last change of a log.
    pub(crate) fn with(log: &'a Utf8Path, wait: Duration) -> Self {
        let now = Instant::now();
        let (until, give_up_at) = (now + wait, now + wait.max(LOCK_WAIT_MAX));
        Self { log: Some(log), wait, until, give_up_at, seen: stamp(log) }
    }

    /// Waits so long, whatever happens.
    pub(crate) fn fixed(wait: Duration) -> Self {
        let until = Instant::now() + wait;
        Self { log: None, wait, until, give_up_at: until, seen: None }
    }

    /// Returns how long it surely lasts.
    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Says whether it is over.
    pub(crate) fn is_over(&mut self) -> bool {
        let now = Instant::now();
        if now < self.until {
            return false;
        }
        let seen = self.log.and_then(stamp);
        if seen == self.seen || now >= self.give_up_at {
            return true;
        }
        self.seen = seen;
        self.until = (now + self.wait).min(self.give_up_at);
        false
    }
}

/// Every commit changes the size or the time of the log.
fn stamp(log: &Utf8Path) -> Option<(u64, SystemTime)> {
    let metadata = std::fs::metadata(log).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_testkit::TempRoot;

    #[test]
    fn it_is_over_where_nothing_moves_and_goes_on_where_something_does() {
        let root = TempRoot::new();
        let log = root.join("log");
        std::fs::write(&log, "one").unwrap();
        let mut patience = Patience::with(&log, Duration::ZERO);
        std::fs::write(&log, "one and two").unwrap();
        assert!(!patience.is_over(), "somebody wrote");
        assert!(patience.is_over(), "nobody did since");
        assert!(Patience::with(&root.join("none"), Duration::ZERO).is_over());
        assert!(Patience::fixed(Duration::ZERO).is_over());
    }

    #[test]
    fn it_lasts_as_long_as_it_was_given() {
        let mut patience = Patience::fixed(Duration::from_mins(1));
        assert!(!patience.is_over());
        assert!(patience.left() > Duration::from_secs(50));
    }
}
