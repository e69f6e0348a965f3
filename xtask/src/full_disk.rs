//! `full-disk`: launches with each number of free pages that lets them come further, on a small disk
//! of their own; the tests take those that are answered at once.

use crate::command::{Failure, program, run as run_command};

/// The test, and what tells it how many pages are left.
const TEST: &str =
    "full_disk::with_whatever_room_is_left_a_launch_ends_well_or_is_refused_and_nothing_is_lost";
const PAGES: &str = "PLACEMENT_TEST_FREE_PAGES";

/// Runs the campaign; each launch that comes so far that its runner waits for room takes up to 20
/// seconds.
pub(crate) fn run(every: u32) -> Result<(), Failure> {
    let step = usize::try_from(every.max(1)).expect("a step fits");
    let pages: Vec<String> = (0..=64).step_by(step).map(|pages| pages.to_string()).collect();
    println!("full-disk: {} launches", pages.len());
    let mut cargo = program("cargo");
    cargo.args(["test", "--quiet", "-p", "placement-cli", "--test", "store_stress", "--", TEST]);
    run_command(cargo.args(["--exact", "--nocapture"]).env(PAGES, pages.join(",")))
}
