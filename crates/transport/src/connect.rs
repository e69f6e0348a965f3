//! Connecting to a socket in a directory.

use crate::address::{NameError, address, errno};
use crate::peer::PeerError;
use crate::stream::Stream;
use crate::wait::remaining;
use placement_identity::Errno;
use rustix::io::Errno as E;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The name is none.
    #[error("socket name")]
    Name(#[source] NameError),
    /// There is no such socket: it was not bound yet, or was removed (ENOENT).
    #[error("there is no such socket")]
    Missing,
    /// Nobody listens on the socket: not yet, or no longer (ECONNREFUSED).
    #[error("nobody listens on the socket")]
    Refused,
    /// It was not accepted into the queue in time.
    #[error("no connection within the time")]
    Deadline,
    /// Whoever listens is not accepted.
    #[error("listener that is not accepted")]
    Peer(#[source] PeerError),
    /// A step failed.
    #[error("cannot {step} the socket: {errno}")]
    Failed {
        /// The step.
        step: &'static str,
        /// What the kernel answered.
        errno: Errno,
    },
}

/// Connects to a socket of the own user in a directory, by the directory's descriptor.
///
/// A full queue of the listener is waited for up to the deadline (`SO_SNDTIMEO`, see `socket(7)`).
///
/// # Errors
/// [`ConnectError::Missing`] and [`ConnectError::Refused`] prove nothing about the runner;
/// [`ConnectError::Peer`] when another user listens.
pub fn connect(dir: BorrowedFd<'_>, name: &str, deadline: Instant) -> Result<Stream, ConnectError> {
    let failed = |step| move |error| ConnectError::Failed { step, errno: errno(error) };
    let address = address(dir, name).map_err(ConnectError::Name)?;
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(failed("make"))?;
    loop {
        // At least a millisecond: a timeout of zero would mean for ever.
        let time = remaining(deadline).max(Duration::from_millis(1));
        set_socket_timeout(&socket, Timeout::Send, Some(time)).map_err(failed("prepare"))?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => break,
            Err(E::INTR) => {}
            Err(E::AGAIN) => return Err(ConnectError::Deadline),
            Err(E::NOENT) => return Err(ConnectError::Missing),
            Err(E::CONNREFUSED) => return Err(ConnectError::Refused),
            Err(error) => return Err(failed("connect")(error)),
        }
    }
    let stream = Stream::new(socket);
    stream.same_user_peer().map_err(ConnectError::Peer)?;
    Ok(stream)
}
