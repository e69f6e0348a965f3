//! A pseudo terminal between the runner and the child.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use placement_contract::WindowSize;
use placement_identity::Errno;
use rustix::fs::OFlags;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

/// Joins the runner and the child both ways; both ends are close-on-exec, ours never blocks.
#[derive(Debug)]
pub struct PseudoTerminal {
    /// The runner's end, non-blocking.
    ///
    /// Its read ends with `EIO` once every holder of the other end is gone.
    pub ours: OwnedFd,
    /// The child's end, blocking.
    pub theirs: OwnedFd,
}

/// Says that a terminal for the child could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TerminalError {
    /// `/dev/ptmx` could not be opened: `ENOSPC` past the limit of terminals, `ENOENT` where no
    /// devpts is mounted.
    #[error("cannot open a pseudo terminal: {0}")]
    Open(Errno),
    /// The child's end could not be opened (`TIOCGPTPEER`, Linux 4.13).
    #[error("cannot open the child's end of a pseudo terminal: {0}")]
    Peer(Errno),
    /// It did not take its size.
    #[error("cannot set the size of a pseudo terminal: {0}")]
    Size(Errno),
    /// The runner's end could not be made non-blocking.
    #[error("cannot make the own end of a pseudo terminal non-blocking: {0}")]
    NonBlocking(Errno),
}

impl PseudoTerminal {
    /// Opens a terminal of this size, by `posix_openpt(3)`; it controls no session yet.
    ///
    /// The child's end is opened through the own one, so that no path is looked up for it.
    ///
    /// # Errors
    /// [`TerminalError`] by variant.
    pub fn open(size: WindowSize) -> Result<Self, TerminalError> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours =
            rustix::pty::openpt(flags).map_err(|error| TerminalError::Open(crate::errno(error)))?;
        let theirs = rustix::pty::grantpt(&ours)
            .and_then(|()| rustix::pty::unlockpt(&ours))
            .and_then(|()| rustix::pty::ioctl_tiocgptpeer(&ours, flags))
            .map_err(|error| TerminalError::Peer(crate::errno(error)))?;
        resize(ours.as_fd(), size).map_err(TerminalError::Size)?;
        // The two ends are two open file descriptions, so the child's end stays blocking.
        rustix::fs::fcntl_getfl(&ours)
            .and_then(|flags| rustix::fs::fcntl_setfl(&ours, flags | OFlags::NONBLOCK))
            .map_err(|error| TerminalError::NonBlocking(crate::errno(error)))?;
        Ok(Self { ours, theirs })
    }
}

/// Sets the size of a terminal by either of its ends, by `ioctl(2)` with `TIOCSWINSZ`.
///
/// Where it is another size than before, the kernel sends SIGWINCH to the foreground group of the
/// session that the terminal controls.
///
/// # Errors
/// The kernel's answer, such as `ENOTTY`.
pub fn resize(terminal: BorrowedFd<'_>, size: WindowSize) -> Result<(), Errno> {
    let size = Winsize { ws_col: size.columns(), ws_row: size.rows(), ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(terminal, size).map_err(crate::errno)
}
