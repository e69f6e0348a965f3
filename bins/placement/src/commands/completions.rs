//! `completions`: what a shell asks to complete a command line.

use crate::args::Cli;
use crate::exit_code;
use crate::failure::Failure;
use clap_complete::{Shell, generate};
use std::io::Write as _;

pub(crate) fn run(shell: Shell) -> Result<u8, Failure> {
    // Written at once, so that a reader who goes away is an answer and no panic.
    let mut script = Vec::new();
    generate(shell, &mut Cli::offered(), "placement", &mut script);
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&script)?;
    stdout.flush()?;
    Ok(exit_code::SUCCESS)
}
