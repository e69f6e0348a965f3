//! The one thread that holds the runners of this service: reaps them, and looks when one ends.

use placement_contract::AttemptId;
use placement_process::Started;
use rustix::event::{EventfdFlags, PollFd, PollFlags};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// What is done when a runner has ended and was reaped.
pub(crate) type OnEnd = Box<dyn Fn(&AttemptId) + Send>;

/// Holds runners without ending them.
///
/// Its thread starts with the first runner. Dropping it joins the thread at once where no runner is
/// left; else the thread goes on without a service, only to reap, and ends with the last runner.
pub(crate) struct Warden {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    wake: OwnedFd,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Runners that the thread has not taken over yet.
    handed: Vec<Ward>,
    /// A copy of each living runner's pidfd, for those who wait.
    pidfds: BTreeMap<AttemptId, OwnedFd>,
    /// Runners that are not reaped yet.
    unreaped: usize,
    closing: bool,
    #[cfg(test)]
    silent: bool,
}

impl State {
    /// Says whether somebody looks when a runner ends: a service that was dropped has nobody.
    fn tells(&self) -> bool {
        #[cfg(test)]
        if self.silent {
            return false;
        }
        !self.closing
    }
}

struct Ward {
    attempt_id: AttemptId,
    runner: Started,
}

impl Warden {
    /// Makes a warden without a thread.
    ///
    /// # Errors
    /// The kernel's answer to `eventfd(2)`.
    pub(crate) fn new() -> io::Result<Self> {
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared { wake, state: Mutex::default() });
        Ok(Self { shared, thread: Mutex::default() })
    }

    /// Takes a runner over.
    ///
    /// # Errors
    /// The runner comes back if no thread or no descriptor could be had.
    pub(crate) fn take(
        &self,
        attempt_id: &AttemptId,
        runner: Started,
        on_end: impl FnOnce() -> OnEnd,
    ) -> Result<(), (Started, io::Error)> {
        let pidfd = match runner.pidfd().try_clone_to_owned() {
            Ok(pidfd) => pidfd,
            Err(error) => return Err((runner, error)),
        };
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let on_end = on_end();
            let named = std::thread::Builder::new().name("placement-warden".to_owned());
            match named.spawn(move || shared.run(&on_end)) {
                Ok(started) => *thread = Some(started),
                Err(error) => return Err((runner, error)),
            }
        }
        let mut state = self.shared.state();
        state.pidfds.insert(attempt_id.clone(), pidfd);
        state.unreaped += 1;
        state.handed.push(Ward { attempt_id: attempt_id.clone(), runner });
        drop(state);
        self.shared.wake();
        Ok(())
    }

    /// Returns the pidfd of an attempt's runner, if this service started it and it has not ended.
    pub(crate) fn pidfd_of(&self, attempt_id: &AttemptId) -> Option<OwnedFd> {
        self.shared.state().pidfds.get(attempt_id)?.try_clone().ok()
    }
}

#[cfg(test)]
impl Warden {
    /// Reaps from now on and tells nobody, so that its thread has no part in a simulated life.
    pub(crate) fn silence(&self) {
        self.shared.state().silent = true;
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.closing = true;
        let idle = state.unreaped == 0;
        drop(state);
        self.shared.wake();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && idle
            // The last owner of the service may be the thread itself.
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic there has nothing left to harm.
            thread.join().ok();
        }
    }
}

impl Shared {
    fn run(&self, on_end: &OnEnd) {
        let mut wards: Vec<Ward> = Vec::new();
        loop {
            let mut state = self.state();
            wards.append(&mut state.handed);
            if state.closing && wards.is_empty() {
                return;
            }
            drop(state);
            let ready = self.wait(&wards);
            let ended = self.reap(&mut wards, &ready);
            // Read again: the service may have been dropped meanwhile.
            if self.state().tells() {
                ended.iter().for_each(on_end);
            }
        }
    }

