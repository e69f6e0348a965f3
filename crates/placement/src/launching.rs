//! One launch, from what an embedder words to the handle that is returned.

use crate::attempt::AttemptHandle;
use crate::error::Error;
use crate::host::Placement;
use crate::launch::Launch;
use crate::request::{self, FilledIn, Names};
use placement_contract::limits::DEADLINE_MS_MAX;
use placement_contract::{
    Attempt, AttemptId, Code, ExecutionState, LaunchRequest, OnHostLoss, Refusal, StdinMode,
};
use placement_policy::{ADMITTED_ROOTS_MAX, Snapshot};
use placement_service::{NotPrepared, SessionHolder, Started, StopMode, Waited};
use std::ops::ControlFlow;
use std::sync::{PoisonError, RwLockReadGuard};
use std::time::{Duration, Instant};

/// Time between two looks at an attempt that another host starts.
const LOOK: Duration = Duration::from_millis(10);

/// The longest wait for a session: as long as the attempt that holds it may run.
const WAIT_MAX: Duration = Duration::from_millis(DEADLINE_MS_MAX);

/// What one try of a launch came to.
enum Launched {
    Attempt(Box<AttemptHandle>),
    /// Nothing was recorded.
    SessionHeld(Box<SessionHolder>),
}

/// What a handle must know of its launch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// What becomes of the attempt when its handle is dropped.
    pub(crate) on_host_loss: OnHostLoss,
    /// Whether the child has an input to write to.
    pub(crate) has_input: bool,
    /// Whether the child is in a window.
    pub(crate) is_window: bool,
}

impl Rules {
    pub(crate) fn of(request: &LaunchRequest) -> Self {
        Self {
            on_host_loss: request.supervision.on_host_loss,
            has_input: request.supervision.stdin == StdinMode::Pipe
                || request.launch.session_end.is_some()
                || request.supervision.window.is_some(),
            is_window: request.supervision.window.is_some(),
        }
    }
}

impl Placement {
    /// Launches a program, or follows the attempt that is recorded under the launch's key.
    ///
    /// A new attempt's program runs when this returns. A recorded one that lives is attached to,
    /// which takes its streams from whoever had them; one that ended is served from its log. What a
    /// launch with a key leaves open, its scope and its policy, is as in its recorded attempt; where that was
    /// pruned, the host fills it in, and a retry after the host was changed is a CONFLICT.
    ///
    /// # Errors
    /// The refusal of the step that failed: INVALID, DENIED, FORBIDDEN and `UNSUPPORTED_CAPABILITY`
    /// before anything is recorded; CONFLICT for a key of another launch and for a session that another
    /// attempt holds after the wait that [`Launch::wait_session`] allows; `EXECUTABLE_NOT_FOUND`,
    /// `EXECUTABLE_REFUSED` and UNAVAILABLE for a start that failed, whose attempt is recorded and
    /// cleaned up.
    #[expect(clippy::needless_pass_by_value, reason = "a launch is worded where it is handed over")]
    pub fn launch(&self, launch: Launch) -> Result<AttemptHandle, Error> {
        self.launch_waiting(&launch, |_| ControlFlow::Continue(()))
    }

    /// Does what [`Placement::launch`] does, and while the launch waits for its session shows the
    /// attempt that holds it, at least ten times a second. `Break` ends the wait.
    ///
    /// # Errors
    /// As [`Placement::launch`].
    pub fn launch_waiting(
        &self,
        launch: &Launch,
        mut held: impl FnMut(&SessionHolder) -> ControlFlow<()>,
    ) -> Result<AttemptHandle, Error> {
        let service = self.service();
        let names = Names::of(service.owner(), launch.key.as_deref(), &self.shared.clock.now())?;
        let deadline = Instant::now() + launch.wait_session.unwrap_or_default().min(WAIT_MAX);
        loop {
            let holder = match self.launch_once(launch.clone(), names.clone())? {
                Launched::Attempt(attempt) => return Ok(*attempt),
                Launched::SessionHeld(holder) => holder,
            };
            if Instant::now() >= deadline {
                return Err(Refusal::from(&*holder).into());
            }
            let mut given_up = false;
            service.await_session(&holder, deadline, |holder| {
                let flow = held(holder);
                given_up = flow.is_break();
                flow
            })?;
            if given_up {
                return Err(Refusal::from(&*holder).into());
            }
        }
    }

    /// Launches, or tells who holds the session; directories are admitted for one try alone, so that
    /// who waits keeps no other launch from being admitted.
    fn launch_once(&self, launch: Launch, names: Names) -> Result<Launched, Error> {
        let service = self.service();
        let recorded = match launch.key {
            Some(_) => self.recorded(&names.attempt)?,
            None => None,
        };
        let attempt_id = names.attempt.clone();
        let has_key = launch.key.is_some();
        let _admitted = self.make_room_for_directories(launch.directories.len() + 1);
        let request = self.request(launch, names, recorded.as_ref())?;
        if recorded.is_none() {
            request::check_directories(&request, &service.snapshot())?;
        }
        let prepared = match service.try_prepare(&request) {
            Ok(prepared) => prepared,
            Err(NotPrepared::SessionHeld(holder)) => return Ok(Launched::SessionHeld(holder)),
            Err(NotPrepared::Refused(refusal)) => return Err(refusal.into()),
        };
        if prepared.execution_state == ExecutionState::Intended {
            match service.start(&attempt_id, &self.shared.recipient) {
                Ok(Started { streams: Some(streams), .. }) => {
                    let rules = Rules::of(&request);
                    let replay = recorded.is_some();
                    let attempt = AttemptHandle::attached(self.clone(), streams, rules, replay);
                    return Ok(Launched::Attempt(Box::new(attempt)));
                }
                // Another host came first.
                Ok(Started { streams: None, .. }) => {}
                Err(refusal) if refusal.code == Code::Conflict => {}
                Err(refusal) => {
                    self.leave_nothing(&attempt_id, has_key);
                    return Err(refusal.into());
                }
            }
        }
        Ok(Launched::Attempt(Box::new(self.follow(&attempt_id, &request)?)))
    }

