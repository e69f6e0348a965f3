//! Listening in a directory.

use crate::address::{NameError, address, errno};
use crate::limits::BACKLOG;
use crate::peer::PeerError;
use crate::stream::Stream;
use placement_identity::Errno;
use rustix::fs::{AtFlags, Mode};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Listens on one socket; closing it leaves the name behind.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// Why a socket could not be bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// The name is none.
    #[error("socket name")]
    Name(#[source] NameError),
    /// The name is taken, by a living socket or by what another one left.
    #[error("the socket's name is taken")]
    Taken,
    /// A step failed.
    #[error("cannot {step} the socket: {errno}")]
    Failed {
        /// The step.
        step: &'static str,
        /// What the kernel answered.
        errno: Errno,
    },
}

/// Why no connection was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// The kernel gave none; the listener goes on.
    #[error("cannot accept a connection: {errno}")]
    Failed {
        /// What the kernel answered, such as `EMFILE`.
        errno: Errno,
    },
    /// The one that came is closed again: it is from another user, or from nobody that the kernel
    /// names.
    #[error("connection that is not accepted")]
    Peer(#[source] PeerError),
}

/// Binds a socket of mode 0600 in a directory, by the directory's descriptor, and listens.
///
/// Nothing is replaced. Whatever the umask is, the mode is never wider than 0600, and it is 0600
/// before anybody can connect.
///
/// # Errors
/// [`BindError::Taken`] where the name exists; [`BindError::Failed`] names the step.
pub fn bind(dir: BorrowedFd<'_>, name: &str) -> Result<Listener, BindError> {
    let failed = |step| move |error| BindError::Failed { step, errno: errno(error) };
    let address = address(dir, name).map_err(BindError::Name)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(failed("make"))?;
    // Linux gives the file the mode of the unbound socket less the umask, so it never starts wider.
    let owner_only = Mode::RUSR | Mode::WUSR;
    rustix::fs::fchmod(&socket, owner_only).map_err(failed("restrict"))?;
    rustix::net::bind(&socket, &address).map_err(|error| match error {
        rustix::io::Errno::ADDRINUSE => BindError::Taken,
        other => BindError::Failed { step: "bind", errno: errno(other) },
    })?;
    // A umask that took the owner's bits is made good before listening: until then, whoever
    // connects is refused.
    rustix::fs::chmodat(dir, name, owner_only, AtFlags::empty()).map_err(failed("restrict"))?;
    rustix::net::listen(&socket, BACKLOG).map_err(failed("listen on"))?;
    Ok(Listener(socket))
}

impl Listener {
    /// Accepts one connection of the own user, or returns `None` when none waits.
    ///
    /// # Errors
    /// [`AcceptError::Peer`] when another user connected, whose connection is closed;
    /// [`AcceptError::Failed`] when the kernel gave none. The listener can go on after both.
    pub fn accept(&self) -> Result<Option<Stream>, AcceptError> {
        loop {
            match rustix::net::accept_with(&self.0, SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    let stream = Stream::new(socket);
                    stream.same_user_peer().map_err(AcceptError::Peer)?;
                    return Ok(Some(stream));
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
                Err(error) => return Err(AcceptError::Failed { errno: errno(error) }),
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
