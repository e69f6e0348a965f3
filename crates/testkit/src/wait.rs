//! Waiting for a fact outside the test.

use std::time::{Duration, Instant};

/// Time between two looks; short against every bound that a test sets.
const POLL: Duration = Duration::from_millis(1);

/// Waits until the condition holds, looking every millisecond.
///
/// For facts that no event tells: a file of another process, a process that goes. The deadline is
/// how long a broken run may take, not how long a good one does.
///
/// # Panics
///
/// At the deadline, with what was waited for.
#[track_caller]
pub fn wait_until(deadline: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < deadline, "waited {deadline:?} in vain for {what}");
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_the_condition_holds() {
        let mut looks = 0;
        wait_until(Duration::from_secs(10), "three looks", || {
            looks += 1;
            looks == 3
        });
        assert_eq!(looks, 3);
    }

    #[test]
    #[should_panic(expected = "in vain for a miracle")]
    fn it_names_what_never_came() {
        wait_until(Duration::from_millis(5), "a miracle", || false);
    }
}
