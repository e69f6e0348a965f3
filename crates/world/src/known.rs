//! Processes that a test knows by more than their number.

use crate::PATIENCE;
use camino::Utf8Path;
use placement::{Evidence, EvidenceKind};
use placement_identity::{
    Pid, Presence, ProcessIdentity, ProcessList, ProcessState, Signal, list_processes, read_stat,
};
use placement_testkit::wait_until;

/// One process; its number may be given away and it is still this one.
#[derive(Debug, Clone)]
pub struct Known(ProcessIdentity);

impl Known {
    /// Takes the process that has a number now.
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn of(pid: u32) -> Self {
        Self(ProcessIdentity::of(pid).expect("the process is there"))
    }

    /// Takes the process whose number a script writes to a file, as a line of its own.
    ///
    /// In a PID namespace the number is another than here; so it is taken for that of the process
    /// which has it where it lives and works in the directory of the file.
    ///
    /// # Panics
    /// When the line does not come, or the process is gone already.
    #[track_caller]
    pub fn named_in(file: impl AsRef<Utf8Path>) -> Self {
        let file = file.as_ref();
        let mut text = String::new();
        wait_until(PATIENCE, file.as_str(), || {
            text = std::fs::read_to_string(file).unwrap_or_default();
            text.ends_with('\n')
        });
        let directory = file.parent().and_then(|parent| parent.canonicalize().ok());
        let directory = directory.expect("a file lies in a directory");
        let number: u32 = text.trim().parse().expect("the file holds a number");
        let here = numbers().into_iter().find(|pid| {
            number_inside(*pid) == Some(number)
                && std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == directory)
        });
        Self::of(here.expect("the process is there"))
    }

    /// Returns its identity.
    pub const fn identity(&self) -> &ProcessIdentity {
        &self.0
    }

    /// Returns its number.
    pub fn pid(&self) -> u32 {
        self.0.pid.get()
    }

    /// Says whether it runs.
    ///
    /// # Panics
    /// When that cannot be told.
    #[track_caller]
    pub fn is_running(&self) -> bool {
        match self.0.observe() {
            Presence::Present(_) => true,
            Presence::Absent(_) => false,
            Presence::Unknown(why) => panic!("a process of this test cannot be seen: {why}"),
        }
    }

    /// Waits until it runs no more.
    ///
    /// # Panics
    /// When it does not end in a minute.
    #[track_caller]
    pub fn wait_gone(&self) {
        wait_until(PATIENCE, "the end of a process", || !self.is_running());
    }

    /// Waits until nothing of it is left, not even for its parent: a zombie is a member of its group.
    ///
    /// # Panics
    /// When it is not reaped in a minute.
    #[track_caller]
    pub fn wait_reaped(&self) {
        self.wait_gone();
        wait_until(PATIENCE, "the reaping of a process", || {
            read_stat(self.0.pid).map_or(true, |stat| stat.start_ticks != self.0.start_ticks)
        });
    }

    /// Sends it a signal; one that has ended takes none.
    pub fn signal(&self, signal: Signal) {
        if let Presence::Present(verified) = self.0.observe() {
            // It may end in between, which is what most signals are for.
            verified.signal(signal).ok();
        }
    }

    /// Kills it and waits until it runs no more.
    ///
    /// # Panics
    /// As [`Known::wait_gone`].
    #[track_caller]
    pub fn kill(&self) {
        self.signal(Signal::Kill);
        self.wait_gone();
    }
}

/// The numbers of all processes.
fn numbers() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("there is a process table");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The number that a process has in its own PID namespace.
fn number_inside(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().last()?.parse().ok()
}

/// Counts the children of a process that have ended and were not reaped.
///
/// # Panics
/// When the process table cannot be read.
#[track_caller]
pub fn zombies_of(parent: u32) -> usize {
    let parent = Pid::try_from(parent).expect("a process has a number");
    let seen = match list_processes() {
        ProcessList::Complete(seen) => seen,
        ProcessList::Partial(_) => panic!("the process table cannot be read"),
    };
    let is_one = |state| state == ProcessState::Ended;
    seen.iter().filter(|stat| stat.parent == Some(parent) && is_one(stat.state)).count()
}

/// Returns the number of the leader that evidence names, if one was identified.
pub fn leader_in(evidence: &[Evidence]) -> Option<u32> {
    let row = evidence.iter().find(|row| row.kind == EvidenceKind::ChildIdentified)?;
    row.detail.strip_prefix("pid ")?.split(',').next()?.parse().ok()
}
