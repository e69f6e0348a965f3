//! The launched process: its exit, its signals, its reaping.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use placement_contract::Exit;
use placement_identity::{Errno, IdentityError, Pid, ProcessIdentity, Signal, SignalError};
use rustix::process::{WaitId, WaitIdOptions, WaitIdStatus};

use crate::namespace;
use crate::poll::wait_readable;
use crate::sys;

/// Holds the launched process, the leader of its own group, as its parent or, in a PID namespace, as
/// its init tells of it.
///
/// A child of this process stays unreaped until [`Leader::reap`], so that its number and its group's
/// stay its own; one in a PID namespace is reaped by its init, and is reached by its pidfd only.
/// Dropping it neither kills nor reaps.
#[derive(Debug)]
#[must_use]
pub struct Leader {
    pid: Pid,
    pidfd: OwnedFd,
    /// Where its init tells its exit, if it is not a child of this process.
    reports: Option<OwnedFd>,
    reaped: Option<Exit>,
}

/// Says why an exit could not be learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The process has not ended.
    #[error("the process has not ended")]
    Running,
    /// `waitid` failed; `ECHILD` means that somebody else reaped it.
    #[error("cannot wait for the process: {0}")]
    Wait(Errno),
    /// The init of its PID namespace was killed before it could tell: the process has ended with it,
    /// if not before, and nobody knows how.
    #[error("the exit of the process was told to nobody")]
    Unreported,
}

/// Says why a signal did not go out to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupSignalError {
    /// The group has no member.
    #[error("the group is gone")]
    Gone,
    /// The kernel cannot signal a group through a pidfd (before Linux 6.9) and the leader was
    /// reaped, so that the bare number may be another group's.
    #[error("this kernel cannot signal the group of a reaped leader")]
    Unsupported,
    /// The kernel refused.
    #[error("the kernel refused the signal: {0}")]
    Refused(Errno),
}

impl Leader {
    /// Returns the process's number, which is its group's too.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Borrows the pidfd: readable when the process ends, whoever still holds its pipes.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Borrows the descriptor that is readable when [`Leader::observe_exit`] has something to say:
    /// in a PID namespace that is a moment after the end.
    pub fn exit_descriptor(&self) -> BorrowedFd<'_> {
        self.reports.as_ref().map_or(self.pidfd(), |reports| reports.as_fd())
    }

    /// Reads the identity, while the process was not reaped.
    ///
    /// # Errors
    /// [`IdentityError::Gone`] after the reaping.
    pub fn identity(&self) -> Result<ProcessIdentity, IdentityError> {
        ProcessIdentity::of_pidfd(self.pidfd(), self.pid)
    }

    /// Looks whether the process has ended and how, by `waitid(2)` with `WNOWAIT`: it stays
    /// unreaped. In a PID namespace its init tells.
    ///
    /// # Errors
    /// [`WaitError::Wait`] when somebody else reaped it, [`WaitError::Unreported`] when its init was
    /// killed.
    pub fn observe_exit(&self) -> Result<Option<Exit>, WaitError> {
        if self.reaped.is_some() {
            return Ok(self.reaped);
        }
        if let Some(reports) = &self.reports {
            return namespace::reported_exit(reports.as_fd());
        }
        wait(self.pidfd(), WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
    }

    /// Waits until the process ends, at most so long, and leaves it unreaped. A loop polls
    /// [`Leader::pidfd`] instead.
    ///
    /// # Errors
    /// [`WaitError::Running`] when it has not ended by then.
    pub fn await_exit(&self, within: Duration) -> Result<Exit, WaitError> {
        wait_readable(self.exit_descriptor(), within);
        self.observe_exit()?.ok_or(WaitError::Running)
    }

    /// Reaps the process, which must have ended; its number may be given away from then on.
    ///
    /// Repeating it returns the same exit.
    ///
    /// # Errors
    /// [`WaitError::Running`] when it has not ended; as [`Leader::observe_exit`] in a PID namespace.
    pub fn reap(&mut self) -> Result<Exit, WaitError> {
        if let Some(exit) = self.reaped {
            return Ok(exit);
        }
        let exit = match &self.reports {
            Some(_) => self.observe_exit()?.ok_or(WaitError::Running)?,
            None => reap(self.pidfd())?,
        };
        self.reaped = Some(exit);
        Ok(exit)
    }

    /// Says how the process ended if it was reaped.
    pub fn reaped(&self) -> Option<Exit> {
        self.reaped
    }

    /// Sends a signal to this process alone, by `pidfd_send_signal(2)`.
    ///
    /// # Errors
    /// [`SignalError::Gone`] after the reaping.
    pub fn signal(&self, signal: Signal) -> Result<(), SignalError> {
        sys::pidfd_signal(self.pidfd(), signal.number()).map_err(signal_error)
    }

    /// Sends a signal to every member of the group, through the pidfd where the kernel can
    /// (Linux 6.9), else by number while the unreaped leader keeps the number its own. In a PID
    /// namespace an older kernel can reach the leader alone.
    ///
    /// # Errors
    /// [`GroupSignalError`] by variant.
    pub fn signal_group(&self, signal: Signal) -> Result<(), GroupSignalError> {
        match signal_group_through_pidfd(self.pidfd(), signal) {
            // A bare number of a process that others reap may be somebody else's by now.
            Err(GroupSignalError::Unsupported) if self.reports.is_some() => {
                self.signal(signal).map_err(|error| match error {
                    SignalError::Gone => GroupSignalError::Gone,
                    SignalError::Refused(errno) => GroupSignalError::Refused(errno),
                })
            }
            Err(GroupSignalError::Unsupported) if self.reaped.is_none() => {
                let group = nix::unistd::Pid::from_raw(self.pid.as_raw());
                let number = nix::sys::signal::Signal::try_from(signal.number())
                    .map_err(|error| GroupSignalError::Refused(Errno::from_raw(error as i32)))?;
                nix::sys::signal::killpg(group, number)
                    .map_err(|error| group_error(Errno::from_raw(error as i32)))
            }
            other => other,
        }
    }

    pub(crate) fn new(pid: Pid, pidfd: OwnedFd) -> Self {
        Self { pid, pidfd, reports: None, reaped: None }
    }

    /// Takes a process whose exit its init tells.
    pub(crate) fn in_namespace(pid: Pid, pidfd: OwnedFd, reports: OwnedFd) -> Self {
        Self { pid, pidfd, reports: Some(reports), reaped: None }
    }
}

