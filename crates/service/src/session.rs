//! Retained sessions: the home of a launch, and waiting for who holds a session.

use crate::Service;
use crate::limits::{LOOK, SESSION_WAIT_MAX};
use crate::places::with_errno;
use crate::refusal::unavailable;
use crate::wait::{is_past, left};
use camino::Utf8PathBuf;
use placement_contract::{Code, LaunchRequest, Refusal};
use placement_homes::{HomeKey, SessionKey};
use placement_store::SessionHolder;
use std::ops::ControlFlow;
use std::time::Instant;

/// The environment name of a home.
const HOME: &str = "HOME";

impl Service {
    /// Waits until an attempt of this owner does not hold its session any more, or until the
    /// deadline; a deadline that was longer away than 30 days is cut to that.
    ///
    /// Nobody is stopped or cleaned up for it. The holder is shown at each look, at least ten times a
    /// second, with its states by then; `Break` ends the wait. Of several that wait for a session any
    /// may be the next.
    ///
    /// # Errors
    /// STORAGE.
    pub fn await_session(
        &self,
        holder: &SessionHolder,
        deadline: Instant,
        mut look: impl FnMut(&SessionHolder) -> ControlFlow<()>,
    ) -> Result<(), Refusal> {
        let deadline = Some(deadline.min(Instant::now() + SESSION_WAIT_MAX));
        let (owner, session) = (&self.inner.owner, &holder.session_ref);
        let mut pause = LOOK;
        // To let go of it is a commit of whatever process cleans up: no event tells.
        while let Some(now) = self.inner.reader.session_holder(owner, session)? {
            let goes_on = now.attempt_id == holder.attempt_id && !is_past(deadline);
            if !goes_on || look(&now).is_break() {
                break;
            }
            std::thread::sleep(pause.min(left(deadline)));
            pause = (pause * 2).min(LOOK * 20);
        }
        Ok(())
    }

    /// Returns where the home of a launch is, or would be: the retained one of its session, else the
    /// attempt's own.
    pub(crate) fn home_of(&self, request: &LaunchRequest) -> Utf8PathBuf {
        let root = &self.inner.root;
        match request.retained_session() {
            Some(session) => root.session_home_path(&SessionKey::of(&request.owner_id, session)),
            None => root.home_path(&HomeKey::of(&request.owner_id, &request.attempt_id)),
        }
    }

    /// Looks whether the retained home of a launch's session can be used, if it is there.
    pub(crate) fn check_session_home(&self, request: &LaunchRequest) -> Result<(), Refusal> {
        let Some(session) = request.retained_session() else { return Ok(()) };
        let key = SessionKey::of(&request.owner_id, session);
        self.inner.root.find_session_home(&key).map(|_| ()).map_err(|error| {
            let message = format!("the home of session \"{session}\": {}", with_errno(&error));
            unavailable(message).with_hint(format!(
                "look at {} and the two directories above it, which must be directories of this \
                 user's with mode 0700",
                self.inner.root.session_home_path(&key)
            ))
        })
    }
}

/// Says whether HOME is placement's own directory; nothing for a launch without a session.
///
/// # Errors
/// STORAGE for a HOME from elsewhere, which no launch of this version has.
pub(crate) fn private_home(request: &LaunchRequest) -> Result<Option<bool>, Refusal> {
    if request.session_ref.is_none() {
        return Ok(None);
    }
    if request.environment_refs.keys().any(|name| name.as_str() == HOME) {
        return Err(Refusal::new(Code::Storage, "the recorded HOME is none that can be told"));
    }
    Ok(Some(true))
}
