//! `fixture-check`: runs every scenario of a folder through the facade, as an embedder would.
//!
//! A scenario is one file in `fixtures/launches`; [`scenario`] says what it may hold. Each is one
//! line of output. The check fails when a scenario fails, when one that must fail does not, when
//! a file does not parse, and when the folder is empty.

mod launch;
mod outcome;
mod scenario;

use crate::command::Failure;
use crate::workspace::read;
use camino::{Utf8Path, Utf8PathBuf};
use outcome::{Outcome, differences};
use scenario::Scenario;

/// Runs every scenario below `fixtures/launches`.
pub(crate) fn run(fixtures: &Utf8Path) -> Result<(), Failure> {
    check(&fixtures.join("launches"), launch::run)
}

/// Runs every scenario of a folder through `launch` and shows one line each.
fn check(
    folder: &Utf8Path,
    launch: impl Fn(&Scenario) -> Result<Outcome, Failure>,
) -> Result<(), Failure> {
    let files = scenario_files(folder)?;
    let (mut passed, mut failed) = (0_usize, 0_usize);
    for file in &files {
        let (name, verdict) = run_file(file, &launch);
        match verdict {
            Ok(note) => {
                passed += 1;
                println!("passed  {name}{note}");
            }
            Err(reason) => {
                failed += 1;
                println!("FAILED  {name}: {reason}");
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if files.is_empty() {
        return Err(Failure::new(format!("{folder} holds no scenario")));
    }
    if passed + failed < files.len() {
        let ran = passed + failed;
        return Err(Failure::new(format!("{ran} of {} scenarios ran", files.len())));
    }
    if failed > 0 {
        return Err(Failure::new(format!("{failed} of {} scenarios failed", files.len())));
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
    launch: impl Fn(&Scenario) -> Result<Outcome, Failure>,
) -> (String, Result<String, String>) {
    let stem = file.file_stem().unwrap_or(file.as_str()).to_owned();
    let scenario = match read(file).and_then(|text| Scenario::parse(&text)) {
        Ok(scenario) => scenario,
        Err(failure) => return (stem, Err(failure.to_string())),
    };
    let name = format!("{stem}: {}", scenario.name);
    let verdict = match launch(&scenario) {
        Ok(outcome) => judge(&scenario, &differences(&scenario.expect, &outcome)),
        Err(failure) => Err(failure.to_string()),
    };
    (name, verdict)
}

/// Turns differences into a verdict, the other way round for a scenario that must fail.
fn judge(scenario: &Scenario, differences: &[String]) -> Result<String, String> {
    let found = differences.join("; ");
    match &scenario.expect.must_fail {
        None if differences.is_empty() => Ok(String::new()),
        None => Err(found),
        Some(reason) if differences.iter().any(|found| found.contains(reason)) => {
            Ok(format!(" (fails as it must: {found})"))
        }
        Some(reason) if differences.is_empty() => {
            Err(format!("it passed and must fail with \"{reason}\""))
        }
        Some(reason) => Err(format!("it must fail with \"{reason}\" and failed with: {found}")),
    }
}

#[cfg(test)]
mod tests {
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

    fn failure(files: &[(&str, &str)]) -> String {
        let root = folder(files);
        check(root.path(), |_| Ok(Outcome::ended_with(0))).unwrap_err().to_string()
    }

    #[test]
    fn scenarios_that_match_pass() {
        let root = folder(&[("a.toml", ENDS_WITH_0), ("b.toml", ENDS_WITH_0)]);
        assert!(check(root.path(), |_| Ok(Outcome::ended_with(0))).is_ok());
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
    fn one_that_must_fail_passes_only_for_that_reason() {
        let scenario =
            Scenario::parse(&format!("{ENDS_WITH_0}must_fail = \"exit\"\n")).expect("it parses");
        assert!(judge(&scenario, &["exit: wanted 0, got 1".into()]).is_ok());
        assert!(judge(&scenario, &["stdout: differs".into()]).is_err());
        assert!(judge(&scenario, &[]).is_err());
    }
}