/// Sends a signal to the group led by the process behind a pidfd, by `pidfd_send_signal(2)` with
/// `PIDFD_SIGNAL_PROCESS_GROUP`; the leader may have been reaped.
///
/// # Errors
/// [`GroupSignalError::Gone`] for `ESRCH`, [`GroupSignalError::Unsupported`] for `EINVAL` (before
/// Linux 6.9).
pub fn signal_group_through_pidfd(
    pidfd: BorrowedFd<'_>,
    signal: Signal,
) -> Result<(), GroupSignalError> {
    sys::pidfd_signal_group(pidfd, signal.number()).map_err(|errno| match errno.raw() {
        libc::EINVAL | libc::ENOSYS => GroupSignalError::Unsupported,
        _ => group_error(errno),
    })
}

pub(crate) fn signal_error(errno: Errno) -> SignalError {
    if errno.raw() == libc::ESRCH { SignalError::Gone } else { SignalError::Refused(errno) }
}

fn group_error(errno: Errno) -> GroupSignalError {
    if errno.raw() == libc::ESRCH {
        GroupSignalError::Gone
    } else {
        GroupSignalError::Refused(errno)
    }
}

/// Reaps a process that has ended.
pub(crate) fn reap(pidfd: BorrowedFd<'_>) -> Result<Exit, WaitError> {
    wait(pidfd, WaitIdOptions::EXITED | WaitIdOptions::NOHANG)?.ok_or(WaitError::Running)
}

fn wait(pidfd: BorrowedFd<'_>, options: WaitIdOptions) -> Result<Option<Exit>, WaitError> {
    let status =
        rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::PidFd(pidfd), options))
            .map_err(|error| WaitError::Wait(crate::errno(error)))?;
    Ok(status.as_ref().and_then(exit_of))
}

fn exit_of(status: &WaitIdStatus) -> Option<Exit> {
    if let Some(code) = status.exit_status() {
        return Some(Exit::Code { code });
    }
    let signal = status.terminating_signal()?;
    Some(Exit::Signal { signal, core: status.dumped() })
}
