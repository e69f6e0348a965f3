//! `fixture-check`: runs every scenario of a folder through the facade, as an embedder would.
//!
//! A scenario is one file in `fixtures/launches`; [`scenario`] says what it may hold. Each is one
//! line of output. The check fails when a scenario fails, when one that must fail does not, when
//! a file does not parse, when one did not run because this machine lacks what it demands, and
//! when the folder is empty.

mod launch;
mod outcome;
mod prepared;
mod scenario;

use crate::command::Failure;
use crate::workspace::read;
use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use launch::Ran;
use outcome::differences;
use placement::Mechanism;
use scenario::Scenario;

/// Which scenarios are run, and under what.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folder that holds launches/*.toml
    #[arg(long, default_value = "fixtures")]
    fixtures: Utf8PathBuf,
    /// The containment of scenarios that leave it to the host: cgroup or subreaper
    #[arg(long, value_parser = mechanism)]
    mechanism: Option<Mechanism>,
    /// The program to start as the runner; this one itself otherwise
    #[arg(long)]
    runner: Option<Utf8PathBuf>,
}

fn mechanism(label: &str) -> Result<Mechanism, String> {
    Mechanism::from_label(label).ok_or_else(|| "there is no such containment".to_owned())
}

/// Runs every scenario below `fixtures/launches`.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let runner = arguments.runner.as_deref();
    check(&arguments.fixtures.join("launches"), |scenario| {
        launch::run(scenario, arguments.mechanism, runner)
    })
}

/// How a scenario came out, and what is to be said of it.
#[derive(Debug)]
enum Verdict {
    Passed(String),
    Failed(String),
    Skipped(String),
}

/// Runs every scenario of a folder through `launch` and shows one line each.
fn check(
    folder: &Utf8Path,
    launch: impl Fn(&Scenario) -> Result<Ran, Failure>,
) -> Result<(), Failure> {
    let files = scenario_files(folder)?;
    let (mut passed, mut failed, mut skipped) = (0_usize, 0_usize, 0_usize);
    for file in &files {
        let (name, verdict) = run_file(file, &launch);
        match verdict {
            Verdict::Passed(note) => {
                passed += 1;
                println!("passed  {name}{note}");
            }
            Verdict::Failed(reason) => {
                failed += 1;
                println!("FAILED  {name}: {reason}");
            }
            Verdict::Skipped(reason) => {
                skipped += 1;
                println!("skipped {name}: {reason}");
            }
        }
    }
    let rest = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    println!("{passed} passed, {failed} failed{rest}");
    let all = files.len();
    if files.is_empty() {
        return Err(Failure::new(format!("{folder} holds no scenario")));
    }
    if failed > 0 {
        return Err(Failure::new(format!("{failed} of {all} scenarios failed")));
    }
    let ran = passed + failed;
    if ran < all {
        return Err(Failure::new(format!("only {ran} of {all} scenarios ran")));
    }
    Ok(())
}

