//! Strangers that get the numbers of an attempt's dead.

use super::processes::{is_there, reap_orphans, until};
use crate::command::program;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};

/// How often a number is tried for: other processes of the machine take it first now and then.
const TRIES: usize = 40;
/// Where the kernel is told which number was given last.
const LAST: &str = "/proc/sys/kernel/ns_last_pid";

/// A process under a number that belonged to an attempt; it ends of any signal, but for those that
/// the thread blocks which makes it: these it keeps.
#[derive(Debug)]
pub(crate) struct Decoy {
    child: Child,
}

impl Decoy {
    /// Gives a number away, once its last holder is gone; nothing where this user may not, or
    /// somebody else was faster each time.
    pub(crate) fn under(pid: u32, kept: &[u32]) -> Option<Self> {
        if !may_choose() {
            return None;
        }
        until(|| {
            reap_orphans(kept);
            (!is_there(pid)).then_some(())
        })?;
        for _ in 0..TRIES {
            fs::write(LAST, pid.checked_sub(1)?.to_string()).ok()?;
            let mut sleep = program("sleep");
            sleep.arg("300").env_clear().process_group(0);
            sleep.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let child = sleep.spawn().ok()?;
            let decoy = Self { child };
            if decoy.child.id() == pid {
                return Some(decoy);
            }
        }
        None
    }

    /// Says whether nobody has signalled it: it runs, was not stopped, and keeps no signal.
    pub(crate) fn is_untouched(&mut self) -> bool {
        let runs = matches!(self.child.try_wait(), Ok(None));
        runs && !has_signal(self.child.id())
    }
}

impl Drop for Decoy {
    fn drop(&mut self) {
        // One that was seen to have ended takes no signal.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Says whether a process was stopped or keeps a signal that it blocks.
fn has_signal(pid: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return true };
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim)
    };
    let keeps_none = |name| value(name).is_some_and(|set| set.bytes().all(|digit| digit == b'0'));
    let stopped = value("State:").is_none_or(|state| state.starts_with(['T', 't']));
    stopped || !keeps_none("SigPnd:") || !keeps_none("ShdPnd:")
}

/// Says whether this user may choose the next number: `CAP_CHECKPOINT_RESTORE`.
pub(crate) fn may_choose() -> bool {
    let Ok(last) = fs::read_to_string(LAST) else { return false };
    fs::write(LAST, last.trim()).is_ok()
}
