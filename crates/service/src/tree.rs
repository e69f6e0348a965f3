//! Ending a leaf whose runner is gone, with the proof that it is empty.

use crate::limits::LEAF_EMPTY;
use placement_identity::Observer;
use placement_process::{CgroupLeaf, LeafPresence, Population, TreeGone};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::time::Instant;

/// A leaf as it was recorded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordedLeaf<'a> {
    /// Its path in the cgroup namespace.
    pub(crate) path: &'a str,
    /// The kernel's id of it, where it was recorded.
    pub(crate) id: Option<u64>,
    /// The boot in which it was made.
    pub(crate) boot_id: &'a str,
    /// From where it was made.
    pub(crate) made_by: &'a Observer,
}

/// What became of a leaf that was to be ended.
#[derive(Debug)]
pub(crate) enum LeafEnd {
    /// Nothing is in it, and it is removed or was not there.
    Gone(TreeGone),
    /// It is not proven empty; a fixed phrase says why.
    Remains(&'static str),
}

impl RecordedLeaf<'_> {
    pub(crate) fn look_up(&self) -> LeafPresence {
        CgroupLeaf::look_up(self.path, self.id, self.boot_id, self.made_by)
    }
}

/// Kills everything in a leaf, waits until it is empty and removes it, within [`LEAF_EMPTY`].
pub(crate) fn end_leaf(recorded: &RecordedLeaf<'_>) -> LeafEnd {
    let leaf = match recorded.look_up() {
        LeafPresence::Present(leaf) => leaf,
        LeafPresence::Gone(gone) => return LeafEnd::Gone(gone),
        LeafPresence::Unknown(doubt) => return LeafEnd::Remains(doubt.because()),
    };
    match kill_and_wait(&leaf) {
        Ok(()) => {}
        // Another host may have ended and removed it meanwhile; then it is gone by now.
        Err(phrase) => return gone_meanwhile(recorded, phrase),
    }
    match leaf.remove() {
        Ok(gone) => LeafEnd::Gone(gone),
        Err((_, _)) => gone_meanwhile(recorded, "the cgroup could not be removed"),
    }
}

fn gone_meanwhile(recorded: &RecordedLeaf<'_>, phrase: &'static str) -> LeafEnd {
    match recorded.look_up() {
        LeafPresence::Gone(gone) => LeafEnd::Gone(gone),
        LeafPresence::Present(_) | LeafPresence::Unknown(_) => LeafEnd::Remains(phrase),
    }
}

fn kill_and_wait(leaf: &CgroupLeaf) -> Result<(), &'static str> {
    let unreadable = "the cgroup could not be read";
    if leaf.populated().map_err(|_| unreadable)? == Population::Empty {
        return Ok(());
    }
    leaf.kill().map_err(|_| "the cgroup could not be killed")?;
    let deadline = Instant::now() + LEAF_EMPTY;
    while leaf.populated().map_err(|_| unreadable)? == Population::Populated {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("the cgroup still has processes after it was killed");
        }
        let timeout = Timespec::try_from(left).map_err(|_| unreadable)?;
        let mut polled = [PollFd::from_borrowed_fd(leaf.events(), PollFlags::PRI)];
        // Whatever poll says, the next read of `populated` decides.
        rustix::io::retry_on_intr(|| rustix::event::poll(&mut polled, Some(&timeout)))
            .map_err(|_| unreadable)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_identity::boot_id;

    #[test]
    fn a_leaf_that_is_not_there_is_gone_in_its_own_namespace_only() {
        let boot_id = boot_id().unwrap();
        let here = Observer::here().unwrap();
        let elsewhere = Observer { cgroup_namespace: Some(7), ..here.clone() };
        let leaf = |made_by| RecordedLeaf {
            path: "/placement-test-of-nothing/leaf",
            id: Some(1),
            boot_id: &boot_id,
            made_by,
        };
        match end_leaf(&leaf(&here)) {
            LeafEnd::Gone(gone) => assert_eq!(gone.proof(), "the cgroup does not exist any more"),
            LeafEnd::Remains(phrase) => println!("no cgroup2 to look into here: {phrase}"),
        }
        let LeafEnd::Remains(phrase) = end_leaf(&leaf(&elsewhere)) else {
            panic!("a leaf of another namespace must prove nothing")
        };
        assert_eq!(phrase, "the cgroup was made in another cgroup namespace");
    }
}
