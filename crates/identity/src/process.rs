//! Recording who a process is, and looking for exactly that one later.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::PidfdFlags;
use serde::{Deserialize, Serialize};

use crate::errno::{self, Errno};
use crate::machine::{self, MachineError};
use crate::observer::{Observer, Place, place};
use crate::pid::Pid;
use crate::presence::{AbsenceProof, Presence, UnknownWhy, Verified};
use crate::stat::{Stat, StatError, read_stat};

/// `PID_FS_MAGIC`: since Linux 6.9 a pidfd's inode is unique for the boot.
const PID_FS_MAGIC: u64 = 0x5049_4446;

/// Says which process was seen, when, and from where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessIdentity {
    /// The process.
    pub pid: Pid,
    /// Its process group when it was seen, or [`Pid::GROUP_OUTSIDE`].
    pub pgid: Pid,
    /// Start stamp in clock ticks since boot (100 a second).
    #[serde(with = "crate::decimal")]
    pub start_ticks: u64,
    /// The boot in which it was seen.
    pub boot_id: String,
    /// Inode of its pidfd, where the kernel gives each process its own (Linux 6.9).
    #[serde(with = "crate::decimal::option")]
    pub pidfd_inode: Option<u64>,
    /// From where it was seen.
    pub observer: Observer,
}

/// Says why a process's identity could not be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The number is not a process id.
    #[error("not a process id")]
    NotAPid,
    /// No process has the number, or it was reaped while it was looked at.
    #[error("no such process")]
    Gone,
    /// The kernel gave no descriptor of the process.
    #[error("cannot open a descriptor of the process: {errno}")]
    Descriptor {
        /// What the kernel answered.
        errno: Errno,
    },
    /// The start stamp could not be read.
    #[error("cannot read the start stamp of the process")]
    Stamp(#[source] StatError),
    /// The descriptor belongs to a process with another number.
    #[error("the descriptor belongs to another process")]
    OtherNumber,
    /// The boot id could not be read.
    #[error("cannot read the boot id")]
    Boot(#[source] MachineError),
    /// The own namespaces could not be read.
    #[error("cannot read the own namespaces: {errno}")]
    Namespace {
        /// What the kernel answered.
        errno: Errno,
    },
}

impl IdentityError {
    /// Returns what the kernel answered, if it did.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Descriptor { errno }
            | Self::Namespace { errno }
            | Self::Stamp(StatError::Unreadable(errno))
            | Self::Boot(MachineError::Unreadable(errno)) => Some(*errno),
            Self::Boot(MachineError::Malformed)
            | Self::NotAPid
            | Self::Gone
            | Self::OtherNumber
            | Self::Stamp(StatError::Missing | StatError::Malformed) => None,
        }
    }
}

impl ProcessIdentity {
    /// Records the process that has this number now.
    ///
    /// Exact for a child that was not yet reaped, since its number cannot be given away.
    ///
    /// # Errors
    /// [`IdentityError::Gone`] when there is none; the others when a fact cannot be read.
    pub fn of(pid: impl TryInto<Pid>) -> Result<Self, IdentityError> {
        let pid = pid.try_into().map_err(|_| IdentityError::NotAPid)?;
        let pidfd = open_pidfd(pid).map_err(|error| match error {
            rustix::io::Errno::SRCH | rustix::io::Errno::NOENT | rustix::io::Errno::INVAL => {
                IdentityError::Gone
            }
            other => IdentityError::Descriptor { errno: errno::of(other) },
        })?;
        Self::of_pidfd(pidfd.as_fd(), pid)
    }

    /// Records the process behind a pidfd, whose number the caller knows.
    ///
    /// # Errors
    /// [`IdentityError::Gone`] when it was reaped before every fact was read.
    pub fn of_pidfd(pidfd: BorrowedFd<'_>, pid: Pid) -> Result<Self, IdentityError> {
        let stat = match read_stat(pid) {
            Ok(stat) => stat,
            Err(StatError::Missing) if holder(pidfd) == Holder::Reaped => {
                return Err(IdentityError::Gone);
            }
            Err(error) => return Err(IdentityError::Stamp(error)),
        };
        // The number may have been given away before the stat was read; as long as the process
        // behind the pidfd holds it, it was that process's all the while.
        match holder(pidfd) {
            Holder::Process(number) if number == pid => {}
            Holder::Process(_) => return Err(IdentityError::OtherNumber),
            Holder::Reaped => return Err(IdentityError::Gone),
            Holder::Unknown => return Err(IdentityError::Stamp(StatError::Missing)),
        }
        Ok(Self {
            pid,
            pgid: stat.pgid.unwrap_or(Pid::GROUP_OUTSIDE),
            start_ticks: stat.start_ticks,
            boot_id: machine::boot_id().map_err(IdentityError::Boot)?,
            pidfd_inode: pidfd_inode(pidfd),
            observer: Observer::here()?,
        })
    }

