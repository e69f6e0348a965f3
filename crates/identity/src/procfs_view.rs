//! Whether `/proc` shows every process, and the whole list when it does.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use procfs::process::MountInfo;

use crate::limits::{MOUNTINFO_BYTES_MAX, STATUS_BYTES_MAX};
use crate::pid::Pid;
use crate::stat::{Stat, StatError, read_stat};

/// Says how much `/proc` shows to the calling process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcView {
    /// Every process of the own PID namespace.
    Full,
    /// Fewer, or those of another PID namespace, or it could not be told.
    Restricted,
}

/// Holds one reading of the process table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessList {
    /// Every entry was read, the own one among them; processes that ended meanwhile are left out.
    Complete(Vec<Stat>),
    /// At least one entry could not be read: what is here is there, what is not here may be too.
    Partial(Vec<Stat>),
}

impl ProcessList {
    /// Returns what was read, complete or not.
    pub fn seen(&self) -> &[Stat] {
        match self {
            Self::Complete(stats) | Self::Partial(stats) => stats,
        }
    }
}

/// Looks whether `/proc` is mounted without `hidepid` and `subset` and belongs to the own PID
/// namespace. See `proc(5)`.
pub fn proc_view() -> ProcView {
    match (mounted_in_full(), own_namespace()) {
        (Some(true), Some(true)) => ProcView::Full,
        (Some(_) | None, Some(_) | None) => ProcView::Restricted,
    }
}

/// Reads the stat line of every process once.
///
/// One pass is no snapshot: a relay of forking processes can escape it.
pub fn list_processes() -> ProcessList {
    let mut stats = Vec::new();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return ProcessList::Partial(stats);
    };
    let mut complete = true;
    for entry in entries {
        let Ok(entry) = entry else {
            complete = false;
            break;
        };
        let Some(pid) = entry.file_name().to_str().and_then(number) else { continue };
        match read_stat(pid) {
            Ok(stat) => stats.push(stat),
            Err(StatError::Missing) => {}
            Err(StatError::Unreadable(_) | StatError::Malformed) => complete = false,
        }
    }
    let own = Pid::this_process();
    if complete && stats.iter().any(|stat| stat.pid == own) {
        ProcessList::Complete(stats)
    } else {
        ProcessList::Partial(stats)
    }
}

fn number(name: &str) -> Option<Pid> {
    name.parse::<u32>().ok().and_then(|number| Pid::try_from(number).ok())
}

/// The last mount on `/proc` is the one that is seen.
fn mounted_in_full() -> Option<bool> {
    let text = read_lossy("/proc/self/mountinfo", MOUNTINFO_BYTES_MAX)?;
    let on_top = text
        .lines()
        .filter(|line| line.split(' ').nth(4) == Some("/proc"))
        .filter_map(|line| MountInfo::from_line(line).ok())
        .rfind(|mount| mount.mount_point == Path::new("/proc"))?;
    Some(is_full(&on_top))
}

fn is_full(mount: &MountInfo) -> bool {
    let option = |name: &str| mount.super_options.get(name).or(mount.mount_options.get(name));
    let hides = match option("hidepid") {
        None => false,
        Some(value) => !matches!(value.as_deref(), Some("0" | "off")),
    };
    mount.fs_type == "proc" && mount.root == "/" && !hides && option("subset").is_none()
}

/// `NSpid:` lists one number per PID namespace from the one `/proc` shows down to the own one.
fn own_namespace() -> Option<bool> {
    let text = read_lossy("/proc/self/status", STATUS_BYTES_MAX)?;
    let numbers = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    let mut numbers = numbers.split_ascii_whitespace();
    let own = number(numbers.next()?)?;
    Some(own == Pid::this_process() && numbers.next().is_none())
}

fn read_lossy(path: &str, bytes_max: u64) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{MountInfo, ProcessList, is_full, list_processes};
    use crate::pid::Pid;

    fn full(options: &str, root: &str, kind: &str) -> bool {
        let line = format!("24 31 0:22 {root} /proc rw,nosuid shared:5 - {kind} proc {options}");
        is_full(&MountInfo::from_line(&line).unwrap())
    }

    #[test]
    fn hidden_processes_are_a_restriction_in_each_spelling() {
        for options in ["rw,hidepid=1", "rw,hidepid=2", "rw,hidepid=invisible", "rw,hidepid=4"] {
            assert!(!full(options, "/", "proc"), "{options}");
        }
    }

    #[test]
    fn an_ordinary_mount_is_full() {
        assert!(full("rw", "/", "proc"));
        assert!(full("rw,hidepid=0,gid=5", "/", "proc"));
    }

    #[test]
    fn a_subset_a_bind_mount_and_another_file_system_are_restrictions() {
        assert!(!full("rw,subset=pid", "/", "proc"));
        assert!(!full("rw", "/1", "proc"));
        assert!(!full("rw", "/", "fuse.lxcfs"));
    }

    #[test]
    fn the_list_holds_the_calling_process() {
        let list = list_processes();
        assert!(matches!(list, ProcessList::Complete(_)));
        assert!(list.seen().iter().any(|stat| stat.pid == Pid::this_process()));
    }
}
