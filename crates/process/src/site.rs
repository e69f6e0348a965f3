//! Where this process may make control groups: the cgroup2 mount and the own place in it.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use placement_identity::Errno;
use procfs::process::MountInfo;
use rustix::fs::{Mode, OFlags};

use crate::leaf::{CgroupLeaf, LeafError};
use crate::limits::{LEAF_NAME_BYTES_MAX, MOUNTINFO_BYTES_MAX};

/// Holds the calling process's own control group, in which leaves are made.
///
/// Paths are those of the cgroup namespace, as `/proc/self/cgroup` shows them; they hold for every
/// process in the same namespace, wherever it has the file system mounted.
#[derive(Debug)]
pub struct CgroupSite {
    path: String,
    directory: OwnedFd,
}

/// Says why there is no place for leaves.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SiteError {
    /// `/proc/self/cgroup` or `/proc/self/mountinfo` could not be read.
    #[error("cannot read the own control group or the mounts: {0}")]
    Proc(Errno),
    /// The process is in no cgroup v2 hierarchy.
    #[error("there is no cgroup v2 hierarchy")]
    NoHierarchy,
    /// The own group lies outside the cgroup namespace.
    #[error("the own control group lies outside the cgroup namespace")]
    OutsideNamespace,
    /// No cgroup2 mount shows the own group.
    #[error("no cgroup2 mount shows the own control group")]
    NotMounted,
    /// The own group's directory could not be opened.
    #[error("cannot open the own control group: {0}")]
    Open(Errno),
    /// The name is not one for a leaf: 1 to 200 bytes of `a-z A-Z 0-9 . _ -`, not a dot first.
    #[error("not a name for a control group")]
    Name,
}

impl CgroupSite {
    /// Finds the own control group from the `0::` line of `/proc/self/cgroup` and the cgroup2 mounts
    /// of `/proc/self/mountinfo`; hybrid machines mount it elsewhere. See `cgroups(7)`.
    ///
    /// # Errors
    /// [`SiteError`] by variant. That it was found does not say that leaves can be made in it.
    pub fn find() -> Result<Self, SiteError> {
        let path = own_path(&read("/proc/self/cgroup")?)?;
        let directory = open_group(&path)?;
        Ok(Self { path, directory })
    }

    /// Returns the own group's path in the cgroup namespace, `/` for its root.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Returns the path that a leaf of this name has, before it is made.
    ///
    /// # Errors
    /// [`SiteError::Name`].
    pub fn leaf_path(&self, name: &str) -> Result<String, SiteError> {
        if !is_leaf_name(name) {
            return Err(SiteError::Name);
        }
        let separator = if self.path.ends_with('/') { "" } else { "/" };
        Ok(format!("{}{separator}{name}", self.path))
    }

    /// Makes a leaf, by `mkdir(2)`. An existing one is never taken over.
    ///
    /// # Errors
    /// [`LeafError::Create`] with the kernel's answer: `EACCES` and `EROFS` where the subtree was
    /// not delegated, `EEXIST` where the name is taken, `EAGAIN` past the hierarchy's limits.
    pub fn create(&self, name: &str) -> Result<CgroupLeaf, LeafError> {
        let path = self.leaf_path(name).map_err(|_| LeafError::Path)?;
        let parent = self.directory.try_clone().map_err(|error| LeafError::open(&error))?;
        rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755))
            .map_err(|error| LeafError::Create(crate::errno(error)))?;
        CgroupLeaf::open_in(parent, name, path)
    }
}

impl SiteError {
    /// Returns what the kernel answered, if it was asked.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Proc(errno) | Self::Open(errno) => Some(*errno),
            Self::NoHierarchy | Self::OutsideNamespace | Self::NotMounted | Self::Name => None,
        }
    }
}

/// Opens the directory of a group by its path in the cgroup namespace.
pub(crate) fn open_group(path: &str) -> Result<OwnedFd, SiteError> {
    let mounts = read("/proc/self/mountinfo")?;
    let mut answer = Err(SiteError::NotMounted);
    for directory in directories(&mounts, path) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(&directory, flags, Mode::empty()) {
            Ok(opened) => return Ok(opened),
            Err(error) => answer = Err(SiteError::Open(crate::errno(error))),
        }
    }
    answer
}

