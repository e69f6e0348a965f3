//! The exec gate: a process that is recorded before it runs anything.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Instant;

use placement_contract::Exit;
use placement_identity::{Errno, IdentityError, Pid, ProcessIdentity};

use crate::child::{ChildStep, REPORT_BYTES, REPORT_FAILED, REPORT_FELL_BACK};
use crate::leader::{self, Leader};
use crate::limits::{EXEC_WAIT_MAX, NEWBORN_END_MAX};
use crate::namespace::{PidNamespace, reported_exit};
use crate::poll::{is_readable, wait_readable};
use crate::sys;

/// Holds a new process that waits and has not run its program.
///
/// Dropping it closes the gate, kills the process and reaps it: the program never runs. A runner
/// that dies here closes the gate too.
#[derive(Debug)]
#[must_use]
pub struct Gated {
    newborn: Newborn,
    gate: OwnedFd,
    report: OwnedFd,
}

/// Holds a new process whose gate is open and that has not yet told how its exec went.
///
/// Dropping it kills the process and reaps it.
#[derive(Debug)]
#[must_use]
pub struct Released {
    newborn: Newborn,
    report: OwnedFd,
    seen: Vec<u8>,
}

/// Answers how an exec went, asked without waiting.
#[derive(Debug)]
#[must_use]
pub enum ExecOutcome {
    /// The program runs.
    Opened(Opened),
    /// It does not, and the process is reaped.
    Failed(ExecFailed),
    /// Not known yet; poll [`Released::descriptor`].
    Pending(Released),
}

/// Holds a running program and the way in which it was executed.
#[derive(Debug)]
pub struct Opened {
    /// The process, which is now the program.
    pub leader: Leader,
    /// How it was executed.
    pub way: ExecWay,
    /// The PID namespace in which it was made, if it was.
    pub namespace: Option<PidNamespace>,
}

/// Says how the program was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecWay {
    /// As [`crate::Program`] said first: the descriptor, or the path where no descriptor was given.
    AsGiven,
    /// By the fallback path, because the descriptor was refused with this error.
    FellBack(Errno),
}

/// Says why the program did not run. The process that was to become it is gone and reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program did not start: {errno} when {step}")]
pub struct ExecFailed {
    /// What the new process was doing.
    pub step: ChildStep,
    /// What the kernel answered; `ETIMEDOUT` when it did not answer in time.
    pub errno: Errno,
    /// How the process ended, where it could be observed.
    pub exit: Option<Exit>,
}

impl Gated {
    /// Returns the process's number.
    pub fn pid(&self) -> Pid {
        self.newborn.pid
    }

    /// Borrows the PID namespace in which the process waits, if it has one of its own.
    pub fn namespace(&self) -> Option<&PidNamespace> {
        self.newborn.held().namespace()
    }

    /// Borrows the pidfd: readable when the process ends.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.newborn.held().pidfd()
    }

    /// Reads the identity to be recorded before the gate is opened.
    ///
    /// # Errors
    /// [`IdentityError`] when a fact cannot be read.
    pub fn identity(&self) -> Result<ProcessIdentity, IdentityError> {
        ProcessIdentity::of_pidfd(self.pidfd(), self.pid())
    }

    /// Lets the process become the program, and waits until it did or did not, at most ten seconds.
    ///
    /// # Errors
    /// [`ExecFailed`] with the kernel's answer; nothing of the process is left.
    pub fn open_gate(self) -> Result<Opened, ExecFailed> {
        let deadline = Instant::now() + EXEC_WAIT_MAX;
        let mut released = self.release();
        loop {
            released = match released.outcome() {
                ExecOutcome::Opened(opened) => return Ok(opened),
                ExecOutcome::Failed(failed) => return Err(failed),
                ExecOutcome::Pending(released) => released,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(released.newborn.failed(ChildStep::Exec, timed_out()));
            }
            wait_readable(released.descriptor(), left);
        }
    }

    /// Lets the process become the program without waiting for it.
    pub fn release(self) -> Released {
        // A process that ended at set-up reads nothing; its report, or its exit, tells.
        rustix::io::write(&self.gate, b"g").ok();
        Released { newborn: self.newborn, report: self.report, seen: Vec::new() }
    }

    pub(crate) fn new(newborn: Newborn, gate: OwnedFd, report: OwnedFd) -> Self {
        Self { newborn, gate, report }
    }
}

