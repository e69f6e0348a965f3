//! Who is at the other end.

use crate::stream::Stream;
use nix::sys::socket::{getsockopt, sockopt};
use placement_identity::{Errno, Pid};
use std::os::fd::OwnedFd;

/// Who connected, or listened, at the moment when the connection was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerCredentials {
    /// Its process; `None` where that lies outside this process's PID namespace.
    pub pid: Option<Pid>,
    /// Its effective user id.
    pub uid: u32,
}

/// Why the peer could not be told, or is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// The kernel did not say who it is.
    #[error("cannot read the peer's credentials: {errno}")]
    Credentials {
        /// What the kernel answered.
        errno: Errno,
    },
    /// It belongs to another user.
    #[error("the peer belongs to another user")]
    OtherUser,
    /// Its process has ended and was reaped.
    #[error("the peer's process is gone")]
    Gone,
    /// Its descriptor could not be opened.
    #[error("cannot open a descriptor of the peer: {errno}")]
    Descriptor {
        /// What the kernel answered.
        errno: Errno,
    },
}

impl PeerCredentials {
    /// Refuses a peer that another user runs than the given one.
    pub(crate) const fn check_user(self, uid: u32) -> Result<Self, PeerError> {
        if self.uid == uid { Ok(self) } else { Err(PeerError::OtherUser) }
    }
}

impl Stream {
    /// Reads `SO_PEERCRED`: who made the connection. See `unix(7)`.
    ///
    /// # Errors
    /// [`PeerError::Credentials`] when the kernel does not say.
    pub fn peer(&self) -> Result<PeerCredentials, PeerError> {
        // Through nix: a peer of another PID namespace has the number 0, which rustix's type
        // cannot hold.
        let seen = getsockopt(self, sockopt::PeerCredentials)
            .map_err(|error| PeerError::Credentials { errno: from_nix(error) })?;
        Ok(PeerCredentials { pid: Pid::try_from(seen.pid()).ok(), uid: seen.uid() })
    }

    /// Reads the peer's credentials and refuses one of another user.
    ///
    /// # Errors
    /// [`PeerError::OtherUser`], root included; [`PeerError::Credentials`] when the kernel does not
    /// say.
    pub fn same_user_peer(&self) -> Result<PeerCredentials, PeerError> {
        self.peer()?.check_user(rustix::process::geteuid().as_raw())
    }

    /// Reads `SO_PEERPIDFD`: a descriptor of the peer's process, without a race over its number.
    ///
    /// `None` where the kernel lacks it (before Linux 6.5): the caller then opens the pid of
    /// [`Stream::peer`] and compares what it knows.
    ///
    /// # Errors
    /// [`PeerError::Gone`] when the process was reaped (ESRCH, and EINVAL or ENODATA in some
    /// kernels).
    pub fn peer_pidfd(&self) -> Result<Option<OwnedFd>, PeerError> {
        use nix::errno::Errno as E;
        match getsockopt(self, sockopt::PeerPidfd) {
            Ok(pidfd) => Ok(Some(pidfd)),
            Err(E::ENOPROTOOPT) => Ok(None),
            Err(E::ESRCH | E::EINVAL | E::ENODATA) => Err(PeerError::Gone),
            Err(error) => Err(PeerError::Descriptor { errno: from_nix(error) }),
        }
    }
}

fn from_nix(error: nix::errno::Errno) -> Errno {
    Errno::from_raw(error as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_of_another_user_is_refused() {
        let peer = |uid| PeerCredentials { pid: None, uid };
        assert_eq!(peer(1_000).check_user(1_000), Ok(peer(1_000)));
        assert_eq!(peer(1_001).check_user(1_000), Err(PeerError::OtherUser));
        assert_eq!(peer(0).check_user(1_000), Err(PeerError::OtherUser));
    }
}
