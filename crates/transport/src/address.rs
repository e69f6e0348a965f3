//! The address of a socket in a directory that is held open.

use placement_identity::Errno;
use rustix::net::SocketAddrUnix;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// A text is not the name of a socket in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a short name without a slash")]
pub struct NameError;

/// Names a socket below a directory by the directory's descriptor, however long its path is.
///
/// `unix(7)` allows 108 bytes; `/proc/self/fd/N/` takes at most 25 of them.
pub(crate) fn address(dir: BorrowedFd<'_>, name: &str) -> Result<SocketAddrUnix, NameError> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        return Err(NameError);
    }
    let path = format!("/proc/self/fd/{}/{name}", dir.as_raw_fd());
    SocketAddrUnix::new(path).map_err(|_| NameError)
}

pub(crate) fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    #[test]
    fn only_a_short_name_without_a_slash_is_a_name() {
        let dir = std::fs::File::open("/").unwrap();
        for wrong in ["", ".", "..", "a/b", "/a", "a\0b", &"x".repeat(120)] {
            assert_eq!(address(dir.as_fd(), wrong).unwrap_err(), NameError, "{wrong}");
        }
        assert!(address(dir.as_fd(), "control").is_ok());
    }
}
