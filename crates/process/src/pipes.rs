//! The streams between the runner and the child.

use std::os::fd::OwnedFd;

use placement_identity::Errno;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;

/// Joins the runner and the child one way; both ends are close-on-exec, ours never blocks.
#[derive(Debug)]
pub struct Pipe {
    /// The runner's end, non-blocking.
    pub ours: OwnedFd,
    /// The child's end, blocking; to be dropped when the child is born.
    pub theirs: OwnedFd,
}

/// Says that a stream for the child could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PipeError {
    /// `pipe2` failed, as with `EMFILE`.
    #[error("cannot make a pipe: {0}")]
    Pipe(Errno),
    /// The runner's end could not be made non-blocking.
    #[error("cannot make the own end of a pipe non-blocking: {0}")]
    NonBlocking(Errno),
    /// `/dev/null` could not be opened.
    #[error("cannot open the null device: {0}")]
    Null(Errno),
}

impl Pipe {
    /// Makes a pipe that the runner writes and the child reads, by `pipe2(2)`.
    ///
    /// # Errors
    /// [`PipeError`] when the process or the machine has no descriptors left.
    pub fn to_child() -> Result<Self, PipeError> {
        let (read, write) = make()?;
        Self::with_ours(write, read)
    }

    /// Makes a pipe that the child writes and the runner reads, by `pipe2(2)`.
    ///
    /// # Errors
    /// [`PipeError`] when the process or the machine has no descriptors left.
    pub fn from_child() -> Result<Self, PipeError> {
        let (read, write) = make()?;
        Self::with_ours(read, write)
    }

    /// The two ends are two open file descriptions, so the child's end stays blocking.
    fn with_ours(ours: OwnedFd, theirs: OwnedFd) -> Result<Self, PipeError> {
        rustix::fs::fcntl_getfl(&ours)
            .and_then(|flags| rustix::fs::fcntl_setfl(&ours, flags | OFlags::NONBLOCK))
            .map_err(|error| PipeError::NonBlocking(crate::errno(error)))?;
        Ok(Self { ours, theirs })
    }
}

/// Opens `/dev/null` for reading and writing, close-on-exec.
///
/// # Errors
/// [`PipeError::Null`] where there is no such device.
pub fn dev_null() -> Result<OwnedFd, PipeError> {
    rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| PipeError::Null(crate::errno(error)))
}

fn make() -> Result<(OwnedFd, OwnedFd), PipeError> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
        .map_err(|error| PipeError::Pipe(crate::errno(error)))
}

#[cfg(test)]
mod tests {
    use super::Pipe;

    #[test]
    fn only_the_own_end_is_non_blocking() {
        use rustix::fs::{OFlags, fcntl_getfl};
        for pipe in [Pipe::to_child().unwrap(), Pipe::from_child().unwrap()] {
            assert!(fcntl_getfl(&pipe.ours).unwrap().contains(OFlags::NONBLOCK));
            assert!(!fcntl_getfl(&pipe.theirs).unwrap().contains(OFlags::NONBLOCK));
        }
    }
}
