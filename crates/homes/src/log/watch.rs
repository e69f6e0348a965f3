//! Waiting for a log to change.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

use placement_paths::Dir;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::inotify::{CreateFlags, WatchFlags};

use crate::limits::POLL_MS;

/// How a wait for a log ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Something may have changed.
    Changed,
    /// The time passed without a change.
    TimedOut,
}

#[derive(Debug)]
pub(super) enum Watch {
    Unset,
    Inotify(OwnedFd),
    /// No watch is to be had (their number is bounded for each user).
    Poll,
}

impl Watch {
    pub(super) fn wait(&mut self, directory: &Dir, timeout: Duration) -> Waited {
        match self {
            Self::Unset => {
                *self = watch(directory).map_or(Self::Poll, Self::Inotify);
                // What changed between the caller's look and the watch is not announced.
                Waited::Changed
            }
            Self::Inotify(descriptor) => wait_for(descriptor, timeout),
            Self::Poll => {
                let slice = Duration::from_millis(POLL_MS);
                thread::sleep(timeout.min(slice));
                if timeout < slice { Waited::TimedOut } else { Waited::Changed }
            }
        }
    }
}

fn watch(directory: &Dir) -> Option<OwnedFd> {
    let descriptor =
        rustix::fs::inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
    let path = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
    let events = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::ONLYDIR;
    rustix::fs::inotify::add_watch(&descriptor, path, events).ok()?;
    Some(descriptor)
}

fn wait_for(descriptor: &OwnedFd, timeout: Duration) -> Waited {
    let timeout = Timespec::try_from(timeout).ok();
    let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
    if let Ok(0) = rustix::event::poll(&mut polled, timeout.as_ref()) {
        return Waited::TimedOut;
    }
    // An interrupted wait is answered with a look, too.
    let mut events = [0; 4096];
    while rustix::io::read(descriptor, &mut events).is_ok_and(|read| read > 0) {}
    Waited::Changed
}
