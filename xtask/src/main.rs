//! The project's own checks and tools, one file per command.
//!
//! `ci` runs them all in order. Reading order: `ci`, `floors`, `tidy`, `package`, `docs`,
//! `fixture_check`, the campaigns `crash`, `full_disk`, `fuzz`, `races`, `simulate`, `soak` and
//! `strangers`, `real_check` with the `stub_model` it talks to, `bench`, and below them
//! `proving_ground`, `own_cgroup`, `scratch`, `workspace` and `command`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what checks are for")]

mod bench;
mod ci;
mod command;
mod crash;
mod docs;
mod fixture_check;
mod floors;
mod full_disk;
mod fuzz;
mod own_cgroup;
mod package;
mod proving_ground;
mod races;
mod real_check;
mod scratch;
mod simulate;
mod soak;
mod strangers;
mod stub_model;
mod tidy;
mod without_guard;
mod workspace;

use camino::Utf8PathBuf;
use clap::{Parser, Subcommand};
use command::Failure;
use std::process::ExitCode;
use workspace::Workspace;

/// The project's own checks and tools.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run every check in order and end at the first failure
    Ci,
    /// Check that every crate imports crates on lower floors only
    Floors,
    /// Check the cheap truths that no compiler checks
    Tidy,
    /// Build every library from its tarball alone, outside the workspace, and run its example there
    Package,
    /// Write docs/evidence.md and docs/errors.md from the contract
    Docs,
    /// Run every scenario in fixtures/launches through the facade
    FixtureCheck(fixture_check::Arguments),
    /// Kill the host, the runner or both at every crash point and look whether everything holds
    Crash(crash::Arguments),
    /// Feed every decoder with what libFuzzer makes of its corpus
    Fuzz(fuzz::Arguments),
    /// Live through seeded interleavings of hosts, runners, faults and the clock
    Simulate(simulate::Arguments),
    /// Runs cases for `crash`
    #[command(hide = true)]
    CrashWorker {
        /// The program with crash points
        host: Utf8PathBuf,
    },
    /// Exchange directories of an attempt with links to a canary while they are worked on
    Races(races::Arguments),
    /// Run thousands of short attempts and look what they leave
    Soak(soak::Arguments),
    /// Give the numbers of dead processes to strangers, and look whether one of these is signalled
    Strangers(strangers::Arguments),
    /// Launch with whatever little room is left on a disk, and look whether anything is lost
    FullDisk {
        /// Takes each so-many-th number of free pages
        #[arg(long, default_value_t = 3, value_name = "N")]
        every: u32,
    },
    /// Serve a model that does what the prompt says, on the loopback address
    StubModel {
        /// The port to listen on; 0 takes a free one
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
    /// Run real clients from npm through placement against the stub model
    RealCheck,
    /// Measure the release build beside its floors and rivals
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    // The checks are a host of a single file: each attempt's runner is this program again.
    placement::runner::enter();
    let arguments = Arguments::parse();
    match run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Ci => ci::run(&Workspace::load()?),
        Command::Floors => floors::run(&Workspace::load()?),
        Command::Tidy => tidy::run(&Workspace::load()?),
        Command::Package => package::run(&Workspace::load()?),
        Command::Docs => docs::run(&Workspace::load()?),
        Command::FixtureCheck(arguments) => fixture_check::run(&arguments),
        Command::Crash(arguments) => crash::run(&arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::CrashWorker { host } => crash::serve(&host),
        Command::Races(arguments) => races::run(&arguments),
        Command::Soak(arguments) => soak::run(&arguments),
        Command::Strangers(arguments) => strangers::run(&arguments),
        Command::FullDisk { every } => full_disk::run(every),
        Command::StubModel { port } => stub_model::run(port),
        Command::RealCheck => real_check::run(&Workspace::load()?),
        Command::Bench(arguments) => bench::run(&arguments),
    }
}
