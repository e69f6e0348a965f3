//! Whether `/proc` shows every process, and the whole list when it does.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use procfs::process::MountInfo;

use crate::limits::{MOUNTINFO_BYTES_MAX, STATUS_BYTES_MAX};
use crate::pid::Pid;
use crate::stat::{PROC, Stat, StatError, read_stat_below};

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
    list_below(Path::new(PROC))
}

fn list_below(table: &Path) -> ProcessList {
    let mut stats = Vec::new();
    let Ok(entries) = std::fs::read_dir(table) else {
        return ProcessList::Partial(stats);
    };
    let mut complete = true;
    for entry in entries {
        let Ok(entry) = entry else {
            complete = false;
            break;
        };
        let Some(pid) = entry.file_name().to_str().and_then(number) else { continue };
        match read_stat_below(table, pid) {
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
    use super::{MountInfo, ProcessList, is_full, list_below, list_processes};
    use crate::pid::Pid;
    use placement_testkit::TempRoot;

    /// Another process than the calling one.
    const OTHER: u32 = 1 << 30;

    /// The line of a process.
    fn line(pid: u32) -> String {
        format!("{pid} (sh) S 41 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8812 1 2 3 4")
    }

    fn own() -> u32 {
        Pid::this_process().get()
    }

    /// A process table with these entries, and with what is no process.
    fn table(entries: &[(u32, &str)]) -> TempRoot {
        let table = TempRoot::new();
        std::fs::create_dir(table.join("sys")).unwrap();
        std::fs::write(table.join("uptime"), "1").unwrap();
        for (pid, line) in entries {
            std::fs::create_dir(table.join(pid.to_string())).unwrap();
            std::fs::write(table.join(format!("{pid}/stat")), line).unwrap();
        }
        table
    }

    #[track_caller]
    fn assert_partial(table: &TempRoot, wanted: &[u32]) {
        let list = list_below(table.as_ref());
        let mut seen: Vec<u32> = list.seen().iter().map(|stat| stat.pid.get()).collect();
        seen.sort_unstable();
        assert_eq!(seen, wanted);
        assert!(matches!(list, ProcessList::Partial(_)), "{list:?}");
    }

    #[test]
    fn a_table_that_was_read_whole_is_complete() {
        let table = table(&[(own(), &line(own())), (OTHER, &line(OTHER))]);
        let ProcessList::Complete(stats) = list_below(table.as_ref()) else { panic!("not whole") };
        assert_eq!(stats.len(), 2);
    }

    #[test]
    fn a_table_that_cannot_be_read_is_not_complete() {
        let nowhere = TempRoot::new();
        let list = list_below(nowhere.join("proc").as_ref());
        assert_eq!(list, ProcessList::Partial(Vec::new()));
    }

    #[test]
    fn an_empty_table_is_not_complete() {
        assert_partial(&TempRoot::new(), &[]);
        assert_partial(&table(&[]), &[]);
    }

    #[test]
    fn a_table_without_the_caller_is_not_complete() {
        assert_partial(&table(&[(OTHER, &line(OTHER))]), &[OTHER]);
    }

    #[test]
    fn a_table_with_a_malformed_line_is_not_complete() {
        let cut = line(OTHER).replace(" 8812 1 2 3 4", "");
        for malformed in ["", "no process", cut.as_str(), line(OTHER + 1).as_str()] {
            let table = table(&[(own(), &line(own())), (OTHER, malformed)]);
            assert_partial(&table, &[own()]);
        }
    }

    #[test]
    fn a_table_with_a_line_that_cannot_be_read_is_not_complete() {
        let table = table(&[(own(), &line(own()))]);
        // A directory opens and does not read.
        std::fs::create_dir_all(table.join(format!("{OTHER}/stat"))).unwrap();
        assert_partial(&table, &[own()]);
    }

    #[test]
    fn a_process_that_ended_during_the_scan_is_left_out() {
        let table = table(&[(own(), &line(own()))]);
        std::fs::create_dir(table.join(OTHER.to_string())).unwrap();
        let ProcessList::Complete(stats) = list_below(table.as_ref()) else { panic!("not whole") };
        assert_eq!(stats.len(), 1);
    }

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
