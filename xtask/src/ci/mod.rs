//! `ci`: every check in order, ending at the first failure with the command it ran.
//!
//! Run by root, it runs the tests and the fixtures a second time as an ordinary user inside a
//! delegated cgroup, and the fixtures once more without one, since most of what placement promises
//! reads differently there.

mod cgroup;
mod place;
mod unprivileged;

use crate::command::{Failure, NOTHING_SHOWN, program, run as run_command, shown};
use crate::fuzz::has_compiler;
use crate::workspace::Workspace;
use camino::Utf8Path;
use place::Place;
use placement_testkit::is_root;
use std::process::Command;
use std::time::Instant;

/// The test command, as README gives it.
pub(crate) const TEST_COMMAND: &str = "cargo test --workspace";

/// Runs every check.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Failure> {
    let place = if is_root() { Some(Place::prepare(workspace)?) } else { None };
    let own_target = place.as_ref().and_then(Place::own_target);
    let cargo = Cargo {
        tree: place.as_ref().map_or(&workspace.root, Place::tree),
        target: own_target.as_ref().unwrap_or(&workspace.target_directory),
        place: &place,
    };

    cargo.step("fmt --check")?;
    cargo.step("clippy --workspace --all-targets -- -D warnings")?;
    cargo.step(TEST_COMMAND.strip_prefix("cargo ").expect("the test command is cargo's"))?;
    step(cargo.command("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings"))?;
    cargo.step("xtask floors")?;
    cargo.step("xtask tidy")?;
    cargo.step("xtask package")?;
    cargo.step("build --workspace --bins")?;
    cargo.step("xtask fixture-check")?;
    cargo.step("xtask crash --quick")?;
    cargo.step("xtask races --rounds 2")?;
    cargo.step("xtask soak --attempts 200")?;
    cargo.step_where_it_can_be("xtask strangers --reuses 600")?;
    cargo.step("xtask simulate --seeds 300")?;
    if has_compiler() {
        cargo.step("xtask fuzz --quick")?;
    } else {
        println!(
            "ci: fuzzing skipped: libFuzzer needs a C++ compiler, and there is no c++ on PATH"
        );
    }
    match &place {
        Some(place) => unprivileged::run(&cargo, place)?,
        None => println!("ci: not root, so the tests above were the unprivileged ones"),
    }
    println!("ci: all checks passed");
    Ok(())
}

/// Cargo, run in the tree that is checked.
struct Cargo<'a> {
    tree: &'a Utf8Path,
    /// Where it builds.
    target: &'a Utf8Path,
    place: &'a Option<Place>,
}

impl Cargo<'_> {
    fn step(&self, arguments: &str) -> Result<(), Failure> {
        step(&mut self.command(arguments))
    }

    /// A campaign that says itself where it can show nothing.
    fn step_where_it_can_be(&self, arguments: &str) -> Result<(), Failure> {
        let mut command = self.command(arguments);
        println!("ci: {}", shown(&command));
        let status = command.status();
        let status = status.map_err(|error| Failure::new(format!("ci: {arguments}: {error}")))?;
        if status.code() == Some(i32::from(NOTHING_SHOWN)) {
            println!("ci: nothing was shown here, for the reason above");
            return Ok(());
        }
        Failure::from_code(status.code(), &format!("ci: failed ({status}): {}", shown(&command)))
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = program("cargo");
        command.args(arguments.split(' ')).current_dir(self.tree);
        if let Some(target) = self.place.as_ref().and_then(Place::own_target) {
            command.env("CARGO_TARGET_DIR", target);
        }
        command
    }
}

fn step(command: &mut Command) -> Result<(), Failure> {
    println!("ci: {}", shown(command));
    let started = Instant::now();
    run_command(command).map_err(|failure| Failure::new(format!("ci: {failure}")))?;
    println!("ci: ok after {} s", started.elapsed().as_secs());
    Ok(())
}
