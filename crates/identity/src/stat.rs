//! One process's line in `/proc/PID/stat`, read as bytes.

use std::fs::File;
use std::io::Read as _;
use std::num::NonZeroU64;
use std::path::Path;

use crate::errno::Errno;
use crate::limits::STAT_BYTES_MAX;
use crate::pid::Pid;

/// Where the process table is mounted.
pub(crate) const PROC: &str = "/proc";

/// `PF_KTHREAD` of the flags field: the kernel's own thread, which has no environment.
const KERNEL_THREAD: u32 = 0x0020_0000;

/// Says whether a process still runs, as far as `/proc` tells.
///
/// A leader whose other threads go on is listed as a zombie: a pidfd tells more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// Running, sleeping, stopped or traced.
    Live,
    /// Ended and not yet reaped, or being removed.
    Ended,
}

/// Holds the facts of one `/proc/PID/stat` that are used here. See `proc_pid_stat(5)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The process.
    pub pid: Pid,
    /// Whether it runs.
    pub state: ProcessState,
    /// The parent; `None` for a process whose parent is outside the PID namespace.
    pub parent: Option<Pid>,
    /// The process group; `None` where it belongs to another PID namespace.
    pub pgid: Option<Pid>,
    /// Start stamp in clock ticks since boot.
    pub start_ticks: u64,
    /// Whether it is a thread of the kernel.
    pub kernel_thread: bool,
    /// Address of its environment; `None` in the middle of an exec, and where it may not be seen.
    pub environment_address: Option<NonZeroU64>,
}

/// Says why a process's line could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatError {
    /// There is no such entry: no such process, or one that may not be seen.
    #[error("no entry in the process table")]
    Missing,
    /// The entry is there and cannot be read.
    #[error("cannot read the entry in the process table: {0}")]
    Unreadable(Errno),
    /// The entry does not have the documented form.
    #[error("the entry in the process table has an unknown form")]
    Malformed,
}

/// Reads `/proc/PID/stat` of a process.
///
/// # Errors
/// [`StatError::Missing`] for `ENOENT` and `ESRCH`; the latter is the answer when the process is
/// reaped between open and read.
pub fn read_stat(pid: Pid) -> Result<Stat, StatError> {
    read_stat_below(Path::new(PROC), pid)
}

/// As [`read_stat`], of a process table at another place.
pub(crate) fn read_stat_below(table: &Path, pid: Pid) -> Result<Stat, StatError> {
    let mut line = Vec::new();
    File::open(table.join(format!("{pid}/stat")))
        .and_then(|file| file.take(STAT_BYTES_MAX).read_to_end(&mut line))
        .map_err(|error| match rustix::io::Errno::from_io_error(&error) {
            Some(rustix::io::Errno::NOENT | rustix::io::Errno::SRCH) => StatError::Missing,
            Some(_) | None => StatError::Unreadable(Errno::from(&error)),
        })?;
    let stat = Stat::parse(&line).ok_or(StatError::Malformed)?;
    if stat.pid == pid { Ok(stat) } else { Err(StatError::Malformed) }
}

impl Stat {
    /// Reads one line; `None` where it is not one. See `proc_pid_stat(5)`.
    ///
    /// Reads from the last parenthesis on: a process may name itself `a) S 1 1 (x`.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let open = line.iter().position(|byte| *byte == b'(')?;
        let pid = text(line.get(..open)?)?.trim_end().parse::<u32>().ok()?;
        let mut fields = text(line.get(close + 1..)?)?.split_ascii_whitespace();
        let state = match fields.next()? {
            "Z" | "X" | "x" => ProcessState::Ended,
            letter if letter.len() == 1 => ProcessState::Live,
            _ => return None,
        };
        let parent = fields.next()?.parse::<i32>().ok()?;
        let pgid = fields.next()?.parse::<i32>().ok()?;
        let flags = fields.nth(3)?.parse::<u32>().ok()?;
        let start_ticks = fields.nth(12)?.parse::<u64>().ok()?;
        Some(Self {
            pid: Pid::try_from(pid).ok()?,
            state,
            parent: Pid::try_from(parent).ok(),
            pgid: Pid::try_from(pgid).ok(),
            start_ticks,
            kernel_thread: flags & KERNEL_THREAD != 0,
            environment_address: fields.nth(27).and_then(|field| field.parse().ok()),
        })
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{ProcessState, Stat, StatError, read_stat};
    use crate::pid::Pid;

    const TAIL: &str = "S 41 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8812 1 2 3 4";

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let line = format!("77 (a) S 1 1 (x\n) {TAIL}");
        let stat = Stat::parse(line.as_bytes()).unwrap();
        assert_eq!(stat.pid.get(), 77);
        assert_eq!(stat.parent.unwrap().get(), 41);
        assert_eq!(stat.pgid.unwrap().get(), 42);
        assert_eq!(stat.start_ticks, 8812);
        assert_eq!(stat.state, ProcessState::Live);
    }

    #[test]
    fn a_name_that_is_not_text_is_read() {
        let mut line = b"77 (\xff\xfe) ".to_vec();
        line.extend_from_slice(TAIL.as_bytes());
        assert_eq!(Stat::parse(&line).unwrap().start_ticks, 8812);
    }

    #[test]
    fn every_truncation_is_refused() {
        let line = format!("77 (sh) {TAIL}");
        let end = line.find("8812").unwrap();
        for cut in 0..end {
            assert_eq!(Stat::parse(&line.as_bytes()[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn the_own_line_agrees_with_another_reader() {
        let own = read_stat(Pid::this_process()).unwrap();
        let other = procfs::process::Process::myself().unwrap().stat().unwrap();
        assert_eq!(own.start_ticks, other.starttime);
        assert_eq!(own.pgid.map_or(0, Pid::as_raw), other.pgrp);
        assert_eq!(own.parent.map_or(0, Pid::as_raw), other.ppid);
    }

    #[test]
    fn a_number_without_a_process_is_missing() {
        assert_eq!(read_stat(Pid::try_from(i32::MAX).unwrap()), Err(StatError::Missing));
    }
}
