//! One attempt's control group: members, kill, and the proof that it is empty.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use placement_contract::Mechanism;
use placement_identity::{Errno, Observer, Pid, Place, UnknownWhy, place};
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::limits::{LIST_BYTES_MAX, NESTED_DEPTH_MAX, NESTED_GROUPS_MAX, TREE_MEMBERS_MAX};
use crate::proof::TreeGone;
use crate::site;

/// Holds a control group that contains one tree.
///
/// It contains against accident: a process of the same user that means to can move itself out.
/// Dropping it closes the descriptors and leaves the group as it is.
#[derive(Debug)]
#[must_use]
pub struct CgroupLeaf {
    path: String,
    name: String,
    parent: OwnedFd,
    directory: OwnedFd,
    events: OwnedFd,
    id: u64,
}

/// Says what could not be done with a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeafError {
    /// The path or name is not that of a leaf.
    #[error("not a path of a control group")]
    Path,
    /// It could not be made.
    #[error("cannot make the control group: {0}")]
    Create(Errno),
    /// It, or one of its files, could not be opened; `ENOENT` when it is gone.
    #[error("cannot open the control group: {0}")]
    Open(Errno),
    /// Its members or its events could not be read.
    #[error("cannot read the control group: {0}")]
    Read(Errno),
    /// A file of it has an unknown form, or lists a process of another PID namespace.
    #[error("the control group shows something unknown")]
    Malformed,
    /// It has more members, or more or deeper groups inside, than are looked at.
    #[error("the control group is too large")]
    TooLarge,
    /// It could not be killed; `ENOENT` before Linux 5.14.
    #[error("cannot kill the control group: {0}")]
    Kill(Errno),
    /// It could not be removed; `EBUSY` while it has a member.
    #[error("cannot remove the control group: {0}")]
    Remove(Errno),
}

/// Answers whether a recorded leaf is still there.
#[derive(Debug)]
#[must_use]
pub enum LeafPresence {
    /// It is there, with or without members.
    Present(CgroupLeaf),
    /// It is not there any more, so nothing is in it.
    Gone(TreeGone),
    /// It could not be told.
    Unknown(LeafDoubt),
}

/// Says why it could not be told whether a leaf is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafDoubt {
    /// It belongs to a place that cannot be seen from here.
    Elsewhere(UnknownWhy),
    /// It was made in another cgroup namespace, where its path means another group.
    OtherCgroupNamespace,
    /// The cgroup2 file system does not show its place.
    NotVisible,
    /// It could not be opened.
    Leaf(LeafError),
}

impl LeafDoubt {
    /// Returns the fixed phrase.
    pub fn because(self) -> &'static str {
        match self {
            Self::Elsewhere(why) => why.because(),
            Self::OtherCgroupNamespace => "the cgroup was made in another cgroup namespace",
            Self::NotVisible => "no cgroup2 mount shows the place of the cgroup",
            Self::Leaf(_) => "the cgroup could not be opened",
        }
    }
}

impl CgroupLeaf {
    /// Looks for a leaf that another process made, as it was recorded.
    ///
    /// That it is not found proves it gone only in the boot and the cgroup namespace in which it was
    /// made: the kernel removes no group that has a member. A group at its path with another id is
    /// a later one. `id` is `None` where only the path was recorded.
    pub fn look_up(path: &str, id: Option<u64>, boot_id: &str, made: &Observer) -> LeafPresence {
        match place(boot_id, made) {
            Place::Here => {}
            Place::EarlierBoot(proof) => {
                return LeafPresence::Gone(TreeGone::new(Mechanism::Cgroup, proof.because()));
            }
            Place::Elsewhere(why) => return LeafPresence::Unknown(LeafDoubt::Elsewhere(why)),
        }
        let here = Observer::here().map(|here| here.cgroup_namespace);
        if here != Ok(made.cgroup_namespace) {
            return LeafPresence::Unknown(LeafDoubt::OtherCgroupNamespace);
        }
        match Self::open(path) {
            Ok(leaf) if id.is_none_or(|id| id == leaf.id) => LeafPresence::Present(leaf),
            Ok(_) => gone("another cgroup has the path"),
            Err(OpenError::NoEntry) => gone("the cgroup does not exist any more"),
            Err(OpenError::NotVisible) => LeafPresence::Unknown(LeafDoubt::NotVisible),
            Err(OpenError::Leaf(error)) => LeafPresence::Unknown(LeafDoubt::Leaf(error)),
        }
    }

    /// Returns the path in the cgroup namespace.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the kernel's id of the group: the inode of its directory.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Lists every process in the group and in the groups inside it, as `cgroup.procs` shows them;
    /// those that have ended are not listed.
    ///
    /// # Errors
    /// [`LeafError`] when the list is not complete.
    pub fn members(&self) -> Result<Vec<Pid>, LeafError> {
        let mut members = Vec::new();
        walk(self.directory.as_fd(), &mut |group| add_members(group, &mut members))?;
        Ok(members)
    }

