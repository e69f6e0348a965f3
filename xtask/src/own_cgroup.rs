//! Where this process sits in the cgroup v2 hierarchy, and who is below it.

use crate::workspace::read;
use camino::{Utf8Path, Utf8PathBuf};
use std::fs;

/// Finds the directory of this process's cgroup v2; says in a phrase why there is none.
pub(crate) fn own_directory() -> Result<Utf8PathBuf, String> {
    let text = |path: &str| read(path.into()).map_err(|failure| failure.to_string());
    directory_in(&text("/proc/self/mountinfo")?, &text("/proc/self/cgroup")?)
}

/// Lists a cgroup and those below it, each before what is below it; nothing where it is gone.
pub(crate) fn subtree(top: &Utf8Path) -> Vec<Utf8PathBuf> {
    if !top.exists() {
        return Vec::new();
    }
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

/// Lists the processes in a cgroup and below it.
pub(crate) fn members(top: &Utf8Path) -> Vec<u32> {
    let directories = subtree(top);
    let lists = directories.iter().filter_map(|d| fs::read_to_string(d.join("cgroup.procs")).ok());
    lists
        .flat_map(|list| list.lines().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Finds the mount that shows the process's cgroup, wherever that is.
fn directory_in(mountinfo: &str, cgroup: &str) -> Result<Utf8PathBuf, String> {
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
        let found = directory_in(HYBRID, "4:memory:/x\n0::/user.slice\n");
        assert_eq!(found.unwrap(), "/sys/fs/cgroup/unified/user.slice");
    }

    #[test]
    fn a_mount_of_a_part_shows_only_that_part() {
        let mount = "41 31 0:31 /part /mnt rw - cgroup2 cgroup2 rw\n";
        assert_eq!(directory_in(mount, "0::/part/a\n").unwrap(), "/mnt/a");
        assert!(directory_in(mount, "0::/other\n").is_err());
    }

    #[test]
    fn no_mount_and_no_cgroup_are_told_apart() {
        assert!(directory_in("", "0::/\n").unwrap_err().contains("no mount"));
        assert!(directory_in(HYBRID, "4:memory:/\n").unwrap_err().contains("no cgroup v2"));
    }

    #[test]
    fn what_is_gone_has_no_members() {
        assert!(subtree("/nowhere/at-all".into()).is_empty());
        assert!(members("/nowhere/at-all".into()).is_empty());
    }
}
