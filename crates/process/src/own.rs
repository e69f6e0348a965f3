//! What a runner does to itself before it starts anything.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};

use nix::sys::signal::{SigHandler, SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use placement_identity::Errno;

use crate::sys;

/// Says what a runner could not do to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the runner cannot {step}: {errno}")]
pub struct OwnError {
    /// What it was doing, in a fixed phrase.
    pub step: &'static str,
    /// What the kernel answered.
    pub errno: Errno,
}

/// Makes this process the one that orphaned descendants come to, by `prctl(PR_SET_CHILD_SUBREAPER)`.
///
/// # Errors
/// [`OwnError`] with the kernel's answer.
pub fn become_subreaper() -> Result<(), OwnError> {
    // Any number but none switches it on.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| failed("become a subreaper", crate::errno(error)))
}

/// Makes this process the leader of a session without a terminal, by `setsid(2)`.
///
/// # Errors
/// [`OwnError`] with `EPERM` where it leads a process group already.
pub fn new_session() -> Result<(), OwnError> {
    rustix::process::setsid()
        .map(|_| ())
        .map_err(|error| failed("start a session", crate::errno(error)))
}

/// Hides this process's memory, environment and descriptors from other processes of its user, and
/// keeps it from leaving a core file, by `prctl(PR_SET_DUMPABLE)`.
///
/// # Errors
/// [`OwnError`] with the kernel's answer.
pub fn set_non_dumpable() -> Result<(), OwnError> {
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(|error| failed("become non-dumpable", crate::errno(error)))
}

/// Closes every descriptor but stdio and those given, by `close_range(2)`.
///
/// It is for the first moment of a process, while whoever started it may have left descriptors open
/// in it. A value that owns one of the closed numbers would later close somebody else's.
///
/// # Errors
/// [`OwnError`] with the kernel's answer, such as `ENOSYS` before Linux 5.9.
pub fn close_all_but(kept: &[BorrowedFd<'_>]) -> Result<(), OwnError> {
    let mut kept: Vec<u32> = kept.iter().map(|it| it.as_raw_fd().unsigned_abs()).collect();
    kept.sort_unstable();
    let mut first = 3_u32;
    for number in kept.into_iter().filter(|number| *number >= 3) {
        if number > first {
            close(first, number - 1)?;
        }
        first = first.max(number + 1);
    }
    close(first, u32::MAX)
}

fn close(first: u32, last: u32) -> Result<(), OwnError> {
    sys::close_range(first, last).map_err(|errno| failed("close inherited descriptors", errno))
}

/// Holds the descriptor on which SIGTERM and SIGCHLD arrive.
#[derive(Debug)]
#[must_use]
pub struct Signals {
    signals: SignalFd,
}

/// What has arrived since the last look; signals of one kind merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// SIGTERM: this process is asked to end.
    pub termination: bool,
    /// SIGCHLD: a child or an adopted orphan has ended.
    pub child: bool,
}

impl Signals {
    /// Borrows the descriptor: readable when a signal was sent.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }

    /// Takes what has arrived, without waiting.
    ///
    /// # Errors
    /// [`OwnError`] with the kernel's answer.
    pub fn take(&self) -> Result<Arrived, OwnError> {
        let mut arrived = Arrived::default();
        loop {
            match self.signals.read_signal() {
                Ok(Some(information)) if information.ssi_signo == TERMINATION => {
                    arrived.termination = true;
                }
                Ok(Some(_)) => arrived.child = true,
                Ok(None) => return Ok(arrived),
                Err(error) => return Err(nix_failed("read the arrived signals", error)),
            }
        }
    }
}

const TERMINATION: u32 = Signal::SIGTERM as u32;

/// Gives this process the dispositions of a runner: SIGPIPE, SIGHUP, SIGINT and SIGXFSZ (a file size
/// limit of the host is an error of the write, not the end of the runner) are ignored, SIGCHLD has its
/// default (an inherited "ignored" would reap children unseen), and SIGTERM and SIGCHLD arrive on a
/// descriptor instead.
///
/// Both are blocked in the calling thread and in those it starts later: call it first.
///
/// # Errors
/// [`OwnError`] with the kernel's answer.
pub fn settle_signals() -> Result<Signals, OwnError> {
    for (signal, disposition) in [
        (Signal::SIGPIPE, SigHandler::SigIgn),
        (Signal::SIGHUP, SigHandler::SigIgn),
        (Signal::SIGINT, SigHandler::SigIgn),
        (Signal::SIGXFSZ, SigHandler::SigIgn),
        (Signal::SIGCHLD, SigHandler::SigDfl),
        (Signal::SIGTERM, SigHandler::SigDfl),
    ] {
        // SAFETY: neither disposition runs code of this process.
        unsafe { nix::sys::signal::signal(signal, disposition) }
            .map_err(|error| nix_failed("set its signal dispositions", error))?;
    }
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGTERM);
    mask.add(Signal::SIGCHLD);
    mask.thread_set_mask().map_err(|error| nix_failed("set its signal mask", error))?;
    let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(|error| nix_failed("open a signal descriptor", error))?;
    Ok(Signals { signals })
}

fn failed(step: &'static str, errno: Errno) -> OwnError {
    OwnError { step, errno }
}

fn nix_failed(step: &'static str, error: nix::errno::Errno) -> OwnError {
    failed(step, Errno::from_raw(error as i32))
}
