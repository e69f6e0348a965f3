//! `bench`: what the product costs, beside what it is compared with in the same run.
//!
//! **Owns** one file per row; each measures its floor, its rivals and the product in turn and says
//! whether the bound is met. **Never** fails by the clock: what is counted is the business of the
//! tests. Everything runs in the release build, this program included, which therefore builds it and
//! starts itself again from there.
//!
//! Reading order: `setting`, `samples`, `row`, `machine`, `report`, then a row.

mod containment;
mod executable;
mod exit_observation;
mod fsyncs;
mod heap;
mod input;
mod launch;
mod machine;
mod many_at_once;
mod memory;
mod recovery;
mod report;
mod rivals;
mod row;
mod samples;
mod setting;
mod stop;
mod sweep;
mod throughput;

use crate::command::{self, Failure, program};
use crate::workspace::Workspace;
use camino::Utf8PathBuf;
use machine::Machine;
use report::Report;
use row::Row;
use setting::Setting;

/// What is measured, and how it is shown.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Fewer and smaller runs: the whole table within a minute
    #[arg(long)]
    quick: bool,
    /// Print the table as docs/benchmarks.md holds it
    #[arg(long)]
    markdown: bool,
    /// Where the release build of this workspace lies; builds it and starts itself there otherwise
    #[arg(long, hide = true)]
    built: Option<Utf8PathBuf>,
    /// The rows to measure; all of them otherwise
    rows: Vec<String>,
}

/// Measures one row.
type Measure = fn(&Setting) -> Result<Row, Failure>;

/// Every row, in the order of the table.
const ROWS: &[(&str, Measure)] = &[
    ("launch", launch::measure),
    ("fsyncs", fsyncs::measure),
    ("many_at_once", many_at_once::measure),
    ("containment", containment::measure),
    ("stop", stop::measure),
    ("memory", memory::measure),
    ("throughput", throughput::measure),
    ("exit_observation", exit_observation::measure),
    ("sweep", sweep::measure),
    ("recovery", recovery::measure),
    ("executable", executable::measure),
    ("input", input::measure),
    ("heap", heap::measure),
];

/// Measures the rows that were asked for and prints them.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let chosen = chosen(&arguments.rows)?;
    let Some(built) = &arguments.built else { return in_release(arguments) };
    let setting = Setting { quick: arguments.quick, built: built.clone() };
    let machine = Machine::look()?;
    let mut report = Report::new(machine, arguments.quick, built.join("../bench"));
    for (name, measure) in chosen {
        eprintln!("bench: {name}");
        match measure(&setting) {
            Ok(row) => report.add(name, row)?,
            // What could not be measured is said, and the others are measured all the same.
            Err(failure) => report.add(name, Row::skipped(failure.to_string()))?,
        }
    }
    if arguments.markdown {
        report.print_markdown();
    } else {
        report.print();
    }
    Ok(())
}

/// Builds what is measured, this program included, and goes on there.
fn in_release(arguments: &Arguments) -> Result<(), Failure> {
    let workspace = Workspace::load()?;
    let mut cargo = program("cargo");
    cargo.current_dir(&workspace.root).args(["build", "--release", "--quiet"]);
    cargo.args(["-p", "placement-cli", "-p", "placement-runner-bin", "-p", "xtask"]);
    cargo.args(["-p", "placement", "--bins", "--example", "repeated"]);
    command::run(&mut cargo)?;
    let built = workspace.target_directory.join("release");
    let mut again = program(built.join("xtask"));
    again.current_dir(&workspace.root).args(["bench", "--built", built.as_str()]);
    again.args(arguments.quick.then_some("--quick"));
    again.args(arguments.markdown.then_some("--markdown"));
    command::run(again.args(&arguments.rows))
}

fn chosen(names: &[String]) -> Result<Vec<(&'static str, Measure)>, Failure> {
    if names.is_empty() {
        return Ok(ROWS.to_vec());
    }
    let find = |name: &String| {
        ROWS.iter().find(|(row, _)| row == name).copied().ok_or_else(|| {
            let known: Vec<_> = ROWS.iter().map(|(row, _)| *row).collect();
            Failure::new(format!("bench: no row {name}; there are {}", known.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_chosen_by_its_name() {
        let names = |rows: &[&str]| {
            let rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
            chosen(&rows).map(|rows| rows.iter().map(|(name, _)| *name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["stop", "launch"]).unwrap(), ["stop", "launch"]);
        assert_eq!(names(&[]).unwrap().len(), ROWS.len());
        assert!(names(&["laungh"]).unwrap_err().to_string().contains("no row laungh; there are"));
    }
}