    /// Waits until a runner ends or something is handed over; says which runners have ended.
    fn wait(&self, wards: &[Ward]) -> Vec<bool> {
        let mut polled: Vec<_> = std::iter::once(self.wake.as_fd())
            .chain(wards.iter().map(|ward| ward.runner.pidfd()))
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        if rustix::io::retry_on_intr(|| rustix::event::poll(&mut polled, None)).is_err() {
            // Too little memory for the moment; nothing is lost by looking again.
            std::thread::yield_now();
            return vec![false; wards.len()];
        }
        let ready = polled.iter().skip(1).map(|one| !one.revents().is_empty()).collect();
        // Emptied or not, the next round looks at everything.
        rustix::io::read(&self.wake, &mut [0; 8]).ok();
        ready
    }

    fn reap(&self, wards: &mut Vec<Ward>, ready: &[bool]) -> Vec<AttemptId> {
        let mut ended = Vec::new();
        let mut index = 0;
        wards.retain_mut(|ward| {
            let is_ready = ready.get(index).copied().unwrap_or(false);
            index += 1;
            if !is_ready {
                return true;
            }
            // The pidfd said that it has ended, so this does not wait; somebody else's reaping
            // is as good.
            ward.runner.wait().ok();
            ended.push(ward.attempt_id.clone());
            false
        });
        let mut state = self.state();
        state.unreaped -= ended.len();
        for attempt_id in &ended {
            // A later runner of the same attempt may be held already.
            if !wards.iter().chain(&state.handed).any(|ward| ward.attempt_id == *attempt_id) {
                state.pidfds.remove(attempt_id);
            }
        }
        drop(state);
        ended
    }

    fn wake(&self) {
        // It fails only when it is awake already.
        rustix::io::write(&self.wake, &1_u64.to_ne_bytes()).ok();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Warden {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unreaped = self.shared.state().unreaped;
        formatter.debug_struct("Warden").field("unreaped", &unreaped).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::attempt;
    use placement_process::{dev_null, spawn_runner};
    use placement_testkit::wait_until;
    use std::path::Path;
    use std::sync::mpsc;
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn program(line: &str) -> Started {
        spawn_runner(Path::new("/bin/sh"), ["-c", line], dev_null().unwrap()).unwrap()
    }

    fn is_gone(pid: u32) -> bool {
        !Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_runner_that_ends_is_reaped_and_told() {
        let warden = Warden::new().unwrap();
        let (told, heard) = mpsc::channel();
        let runner = program("exit 3");
        let pid = runner.pid().get();
        warden
            .take(&attempt("a"), runner, || Box::new(move |id| told.send(id.clone()).unwrap()))
            .unwrap();
        assert_eq!(heard.recv_timeout(PATIENCE), Ok(attempt("a")));
        assert!(is_gone(pid), "it is no zombie when it is told");
        assert!(warden.pidfd_of(&attempt("a")).is_none());
    }

    #[test]
    fn dropping_it_neither_waits_for_a_runner_nor_leaves_a_zombie() {
        let warden = Warden::new().unwrap();
        let (told, heard) = mpsc::channel();
        let runner = program("exec sleep 600");
        let identity = runner.identity().unwrap();
        warden
            .take(&attempt("a"), runner, || Box::new(move |id| told.send(id.clone()).unwrap()))
            .unwrap();
        assert!(warden.pidfd_of(&attempt("a")).is_some());
        drop(warden);
        let placement_identity::Presence::Present(alive) = identity.observe() else {
            panic!("the runner goes on without its warden")
        };
        alive.signal(placement_identity::Signal::Kill).unwrap();
        wait_until(PATIENCE, "the reaping", || is_gone(identity.pid.get()));
        assert!(heard.recv().is_err(), "nobody is told once the service is gone");
    }

    #[test]
    fn an_idle_warden_has_no_thread() {
        let warden = Warden::new().unwrap();
        assert!(warden.thread.lock().unwrap().is_none());
    }
}
