//! Everything the launched process started, by the containment it lives in.

use std::os::fd::BorrowedFd;

use placement_contract::{Exit, Mechanism};
use placement_identity::{Errno, Pid, ProcessList, Signal, SignalError, list_processes};

use crate::descendants::{self, Children, DescendantsError};
use crate::leader::{self, GroupSignalError, Leader, WaitError};
use crate::leaf::{CgroupLeaf, LeafError, Population};
use crate::members;
use crate::namespace::PidNamespace;
use crate::poll::is_readable;
use crate::proof::TreeGone;
use crate::sys;

/// Says in what the launched process lives.
#[derive(Debug)]
pub enum Containment {
    /// A control group of its own.
    Cgroup(CgroupLeaf),
    /// This process is a child subreaper and has no other children.
    Subreaper,
    /// A PID namespace, whose init is the only child of this process.
    PidNamespace(PidNamespace),
    /// Its process group only: `setsid` is a way out, and nothing proves the tree gone.
    Group,
}

/// Holds the launched process with everything it started.
///
/// No call waits. The runner must be a child subreaper in every containment, so that orphans come to
/// it; [`Tree::reap_orphans`] takes them.
#[derive(Debug)]
#[must_use]
pub struct Tree {
    containment: Containment,
    leader: Leader,
}

/// Says what to poll for when the last member of a tree goes.
#[derive(Clone, Copy, Debug)]
pub enum TreeEvent<'a> {
    /// `POLLPRI` says that [`Tree::state`] may answer otherwise than it last did.
    Changed(BorrowedFd<'a>),
    /// `POLLIN` says that nothing is left.
    Ended(BorrowedFd<'a>),
}

/// Says what is left of a tree.
#[derive(Debug, PartialEq, Eq)]
pub enum TreeState {
    /// No process but perhaps the ended leader. It is a proof only when [`Tree::prove_gone`] says
    /// so.
    Empty,
    /// Something runs; so many besides the leader were seen.
    Populated {
        /// Members besides the leader.
        members: u32,
    },
    /// It could not be told.
    Unknown(TreeError),
}

/// Counts what one round of signals did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signalled {
    /// Members besides the leader that the signal was sent to.
    pub sent: u32,
    /// Processes that the kernel refused it for, such as a program of another user.
    pub refused: u32,
}

