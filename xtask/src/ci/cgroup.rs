//! A cgroup that an ordinary user may divide, as systemd's `Delegate=` makes one.

use super::place::ORDINARY_ID;
use crate::workspace::read;
use camino::{Utf8Path, Utf8PathBuf};
use std::fs;
use std::os::unix::fs::chown;
use std::time::{Duration, Instant};

/// The files that a delegatee needs besides the directory: see cgroup-v2, "Delegation".
const DELEGATED: &[&str] = &["cgroup.procs", "cgroup.threads", "cgroup.subtree_control"];
/// How long the end of processes is waited for: a runner may still write its last rows.
const EMPTY_WITHIN: Duration = Duration::from_secs(10);

/// Holds a delegated cgroup and removes it when it is dropped.
#[derive(Debug)]
pub(super) struct Delegated {
    path: Utf8PathBuf,
}

impl Delegated {
    /// Makes one below the cgroup of this process; says in a phrase why that is not possible.
    pub(super) fn make() -> Result<Self, String> {
        let text = |path: &str| read(path.into()).map_err(|failure| failure.to_string());
        let own = own_directory(&text("/proc/self/mountinfo")?, &text("/proc/self/cgroup")?)?;
        let path = own.join(format!("placement-ci-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("make {path}: {error}"))?;
        let delegated = Self { path };
        for place in std::iter::once(delegated.path.clone())
            .chain(DELEGATED.iter().map(|file| delegated.path.join(file)))
        {
            chown(&place, Some(ORDINARY_ID), Some(ORDINARY_ID))
                .map_err(|error| format!("hand over {place}: {error}"))?;
        }
        Ok(delegated)
    }

    /// Returns its directory.
    pub(super) fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Lists the processes that are still in it, or below, after the time that ending may take.
    pub(super) fn members_that_stay(&self) -> Vec<String> {
        let started = Instant::now();
        loop {
            let members = self.members();
            if members.is_empty() || started.elapsed() >= EMPTY_WITHIN {
                return members;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn members(&self) -> Vec<String> {
        let directories = subtree(&self.path);
        let lists =
            directories.iter().filter_map(|d| fs::read_to_string(d.join("cgroup.procs")).ok());
        lists.flat_map(|list| list.lines().map(ToOwned::to_owned).collect::<Vec<_>>()).collect()
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        // Only what was started inside is in there, and nobody waits for it any more.
        let killed = fs::write(self.path.join("cgroup.kill"), "1");
        if let Err(error) = killed {
            eprintln!("ci: cannot end what is left in {}: {error}", self.path);
        } else if !self.members_that_stay().is_empty() {
            eprintln!("ci: processes in {} do not end", self.path);
        }
        for directory in subtree(&self.path).iter().rev() {
            if let Err(error) = fs::remove_dir(directory) {
                eprintln!("ci: cannot remove {directory}: {error}");
            }
        }
    }
}

/// Lists a cgroup and those below it, each before what is below it.
fn subtree(top: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut found = vec![top.to_owned()];
    let mut next = 0;
    while let Some(directory) = found.get(next).cloned() {
        let entries = directory.read_dir_utf8().into_iter().flatten().flatten();
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        found.extend(inner.map(camino::Utf8DirEntry::into_path));
        next += 1;
    }
    found
}

/// Finds the directory of this process's cgroup v2, wherever that is mounted.
fn own_directory(mountinfo: &str, cgroup: &str) -> Result<Utf8PathBuf, String> {
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::"));
    let own = own.ok_or("this kernel puts processes into no cgroup v2")?;
    for line in mountinfo.lines() {
        let Some((mount, source)) = line.split_once(" - ") else { continue };
        if !source.starts_with("cgroup2 ") {
            continue;
        }
        let mut fields = mount.split(' ').skip(3);
        let (Some(root), Some(point)) = (fields.next(), fields.next()) else { continue };
        if let Ok(inside) = Utf8Path::new(own).strip_prefix(root) {
            return Ok(Utf8Path::new(point).join(inside));
        }
    }
    Err("no mount shows this process's cgroup v2".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
        41 31 0:31 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_mount_is_read_and_not_assumed() {
        let found = own_directory(HYBRID, "4:memory:/x\n0::/user.slice\n");
        assert_eq!(found.unwrap(), "/sys/fs/cgroup/unified/user.slice");
    }

    #[test]
    fn a_mount_of_a_part_shows_only_that_part() {
        let mount = "41 31 0:31 /part /mnt rw - cgroup2 cgroup2 rw\n";
        assert_eq!(own_directory(mount, "0::/part/a\n").unwrap(), "/mnt/a");
        assert!(own_directory(mount, "0::/other\n").is_err());
    }

    #[test]
    fn no_mount_and_no_cgroup_are_told_apart() {
        assert!(own_directory("", "0::/\n").unwrap_err().contains("no mount"));
        assert!(own_directory(HYBRID, "4:memory:/\n").unwrap_err().contains("no cgroup v2"));
    }
}
