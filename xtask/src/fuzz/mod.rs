//! `fuzz`: feeds every decoder with what libFuzzer makes of its corpus.
//!
//! The functions that are fed are those of `crates/fuzz`, whose tests replay the corpora without a
//! fuzzer. `--planted` feeds decoders that have a fault each, and fails unless every one is found.
//! `--keep` takes what reaches something new into `fixtures/corpora`, as little as does.
//!
//! Reading order: `program`, `run`.

mod program;
mod run;

use crate::command::{Failure, conclude};
use crate::scratch::Scratch;
use crate::workspace::Workspace;
use clap::Args;
use placement_fuzz::{PLANTED, TARGETS, Target, target};
use program::Program;
pub(crate) use program::has_compiler;
use run::{Found, Run};
use std::time::Duration;

/// What a target gets in the short form: a start is one second of it.
const QUICK: Duration = Duration::from_secs(2);
/// How long a planted fault may take to be found; each takes seconds.
const PLANTED_WITHIN: Duration = Duration::from_mins(2);

/// How decoders are fuzzed.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Seconds for each decoder
    #[arg(long, value_name = "N", default_value_t = 30)]
    seconds: u64,
    /// Two seconds for each decoder, with the same start each time
    #[arg(long, conflicts_with = "seconds")]
    quick: bool,
    /// Feeds decoders with a fault each, and fails unless every one is found
    #[arg(long, conflicts_with_all = ["quick", "keep", "targets"])]
    planted: bool,
    /// Takes what reaches something new into fixtures/corpora, as little as does
    #[arg(long)]
    keep: bool,
    /// The decoders; all where none is named
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
}

/// Builds the fuzzer and feeds what was asked for.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let workspace = Workspace::load()?;
    let targets = named(&arguments.targets)?;
    let program = Program::build(&workspace)?;
    let scratch = Scratch::make(&format!("placement-fuzz-{}", std::process::id()))?;
    if arguments.planted {
        return find_planted(&program, &scratch);
    }
    let time = if arguments.quick { QUICK } else { Duration::from_secs(arguments.seconds) };
    let mut findings = Vec::new();
    for target in targets {
        let run = Run::of(target, &program, &workspace, &scratch)?;
        match run.feed(time, arguments.quick)? {
            Found::Nothing(fed) => println!("fuzz: {}: {fed}", target.name),
            Found::Fault(fault) => findings.push(format!("{}: {fault}", target.name)),
        }
        if arguments.keep {
            println!("fuzz: {}: {}", target.name, run.keep()?);
        }
    }
    conclude("fuzz", &findings)
}

fn named(names: &[String]) -> Result<Vec<&'static Target>, Failure> {
    if names.is_empty() {
        return Ok(TARGETS.iter().collect());
    }
    let known = || TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        target(name)
            .ok_or_else(|| Failure::new(format!("fuzz: no target {name}: there are {}", known())))
    };
    names.iter().map(find).collect()
}

/// Each fault must be found by what gives it away.
fn find_planted(program: &Program, scratch: &Scratch) -> Result<(), Failure> {
    let mut findings = Vec::new();
    for target in PLANTED {
        let sign = match target.name {
            "planted_hang" => "timeout",
            "planted_memory" => "memory allocation of",
            _ => "panicked at",
        };
        match Run::without_corpus(target, program, scratch)?.feed(PLANTED_WITHIN, true)? {
            Found::Fault(fault) if fault.said(sign) => {
                println!("fuzz: {}: found after {}", target.name, fault.fed());
            }
            Found::Fault(fault) => {
                findings.push(format!("{}: found, and not by \"{sign}\": {fault}", target.name));
            }
            Found::Nothing(fed) => findings.push(format!("{}: not found: {fed}", target.name)),
        }
    }
    conclude("fuzz --planted", &findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_named_or_refused_with_those_that_there_are() {
        assert_eq!(named(&[]).unwrap().len(), TARGETS.len());
        assert_eq!(named(&["log".to_owned()]).unwrap()[0].name, "log");
        let refused = named(&["lgo".to_owned()]).unwrap_err().to_string();
        assert!(refused.contains("no target lgo") && refused.contains("frames"), "{refused}");
    }
}