    /// Says whether any process is in the group or in one inside it, as `cgroup.events` shows it.
    /// One that has ended and was not reaped is not.
    ///
    /// # Errors
    /// [`LeafError`] when that cannot be read: then nothing is known.
    pub fn populated(&self) -> Result<Population, LeafError> {
        Population::parse(&read_at(self.events.as_fd())?)
    }

    /// Borrows the descriptor of `cgroup.events`: poll it for `POLLPRI`, which comes when
    /// [`CgroupLeaf::populated`] may answer otherwise than it last did.
    pub fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// Kills every process in the group and in those inside it, new ones included, by `cgroup.kill`
    /// (Linux 5.14).
    ///
    /// # Errors
    /// [`LeafError::Kill`] with the kernel's answer.
    pub fn kill(&self) -> Result<(), LeafError> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.directory, "cgroup.kill", flags, Mode::empty())
            .and_then(|file| rustix::io::write(&file, b"1"))
            .map(|_| ())
            .map_err(|error| LeafError::Kill(crate::errno(error)))
    }

    /// Removes the group and those that the child made inside it, deepest first, by `rmdir(2)`,
    /// which the kernel refuses while there is a member.
    ///
    /// # Errors
    /// [`LeafError::Remove`], with the leaf, to be tried again.
    pub fn remove(self) -> Result<TreeGone, (Self, LeafError)> {
        match self.remove_directory() {
            Ok(gone) => Ok(gone),
            Err(error) => Err((self, error)),
        }
    }

    pub(crate) fn remove_directory(&self) -> Result<TreeGone, LeafError> {
        match self.populated()? {
            Population::Empty => {}
            Population::Populated => {
                return Err(LeafError::Remove(crate::errno(rustix::io::Errno::BUSY)));
            }
        }
        walk_inside(self.directory.as_fd(), 0, &mut 0, &mut |_| Ok(()), &mut |group, name| {
            remove_one(group, name)
        })?;
        remove_one(self.parent.as_fd(), &self.name)?;
        Ok(TreeGone::new(Mechanism::Cgroup, "cgroup populated 0 and removed"))
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub(crate) fn open_in(parent: OwnedFd, name: &str, path: String) -> Result<Self, LeafError> {
        let directory = open_directory(parent.as_fd(), name)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let events = rustix::fs::openat(&directory, "cgroup.events", flags, Mode::empty())
            .map_err(|error| LeafError::Open(crate::errno(error)))?;
        let id = rustix::fs::fstat(&directory)
            .map_err(|error| LeafError::Open(crate::errno(error)))?
            .st_ino;
        Ok(Self { path, name: name.to_owned(), parent, directory, events, id })
    }

    fn open(path: &str) -> Result<Self, OpenError> {
        let (above, name) = path.rsplit_once('/').ok_or(OpenError::Leaf(LeafError::Path))?;
        if name.is_empty() || !path.starts_with('/') || path.split('/').any(|part| part == "..") {
            return Err(OpenError::Leaf(LeafError::Path));
        }
        let parent = site::open_group(if above.is_empty() { "/" } else { above });
        let parent = parent.map_err(|error| match error {
            site::SiteError::Open(errno) if errno.raw() == libc::ENOENT => OpenError::NoEntry,
            site::SiteError::Open(errno) => OpenError::Leaf(LeafError::Open(errno)),
            site::SiteError::Proc(_)
            | site::SiteError::NoHierarchy
            | site::SiteError::OutsideNamespace
            | site::SiteError::NotMounted
            | site::SiteError::Name => OpenError::NotVisible,
        })?;
        Self::open_in(parent, name, path.to_owned()).map_err(|error| match error {
            LeafError::Open(errno) if errno.raw() == libc::ENOENT => OpenError::NoEntry,
            LeafError::Open(_)
            | LeafError::Path
            | LeafError::Create(_)
            | LeafError::Read(_)
            | LeafError::Malformed
            | LeafError::TooLarge
            | LeafError::Kill(_)
            | LeafError::Remove(_) => OpenError::Leaf(error),
        })
    }
}

/// Says whether a control group has members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Population {
    /// No process is in it or below it.
    Empty,
    /// At least one is.
    Populated,
}

impl Population {
    /// Reads the text of `cgroup.events`. See "cgroup v2 cgroup.events file" in `cgroups(7)`.
    ///
    /// # Errors
    /// [`LeafError::Malformed`] where it does not say.
    pub fn parse(text: &str) -> Result<Self, LeafError> {
        match text.lines().find_map(|line| line.strip_prefix("populated ")) {
            Some("0") => Ok(Self::Empty),
            Some("1") => Ok(Self::Populated),
            Some(_) | None => Err(LeafError::Malformed),
        }
    }
}

