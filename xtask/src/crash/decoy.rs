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

/// A process under a number that belonged to an attempt; it ends of any signal.
#[derive(Debug)]
pub(super) struct Decoy {
    child: Child,
}

impl Decoy {
    /// Gives a number away, once its last holder is gone; nothing where this user may not, or
    /// somebody else was faster each time.
    pub(super) fn under(pid: u32, kept: &[u32]) -> Option<Self> {
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

    /// Says whether nobody has signalled it.
    pub(super) fn is_untouched(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Decoy {
    fn drop(&mut self) {
        // One that was seen to have ended takes no signal.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Says whether this user may choose the next number: `CAP_CHECKPOINT_RESTORE`.
pub(super) fn may_choose() -> bool {
    let Ok(last) = fs::read_to_string(LAST) else { return false };
    fs::write(LAST, last.trim()).is_ok()
}
