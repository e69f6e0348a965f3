//! Waiting for one descriptor, with a bound.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

/// Says whether a read, or a wait on a pidfd, has something to tell now. A poll that fails tells
/// nothing.
pub(crate) fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    wait_readable(descriptor, Duration::ZERO)
}

/// Waits until a descriptor is readable, at most so long; interruptions do not shorten it.
pub(crate) fn wait_readable(descriptor: BorrowedFd<'_>, within: Duration) -> bool {
    let deadline = Instant::now() + within;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let limit = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&limit)) {
            Ok(ready) if ready > 0 => return true,
            Ok(_) | Err(rustix::io::Errno::INTR) if left.is_zero() => return false,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