    /// Records the calling process.
    ///
    /// # Errors
    /// As [`ProcessIdentity::of`].
    pub fn this_process() -> Result<Self, IdentityError> {
        Self::of(Pid::this_process())
    }

    /// Looks for exactly this process.
    ///
    /// A process that has ended is absent even before it is reaped; one whose leading thread ended
    /// while others go on is present.
    pub fn observe(&self) -> Presence {
        match place(&self.boot_id, &self.observer) {
            Place::Here => self.observe_here(),
            Place::EarlierBoot(proof) => Presence::Absent(proof),
            Place::Elsewhere(why) => Presence::Unknown(why),
        }
    }

    /// Opens first and compares then: what is compared is what the handle reaches.
    fn observe_here(&self) -> Presence {
        let pidfd = match open_pidfd(self.pid) {
            Ok(pidfd) => pidfd,
            Err(rustix::io::Errno::SRCH) => {
                return Presence::Absent(AbsenceProof::no_such_process());
            }
            // ENOENT since Linux 6.15, EINVAL before.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::INVAL) => {
                return Presence::Absent(AbsenceProof::number_of_a_thread());
            }
            Err(error) => return Presence::Unknown(UnknownWhy::NoDescriptor(errno::of(error))),
        };
        let inode = pidfd_inode(pidfd.as_fd());
        let same = self.compare(inode, read_stat(self.pid));
        // The stamp was read by number: had the process behind the pidfd been reaped before, the
        // stamp could be another's. Asked last, "still its number" covers the read.
        match holder(pidfd.as_fd()) {
            Holder::Process(number) if number == self.pid => {}
            Holder::Reaped => return Presence::Absent(AbsenceProof::ended()),
            Holder::Process(_) | Holder::Unknown => return Presence::Unknown(UnknownWhy::NoStamp),
        }
        match same {
            Some(false) => Presence::Absent(AbsenceProof::other_process()),
            Some(true) if ended(pidfd.as_fd()) => Presence::Absent(AbsenceProof::ended()),
            Some(true) => Presence::Present(Verified::new(self.pid, pidfd)),
            None => Presence::Unknown(UnknownWhy::NoStamp),
        }
    }

    /// Says whether the opened process is this one: by the inode where both sides have it, else by
    /// the start stamp.
    fn compare(&self, inode: Option<u64>, stat: Result<Stat, StatError>) -> Option<bool> {
        if let (Some(recorded), Some(seen)) = (self.pidfd_inode, inode)
            && recorded != seen
        {
            return Some(false);
        }
        match stat {
            Ok(stat) => Some(stat.start_ticks == self.start_ticks),
            Err(_) if self.pidfd_inode.is_some() && inode.is_some() => Some(true),
            Err(_) => None,
        }
    }
}

pub(crate) fn open_pidfd(pid: Pid) -> rustix::io::Result<OwnedFd> {
    rustix::process::pidfd_open(pid.to_rustix(), PidfdFlags::empty())
}

/// Reads the inode that names the process for the boot; `None` where all pidfds share one.
fn pidfd_inode(pidfd: BorrowedFd<'_>) -> Option<u64> {
    let system = rustix::fs::fstatfs(pidfd).ok()?;
    if u64::try_from(system.f_type) != Ok(PID_FS_MAGIC) {
        return None;
    }
    rustix::fs::fstat(pidfd).ok().map(|stat| stat.st_ino)
}

/// Says which number the process behind a pidfd holds, as `/proc` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// It runs or is a zombie under this number.
    Process(Pid),
    /// It was reaped: `Pid:` is -1.
    Reaped,
    /// `/proc` does not tell, or is that of another PID namespace.
    Unknown,
}

fn holder(pidfd: BorrowedFd<'_>) -> Holder {
    let Ok(text) = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))
    else {
        return Holder::Unknown;
    };
    let number = text.lines().find_map(|line| line.strip_prefix("Pid:"));
    match number.map(str::trim).map(str::parse::<i32>) {
        Some(Ok(-1)) => Holder::Reaped,
        Some(Ok(number)) => Pid::try_from(number).map_or(Holder::Unknown, Holder::Process),
        Some(Err(_)) | None => Holder::Unknown,
    }
}

/// Returns the number that the process behind a pidfd has here, running or not yet reaped; `None`
/// after the reaping, and where `/proc` does not tell.
pub fn number_of_pidfd(pidfd: BorrowedFd<'_>) -> Option<Pid> {
    match holder(pidfd) {
        Holder::Process(number) => Some(number),
        Holder::Reaped | Holder::Unknown => None,
    }
}

/// Asks whether the last thread of the process has ended: its pidfd is then readable.
fn ended(pidfd: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::io::retry_on_intr(|| rustix::event::poll(&mut polled, Some(&now))).is_ok_and(|n| n > 0)
}
