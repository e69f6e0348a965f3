//! Row `fsyncs`: how often a launch waits for the disk.

use super::row::{Line, Row, Unit};
use super::samples::{Series, figure};
use super::setting::Setting;
use crate::command::{Failure, program};
use placement_testkit::{MARK, Round, TempRoot, rounds};

/// Launches that are counted, after one that is not.
const LAUNCHES: usize = 5;
/// Syncs until the program runs, and in all.
const UNTIL_RUNNING_MAX: f64 = 3.0;
const IN_ALL_MAX: f64 = 5.0;

/// Counts the syncs of a warm host and its runners by strace.
pub(super) fn measure(setting: &Setting) -> Result<Row, Failure> {
    let directory = TempRoot::new();
    let mut host = program(setting.built.join("examples/repeated"));
    host.current_dir(directory.path()).args(["state", MARK, &(LAUNCHES + 1).to_string()]);
    host.args([setting.built.join("placement-runner").as_str(), "/bin/true"]);
    let counted = match rounds(&host) {
        Ok(counted) => counted,
        Err(reason) => return Ok(Row::skipped(reason)),
    };
    let warm = counted.get(1..).unwrap_or_default();
    if warm.len() != LAUNCHES {
        return Err(Failure::new(format!("{} of {LAUNCHES} launches were seen", warm.len())));
    }
    let series = |of: fn(&Round) -> usize| {
        let count = |round| figure(u64::try_from(of(round)).unwrap_or(u64::MAX));
        Series::new("ours", warm.iter().map(count).collect())
    };
    let line = |what: &str, series: Series, bound: f64| {
        let met = series.worst() <= bound;
        Line::new(what, Unit::Count, series).must(format!("≤ {bound:.0}"), met)
    };
    let until = series(|round| round.syncs_until_program);
    let lines = vec![
        line("until the program runs", until, UNTIL_RUNNING_MAX),
        line("in all, cleaned up", series(|round| round.syncs), IN_ALL_MAX),
    ];
    let skipped = vec!["conmon (3) was not counted here: it needs a bundle".to_owned()];
    Ok(Row { lines, skipped })
}