    /// Follows an attempt that another host runs, or ran.
    fn follow(
        &self,
        attempt_id: &AttemptId,
        request: &LaunchRequest,
    ) -> Result<AttemptHandle, Error> {
        let rules = Rules::of(request);
        let deadline = Instant::now() + request.timeouts.start();
        let mut is_settled = false;
        loop {
            let attempt = self.service().recorded(attempt_id)?;
            match attempt.execution_state {
                // A start whose runner has died goes on by nobody: what became of it is found out
                // now, once.
                ExecutionState::Starting if !is_settled && self.has_ended(attempt_id)? => {
                    is_settled = true;
                    self.reconcile(attempt_id)?;
                }
                // Its host is about to start it, and its runner has no socket yet: no event tells.
                ExecutionState::Intended | ExecutionState::Starting
                    if Instant::now() < deadline =>
                {
                    std::thread::sleep(LOOK);
                }
                ExecutionState::Intended => {
                    let message = "another host was about to start the attempt and did not";
                    return Err(Refusal::new(Code::Unavailable, message).into());
                }
                ExecutionState::Starting | ExecutionState::Running | ExecutionState::Stopping => {
                    match self.attach_streams(attempt_id) {
                        Ok(streams) => {
                            return Ok(AttemptHandle::attached(self.clone(), streams, rules, true));
                        }
                        // Another attachment came first, or the attempt has just ended.
                        Err(refusal)
                            if refusal.code == Code::Conflict && Instant::now() < deadline => {}
                        Err(refusal) => return Err(refusal.into()),
                    }
                }
                ExecutionState::Exited | ExecutionState::Uncertain => {
                    return Ok(AttemptHandle::ended(self.clone(), attempt.attempt_id, rules));
                }
            }
        }
    }

    fn has_ended(&self, attempt_id: &AttemptId) -> Result<bool, Error> {
        let now = Some(Instant::now());
        Ok(self.service().wait_ended(attempt_id, now)? == Waited::Ended)
    }

    /// Cleans up after a start that was refused; what fails here is left to a later cleanup, since
    /// the caller is to hear why the start failed.
    fn leave_nothing(&self, attempt_id: &AttemptId, has_key: bool) {
        let Ok(attempt) = self.service().recorded(attempt_id) else { return };
        match attempt.execution_state {
            ExecutionState::Exited => {
                self.cleanup(attempt_id).ok();
            }
            // Nobody can ask for this launch again.
            ExecutionState::Intended if !has_key => {
                self.stop(attempt_id, StopMode::Cooperative).ok();
            }
            ExecutionState::Intended
            | ExecutionState::Starting
            | ExecutionState::Running
            | ExecutionState::Stopping
            | ExecutionState::Uncertain => {}
        }
    }

    /// Takes all directories out of the snapshot before they are too many: each launch names its
    /// own. Launches between their admission and their start hold the returned guard.
    fn make_room_for_directories(&self, count: usize) -> RwLockReadGuard<'_, ()> {
        let service = self.service();
        let fits =
            |snapshot: &Snapshot| snapshot.admitted_roots().len() + count <= ADMITTED_ROOTS_MAX;
        if !service.change_snapshot(|snapshot| fits(snapshot)) {
            let alone = self.shared.admitted.write().unwrap_or_else(PoisonError::into_inner);
            service.change_snapshot(|snapshot| *snapshot = self.shared.base.clone());
            drop(alone);
        }
        self.shared.admitted.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the request of a launch; what it leaves open is as in the recorded attempt, if there is one.
    fn request(
        &self,
        launch: Launch,
        names: Names,
        recorded: Option<&Attempt>,
    ) -> Result<LaunchRequest, Error> {
        let service = self.service();
        let owner = service.owner();
        let Some(recorded) = recorded else {
            let strongest = match launch.required_cleanup {
                Some(required) => required,
                None => service.measured()?.capability,
            };
            return service.change_snapshot(|snapshot| {
                let filled_in = FilledIn::of_host(snapshot, strongest);
                request::request(launch, names, owner, filled_in, snapshot)
            });
        };
        let filled_in = if recorded.pruned {
            FilledIn::of_host(&service.snapshot(), recorded.required_cleanup)
        } else {
            FilledIn::of_recorded(service.request(&recorded.attempt_id)?)
        };
        let named = service.change_snapshot(|snapshot| {
            let (launch, names, filled_in) = (launch.clone(), names.clone(), filled_in.clone());
            request::request(launch, names, owner, filled_in, snapshot)
        });
        match named {
            // What is recorded stays answered, whatever the host lists by now.
            Err(error) if error.code() == Code::Forbidden => {
                let mut any = service.snapshot().with_any_named_root();
                request::request(launch, names, owner, filled_in, &mut any)
            }
            named => named,
        }
    }

    fn recorded(&self, attempt_id: &AttemptId) -> Result<Option<Attempt>, Error> {
        match self.service().recorded(attempt_id) {
            Ok(attempt) => Ok(Some(attempt)),
            Err(refusal) if refusal.code == Code::NotFound => Ok(None),
            Err(refusal) => Err(refusal.into()),
        }
    }
}
