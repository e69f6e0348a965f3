//! The processes of a life: real ones that can be ended, and identities of none.

use crate::testing::{PATIENCE, process, this_process};
use crate::wait::wait_readable;
use placement_identity::{Observer, Pid, ProcessIdentity};
use placement_process::Started;
use placement_testkit::wait_until;
use std::time::Instant;

/// A number that no process has: it is the largest that there may be.
const NOBODY: u32 = 4_194_303;

/// A process of its own group that only SIGKILL ends.
#[derive(Debug)]
pub(super) struct Stubborn {
    started: Started,
    pub(super) identity: ProcessIdentity,
}

impl Stubborn {
    pub(super) fn start() -> Self {
        let (started, identity) = process("trap '' TERM; exec sleep 600");
        let comm = format!("/proc/{}/comm", identity.pid);
        wait_until(PATIENCE, "a program that ignores SIGTERM", || {
            std::fs::read_to_string(&comm).is_ok_and(|name| name.trim() == "sleep")
        });
        Self { started, identity }
    }

    pub(super) fn is_alive(&self) -> bool {
        !wait_readable(self.started.pidfd(), Some(Instant::now()))
    }

    /// Ends it as the kernel ends the child of a runner that is gone.
    pub(super) fn kill(&mut self) {
        // It fails only when it has ended already.
        rustix::process::pidfd_send_signal(self.started.pidfd(), rustix::process::Signal::KILL)
            .ok();
        self.started.wait().unwrap();
    }
}

impl Drop for Stubborn {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The identity of a process that has ended and whose number nobody has.
pub(super) fn ended() -> ProcessIdentity {
    let pid = Pid::try_from(NOBODY).unwrap();
    ProcessIdentity { pid, pgid: pid, start_ticks: 1, pidfd_inode: None, ..this_process() }
}

/// The identity of a process that has ended and whose number a stranger has.
pub(super) fn reused(stranger: &ProcessIdentity) -> ProcessIdentity {
    ProcessIdentity { start_ticks: 1, pidfd_inode: None, ..stranger.clone() }
}

/// The identity of a process in another PID namespace, where its number is another one's.
pub(super) fn elsewhere(stranger: &ProcessIdentity) -> ProcessIdentity {
    let here = stranger.observer.clone();
    let observer = Observer { pid_namespace: here.pid_namespace + 1, ..here };
    ProcessIdentity { observer, ..stranger.clone() }
}
