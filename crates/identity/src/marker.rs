//! Finding processes by a variable that their ancestor was started with.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd as _;

use crate::limits::ENVIRON_BYTES_MAX;
use crate::pid::Pid;
use crate::process::{ProcessIdentity, open_pidfd};
use crate::procfs_view::{ProcView, ProcessList, list_processes, proc_view};
use crate::stat::{ProcessState, Stat, StatError, read_stat};

/// Says what to look for.
#[derive(Clone, Copy, Debug)]
pub struct Marker<'a> {
    /// Name of the environment variable.
    pub name: &'a str,
    /// Its exact value.
    pub value: &'a str,
    /// Start stamp of the first process that had it; older processes are not looked at.
    pub not_older_than_start_ticks: u64,
    /// Processes that are known to be others, such as runners, which hide their environment.
    pub except: &'a [ProcessIdentity],
}

/// Answers which processes carry a marker.
///
/// The calling process and those that have ended are left out.
#[derive(Debug)]
#[must_use]
pub enum MarkerScan {
    /// These carry it, and every other process of that age was read.
    Found(Vec<ProcessIdentity>),
    /// No process carries it; every one of that age was read.
    None,
    /// At least these carry it; others may.
    Unknown {
        /// Processes that carry the marker.
        found: Vec<ProcessIdentity>,
        /// What hid the others.
        why: MarkerDoubt,
    },
}

/// Says why a marker scan is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerDoubt {
    /// So many processes of that age do not let their environment be read.
    Unreadable(u32),
    /// `/proc` does not show every process.
    ProcRestricted,
    /// The process table has an entry that cannot be read.
    ProcUnreadable,
}

impl MarkerDoubt {
    /// Returns the fixed phrase.
    pub fn because(self) -> &'static str {
        match self {
            Self::Unreadable(_) => "processes of that age do not show their environment",
            Self::ProcRestricted => "the process table does not show every process",
            Self::ProcUnreadable => "the process table has an entry that cannot be read",
        }
    }
}

/// Holds one look at all running processes and at a variable that they were started with.
///
/// Answers for many values of the variable; what started after the look is not in it.
#[derive(Debug)]
pub struct MarkerTable {
    carriers: Vec<(ProcessIdentity, Vec<u8>)>,
    unreadable: Vec<(Pid, u64)>,
    doubt: Option<MarkerDoubt>,
}

impl MarkerTable {
    /// Reads the process table once; processes older than the stamp are not looked at.
    pub fn read(name: &str, not_older_than_start_ticks: u64) -> Self {
        let view = proc_view();
        let list = list_processes();
        let mut table = Self { carriers: Vec::new(), unreadable: Vec::new(), doubt: None };
        let old_enough = |stat: &&Stat| stat.start_ticks >= not_older_than_start_ticks;
        for stat in list.seen().iter().filter(|stat| is_candidate(stat)).filter(old_enough) {
            match carried(stat, name) {
                Carried::Value(identity, value) => table.carriers.push((identity, value)),
                Carried::Nothing => {}
                Carried::Unknown => table.unreadable.push((stat.pid, stat.start_ticks)),
            }
        }
        table.doubt = match (view, &list) {
            (ProcView::Restricted, _) => Some(MarkerDoubt::ProcRestricted),
            (ProcView::Full, ProcessList::Partial(_)) => Some(MarkerDoubt::ProcUnreadable),
            (ProcView::Full, ProcessList::Complete(_)) => None,
        };
        table
    }

    /// Answers which of these processes carry a value of the variable.
    pub fn carrying(&self, marker: &Marker<'_>) -> MarkerScan {
        let is_young = |start_ticks: u64| start_ticks >= marker.not_older_than_start_ticks;
        let is_other = |pid: Pid, start_ticks: u64| {
            marker.except.iter().any(|it| it.pid == pid && it.start_ticks == start_ticks)
        };
        let carriers = self.carriers.iter().filter(|(process, value)| {
            value == marker.value.as_bytes()
                && is_young(process.start_ticks)
                && !is_other(process.pid, process.start_ticks)
        });
        let found: Vec<_> = carriers.map(|(process, _)| process.clone()).collect();
        let hidden = self
            .unreadable
            .iter()
            .filter(|(pid, ticks)| is_young(*ticks) && !is_other(*pid, *ticks));
        let doubt = self.doubt.or(match u32::try_from(hidden.count()).unwrap_or(u32::MAX) {
            0 => None,
            unreadable => Some(MarkerDoubt::Unreadable(unreadable)),
        });
        match doubt {
            Some(why) => MarkerScan::Unknown { found, why },
            None if found.is_empty() => MarkerScan::None,
            None => MarkerScan::Found(found),
        }
    }
}

/// Searches the environments of all running processes for a marker.
///
/// It reads what each process was started with; one that overwrote its environment is missed.
pub fn scan_marker(marker: &Marker<'_>) -> MarkerScan {
    MarkerTable::read(marker.name, marker.not_older_than_start_ticks).carrying(marker)
}