impl Released {
    /// Borrows the descriptor that becomes readable when there is something to learn.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.report.as_fd()
    }

    /// Looks how the exec went, without waiting: end of file on the error pipe means that the
    /// program runs, or that the process was killed before, which its exit will tell.
    pub fn outcome(mut self) -> ExecOutcome {
        loop {
            if !is_readable(self.report.as_fd()) {
                return ExecOutcome::Pending(self);
            }
            let mut bytes = [0_u8; 2 * REPORT_BYTES];
            match rustix::io::retry_on_intr(|| rustix::io::read(&self.report, &mut bytes)) {
                Ok(0) => return self.conclude(),
                Ok(length) => self.seen.extend(bytes.iter().take(length)),
                Err(error) => {
                    let errno = crate::errno(error);
                    return ExecOutcome::Failed(self.newborn.failed(ChildStep::Exec, errno));
                }
            }
        }
    }

    fn conclude(self) -> ExecOutcome {
        let mut way = ExecWay::AsGiven;
        for message in self.seen.chunks_exact(REPORT_BYTES) {
            let &[kind, step, _, _, first, second, third, fourth] = message else { continue };
            let errno = Errno::from_raw(i32::from_ne_bytes([first, second, third, fourth]));
            match kind {
                REPORT_FELL_BACK => way = ExecWay::FellBack(errno),
                REPORT_FAILED => {
                    let step = ChildStep::from_wire(step).unwrap_or(ChildStep::Exec);
                    return ExecOutcome::Failed(self.newborn.failed(step, errno));
                }
                _ => {}
            }
        }
        let (leader, namespace) = self.newborn.into_parts();
        ExecOutcome::Opened(Opened { leader, way, namespace })
    }
}

/// Owns a process that is nobody's leader yet; dropping it kills and reaps it, with the PID namespace
/// that it has of its own.
#[derive(Debug)]
pub(crate) struct Newborn {
    pid: Pid,
    /// Taken when the process is handed on.
    held: Option<Held>,
}

#[derive(Debug)]
enum Held {
    Child { pidfd: OwnedFd },
    InNamespace { pidfd: OwnedFd, namespace: PidNamespace, reports: OwnedFd },
}

impl Held {
    fn pidfd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Child { pidfd } | Self::InNamespace { pidfd, .. } => pidfd.as_fd(),
        }
    }

    fn namespace(&self) -> Option<&PidNamespace> {
        match self {
            Self::Child { .. } => None,
            Self::InNamespace { namespace, .. } => Some(namespace),
        }
    }
}

impl Newborn {
    pub(crate) fn new(pid: Pid, pidfd: OwnedFd) -> Self {
        Self { pid, held: Some(Held::Child { pidfd }) }
    }

    pub(crate) fn in_namespace(
        pid: Pid,
        pidfd: OwnedFd,
        namespace: PidNamespace,
        reports: OwnedFd,
    ) -> Self {
        Self { pid, held: Some(Held::InNamespace { pidfd, namespace, reports }) }
    }

    pub(crate) fn into_parts(mut self) -> (Leader, Option<PidNamespace>) {
        match self.held.take().expect("taken only here and on failure") {
            Held::Child { pidfd } => (Leader::new(self.pid, pidfd), None),
            Held::InNamespace { pidfd, namespace, reports } => {
                (Leader::in_namespace(self.pid, pidfd, reports), Some(namespace))
            }
        }
    }

    fn held(&self) -> &Held {
        self.held.as_ref().expect("taken only with the whole value")
    }

    fn failed(mut self, step: ChildStep, errno: Errno) -> ExecFailed {
        ExecFailed { step, errno, exit: self.end() }
    }

    /// Waits for the end that SIGKILL brings, unless the kernel itself holds the process in an
    /// uninterruptible read; such a one still never runs its program.
    fn end(&mut self) -> Option<Exit> {
        let held = self.held.take()?;
        // Refused only when it was reaped, which but for its init nobody does.
        sys::pidfd_signal(held.pidfd(), libc::SIGKILL).ok();
        match held {
            Held::Child { pidfd } => {
                if !wait_readable(pidfd.as_fd(), NEWBORN_END_MAX) {
                    return None;
                }
                leader::reap(pidfd.as_fd()).ok()
            }
            Held::InNamespace { namespace, reports, .. } => {
                wait_readable(reports.as_fd(), NEWBORN_END_MAX);
                let exit = reported_exit(reports.as_fd()).ok().flatten();
                namespace.end();
                exit
            }
        }
    }
}

impl Drop for Newborn {
    fn drop(&mut self) {
        self.end();
    }
}

fn timed_out() -> Errno {
    crate::errno(rustix::io::Errno::TIMEDOUT)
}
