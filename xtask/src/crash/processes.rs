//! Processes of a case, looked at and killed by number: each is frozen or this process's to reap.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::fs;
use std::time::{Duration, Instant};

/// How long anything of a case may take; a broken product says so after it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(2);

/// Looks until something is there; nothing after [`PATIENCE`].
pub(crate) fn until<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(LOOK);
    }
}

/// Becomes the parent of whatever loses its own.
pub(crate) fn adopt_orphans() -> Result<(), String> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| format!("become a subreaper: {error}"))
}

/// Reaps the adopted that have ended, but for `kept`, which has an owner.
pub(crate) fn reap_orphans(kept: &[u32]) {
    for child in children(std::process::id()) {
        if !kept.contains(&child)
            && let Some(pid) = number(child)
        {
            // One that runs on is left.
            waitpid(Some(pid), WaitOptions::NOHANG).ok();
        }
    }
}

/// Sends a signal; a process that is gone takes none.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = number(pid) {
        kill_process(pid, signal).ok();
    }
}

/// Says whether a process runs: it is there and no zombie.
pub(crate) fn runs(pid: u32) -> bool {
    state(&format!("/proc/{pid}/stat")).is_some_and(|state| !"ZX".contains(state))
}

/// Says whether a process has its number still, as a zombie if not otherwise.
pub(crate) fn is_there(pid: u32) -> bool {
    state(&format!("/proc/{pid}/stat")).is_some()
}

/// Says whether every thread of a process has stopped.
pub(crate) fn is_frozen(pid: u32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    tasks.flatten().all(|task| state(&format!("{}/stat", task.path().display())) == Some('T'))
}

/// Lists the children of all threads of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|t| fs::read_to_string(t.path().join("children")).ok());
    lists.flat_map(|list| numbers(&list)).collect()
}

/// Says whether a process was started as a runner.
pub(crate) fn is_runner(pid: u32) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).nth(1) == Some(b"--placement-runner")
}

/// Reads the group of a process.
pub(crate) fn group(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(") ")?.1.split(' ').nth(2)?.parse().ok()
}

fn state(path: &str) -> Option<char> {
    fs::read_to_string(path).ok()?.rsplit_once(") ")?.1.chars().next()
}

fn numbers(list: &str) -> Vec<u32> {
    list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn number(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}
