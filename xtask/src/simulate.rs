//! `simulate`: more seeds of the simulation than the tests live through, or one that is shown.
//!
//! The simulation is a test of `crates/service`, which knows what a host is made of; this asks it for
//! seeds. `--sabotage` takes one guard out of a copy of the code and fails unless a seed then breaks a
//! rule.

use crate::command::{Failure, program, shown};
use crate::crash::sabotage::Guard;
use crate::workspace::Workspace;
use camino::Utf8Path;
use clap::Args;
use std::ops::Range;
use std::process::{Command, Stdio};

/// The test that lives through the seeds.
const TEST: &str = "tests::simulation::no_interleaving_breaks_a_rule";
/// What it says when a rule was broken.
const BROKEN: &str = "break a rule; the first:";
/// What it says at its end.
const WHOLE: &str = "simulation: ";

/// Which seeds are lived through.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    seeds: u64,
    /// The first of them
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// One seed, whose life is shown
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// Takes one guard out of a copy of the code, and fails unless that is found
    #[arg(long, value_enum, value_name = "GUARD")]
    sabotage: Option<Guard>,
}

/// Lives through the seeds that were asked for.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let workspace = Workspace::load()?;
    let seeds = arguments.seeds();
    let Some(guard) = arguments.sabotage else {
        let mut command = simulation(&workspace.root, &workspace.target_directory, &seeds);
        return crate::command::run(&mut command);
    };
    let tree = guard.copy(&workspace)?;
    let target = workspace.target_directory.join("crash-sabotaged");
    let mut command = simulation(&tree, &target, &seeds);
    let output = command
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .output()
        .map_err(|error| Failure::new(format!("cannot run {}: {error}", shown(&command))))?;
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    match told.lines().find(|line| line.starts_with("seed ")) {
        Some(rule) if told.contains(BROKEN) => {
            println!("simulate: without {guard:?}: {rule}");
            Ok(())
        }
        _ if told.contains(WHOLE) => Err(Failure::new(format!(
            "simulate: without {guard:?} no rule is broken by {} seeds",
            seeds.end - seeds.start
        ))),
        _ => Err(Failure::new(format!("simulate: it did not run: {}\n{told}", shown(&command)))),
    }
}

impl Arguments {
    fn seeds(&self) -> Range<u64> {
        let from = self.seed.unwrap_or(self.from);
        let count = if self.seed.is_some() { 1 } else { self.seeds };
        from..from.saturating_add(count)
    }
}

fn simulation(tree: &Utf8Path, target: &Utf8Path, seeds: &Range<u64>) -> Command {
    let mut cargo = program("cargo");
    cargo.current_dir(tree).env("CARGO_TARGET_DIR", target);
    cargo.env("PLACEMENT_SIMULATE", format!("{}..{}", seeds.start, seeds.end));
    // What it writes without a test harness goes to cargo's own streams.
    cargo.args(["test", "--quiet", "--package", "placement-service", "--lib", "--", "--exact"]);
    cargo.args(["--nocapture", TEST]);
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_is_a_range_of_one() {
        let asked = |seed| Arguments { seeds: 10, from: 5, seed, sabotage: None };
        assert_eq!(asked(None).seeds(), 5..15);
        assert_eq!(asked(Some(7)).seeds(), 7..8);
    }

    #[test]
    fn the_test_is_there() {
        let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let file = root.join("crates/service/src/tests/simulation/mod.rs");
        let text = crate::workspace::read(&file).unwrap();
        let name = TEST.rsplit("::").next().unwrap();
        assert!(text.contains(&format!("fn {name}()")));
        assert!(text.contains(BROKEN) && text.contains(WHOLE));
    }
}
