//! The three-valued answer, its proof, its handle and its doubt.

use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use crate::errno::{self, Errno};
use crate::pid::Pid;
use crate::signal::Signal;

/// Answers whether a recorded process still runs.
#[derive(Debug)]
#[must_use]
pub enum Presence {
    /// It runs, and this handle reaches it and nobody else.
    Present(Verified),
    /// It does not run, and this is why that is certain.
    Absent(AbsenceProof),
    /// It could not be told.
    Unknown(UnknownWhy),
}

/// Proves that one recorded process does not run any more.
///
/// Only this crate makes it. It says nothing about the process's group or descendants.
#[derive(Debug)]
#[must_use]
pub struct AbsenceProof {
    because: &'static str,
}

impl AbsenceProof {
    /// Returns the fixed phrase that says what was seen.
    pub fn because(&self) -> &'static str {
        self.because
    }

    pub(crate) fn earlier_boot() -> Self {
        Self { because: "the machine was started again" }
    }

    pub(crate) fn no_such_process() -> Self {
        Self { because: "no process has its number" }
    }

    pub(crate) fn number_of_a_thread() -> Self {
        Self { because: "its number belongs to a thread of another process" }
    }

    pub(crate) fn other_process() -> Self {
        Self { because: "its number belongs to another process" }
    }

    pub(crate) fn ended() -> Self {
        Self { because: "it has ended" }
    }
}

/// Says why an answer could not be given. Everything must be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownWhy {
    /// This boot's id cannot be read.
    NoBootId,
    /// The own namespaces cannot be read.
    NoNamespaces,
    /// It was recorded on another machine.
    OtherMachine,
    /// Another boot, and nothing says that the machine is the same.
    MachineNotKnown,
    /// It was recorded from another PID namespace.
    OtherPidNamespace,
    /// It was recorded from another time namespace.
    OtherTimeNamespace,
    /// The kernel refused a descriptor for the process.
    NoDescriptor(Errno),
    /// A process has the number and nothing tells whether it is the recorded one.
    NoStamp,
    /// `/proc` does not show every process.
    ProcRestricted,
    /// The process table has an entry that cannot be read.
    ProcUnreadable,
    /// The number cannot be a process group of its own.
    NotAGroup,
    /// The group probe was answered otherwise than with `ESRCH`.
    GroupProbe,
}

impl UnknownWhy {
    /// Returns the fixed phrase.
    pub fn because(self) -> &'static str {
        match self {
            Self::NoBootId => "the boot id cannot be read",
            Self::NoNamespaces => "the own namespaces cannot be read",
            Self::OtherMachine => "it was recorded on another machine",
            Self::MachineNotKnown => "another boot, and the machine is not known to be the same",
            Self::OtherPidNamespace => "it was recorded in another process namespace",
            Self::OtherTimeNamespace => "it was recorded in another time namespace",
            Self::NoDescriptor(_) => "the kernel gave no descriptor of the process",
            Self::NoStamp => "the start stamp of the process cannot be read",
            Self::ProcRestricted => "the process table does not show every process",
            Self::ProcUnreadable => "the process table has an entry that cannot be read",
            Self::NotAGroup => "the number is not a process group of its own",
            Self::GroupProbe => "the group probe did not answer that the group is gone",
        }
    }
}

impl fmt::Display for UnknownWhy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDescriptor(errno) => write!(formatter, "{} ({errno})", self.because()),
            Self::NoBootId
            | Self::NoNamespaces
            | Self::OtherMachine
            | Self::MachineNotKnown
            | Self::OtherPidNamespace
            | Self::OtherTimeNamespace
            | Self::NoStamp
            | Self::ProcRestricted
            | Self::ProcUnreadable
            | Self::NotAGroup
            | Self::GroupProbe => formatter.write_str(self.because()),
        }
    }
}

/// Reaches one process that was compared with its recorded identity after the handle was opened.
///
/// The handle is a pidfd: when the process ends it reaches nobody, whoever gets the number.
#[derive(Debug)]
#[must_use]
pub struct Verified {
    pid: Pid,
    pidfd: OwnedFd,
}

/// Says why a signal did not go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignalError {
    /// The process ended and was reaped since it was verified (`ESRCH`).
    #[error("the process is gone")]
    Gone,
    /// The kernel refused.
    #[error("the kernel refused the signal: {0}")]
    Refused(Errno),
}

impl Verified {
    /// Sends a signal to this process alone, by `pidfd_send_signal(2)`.
    ///
    /// # Errors
    /// [`SignalError::Gone`] when it was reaped meanwhile. Success on a process that has ended and
    /// was not reaped is the kernel's answer too: a sent signal is never an exit.
    pub fn signal(&self, signal: Signal) -> Result<(), SignalError> {
        rustix::process::pidfd_send_signal(&self.pidfd, signal.to_rustix()).map_err(|error| {
            match error {
                rustix::io::Errno::SRCH => SignalError::Gone,
                other => SignalError::Refused(errno::of(other)),
            }
        })
    }

    /// Returns the process's number.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Borrows the pidfd: readable when the process ends.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Gives the pidfd away.
    pub fn into_pidfd(self) -> OwnedFd {
        self.pidfd
    }

    pub(crate) fn new(pid: Pid, pidfd: OwnedFd) -> Self {
        Self { pid, pidfd }
    }
}
