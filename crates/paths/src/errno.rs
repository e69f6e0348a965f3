//! Names of error numbers: what may be shown where the system's own text may not.

use std::error::Error;
use std::io;

use rustix::io::Errno;

/// Names the error number of an io error (`"ENOENT"`), `"EOTHER"` for one without a known name.
pub fn errno_name(error: &io::Error) -> &'static str {
    error.raw_os_error().map_or("EOTHER", name)
}

/// Finds the first io error in a chain of sources and names its error number.
pub fn errno_in(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(errno_name(io));
        }
        current = error.source();
    }
    None
}

fn name(raw: i32) -> &'static str {
    NAMES.iter().find(|(errno, _)| errno.raw_os_error() == raw).map_or("EOTHER", |(_, name)| name)
}

const NAMES: [(Errno, &str); 40] = [
    (Errno::PERM, "EPERM"),
    (Errno::NOENT, "ENOENT"),
    (Errno::SRCH, "ESRCH"),
    (Errno::INTR, "EINTR"),
    (Errno::IO, "EIO"),
    (Errno::NXIO, "ENXIO"),
    (Errno::TOOBIG, "E2BIG"),
    (Errno::NOEXEC, "ENOEXEC"),
    (Errno::BADF, "EBADF"),
    (Errno::CHILD, "ECHILD"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::ACCESS, "EACCES"),
    (Errno::BUSY, "EBUSY"),
    (Errno::EXIST, "EEXIST"),
    (Errno::XDEV, "EXDEV"),
    (Errno::NODEV, "ENODEV"),
    (Errno::NOTDIR, "ENOTDIR"),
    (Errno::ISDIR, "EISDIR"),
    (Errno::INVAL, "EINVAL"),
    (Errno::NFILE, "ENFILE"),
    (Errno::MFILE, "EMFILE"),
    (Errno::TXTBSY, "ETXTBSY"),
    (Errno::FBIG, "EFBIG"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::ROFS, "EROFS"),
    (Errno::MLINK, "EMLINK"),
    (Errno::PIPE, "EPIPE"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG"),
    (Errno::NOSYS, "ENOSYS"),
    (Errno::NOTEMPTY, "ENOTEMPTY"),
    (Errno::LOOP, "ELOOP"),
    (Errno::OVERFLOW, "EOVERFLOW"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP"),
    (Errno::ADDRINUSE, "EADDRINUSE"),
    (Errno::CONNREFUSED, "ECONNREFUSED"),
    (Errno::CONNRESET, "ECONNRESET"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
    (Errno::STALE, "ESTALE"),
    (Errno::DQUOT, "EDQUOT"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dir, OpenError};

    #[test]
    fn a_known_error_number_is_named() {
        assert_eq!(errno_name(&Errno::NOSPC.into()), "ENOSPC");
    }

    #[test]
    fn an_error_without_a_number_is_not_given_one() {
        assert_eq!(errno_name(&io::Error::other("text")), "EOTHER");
    }

    #[test]
    fn the_number_is_found_below_an_error_of_ours() {
        let error = Dir::open("/proc/self/stat/x", "test").expect_err("a file is no directory");
        assert!(matches!(error, OpenError::NotADirectory { .. }));
        assert_eq!(errno_in(&error), None);
        let long = format!("/{}", "n".repeat(300));
        let error = Dir::open(long, "test").expect_err("the name is too long");
        assert_eq!(errno_in(&error), Some("ENAMETOOLONG"));
    }
}
