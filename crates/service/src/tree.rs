//! Ending a tree whose runner is gone, with the proof that nothing is left of it.

use crate::limits::TREE_EMPTY;
use crate::wait::wait_readable;
use placement_crash::point;
use placement_identity::{Observer, ProcessIdentity, Signal};
use placement_process::{
    CgroupLeaf, LeafDoubt, LeafPresence, NamespacePresence, PidNamespace, Population, TreeGone,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::time::Instant;

/// What contains a tree, as it was recorded, where anybody can end it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RecordedTree<'a> {
    /// A cgroup leaf.
    Leaf(RecordedLeaf<'a>),
    /// A PID namespace, by its init.
    Namespace(&'a ProcessIdentity),
}

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

/// A tree of which nothing is left.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The proof.
    pub(crate) gone: TreeGone,
    /// How many of its processes the kernel had killed for want of memory.
    pub(crate) oom_kills: u64,
}

/// What became of a tree that was to be ended.
#[derive(Debug)]
pub(crate) enum TreeEnd {
    /// Nothing of it is left.
    Gone(Ended),
    /// It is not proven gone; a fixed phrase says why.
    Remains(&'static str),
    /// It was made where it cannot be seen from here, and is left to who can; a fixed phrase says so.
    Elsewhere(&'static str),
}

impl TreeEnd {
    fn gone(gone: TreeGone) -> Self {
        Self::Gone(Ended { gone, oom_kills: 0 })
    }
}

impl RecordedLeaf<'_> {
    pub(crate) fn look_up(&self) -> LeafPresence {
        CgroupLeaf::look_up(self.path, self.id, self.boot_id, self.made_by)
    }
}

/// Kills everything in a tree and waits until nothing is left of it, within [`TREE_EMPTY`].
pub(crate) fn end_tree(recorded: &RecordedTree<'_>) -> TreeEnd {
    let end = match recorded {
        RecordedTree::Leaf(leaf) => end_leaf(leaf),
        RecordedTree::Namespace(init) => end_namespace(init),
    };
    point("service.tree.ended");
    end
}

/// Its init dies with its runner; one that is still there is on its way, or is sent on it.
fn end_namespace(init: &ProcessIdentity) -> TreeEnd {
    let verified = match PidNamespace::look_up(init) {
        NamespacePresence::Present(verified) => verified,
        NamespacePresence::Gone(gone) => return TreeEnd::gone(gone),
        NamespacePresence::Unknown(why) => return TreeEnd::Remains(why.because()),
    };
    // Whatever it answers, the next look decides.
    verified.signal(Signal::Kill).ok();
    wait_readable(verified.pidfd(), Some(Instant::now() + TREE_EMPTY));
    match PidNamespace::look_up(init) {
        NamespacePresence::Gone(gone) => TreeEnd::gone(gone),
        NamespacePresence::Present(_) => {
            TreeEnd::Remains("the PID namespace still has its init after that was killed")
        }
        NamespacePresence::Unknown(why) => TreeEnd::Remains(why.because()),
    }
}

fn end_leaf(recorded: &RecordedLeaf<'_>) -> TreeEnd {
    let leaf = match recorded.look_up() {
        LeafPresence::Present(leaf) => leaf,
        LeafPresence::Gone(gone) => return TreeEnd::gone(gone),
        // Its path and its members' numbers say there what they do not say here.
        LeafPresence::Unknown(
            doubt @ (LeafDoubt::Elsewhere(_) | LeafDoubt::OtherCgroupNamespace),
        ) => return TreeEnd::Elsewhere(doubt.because()),
        LeafPresence::Unknown(doubt @ (LeafDoubt::NotVisible | LeafDoubt::Leaf(_))) => {
            return TreeEnd::Remains(doubt.because());
        }
    };
    match kill_and_wait(&leaf) {
        Ok(()) => {}
        // Another host may have ended and removed it meanwhile; then it is gone by now.
        Err(phrase) => return gone_meanwhile(recorded, phrase),
    }
    // What cannot be read is no evidence.
    let oom_kills = leaf.oom_kills().ok().flatten().unwrap_or_default();
    match leaf.remove() {
        Ok(gone) => TreeEnd::Gone(Ended { gone, oom_kills }),
        Err((_, _)) => gone_meanwhile(recorded, "the cgroup could not be removed"),
    }
}

fn gone_meanwhile(recorded: &RecordedLeaf<'_>, phrase: &'static str) -> TreeEnd {
    match recorded.look_up() {
        LeafPresence::Gone(gone) => TreeEnd::gone(gone),
        LeafPresence::Present(_) | LeafPresence::Unknown(_) => TreeEnd::Remains(phrase),
    }
}

fn kill_and_wait(leaf: &CgroupLeaf) -> Result<(), &'static str> {
    let unreadable = "the cgroup could not be read";
    if leaf.populated().map_err(|_| unreadable)? == Population::Empty {
        return Ok(());
    }
    leaf.kill().map_err(|_| "the cgroup could not be killed")?;
    let deadline = Instant::now() + TREE_EMPTY;
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
        match end_tree(&RecordedTree::Leaf(leaf(&here))) {
            TreeEnd::Gone(ended) => {
                assert_eq!(ended.gone.proof(), "the cgroup does not exist any more");
            }
            TreeEnd::Remains(phrase) | TreeEnd::Elsewhere(phrase) => {
                println!("no cgroup2 to look into here: {phrase}");
            }
        }
        let TreeEnd::Elsewhere(phrase) = end_tree(&RecordedTree::Leaf(leaf(&elsewhere))) else {
            panic!("a leaf of another namespace must prove nothing")
        };
        assert_eq!(phrase, "the cgroup was made in another cgroup namespace");
        let elsewhere = Observer { pid_namespace: 7, ..here.clone() };
        let TreeEnd::Elsewhere(phrase) = end_tree(&RecordedTree::Leaf(leaf(&elsewhere))) else {
            panic!("nor must one of another PID namespace")
        };
        assert_eq!(phrase, "it was recorded in another process namespace");
    }
}
