//! How a host starts a runner.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};

use placement_contract::Exit;
use placement_identity::{Errno, IdentityError, Pid, ProcessIdentity};
use rustix::process::PidfdFlags;

/// Holds a runner that was started. Dropping it neither ends nor reaps the runner.
#[derive(Debug)]
#[must_use]
pub struct Started {
    child: Child,
    pid: Pid,
    pidfd: OwnedFd,
}

/// Says why no runner was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The program could not be started: `ENOENT`, `EACCES`, `EAGAIN` and the like.
    #[error("cannot start the runner program: {0}")]
    Program(Errno),
    /// No descriptor of the new process could be had; it was ended.
    #[error("cannot open a descriptor of the runner: {0}")]
    Descriptor(Errno),
}

/// Starts a runner with its order on descriptor 0, output to `/dev/null`, an empty environment and
/// `/` as its working directory.
///
/// The memory of the host is not copied (`posix_spawn`); a large host starts it as fast as a small
/// one. Nothing secret may be among the arguments: everybody can read them.
///
/// # Errors
/// [`StartError`] by variant.
pub fn spawn_runner<'a>(
    program: &Path,
    arguments: impl IntoIterator<Item = &'a str>,
    order: OwnedFd,
) -> Result<Started, StartError> {
    #[expect(clippy::disallowed_methods, reason = "this is where a host makes its runners")]
    let mut command = std::process::Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(order))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| StartError::Program(Errno::from(&error)))?;
    let pid = Pid::try_from(child.id()).expect("a child of ours has a number");
    // Not reaped yet, so the number is still the child's.
    match rustix::process::pidfd_open(crate::raw_pid(pid), PidfdFlags::empty()) {
        Ok(pidfd) => Ok(Started { child, pid, pidfd }),
        Err(error) => {
            // Both fail only when it has ended already.
            child.kill().ok();
            child.wait().ok();
            Err(StartError::Descriptor(crate::errno(error)))
        }
    }
}

impl Started {
    /// Returns the runner's number.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Borrows the pidfd: readable when the runner ends.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Reads the runner's identity.
    ///
    /// # Errors
    /// [`IdentityError::Gone`] after the reaping.
    pub fn identity(&self) -> Result<ProcessIdentity, IdentityError> {
        ProcessIdentity::of_pidfd(self.pidfd(), self.pid)
    }

    /// Reaps the runner if it has ended, without waiting.
    ///
    /// # Errors
    /// The kernel's answer, such as `ECHILD` when somebody else reaped it.
    pub fn try_wait(&mut self) -> Result<Option<Exit>, Errno> {
        let status = self.child.try_wait().map_err(|error| Errno::from(&error))?;
        Ok(status.and_then(exit_of))
    }

    /// Waits until the runner ends, however long that takes, and reaps it.
    ///
    /// # Errors
    /// The kernel's answer, such as `ECHILD` when somebody else reaped it.
    pub fn wait(&mut self) -> Result<Exit, Errno> {
        let status = self.child.wait().map_err(|error| Errno::from(&error))?;
        exit_of(status).ok_or(Errno::from_raw(libc::ECHILD))
    }
}

fn exit_of(status: ExitStatus) -> Option<Exit> {
    if let Some(code) = status.code() {
        return Some(Exit::Code { code });
    }
    let signal = status.signal()?;
    Some(Exit::Signal { signal, core: status.core_dumped() })
}
