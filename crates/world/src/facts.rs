//! What is left on the machine, found without asking the host.

use camino::{Utf8Path, Utf8PathBuf};
use placement::{Attempt, AttemptId};
use placement_identity::{Marker, MarkerScan, scan_marker};

/// The variable that marks every process of an attempt.
const MARKER: &str = "PLACEMENT_ATTEMPT_ID";

/// Processes that carry an attempt's marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Survivors {
    /// None does, and every process was read.
    None,
    /// These do.
    These(Vec<u32>),
    /// None was found, and some processes hide their environment.
    Unknown(&'static str),
}

/// Cgroup leaves of attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CgroupLeaves {
    /// These are left.
    Left(Vec<Utf8PathBuf>),
    /// This process sits in no cgroup2 that can be looked into.
    NoCgroup2,
}

/// Looks for processes that carry an attempt's marker.
pub fn survivors(attempt: &AttemptId) -> Survivors {
    let marker = Marker {
        name: MARKER,
        value: attempt.as_str(),
        not_older_than_start_ticks: 0,
        except: &[],
    };
    match scan_marker(&marker) {
        MarkerScan::Found(found) | MarkerScan::Unknown { found, .. } if !found.is_empty() => {
            Survivors::These(found.iter().map(|process| process.pid.get()).collect())
        }
        MarkerScan::None | MarkerScan::Found(_) => Survivors::None,
        MarkerScan::Unknown { why, .. } => Survivors::Unknown(why.because()),
    }
}

/// Reads the process id out of the id of an attempt's runner.
pub(crate) fn runner_pid(attempt: &Attempt) -> Option<u32> {
    attempt.runner.as_ref()?.as_str().split('-').nth(1)?.parse().ok()
}

/// Returns the most memory that a process has held so far, in bytes (`VmHWM`).
///
/// # Panics
/// When the process is gone.
#[track_caller]
pub fn peak_memory_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.expect("a living process has a peak") * 1024
}

/// Homes, and temporary directories that lie beside them.
pub(crate) fn homes_left(root: &Utf8Path) -> Vec<Utf8PathBuf> {
    let below = |attempt: &Utf8PathBuf| [attempt.join("home"), attempt.join("tmp")];
    let paths = entries(&root.join("attempts")).into_iter().flat_map(|attempt| below(&attempt));
    paths.filter(|path| path.exists()).collect()
}

pub(crate) fn temporary_left(base: &Utf8Path) -> Vec<Utf8PathBuf> {
    entries(base).iter().flat_map(|users| entries(users)).collect()
}

pub(crate) fn cgroup_leaves_left() -> CgroupLeaves {
    let Some(group) = own_cgroup() else { return CgroupLeaves::NoCgroup2 };
    let is_leaf = |path: &Utf8PathBuf| {
        path.file_name().is_some_and(|name| name.starts_with("placement-")) && path.is_dir()
    };
    CgroupLeaves::Left(entries(&group).into_iter().filter(is_leaf).collect())
}

/// Finds the directory of this process's group in the cgroup2 hierarchy.
fn own_cgroup() -> Option<Utf8PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let point = mount.split(' ').nth(4)?;
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(Utf8Path::new(point).join(group.trim_start_matches('/')))
}

/// Returns what is in a directory, in order; nothing where there is none.
pub(crate) fn entries(directory: &Utf8Path) -> Vec<Utf8PathBuf> {
    let Ok(entries) = directory.read_dir_utf8() else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path().to_owned()).collect();
    paths.sort();
    paths
}