impl LeafError {
    /// Returns what the kernel answered, if it was asked.
    pub fn errno(self) -> Option<Errno> {
        match self {
            Self::Path | Self::Malformed | Self::TooLarge => None,
            Self::Create(errno)
            | Self::Open(errno)
            | Self::Read(errno)
            | Self::Kill(errno)
            | Self::Remove(errno) => Some(errno),
        }
    }

    pub(crate) fn open(error: &std::io::Error) -> Self {
        Self::Open(Errno::from(error))
    }
}

enum OpenError {
    NoEntry,
    NotVisible,
    Leaf(LeafError),
}

fn gone(proof: &'static str) -> LeafPresence {
    LeafPresence::Gone(TreeGone::new(Mechanism::Cgroup, proof))
}

/// A group in threaded mode lists nothing (`EOPNOTSUPP`): its processes are listed above it.
fn add_members(group: BorrowedFd<'_>, members: &mut Vec<Pid>) -> Result<(), LeafError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let text = match rustix::fs::openat(group, "cgroup.procs", flags, Mode::empty()) {
        Ok(file) => match read_at(file.as_fd()) {
            Ok(text) => text,
            Err(LeafError::Read(errno))
                if errno.raw() == libc::EOPNOTSUPP || errno.raw() == libc::ENODEV =>
            {
                return Ok(());
            }
            Err(error) => return Err(error),
        },
        // Removed meanwhile, and so without members.
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NODEV) => return Ok(()),
        Err(error) => return Err(LeafError::Read(crate::errno(error))),
    };
    for line in text.lines() {
        let number: u32 = line.parse().map_err(|_| LeafError::Malformed)?;
        members.push(Pid::try_from(number).map_err(|_| LeafError::Malformed)?);
        if members.len() > TREE_MEMBERS_MAX {
            return Err(LeafError::TooLarge);
        }
    }
    Ok(())
}

type Visit<'a> = dyn FnMut(BorrowedFd<'_>) -> Result<(), LeafError> + 'a;
type Leave<'a> = dyn FnMut(BorrowedFd<'_>, &str) -> Result<(), LeafError> + 'a;

/// Visits the group and each group inside it.
fn walk(group: BorrowedFd<'_>, visit: &mut Visit<'_>) -> Result<(), LeafError> {
    visit(group)?;
    walk_inside(group, 0, &mut 0, visit, &mut |_, _| Ok(()))
}

/// Visits each group inside a group, and leaves it after those inside it.
fn walk_inside(
    group: BorrowedFd<'_>,
    depth: usize,
    seen: &mut usize,
    visit: &mut Visit<'_>,
    leave: &mut Leave<'_>,
) -> Result<(), LeafError> {
    if depth > NESTED_DEPTH_MAX {
        return Err(LeafError::TooLarge);
    }
    for name in groups_inside(group)? {
        *seen += 1;
        if *seen > NESTED_GROUPS_MAX {
            return Err(LeafError::TooLarge);
        }
        let inside = match open_directory(group, &name) {
            Ok(inside) => inside,
            // Removed between the listing and now.
            Err(LeafError::Open(errno)) if errno.raw() == libc::ENOENT => continue,
            Err(error) => return Err(error),
        };
        visit(inside.as_fd())?;
        walk_inside(inside.as_fd(), depth + 1, seen, visit, leave)?;
        drop(inside);
        leave(group, &name)?;
    }
    Ok(())
}

fn groups_inside(group: BorrowedFd<'_>) -> Result<Vec<String>, LeafError> {
    let read = |error: rustix::io::Errno| LeafError::Read(crate::errno(error));
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(group).map_err(read)? {
        let entry = entry.map_err(read)?;
        let Ok(name) = entry.file_name().to_str() else { return Err(LeafError::Malformed) };
        if entry.file_type() == rustix::fs::FileType::Directory && name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

fn open_directory(parent: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, LeafError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
        .map_err(|error| LeafError::Open(crate::errno(error)))
}

fn remove_one(parent: BorrowedFd<'_>, name: &str) -> Result<(), LeafError> {
    match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(LeafError::Remove(crate::errno(error))),
    }
}

/// Reads a file of the cgroup file system from its start; that also arms `POLLPRI` again.
pub(crate) fn read_at(file: BorrowedFd<'_>) -> Result<String, LeafError> {
    let mut text = Vec::new();
    let mut part = [0_u8; 4096];
    loop {
        let offset = u64::try_from(text.len()).map_err(|_| LeafError::TooLarge)?;
        if offset > LIST_BYTES_MAX {
            return Err(LeafError::TooLarge);
        }
        match rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut part, offset)) {
            Ok(0) => return String::from_utf8(text).map_err(|_| LeafError::Malformed),
            Ok(length) => text.extend(part.iter().take(length)),
            Err(error) => return Err(LeafError::Read(crate::errno(error))),
        }
    }
}
