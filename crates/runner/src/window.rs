//! The window of a child: its terminal and the size of it.

use crate::runner::Runner;
use placement_process::resize;
use placement_protocol::{FromRunner, Resize, ResizeAck, ResizeRefused};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// The terminal of a child, while it runs.
#[derive(Debug)]
pub(crate) struct Window {
    ours: OwnedFd,
    /// Held too, so that a child which closes its terminal and opens it again loses nothing: without
    /// any holder of this end, the other one is at its end.
    theirs: OwnedFd,
}

impl Window {
    pub(crate) const fn new(ours: OwnedFd, theirs: OwnedFd) -> Self {
        Self { ours, theirs }
    }

    pub(crate) fn theirs(&self) -> BorrowedFd<'_> {
        self.theirs.as_fd()
    }
}

impl Runner {
    /// Says whether the child was launched in a window.
    pub(crate) const fn has_window(&self) -> bool {
        self.request.supervision.window.is_some()
    }

    /// Gives the window another size, for the bound recipient only, and answers.
    pub(crate) fn take_resize(&mut self, asked: Resize) {
        let refused = if asked.generation != self.desk.generation() {
            Some(ResizeRefused::NotBound)
        } else if !self.has_window() {
            Some(ResizeRefused::NoWindow)
        } else if self.has_exited() {
            Some(ResizeRefused::Exited)
        } else {
            match self.window.as_ref().map(|window| resize(window.ours.as_fd(), asked.size)) {
                Some(Ok(())) => None,
                Some(Err(_)) => Some(ResizeRefused::Failed),
                None => Some(ResizeRefused::NotStarted),
            }
        };
        let Resize { resize_id, generation, .. } = asked;
        self.desk.tell(FromRunner::ResizeAck(ResizeAck { resize_id, generation, refused }));
    }
}
