//! What a point does in a process that is under a campaign.

use nix::sys::signal::{Signal, raise};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The campaign that this process is under.
#[derive(Debug)]
struct Campaign {
    trace: PathBuf,
    /// The names at which this process has still to freeze.
    points: Mutex<BTreeSet<String>>,
}

static CAMPAIGN: OnceLock<Option<Campaign>> = OnceLock::new();

/// Notes that the process came by, and freezes where it is asked to.
pub(crate) fn at(name: &str) {
    let Some(campaign) = CAMPAIGN.get_or_init(Campaign::find) else { return };
    let freezes = campaign.points.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    let pid = std::process::id();
    let frozen = if freezes { " frozen" } else { "" };
    campaign.note(&format!("{pid} {name}{frozen}\n"));
    if freezes {
        // To this very thread: it must not take one more step. The kernel stops the others with it.
        raise(Signal::SIGSTOP).expect("a process may stop itself");
    }
}

impl Campaign {
    /// A process without a neighbour for its points is under no campaign.
    fn find() -> Option<Self> {
        let own = std::env::current_exe().ok()?;
        let beside = |ending: &str| {
            let mut name = OsString::from(&own);
            name.push(ending);
            PathBuf::from(name)
        };
        let points = std::fs::read_to_string(beside(".points")).ok()?;
        let points = Mutex::new(points.lines().map(str::to_owned).collect());
        Some(Self { trace: beside(".trace"), points })
    }

    /// One write, so that lines of several processes never mix.
    fn note(&self, line: &str) {
        let opened = OpenOptions::new().create(true).append(true).open(&self.trace);
        let noted = opened.and_then(|mut trace| trace.write_all(line.as_bytes()));
        noted.expect("a campaign can write its trace");
    }
}