/// Reads a variable of the environment that a process was started with; `None` where it has none of
/// that name, or cannot be read any more.
pub fn variable_of(process: &ProcessIdentity, name: &str) -> Option<Vec<u8>> {
    let Environment::Read(environ) = read_environment(process.pid) else { return None };
    let value = value_in(&environ, name);
    // The number may have been given away before the environment was read.
    let stamp = read_stat(process.pid).ok()?.start_ticks;
    value.filter(|_| stamp == process.start_ticks).map(<[u8]>::to_vec)
}

/// The kernel's own threads have no environment, and new ones come up all the time.
fn is_candidate(stat: &Stat) -> bool {
    stat.state == ProcessState::Live && !stat.kernel_thread && stat.pid != Pid::this_process()
}

enum Carried {
    Value(ProcessIdentity, Vec<u8>),
    Nothing,
    Unknown,
}

fn carried(stat: &Stat, name: &str) -> Carried {
    match read_environment(stat.pid) {
        Environment::Read(environ) if environ.is_empty() => carries_nothing(stat, name),
        Environment::Read(environ) => judge(stat, name, &environ),
        Environment::TooLong => Carried::Unknown,
        Environment::Unreadable => if_still_there(stat),
    }
}

/// Tells a process that has no environment from one in the middle of an exec, which shows none.
fn carries_nothing(stat: &Stat, name: &str) -> Carried {
    match read_stat(stat.pid) {
        Ok(now) if now.start_ticks == stat.start_ticks && now.environment_address.is_some() => {}
        Ok(_) | Err(_) => return if_still_there(stat),
    }
    // Read again: the exec may have ended between the empty read and the address.
    match read_environment(stat.pid) {
        Environment::Read(environ) => judge(stat, name, &environ),
        Environment::TooLong => Carried::Unknown,
        Environment::Unreadable => if_still_there(stat),
    }
}

fn judge(stat: &Stat, name: &str, environ: &[u8]) -> Carried {
    if value_in(environ, name).is_none() {
        return Carried::Nothing;
    }
    // The number may have been given away since, even to a process with the same start stamp, which is of
    // a hundredth of a second. So it is held by a descriptor, and read again.
    let Ok(pidfd) = open_pidfd(stat.pid) else { return if_still_there(stat) };
    let environ = match read_environment(stat.pid) {
        Environment::Read(environ) => environ,
        Environment::TooLong => return Carried::Unknown,
        Environment::Unreadable => return if_still_there(stat),
    };
    // The identity is had only where the held process has the number still: then this is its environment.
    match (value_in(&environ, name), ProcessIdentity::of_pidfd(pidfd.as_fd(), stat.pid)) {
        (Some(value), Ok(identity)) if identity.start_ticks == stat.start_ticks => {
            Carried::Value(identity, value.to_vec())
        }
        (Some(_) | None, Ok(_) | Err(_)) => if_still_there(stat),
    }
}

fn value_in<'a>(environ: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut variables = environ.split(|byte| *byte == 0);
    variables.find_map(|it| it.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

enum Environment {
    Read(Vec<u8>),
    TooLong,
    Unreadable,
}

fn read_environment(pid: Pid) -> Environment {
    let mut environ = Vec::new();
    let read = File::open(format!("/proc/{pid}/environ"))
        .and_then(|file| file.take(ENVIRON_BYTES_MAX).read_to_end(&mut environ));
    match read {
        Ok(length) if u64::try_from(length) == Ok(ENVIRON_BYTES_MAX) => Environment::TooLong,
        Ok(_) => Environment::Read(environ),
        Err(_) => Environment::Unreadable,
    }
}

/// What could not be read matters only while the process still runs.
fn if_still_there(stat: &Stat) -> Carried {
    match read_stat(stat.pid) {
        Ok(now) if now.start_ticks == stat.start_ticks && now.state == ProcessState::Live => {
            Carried::Unknown
        }
        Ok(_) | Err(StatError::Missing) => Carried::Nothing,
        Err(StatError::Unreadable(_) | StatError::Malformed) => Carried::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::{Carried, judge};
    use crate::pid::Pid;
    use crate::stat::read_stat;
    use std::process::{Command, Stdio};

    /// As where the carrier ends between the reading of its environment and that of its identity, and
    /// the next holder of its number starts within the same hundredth of a second.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test needs a child")]
    fn the_next_holder_of_a_carriers_number_is_no_carrier_though_its_stamp_is_the_same() {
        let mut sleep = Command::new("sleep");
        let sleep = sleep.arg("300").env_clear().env("OTHER", "x").stdin(Stdio::null());
        let mut next = sleep.spawn().unwrap();
        let stat = read_stat(Pid::try_from(next.id()).unwrap()).unwrap();
        let answer = judge(&stat, "MARKER", b"MARKER=value\0");
        next.kill().unwrap();
        next.wait().unwrap();
        assert!(matches!(answer, Carried::Unknown), "it was taken for the carrier");
    }
}
