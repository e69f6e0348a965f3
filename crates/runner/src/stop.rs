//! The stop of a child: who asked, and the way from SIGTERM to SIGKILL.

use crate::scribe::Ticket;
use placement_protocol::StopMode;
use std::time::{Duration, Instant};

/// How long a stop waits for its own row; a store that stalls does not hold it up for longer.
const RECORDED_WITHIN: Duration = Duration::from_millis(250);

/// Why the child is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// A control message asked for it.
    Asked,
    /// The host ended and the launch says `on_host_loss: stop`.
    HostLost,
    /// The run time that the launch allows is over.
    Deadline,
    /// The runner itself was asked to end by SIGTERM.
    Terminated,
    /// That the program runs could not be recorded.
    Unrecorded,
}

impl StopCause {
    fn phrase(self) -> &'static str {
        match self {
            Self::Asked => "asked for",
            Self::HostLost => "after host loss",
            Self::Deadline => "after the deadline",
            Self::Terminated => "after SIGTERM to the runner",
            Self::Unrecorded => "because it could not be recorded",
        }
    }
}

/// What the loop has to do next for the stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopStep {
    /// Send SIGTERM to the leader's group.
    Term,
    /// Send SIGKILL to everything: it was asked for.
    Kill,
    /// Send SIGKILL to everything: the grace is over.
    Escalate,
}

/// The stop of one attempt.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    wish: Option<Wish>,
    term_sent: bool,
    kill_at: Option<Instant>,
    killed: bool,
    /// The row of the last wish, and when it is not waited for any longer.
    held: Option<(Ticket, Instant)>,
}

#[derive(Debug)]
struct Wish {
    mode: StopMode,
    grace: Duration,
}

impl Stop {
    /// Notes a stop; a forced one shortens the grace of a cooperative one before it.
    ///
    /// Returns the detail of `stop.requested` if this is news.
    pub(crate) fn request(
        &mut self,
        mode: StopMode,
        grace: Duration,
        cause: StopCause,
    ) -> Option<String> {
        let news = match &self.wish {
            None => true,
            Some(wish) => wish.mode == StopMode::Cooperative && mode == StopMode::Forced,
        };
        if !news {
            return None;
        }
        self.wish = Some(Wish { mode, grace });
        let detail = match mode {
            StopMode::Cooperative => {
                format!("cooperative, {}, grace {} ms", cause.phrase(), grace.as_millis())
            }
            StopMode::Forced => format!("forced, {}", cause.phrase()),
        };
        Some(detail)
    }

    /// Waits with the next step until the row of the last wish is committed, or for 250 ms.
    pub(crate) fn hold(&mut self, row: Ticket, now: Instant) {
        self.held = Some((row, now + RECORDED_WITHIN));
    }

    /// Says whether the row of the last wish is still waited for.
    pub(crate) fn is_held(&mut self, now: Instant, is_answered: impl Fn(Ticket) -> bool) -> bool {
        self.held = self.held.filter(|(row, until)| now < *until && !is_answered(*row));
        self.held.is_some()
    }

    /// Says whether a stop was asked for.
    pub(crate) fn is_requested(&self) -> bool {
        self.wish.is_some()
    }

    /// Says whether SIGKILL was sent.
    pub(crate) fn is_killed(&self) -> bool {
        self.killed
    }

    /// Returns the next step that is due; the caller takes it at once.
    pub(crate) fn step(&mut self, now: Instant) -> Option<StopStep> {
        let wish = self.wish.as_ref()?;
        match wish.mode {
            StopMode::Cooperative if !self.term_sent => {
                self.term_sent = true;
                self.kill_at = Some(now + wish.grace);
                Some(StopStep::Term)
            }
            StopMode::Cooperative if self.kill_at.is_some_and(|at| now >= at) && !self.killed => {
                self.killed = true;
                Some(StopStep::Escalate)
            }
            StopMode::Forced if !self.killed => {
                self.killed = true;
                Some(StopStep::Kill)
            }
            StopMode::Cooperative | StopMode::Forced => None,
        }
    }

    /// Returns when the grace of a cooperative stop is over.
    pub(crate) fn kill_at(&self) -> Option<Instant> {
        self.kill_at
    }

    /// Returns when the loop must look again.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let held_until = self.held.map(|(_, until)| until);
        if self.killed { None } else { held_until.or(self.kill_at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(5);

    #[test]
    fn a_cooperative_stop_terminates_and_kills_after_the_grace() {
        let start = Instant::now();
        let mut stop = Stop::default();
        assert_eq!(stop.step(start), None);
        assert!(stop.request(StopMode::Cooperative, GRACE, StopCause::Asked).is_some());
        assert_eq!(stop.step(start), Some(StopStep::Term));
        assert_eq!(stop.step(start), None);
        assert_eq!(stop.wake_at(), Some(start + GRACE));
        assert_eq!(stop.step(start + GRACE), Some(StopStep::Escalate));
        assert_eq!(stop.step(start + GRACE), None);
        assert_eq!(stop.wake_at(), None);
    }

    #[test]
    fn a_stop_waits_for_its_own_row() {
        let start = Instant::now();
        let mut stop = Stop::default();
        let nothing = |_| false;
        assert!(!stop.is_held(start, nothing), "nothing was asked for");
        stop.request(StopMode::Cooperative, GRACE, StopCause::Asked);
        stop.hold(Ticket::numbered(7), start);
        assert!(stop.is_held(start, nothing));
        assert_eq!(stop.wake_at(), Some(start + RECORDED_WITHIN));
        assert!(stop.is_held(start, |row| row < Ticket::numbered(7)));
        assert!(!stop.is_held(start, |row| row == Ticket::numbered(7)));
        assert!(!stop.is_held(start, nothing), "it is not waited for again");
    }

    #[test]
    fn a_stalled_store_holds_a_stop_up_for_250_ms() {
        let start = Instant::now();
        let mut stop = Stop::default();
        stop.request(StopMode::Forced, GRACE, StopCause::Asked);
        stop.hold(Ticket::numbered(1), start);
        assert!(stop.is_held(start + Duration::from_millis(249), |_| false));
        assert!(!stop.is_held(start + Duration::from_millis(250), |_| false));
    }

    #[test]
    fn a_forced_stop_overtakes_the_grace() {
        let start = Instant::now();
        let mut stop = Stop::default();
        stop.request(StopMode::Cooperative, GRACE, StopCause::Asked);
        assert_eq!(stop.step(start), Some(StopStep::Term));
        assert!(stop.request(StopMode::Forced, GRACE, StopCause::Asked).is_some());
        assert_eq!(stop.step(start), Some(StopStep::Kill));
    }

    #[test]
    fn a_repeated_stop_is_no_news() {
        let mut stop = Stop::default();
        assert!(stop.request(StopMode::Cooperative, GRACE, StopCause::HostLost).is_some());
        assert!(stop.request(StopMode::Cooperative, GRACE, StopCause::Asked).is_none());
        assert!(stop.request(StopMode::Forced, GRACE, StopCause::Asked).is_some());
        assert!(stop.request(StopMode::Cooperative, GRACE, StopCause::Asked).is_none());
        assert!(stop.request(StopMode::Forced, GRACE, StopCause::Asked).is_none());
    }
}
