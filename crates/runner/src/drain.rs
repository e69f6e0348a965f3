//! How long the pipes are read after the exit.

use std::time::{Duration, Instant};

/// Counts the time in which the pipes could be read after the exit.
///
/// Time with reads paused at the spool bound counts neither against the bound nor as silence; how
/// long a pause lasts is counted apart.
#[derive(Debug)]
pub(crate) struct Drain {
    bound: Duration,
    idle: Duration,
    used: Duration,
    silent: Duration,
    paused: Duration,
    counted_to: Instant,
}

impl Drain {
    /// Starts the count at the exit, or when the last member is gone.
    pub(crate) fn start(now: Instant, bound: Duration, idle: Duration) -> Self {
        let zero = Duration::ZERO;
        Self { bound, idle, used: zero, silent: zero, paused: zero, counted_to: now }
    }

    /// Counts the time up to now.
    pub(crate) fn count(&mut self, now: Instant, paused: bool, bytes_came: bool) {
        let passed = now.saturating_duration_since(self.counted_to);
        self.counted_to = now;
        if paused {
            self.paused += passed;
            return;
        }
        self.paused = Duration::ZERO;
        self.used += passed;
        if bytes_came {
            self.silent = Duration::ZERO;
        } else {
            self.silent += passed;
        }
    }

    /// Says whether the bound is used up.
    pub(crate) fn is_elapsed(&self) -> bool {
        self.used >= self.bound
    }

    /// Says whether the pipes were silent long enough.
    pub(crate) fn is_idle(&self) -> bool {
        self.silent >= self.idle
    }

    /// Says whether reads have been paused that long without a break.
    pub(crate) fn is_paused_for(&self, bound: Duration) -> bool {
        self.paused >= bound
    }

    /// Returns the time that was used, in milliseconds.
    pub(crate) fn used_ms(&self) -> u128 {
        self.used.as_millis()
    }

    /// Returns when the loop must look again.
    pub(crate) fn wake_at(&self, now: Instant) -> Instant {
        let left = self.bound.saturating_sub(self.used);
        let silence_left = self.idle.saturating_sub(self.silent);
        // Once one of the two has run out, the other decides; paused time uses up neither.
        let next = if silence_left.is_zero() { left } else { left.min(silence_left) };
        now + next.clamp(Duration::from_millis(1), self.idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn silence_ends_the_drain_before_the_bound() {
        let start = Instant::now();
        let mut drain = Drain::start(start, MS(5_000), MS(250));
        drain.count(start + MS(200), false, true);
        assert!(!drain.is_idle());
        drain.count(start + MS(450), false, false);
        assert!(drain.is_idle() && !drain.is_elapsed());
    }

    #[test]
    fn chatter_cannot_extend_the_drain_past_its_bound() {
        let start = Instant::now();
        let mut drain = Drain::start(start, MS(1_000), MS(250));
        for step in 1..=10 {
            drain.count(start + MS(100 * step), false, true);
        }
        assert!(drain.is_elapsed() && !drain.is_idle());
    }

    #[test]
    fn paused_reads_use_up_nothing() {
        let start = Instant::now();
        let mut drain = Drain::start(start, MS(1_000), MS(250));
        drain.count(start + MS(60_000), true, false);
        assert!(!drain.is_elapsed() && !drain.is_idle());
        drain.count(start + MS(60_250), false, false);
        assert!(drain.is_idle());
    }

    #[test]
    fn a_pause_is_over_when_reads_resume() {
        let start = Instant::now();
        let mut drain = Drain::start(start, MS(1_000), MS(250));
        drain.count(start + MS(200), true, false);
        drain.count(start + MS(400), true, false);
        assert!(drain.is_paused_for(MS(400)) && !drain.is_paused_for(MS(401)));
        drain.count(start + MS(401), false, true);
        drain.count(start + MS(500), true, false);
        assert!(drain.is_paused_for(MS(99)) && !drain.is_paused_for(MS(100)));
    }
}