/// The `0::` line names the group in the unified hierarchy.
fn own_path(text: &str) -> Result<String, SiteError> {
    let path =
        text.lines().find_map(|line| line.strip_prefix("0::")).ok_or(SiteError::NoHierarchy)?;
    // A group that was removed under its processes is shown like this.
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    if !path.starts_with('/') || path.split('/').any(|component| component == "..") {
        return Err(SiteError::OutsideNamespace);
    }
    Ok(path.to_owned())
}

/// Where the group can be seen: a mount may show a part of the hierarchy only, and then its root is
/// a prefix of the group's path. Writable mounts come first.
fn directories(mounts: &str, path: &str) -> Vec<PathBuf> {
    let mut found: Vec<(bool, PathBuf)> = mounts
        .lines()
        .filter(|line| line.contains(" - cgroup2 "))
        .filter_map(|line| MountInfo::from_line(line).ok())
        .filter_map(|mount| {
            let below = below(&unescaped(&mount.root), path)?;
            let mount_point = unescaped(mount.mount_point.to_str()?);
            let read_only = mount.mount_options.contains_key("ro");
            Some((read_only, Path::new(&mount_point).join(below)))
        })
        .collect();
    found.sort_by_key(|(read_only, _)| *read_only);
    found.into_iter().map(|(_, directory)| directory).collect()
}

/// The relative path from a mount's root to a group, if it lies in it.
fn below(root: &str, path: &str) -> Option<String> {
    let rest = path.strip_prefix(root.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/').to_owned())
}

/// Undoes the octal escapes of blank, tab, newline and backslash in `/proc/self/mountinfo`.
fn unescaped(field: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(field.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

fn is_leaf_name(name: &str) -> bool {
    (1..=LEAF_NAME_BYTES_MAX).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn read(path: &str) -> Result<String, SiteError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOUNTINFO_BYTES_MAX).read_to_end(&mut bytes))
        .map_err(|error| SiteError::Proc(Errno::from(&error)))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{SiteError, below, directories, is_leaf_name, own_path};
    use std::path::PathBuf;

    #[test]
    fn the_unified_line_is_taken_on_a_hybrid_machine() {
        let text = "9:name=systemd:/init\n0::/user.slice/a\n";
        assert_eq!(own_path(text).unwrap(), "/user.slice/a");
    }

    #[test]
    fn a_machine_without_the_unified_hierarchy_is_refused() {
        assert_eq!(own_path("4:memory:/\n"), Err(SiteError::NoHierarchy));
    }

    #[test]
    fn a_group_outside_the_namespace_is_refused() {
        assert_eq!(own_path("0::/../other\n"), Err(SiteError::OutsideNamespace));
    }

    #[test]
    fn the_mount_is_found_where_it_is() {
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let expected = [PathBuf::from("/sys/fs/cgroup/unified/a/b")];
        assert_eq!(directories(mounts, "/a/b"), expected);
    }

    #[test]
    fn a_writable_mount_comes_before_a_read_only_one() {
        let mounts = "41 31 0:38 / /one ro - cgroup2 cgroup2 rw\n\
                      42 31 0:38 / /two\\040words rw - cgroup2 cgroup2 rw\n";
        let expected = [PathBuf::from("/two words/a"), PathBuf::from("/one/a")];
        assert_eq!(directories(mounts, "/a"), expected);
    }

    #[test]
    fn a_mount_of_another_part_of_the_hierarchy_is_passed_over() {
        assert_eq!(below("/docker/ab", "/docker/ab/c"), Some("c".to_owned()));
        assert_eq!(below("/docker/a", "/docker/ab"), None);
        assert_eq!(below("/", "/"), Some(String::new()));
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        for name in ["", "..", ".", ".hidden", "a/b", "a b", "a\n", &"x".repeat(201)] {
            assert!(!is_leaf_name(name), "{name:?}");
        }
        assert!(is_leaf_name("pl-01ARZ3NDEKTSV4RRFFQ69G5FAV"));
    }
}
