//! Looking for what is left of a tree whose proof died with its runner.

use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::AttemptId;
use placement_identity::{
    Marker, MarkerScan, MarkerTable, Presence, ProcessIdentity, Signal, variable_of,
};
use placement_materialize::ATTEMPT_MARKER;
use std::sync::OnceLock;

/// The attempt whose survivors are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lost<'a> {
    pub(crate) attempt_id: &'a AttemptId,
    /// Its home, by which it is told from an attempt of another root with the same id: an id is
    /// derived from owner and key.
    pub(crate) home: Option<&'a Utf8Path>,
    pub(crate) child_start_ticks: u64,
}

/// One look at the process table, made when it is first needed and shared by those who settle
/// attempts side by side: what a tree had then may have ended since, and what came since is of a
/// process that is in it.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    not_older_than_start_ticks: u64,
    seen: OnceLock<Seen>,
}

/// What was there at the look.
#[derive(Debug)]
pub(crate) struct Seen {
    carriers: MarkerTable,
    /// Runners and inits, which hide their environment and are survivors of nothing.
    hidden: Vec<ProcessIdentity>,
}

impl Processes {
    /// Leaves out processes that are older than the one attempt that is asked about.
    pub(crate) fn since(start_ticks: u64) -> Self {
        Self { not_older_than_start_ticks: start_ticks, seen: OnceLock::new() }
    }

    /// Looks, if nobody has; `hidden` names the runners and inits.
    pub(crate) fn look(&self, hidden: impl FnOnce() -> Vec<ProcessIdentity>) -> &Seen {
        self.seen.get_or_init(|| Seen {
            carriers: MarkerTable::read(ATTEMPT_MARKER, self.not_older_than_start_ticks),
            hidden: hidden(),
        })
    }
}

/// Looks for processes that carry an attempt's marker and are not older than its child.
pub(crate) fn find(lost: Lost<'_>, seen: &Seen) -> MarkerScan {
    let scan = seen.carriers.carrying(&Marker {
        name: ATTEMPT_MARKER,
        value: lost.attempt_id.as_str(),
        not_older_than_start_ticks: lost.child_start_ticks,
        except: &seen.hidden,
    });
    let ours = |mut found: Vec<ProcessIdentity>| {
        found.retain(|process| !is_of_another_root(process, lost.home));
        found
    };
    match scan {
        MarkerScan::Found(found) => match ours(found) {
            found if found.is_empty() => MarkerScan::None,
            found => MarkerScan::Found(found),
        },
        MarkerScan::None => MarkerScan::None,
        MarkerScan::Unknown { found, why } => MarkerScan::Unknown { found: ours(found), why },
    }
}

/// Says whether a process was started with the home that the same attempt has in another root.
fn is_of_another_root(process: &ProcessIdentity, home: Option<&Utf8Path>) -> bool {
    let Some(home) = home else { return false };
    let Some(theirs) = variable_of(process, "HOME") else { return false };
    let theirs = Utf8Path::new(std::str::from_utf8(&theirs).unwrap_or_default());
    // The directory of attempts, the one of this attempt, and the home in it.
    let mut below_root: Vec<_> = home.components().rev().take(3).collect();
    below_root.reverse();
    theirs != home && theirs.ends_with(below_root.iter().collect::<Utf8PathBuf>())
}

/// Says in a fixed phrase how many were seen.
pub(crate) fn phrase(scan: &MarkerScan) -> String {
    match scan {
        MarkerScan::Found(found) => count(found.len()),
        MarkerScan::None => "no survivor seen".to_owned(),
        MarkerScan::Unknown { found, why } if found.is_empty() => {
            format!("survivors unknown: {}", why.because())
        }
        MarkerScan::Unknown { found, why } => {
            format!("{}, more unknown: {}", count(found.len()), why.because())
        }
    }
}

/// Kills what was found, each through a pidfd that was compared first, and returns how many.
pub(crate) fn kill(scan: &MarkerScan) -> usize {
    let found = match scan {
        MarkerScan::Found(found) | MarkerScan::Unknown { found, .. } => found.as_slice(),
        MarkerScan::None => &[],
    };
    found.iter().filter(|survivor| kill_one(survivor)).count()
}

fn kill_one(survivor: &ProcessIdentity) -> bool {
    match survivor.observe() {
        Presence::Present(verified) => verified.signal(Signal::Kill).is_ok(),
        Presence::Absent(_) | Presence::Unknown(_) => false,
    }
}

fn count(survivors: usize) -> String {
    if survivors == 1 {
        "1 survivor seen".to_owned()
    } else {
        format!("{survivors} survivors seen")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_identity::MarkerDoubt;

    #[test]
    fn the_marker_is_one_that_no_request_can_set() {
        assert!(placement_materialize::RESERVED_NAMES.contains(&ATTEMPT_MARKER));
    }

    #[test]
    fn an_incomplete_scan_never_says_that_nothing_is_left() {
        let why = MarkerDoubt::Unreadable(2);
        let unknown = MarkerScan::Unknown { found: Vec::new(), why };
        assert!(phrase(&unknown).starts_with("survivors unknown: "));
        assert_eq!(phrase(&MarkerScan::None), "no survivor seen");
    }

    #[test]
    fn an_attempt_that_never_was_has_no_survivor() {
        let nobody = AttemptId::parse("an-attempt-that-never-was").unwrap();
        let lost = Lost { attempt_id: &nobody, home: None, child_start_ticks: 0 };
        let seen = Processes::default();
        let scan = find(lost, seen.look(Vec::new));
        assert_eq!(kill(&scan), 0);
        assert!(!matches!(scan, MarkerScan::Found(_)), "{scan:?}");
    }
}