/// Says why a tree could not be looked at or acted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The control group failed.
    #[error("cannot use the control group")]
    Leaf(#[source] LeafError),
    /// The descendants could not be listed.
    #[error("cannot list the descendants")]
    Descendants(#[source] DescendantsError),
    /// The process table is not complete.
    #[error("the process table is not complete")]
    Partial,
    /// No descriptor of a member could be had, as with `EMFILE`.
    #[error("cannot open a descriptor of a member: {0}")]
    Descriptor(Errno),
    /// The group could not be signalled.
    #[error("cannot signal the group")]
    Group(#[source] GroupSignalError),
    /// The init of the PID namespace could not be killed.
    #[error("cannot kill the init of the PID namespace: {0}")]
    Init(Errno),
    /// The leader, or the init of its PID namespace, could not be waited for.
    #[error("cannot wait for the leader")]
    Leader(#[source] WaitError),
    /// The kernel did not say whether there are children.
    #[error("cannot ask for children: {0}")]
    Children(Errno),
}

/// Says why a tree is not proven gone. It can be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotGone {
    /// The leader was not reaped: its group must be dealt with before its number is given away.
    #[error("the leader was not reaped")]
    LeaderNotReaped,
    /// Something of it runs.
    #[error("the tree has members")]
    Populated,
    /// The containment proves nothing about a tree.
    #[error("a process group proves nothing about a tree")]
    NoProof,
    /// It could not be told.
    #[error("the tree could not be looked at")]
    Unknown(#[source] TreeError),
}

impl TreeError {
    /// Returns what the kernel answered, if it was asked.
    pub fn errno(self) -> Option<Errno> {
        match self {
            Self::Leaf(error) => error.errno(),
            Self::Descendants(DescendantsError::Read(errno))
            | Self::Descriptor(errno)
            | Self::Children(errno)
            | Self::Init(errno)
            | Self::Group(GroupSignalError::Refused(errno))
            | Self::Leader(WaitError::Wait(errno)) => Some(errno),
            Self::Descendants(
                DescendantsError::Malformed | DescendantsError::Partial | DescendantsError::TooMany,
            )
            | Self::Partial
            | Self::Group(GroupSignalError::Gone | GroupSignalError::Unsupported)
            | Self::Leader(WaitError::Running | WaitError::Unreported) => None,
        }
    }
}

impl Tree {
    /// Joins a leader with the containment in which it was made.
    pub fn new(containment: Containment, leader: Leader) -> Self {
        Self { containment, leader }
    }

    /// Borrows the leader.
    pub fn leader(&self) -> &Leader {
        &self.leader
    }

    /// Takes the leader; a control group is left as it is.
    pub fn into_leader(self) -> Leader {
        self.leader
    }

    /// Returns the mechanism that contains the tree; `None` where only a group is held.
    pub fn mechanism(&self) -> Option<Mechanism> {
        match self.containment {
            Containment::Cgroup(_) => Some(Mechanism::Cgroup),
            Containment::Subreaper => Some(Mechanism::Subreaper),
            Containment::PidNamespace(_) => Some(Mechanism::PidNamespace),
            Containment::Group => None,
        }
    }

    /// Borrows the control group, where there is one.
    pub fn leaf(&self) -> Option<&CgroupLeaf> {
        match &self.containment {
            Containment::Cgroup(leaf) => Some(leaf),
            Containment::Subreaper | Containment::PidNamespace(_) | Containment::Group => None,
        }
    }

    /// Returns what to poll for while the tree is not empty. Without it the tree is to be looked at
    /// again from time to time.
    pub fn event(&self) -> Option<TreeEvent<'_>> {
        match &self.containment {
            Containment::Cgroup(leaf) => Some(TreeEvent::Changed(leaf.events())),
            // It stays readable, and has nothing more to tell then.
            Containment::PidNamespace(namespace) if namespace.has_ended() => None,
            Containment::PidNamespace(namespace) => Some(TreeEvent::Ended(namespace.pidfd())),
            Containment::Subreaper | Containment::Group => None,
        }
    }

    /// Reaps the ended leader; see [`Leader::reap`].
    ///
    /// # Errors
    /// [`WaitError::Running`] when it has not ended.
    pub fn reap_leader(&mut self) -> Result<Exit, WaitError> {
        self.leader.reap()
    }

    /// Lists the running members besides the leader, each confirmed through a pidfd.
    ///
    /// # Errors
    /// [`TreeError`] when the list is not complete.
    pub fn members(&self) -> Result<Vec<Pid>, TreeError> {
        let mut members = Vec::new();
        self.each_member(|pid, _| members.push(pid))?;
        Ok(members)
    }

    /// Lists the running descendants that left the leader's process group, in whatever containment.
    ///
    /// # Errors
    /// [`TreeError`] when the list is not complete.
    pub fn escapees(&self) -> Result<Vec<Pid>, TreeError> {
        let descendants = descendants::own_descendants().map_err(TreeError::Descendants)?;
        let outside = |pid: &Pid| {
            placement_identity::read_stat(*pid).is_ok_and(|stat| {
                stat.pgid != Some(self.leader.pid())
                    && stat.state == placement_identity::ProcessState::Live
            })
        };
        Ok(descendants.into_iter().filter(outside).collect())
    }

    /// Asks each member besides the leader to end, by SIGTERM.
    ///
    /// # Errors
    /// [`TreeError`] when members could not be listed; some may have been signalled.
    pub fn terminate(&self) -> Result<Signalled, TreeError> {
        self.signal_members(Signal::Term)
    }

    /// Kills the leader and each member: all at once where a control group contains them, or a PID
    /// namespace whose leader has ended, else those that are seen now. Repeat it until
    /// [`Tree::state`] is empty: what forks can escape a round. Orphans that ended are reaped.
    ///
    /// # Errors
    /// [`TreeError`] when not everything was killed, or when it could not be counted or reaped.
    pub fn kill(&self) -> Result<Signalled, TreeError> {
        let signalled = match &self.containment {
            Containment::Cgroup(leaf) => {
                // What cannot be counted is killed all the same.
                let members = self.count();
                leaf.kill().map_err(TreeError::Leaf)?;
                Signalled { sent: members?, refused: 0 }
            }
            // The init is needed until it has told the exit of the leader.
            Containment::PidNamespace(_) if self.leader.observe_exit() == Ok(None) => {
                self.kill_each()?
            }
            Containment::PidNamespace(namespace) => {
                let members = self.count();
                namespace.kill().map_err(TreeError::Init)?;
                Signalled { sent: members?, refused: 0 }
            }
            Containment::Subreaper => self.kill_each()?,
            Containment::Group => {
                // All at once, as far as the kernel can: a leader that sees its members go one by
                // one would go on, and exit by itself.
                let members = self.count();
                match self.leader.signal_group(Signal::Kill) {
                    Ok(()) | Err(GroupSignalError::Gone | GroupSignalError::Unsupported) => {}
                    Err(error @ GroupSignalError::Refused(_)) => {
                        return Err(TreeError::Group(error));
                    }
                }
                // What the kernel could not reach through the leader.
                let signalled = self.signal_members(Signal::Kill)?;
                Signalled { sent: signalled.sent.max(members?), ..signalled }
            }
        };
        self.reap_orphans()?;
        Ok(signalled)
    }

    /// Reaps the ended children of this process but the leader, by number; returns how many.
    ///
    /// # Errors
    /// [`TreeError::Descendants`] when the children could not be listed.
    pub fn reap_orphans(&self) -> Result<u32, TreeError> {
        let kept = match &self.containment {
            Containment::Cgroup(_) | Containment::Subreaper | Containment::Group => {
                self.unreaped_leader()
            }
            Containment::PidNamespace(namespace) => namespace.unreaped_init(),
        };
        descendants::reap_children_but(kept).map_err(TreeError::Descendants)
    }

    /// Looks what is left of the tree.
    pub fn state(&self) -> TreeState {
        self.look().unwrap_or_else(TreeState::Unknown)
    }

    /// Proves that the tree is gone, after its leader was reaped: the control group is empty and
    /// removed, this subreaper has no child left (`ECHILD`), or the init of the PID namespace is
    /// reaped, before which the kernel has ended everything inside.
    ///
    /// # Errors
    /// [`NotGone`]; the tree is as it was and can be asked again.
    pub fn prove_gone(&mut self) -> Result<TreeGone, NotGone> {
        if let Containment::PidNamespace(namespace) = &mut self.containment {
            return namespace.reap().map_err(|error| match error {
                WaitError::Running => NotGone::Populated,
                WaitError::Wait(_) | WaitError::Unreported => {
                    NotGone::Unknown(TreeError::Leader(error))
                }
            });
        }
        if self.leader.reaped().is_none() {
            return Err(NotGone::LeaderNotReaped);
        }
        match &self.containment {
            Containment::Cgroup(leaf) => {
                match leaf.populated().map_err(unknown_leaf)? {
                    Population::Populated => return Err(NotGone::Populated),
                    Population::Empty => {}
                }
                leaf.remove_directory().map_err(unknown_leaf)
            }
            Containment::Subreaper => {
                self.reap_orphans().map_err(NotGone::Unknown)?;
                let children = descendants::any_children();
                match children.map_err(|errno| NotGone::Unknown(TreeError::Children(errno)))? {
                    Children::Some => Err(NotGone::Populated),
                    Children::None => {
                        Ok(TreeGone::new(Mechanism::Subreaper, "subreaper has no child left"))
                    }
                }
            }
            Containment::PidNamespace(_) | Containment::Group => Err(NotGone::NoProof),
        }
    }

    fn look(&self) -> Result<TreeState, TreeError> {
        match &self.containment {
            Containment::PidNamespace(namespace) => {
                if namespace.has_ended() {
                    return Ok(TreeState::Empty);
                }
            }
            Containment::Cgroup(leaf) => match leaf.populated().map_err(TreeError::Leaf)? {
                Population::Empty => return Ok(TreeState::Empty),
                Population::Populated => {}
            },
            Containment::Subreaper if self.leader.reaped().is_some() => {
                self.reap_orphans()?;
                match descendants::any_children().map_err(TreeError::Children)? {
                    Children::None => return Ok(TreeState::Empty),
                    Children::Some => {}
                }
            }
            Containment::Subreaper | Containment::Group => {
                let has_ended = self.leader.observe_exit().map_err(TreeError::Leader)?.is_some();
                let members = self.count()?;
                if members == 0 && has_ended {
                    return Ok(TreeState::Empty);
                }
                return Ok(TreeState::Populated { members });
            }
        }
        Ok(TreeState::Populated { members: self.count()? })
    }

    fn count(&self) -> Result<u32, TreeError> {
        match &self.containment {
            // The kernel lists none there that has ended, and nobody is signalled by these numbers: a
            // stop need not open a descriptor of each before it may kill them all at once.
            Containment::Cgroup(_) => Ok(u32::try_from(self.list()?.len()).unwrap_or(u32::MAX)),
            Containment::PidNamespace(_) | Containment::Subreaper | Containment::Group => {
                self.each_member(|_, _| {})
            }
        }
    }

    fn kill_each(&self) -> Result<Signalled, TreeError> {
        let leader = self.leader.signal(Signal::Kill);
        let mut signalled = self.signal_members(Signal::Kill)?;
        if matches!(leader, Err(SignalError::Refused(_))) {
            signalled.refused = signalled.refused.saturating_add(1);
        }
        Ok(signalled)
    }

    fn signal_members(&self, signal: Signal) -> Result<Signalled, TreeError> {
        let mut signalled = Signalled::default();
        self.each_member(|_, pidfd| {
            match sys::pidfd_signal(pidfd, signal.number()).map_err(leader::signal_error) {
                Ok(()) => signalled.sent = signalled.sent.saturating_add(1),
                Err(SignalError::Gone) => {}
                Err(SignalError::Refused(_)) => {
                    signalled.refused = signalled.refused.saturating_add(1);
                }
            }
        })?;
        Ok(signalled)
    }

    fn each_member(&self, act: impl FnMut(Pid, BorrowedFd<'_>)) -> Result<u32, TreeError> {
        members::each_confirmed(|| self.list(), act)
    }

    /// The members' numbers besides the leader's, which is another process's once it was reaped.
    fn list(&self) -> Result<Vec<Pid>, TreeError> {
        let mut leader = self.unreaped_leader();
        let mut listed = match &self.containment {
            Containment::Cgroup(leaf) => leaf.members().map_err(TreeError::Leaf)?,
            Containment::Subreaper => {
                descendants::own_descendants().map_err(TreeError::Descendants)?
            }
            // Orphans come to the init; whoever is inside descends from it.
            Containment::PidNamespace(namespace) => {
                // Its init reaps it as soon as it ends.
                leader = leader.filter(|_| !is_readable(self.leader.pidfd()));
                match namespace.unreaped_init() {
                    Some(init) => {
                        descendants::descendants_of(init).map_err(TreeError::Descendants)?
                    }
                    None => Vec::new(),
                }
            }
            Containment::Group => match list_processes() {
                ProcessList::Complete(stats) => stats
                    .iter()
                    .filter(|stat| stat.pgid == Some(self.leader.pid()))
                    .map(|stat| stat.pid)
                    .collect(),
                ProcessList::Partial(_) => return Err(TreeError::Partial),
            },
        };
        listed.retain(|pid| Some(*pid) != leader);
        Ok(listed)
    }

    fn unreaped_leader(&self) -> Option<Pid> {
        self.leader.reaped().is_none().then(|| self.leader.pid())
    }
}

fn unknown_leaf(error: LeafError) -> NotGone {
    match error {
        LeafError::Remove(errno) if errno.raw() == libc::EBUSY => NotGone::Populated,
        LeafError::Path
        | LeafError::Create(_)
        | LeafError::Open(_)
        | LeafError::Read(_)
        | LeafError::Malformed
        | LeafError::TooLarge
        | LeafError::Kill(_)
        | LeafError::Remove(_) => NotGone::Unknown(TreeError::Leaf(error)),
    }
}
