//! Looking for what is left of a tree whose proof died with its runner.

use placement_contract::AttemptId;
use placement_identity::{Marker, MarkerScan, Presence, ProcessIdentity, Signal, scan_marker};
use placement_materialize::ATTEMPT_MARKER;

/// Looks for processes that carry an attempt's marker and are not older than its child.
///
/// `runners` are known to hide their environment and are left out.
pub(crate) fn find(
    attempt_id: &AttemptId,
    child_start_ticks: u64,
    runners: &[ProcessIdentity],
) -> MarkerScan {
    scan_marker(&Marker {
        name: ATTEMPT_MARKER,
        value: attempt_id.as_str(),
        not_older_than_start_ticks: child_start_ticks,
        except: runners,
    })
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
        let scan = find(&nobody, 0, &[]);
        assert_eq!(kill(&scan), 0);
        assert!(!matches!(scan, MarkerScan::Found(_)), "{scan:?}");
    }
}
