//! One end of a connection.

use crate::address::errno;
use placement_identity::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Owns one end of a connected Unix stream socket.
///
/// Reading and writing never block, whether the descriptor is in blocking mode or not, and writing
/// to a closed peer raises no signal.
#[derive(Debug)]
pub struct Stream(OwnedFd);

/// Why a descriptor is no end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// It is not a Unix stream socket.
    #[error("not a Unix stream socket")]
    NotAStream,
    /// Descriptor 0 could not be taken over.
    #[error("cannot take descriptor 0 over: {errno}")]
    Stdin {
        /// What the kernel answered.
        errno: Errno,
    },
    /// No pair could be made.
    #[error("cannot make a socket pair: {errno}")]
    Pair {
        /// What the kernel answered.
        errno: Errno,
    },
}

/// Makes two connected ends by `socketpair(2)`, for a process and the runner that it starts.
///
/// Both are closed on exec; whoever starts the runner puts one in place of its descriptor 0.
///
/// # Errors
/// [`StreamError::Pair`] when there are no descriptors left.
pub fn pair() -> Result<(OwnedFd, OwnedFd), StreamError> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(|error| StreamError::Pair { errno: errno(error) })
}

impl Stream {
    /// Takes over a descriptor that was handed to this process.
    ///
    /// # Errors
    /// [`StreamError::NotAStream`] if it is something else.
    pub fn adopt(descriptor: OwnedFd) -> Result<Self, StreamError> {
        use rustix::net::sockopt::{socket_domain, socket_type};
        let unix = socket_domain(&descriptor).is_ok_and(|it| it == AddressFamily::UNIX);
        let stream = socket_type(&descriptor).is_ok_and(|it| it == SocketType::STREAM);
        if unix && stream { Ok(Self(descriptor)) } else { Err(StreamError::NotAStream) }
    }

    /// Takes over the socket at descriptor 0, and leaves `/dev/null` there in its place.
    ///
    /// So nothing that this process starts inherits the host port as its input.
    ///
    /// # Errors
    /// [`StreamError::NotAStream`] if descriptor 0 is something else, which is then left alone;
    /// [`StreamError::Stdin`] when the kernel refuses, for example with EBADF for a closed one.
    pub fn take_stdin() -> Result<Self, StreamError> {
        let failed = |error: std::io::Error| StreamError::Stdin { errno: Errno::from(&error) };
        let own = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
        let stream = Self::adopt(own)?;
        let null = File::open("/dev/null").map_err(failed)?;
        rustix::stdio::dup2_stdin(&null)
            .map_err(|error| StreamError::Stdin { errno: errno(error) })?;
        Ok(stream)
    }

    /// Wraps a socket that this crate made.
    pub(crate) const fn new(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
