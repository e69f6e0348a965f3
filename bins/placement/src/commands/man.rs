//! `man`: the manual pages.

use crate::args::Cli;
use crate::exit_code;
use crate::failure::Failure;
use clap_mangen::Man;
use std::io::Write as _;

pub(crate) fn run(command: Option<&str>) -> Result<u8, Failure> {
    let mut whole = Cli::offered();
    whole.build();
    let page = match command {
        None => whole,
        Some(name) => {
            let found = whole.find_subcommand(name).cloned();
            found.ok_or_else(|| Failure::invalid(format!("there is no command {name}")))?
        }
    };
    let mut text = Vec::new();
    Man::new(page).render(&mut text)?;
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&text)?;
    stdout.flush()?;
    Ok(exit_code::SUCCESS)
}
