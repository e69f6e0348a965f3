//! Runs one scenario through the facade.

use super::outcome::Outcome;
use super::scenario::Scenario;
use crate::command::Failure;

/// Launches the scenario's program in a fresh root and returns what came of it.
pub(super) fn run(scenario: &Scenario) -> Result<Outcome, Failure> {
    Err(Failure::new(format!("{}: the facade cannot launch yet", scenario.program)))
}
