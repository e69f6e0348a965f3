//! The recorded state and, beside it, one fresh observation.

use crate::Service;
use crate::service::Found;
use crate::session::private_home;
use placement_contract::{AttemptId, Liveness, Refusal, Status, Timestamp};
use placement_identity::{Presence, ProcessIdentity};
use placement_store::{ChildIdentity, Row};

impl Service {
    /// Returns what is recorded of an attempt, one fresh look at its leader, and what its runner
    /// says of itself if it answers within two seconds.
    ///
    /// Changes nothing: an observation is returned beside the record, never written over it.
    ///
    /// # Errors
    /// `NOT_FOUND` for an unknown and a foreign attempt alike; STORAGE, also where the
    /// request of a session's attempt does not tell its HOME.
    pub fn status(&self, attempt_id: &AttemptId) -> Result<Status, Refusal> {
        let row = match self.find(attempt_id)? {
            Found::Row(row) => *row,
            Found::Pruned(attempt) => {
                let liveness = unobserved(self.inner.clock.now(), "the attempt was pruned");
                return Ok(Status {
                    attempt: *attempt,
                    liveness,
                    runner: None,
                    private_home: None,
                });
            }
        };
        let liveness = liveness(&row, self.inner.clock.now());
        let unfinished = row.runner.as_ref().is_some_and(|runner| !runner.finished);
        let runner = if unfinished { self.ask_status(&row).ok() } else { None };
        let private_home = match row.session_ref {
            Some(_) => private_home(&row.request()?)?,
            None => None,
        };
        Ok(Status { attempt: row.attempt(), liveness, runner, private_home })
    }
}

fn liveness(row: &Row, at: Timestamp) -> Liveness {
    match &row.child {
        ChildIdentity::Complete(identity) => observe(identity, at),
        ChildIdentity::Partial => unobserved(at, "the identity of the child is incomplete"),
        ChildIdentity::None => unobserved(at, "no child is recorded"),
    }
}

fn observe(identity: &ProcessIdentity, at: Timestamp) -> Liveness {
    let seen = |alive, detail: &str| Liveness {
        observed: true,
        alive: Some(alive),
        at: at.clone(),
        detail: detail.to_owned(),
    };
    match identity.observe() {
        Presence::Present(_) => seen(true, "the process runs"),
        Presence::Absent(proof) => seen(false, proof.because()),
        Presence::Unknown(why) => unobserved(at, why.because()),
    }
}

fn unobserved(at: Timestamp, detail: &str) -> Liveness {
    Liveness { observed: false, alive: None, at, detail: detail.to_owned() }
}
