//! A cgroup that an ordinary user may divide, as systemd's `Delegate=` makes one.

use crate::own_cgroup::{members, own_directory, subtree};
use camino::{Utf8Path, Utf8PathBuf};
use placement_testkit::ORDINARY_ID;
use std::fs;
use std::os::unix::fs::chown;
use std::time::{Duration, Instant};

/// The files that a delegatee needs besides the directory: see cgroup-v2, "Delegation".
const DELEGATED: &[&str] = &["cgroup.procs", "cgroup.threads", "cgroup.subtree_control"];
/// How long the end of processes is waited for: a runner may still write its last rows.
const EMPTY_WITHIN: Duration = Duration::from_secs(10);

/// Holds a delegated cgroup and removes it when it is dropped.
#[derive(Debug)]
pub(super) struct Delegated {
    path: Utf8PathBuf,
}

impl Delegated {
    /// Makes one below the cgroup of this process; says in a phrase why that is not possible.
    pub(super) fn make() -> Result<Self, String> {
        let path = own_directory()?.join(format!("placement-ci-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("make {path}: {error}"))?;
        let delegated = Self { path };
        for place in std::iter::once(delegated.path.clone())
            .chain(DELEGATED.iter().map(|file| delegated.path.join(file)))
        {
            chown(&place, Some(ORDINARY_ID), Some(ORDINARY_ID))
                .map_err(|error| format!("hand over {place}: {error}"))?;
        }
        Ok(delegated)
    }

    /// Returns its directory.
    pub(super) fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Lists the processes that are still in it, or below, after the time that ending may take.
    pub(super) fn members_that_stay(&self) -> Vec<u32> {
        let started = Instant::now();
        loop {
            let members = members(&self.path);
            if members.is_empty() || started.elapsed() >= EMPTY_WITHIN {
                return members;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        // Only what was started inside is in there, and nobody waits for it any more.
        let killed = fs::write(self.path.join("cgroup.kill"), "1");
        if let Err(error) = killed {
            eprintln!("ci: cannot end what is left in {}: {error}", self.path);
        } else if !self.members_that_stay().is_empty() {
            eprintln!("ci: processes in {} do not end", self.path);
        }
        for directory in subtree(&self.path).iter().rev() {
            if let Err(error) = fs::remove_dir(directory) {
                eprintln!("ci: cannot remove {directory}: {error}");
            }
        }
    }
}