/// Lists the scenario files of a folder; anything else there is an error, not something to pass over.
fn scenario_files(folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>, Failure> {
    let listed = folder.read_dir_utf8().map_err(|e| Failure::io("list", folder, &e))?;
    let mut files = Vec::new();
    for entry in listed {
        let entry = entry.map_err(|e| Failure::io("list", folder, &e))?;
        if entry.path().extension() != Some("toml") {
            return Err(Failure::new(format!("{} is no scenario", entry.path())));
        }
        files.push(entry.into_path());
    }
    files.sort();
    Ok(files)
}

/// Runs one file; returns its name, and a note on how it passed or why it did not.
fn run_file(
    file: &Utf8Path,
    launch: impl Fn(&Scenario) -> Result<Ran, Failure>,
) -> (String, Verdict) {
    let stem = file.file_stem().unwrap_or(file.as_str()).to_owned();
    let scenario = match read(file).and_then(|text| Scenario::parse(&text)) {
        Ok(scenario) => scenario,
        Err(failure) => return (stem, Verdict::Failed(failure.to_string())),
    };
    let name = format!("{stem}: {}", scenario.name);
    let verdict = match launch(&scenario) {
        Ok(Ran::ToTheEnd(outcome)) => judge(&scenario, &differences(&scenario.expect, &outcome)),
        Ok(Ran::NotHere(reason)) => Verdict::Skipped(reason),
        Err(failure) => Verdict::Failed(failure.to_string()),
    };
    (name, verdict)
}

/// Turns differences into a verdict, the other way round for a scenario that must fail.
fn judge(scenario: &Scenario, differences: &[String]) -> Verdict {
    let found = differences.join("; ");
    match (&scenario.expect.must_fail, differences) {
        (None, []) => Verdict::Passed(String::new()),
        (None, [_, ..]) => Verdict::Failed(found),
        (Some(reason), []) => Verdict::Failed(format!("it passed and must fail with \"{reason}\"")),
        // Exactly that: another difference beside it would go unnoticed for ever.
        (Some(reason), [one]) if one.contains(reason) => {
            Verdict::Passed(format!(" (fails as it must: {found})"))
        }
        (Some(reason), [_, ..]) => Verdict::Failed(format!(
            "it must fail with \"{reason}\" alone and failed with: {found}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::outcome::Outcome;
    use super::*;
    use placement_testkit::TempRoot;

    const ENDS_WITH_0: &str = "name = \"n\"\nprogram = \"p\"\n[expect]\nexit = { code = 0 }\n\
        evidence = []\n";

    fn folder(files: &[(&str, &str)]) -> TempRoot {
        let root = TempRoot::new();
        for (name, text) in files {
            std::fs::write(root.join(name), text).unwrap();
        }
        root
    }

    fn ends_with_0() -> Ran {
        Ran::ToTheEnd(Box::new(Outcome::ended_with(0)))
    }

    fn failure(files: &[(&str, &str)]) -> String {
        let root = folder(files);
        check(root.path(), |_| Ok(ends_with_0())).unwrap_err().to_string()
    }

    #[test]
    fn scenarios_that_match_pass() {
        let root = folder(&[("a.toml", ENDS_WITH_0), ("b.toml", ENDS_WITH_0)]);
        assert!(check(root.path(), |_| Ok(ends_with_0())).is_ok());
    }

    #[test]
    fn one_that_differs_fails() {
        let wrong = ENDS_WITH_0.replace("code = 0", "code = 1");
        assert_eq!(
            failure(&[("a.toml", ENDS_WITH_0), ("b.toml", &wrong)]),
            "1 of 2 scenarios failed"
        );
    }

    #[test]
    fn an_empty_folder_fails() {
        assert!(failure(&[]).ends_with("holds no scenario"));
    }

    #[test]
    fn a_file_that_does_not_parse_fails() {
        let unknown = format!("colour = 1\n{ENDS_WITH_0}");
        assert_eq!(failure(&[("a.toml", &unknown)]), "1 of 1 scenarios failed");
    }

    #[test]
    fn a_file_that_is_no_scenario_fails() {
        assert!(failure(&[("a.toml", ENDS_WITH_0), ("notes", "")]).ends_with("is no scenario"));
    }

    #[test]
    fn a_launch_that_breaks_fails() {
        let root = folder(&[("a.toml", ENDS_WITH_0)]);
        assert!(check(root.path(), |_| Err(Failure::new("broken"))).is_err());
    }

    #[test]
    fn one_that_did_not_run_is_no_pass() {
        let here = ENDS_WITH_0.replace("\"n\"", "\"here\"");
        let root = folder(&[("a.toml", ENDS_WITH_0), ("b.toml", &here)]);
        let launch = |scenario: &Scenario| match scenario.name.as_str() {
            "here" => Ok(ends_with_0()),
            _ => Ok(Ran::NotHere("this machine has no cgroup".to_owned())),
        };
        let failure = check(root.path(), launch).unwrap_err().to_string();
        assert_eq!(failure, "only 1 of 2 scenarios ran");
    }

    #[test]
    fn one_that_must_fail_passes_only_for_that_reason() {
        let scenario =
            Scenario::parse(&format!("{ENDS_WITH_0}must_fail = \"exit\"\n")).expect("it parses");
        let passes = |found: &[&str]| {
            let found: Vec<String> = found.iter().map(|text| (*text).to_owned()).collect();
            matches!(judge(&scenario, &found), Verdict::Passed(_))
        };
        assert!(passes(&["exit: wanted 0, got 1"]));
        assert!(!passes(&["stdout: differs"]));
        assert!(!passes(&["exit: wanted 0, got 1", "stdout: differs"]));
        assert!(!passes(&[]));
    }
}
