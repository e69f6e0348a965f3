//! The placement binary: arguments, configuration, wiring, exit codes and rendering.
//!
//! **Owns** what a person or a script sees. **Never** contains a rule: everything it does is
//! available to an embedder through the `placement` crate. It alone reads the environment
//! (`context`), the configuration file (`configured`), takes signals (`signals`) and decides exit codes (`exit_code`).

mod args;
mod commands;
mod configured;
mod context;
mod exit_code;
mod failure;
mod progress;
mod render;
mod signals;

use args::Cli;
use clap::Parser as _;
use context::Context;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A process that is started as a runner never returns from here.
    placement::runner::enter();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(failure::report_usage(&error, std::env::args_os())),
    };
    let context = Context::read(&cli);
    match commands::run(cli.command, &context) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => ExitCode::from(failure.report(context.style())),
    }
}
