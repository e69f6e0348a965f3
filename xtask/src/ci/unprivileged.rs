//! The second run: the built tests and the fixtures as an ordinary user in a delegated cgroup, and
//! the fixtures without one.

use super::cgroup::Delegated;
use super::place::Place;
use super::{Cargo, step};
use crate::command::{Failure, capture, shown};
use camino::{Utf8Path, Utf8PathBuf};
use placement_testkit::ORDINARY_ID;
use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Moves the shell into the cgroup named first, and becomes the command that follows.
const ENTER: &str = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;

/// Runs the tests and the fixtures; fails with the first program that does, when no test ran, and
/// when a process outlived its test.
///
/// Where root itself has no cgroup to delegate, that is said, and everything runs without one.
pub(super) fn run(cargo: &Cargo, place: &Place) -> Result<(), Failure> {
    let delegated = match Delegated::make() {
        Ok(delegated) => Some(delegated),
        Err(reason) => {
            println!("unprivileged: no delegated cgroup on this machine: {reason}");
            None
        }
    };
    let tests = test_binaries(cargo)?;
    let mut totals = Totals::default();
    for test in &tests {
        println!("unprivileged: {}", test.executable);
        let mut command = demoted(place, delegated.as_ref(), &test.executable);
        command.current_dir(&test.directory).env("CARGO_MANIFEST_DIR", &test.directory);
        totals.add(run_test(&mut command)?);
        refuse_survivors(delegated.as_ref(), &test.executable)?;
    }
    println!(
        "unprivileged: {} test programs as user {ORDINARY_ID}: {} passed, {} failed",
        tests.len(),
        totals.passed,
        totals.failed
    );
    if totals.passed == 0 {
        return Err(Failure::new("unprivileged: no test ran"));
    }
    let own = built(cargo, "xtask")?;
    if let Some(delegated) = &delegated {
        run_fixtures(place, Some(delegated), &own, &["--mechanism", "cgroup"])?;
    }
    // The program with crash points is there since the root's own run.
    let armed = cargo.target.join("crash/debug/placement");
    let crash = ["crash", "--quick", "--host", armed.as_str()];
    run_own(place, delegated.as_ref(), &own, &crash)?;
    run_own(place, None, &own, &crash)?;
    run_own(place, None, &own, &["races", "--rounds", "1"])?;
    run_own(place, delegated.as_ref(), &own, &["soak", "--attempts", "100"])?;
    // Here it needs a user namespace; where there is none each scenario says so.
    run_fixtures(place, None, &own, &["--mechanism", "pid_namespace"])?;
    // What lies beside a host, and not the host itself, is the runner this time.
    let runner = built(cargo, "placement-runner")?;
    let rest = ["--mechanism", "subreaper", "--runner", runner.as_str()];
    run_fixtures(place, None, &own, &rest)
}

fn run_fixtures(
    place: &Place,
    delegated: Option<&Delegated>,
    own: &Utf8Path,
    rest: &[&str],
) -> Result<(), Failure> {
    let fixtures = place.tree().join("fixtures");
    let words = [&["fixture-check", "--fixtures", fixtures.as_str()], rest].concat();
    run_own(place, delegated, own, &words)
}

/// Runs a check of this program as the ordinary user.
fn run_own(
    place: &Place,
    delegated: Option<&Delegated>,
    own: &Utf8Path,
    words: &[&str],
) -> Result<(), Failure> {
    let mut command = demoted(place, delegated, own);
    step(command.args(words).current_dir(place.tree()))?;
    refuse_survivors(delegated, own)
}

fn demoted(place: &Place, delegated: Option<&Delegated>, executable: &Utf8Path) -> Command {
    match delegated {
        Some(delegated) => {
            place.demote(executable, &["/bin/sh", "-c", ENTER, delegated.path().as_str()])
        }
        None => place.demote(executable, &[]),
    }
}

/// A built test program and the folder of its package.
#[derive(Debug, PartialEq, Eq)]
struct TestBinary {
    executable: Utf8PathBuf,
    directory: Utf8PathBuf,
}

/// The part of cargo's JSON messages that is needed; unknown fields are cargo's own.
#[derive(Debug, Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<Utf8PathBuf>,
    executable: Option<Utf8PathBuf>,
    profile: Option<Profile>,
    target: Option<Target>,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

fn test_binaries(cargo: &Cargo) -> Result<Vec<TestBinary>, Failure> {
    let mut command = cargo.command("test --workspace --no-run --quiet --message-format=json");
    let messages = messages(&capture(&mut command)?)?;
    Ok(messages.into_iter().filter_map(test_binary).collect())
}

/// Takes the program of a message about a test program that was built or is fresh.
fn test_binary(message: Message) -> Option<TestBinary> {
    let is_test = message.reason == "compiler-artifact" && message.profile.is_some_and(|p| p.test);
    let directory = message.manifest_path?.parent()?.to_owned();
    is_test.then_some(TestBinary { executable: message.executable?, directory })
}

/// Builds one of the workspace's programs, which is fresh by now, and says where it lies.
fn built(cargo: &Cargo, name: &str) -> Result<Utf8PathBuf, Failure> {
    let mut command = cargo.command("build --workspace --bins --quiet --message-format=json");
    let built = messages(&capture(&mut command)?)?
        .into_iter()
        .find_map(|message| (message.target?.name == name).then_some(message.executable).flatten());
    built.ok_or_else(|| Failure::new(format!("cargo built no {name}")))
}

fn messages(text: &str) -> Result<Vec<Message>, Failure> {
    let parse = |line| {
        serde_json::from_str(line)
            .map_err(|error| Failure::new(format!("cargo's message is not as expected: {error}")))
    };
    text.lines().filter(|line| line.starts_with('{')).map(parse).collect()
}

/// How many tests ended in which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Totals {
    passed: u64,
    failed: u64,
}

impl Totals {
    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// Reads the test runner's closing line: `test result: ok. 3 passed; 0 failed; …`.
    fn of_line(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |what: &str| {
            counts.split("; ").find_map(|part| part.strip_suffix(what)?.trim().parse().ok())
        };
        Some(Self { passed: count("passed")?, failed: count("failed")? })
    }
}

/// Runs one test program, showing what it prints.
fn run_test(command: &mut Command) -> Result<Totals, Failure> {
    let broken = |command: &Command, error: std::io::Error| {
        Failure::new(format!("unprivileged: cannot run {}: {error}", shown(command)))
    };
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|e| broken(command, e))?;
    let mut totals = Totals::default();
    let output = child.stdout.take().expect("standard output is piped");
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|error| broken(command, error))?;
        if let Some(seen) = Totals::of_line(&line) {
            totals.add(seen);
        }
        println!("{line}");
    }
    let status = child.wait().map_err(|error| broken(command, error))?;
    if status.success() && totals.failed == 0 {
        return Ok(totals);
    }
    Err(Failure::new(format!("unprivileged: failed ({status}): {}", shown(command))))
}

fn refuse_survivors(delegated: Option<&Delegated>, after: &Utf8Path) -> Result<(), Failure> {
    let members = delegated.map(Delegated::members_that_stay).unwrap_or_default();
    if members.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = members
        .iter()
        .map(|pid| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!("{pid} ({})", String::from_utf8_lossy(&words).replace('\0', " ").trim())
        })
        .collect();
    Err(Failure::new(format!("unprivileged: {after} left processes: {}", told.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::program;

    #[test]
    fn the_closing_line_is_read() {
        let line = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(Totals::of_line(line), Some(Totals { passed: 12, failed: 0 }));
        let line = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured";
        assert_eq!(Totals::of_line(line), Some(Totals { passed: 1, failed: 2 }));
        assert_eq!(Totals::of_line("test a::b ... ok"), None);
    }

    #[test]
    fn only_test_programs_are_taken() {
        let artifact = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{{"name":"a"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let text = [
            artifact(true, r#""/t/a""#),
            artifact(false, r#""/t/b""#),
            artifact(true, "null"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            "a line of a build script".to_owned(),
        ]
        .join("\n");
        let found: Vec<_> = messages(&text).unwrap().into_iter().filter_map(test_binary).collect();
        let wanted = TestBinary { executable: "/t/a".into(), directory: "/w/a".into() };
        assert_eq!(found, [wanted]);
    }

    #[test]
    fn a_test_program_that_fails_fails() {
        let good = r#"echo "test result: ok. 2 passed; 0 failed; 0 ignored""#;
        let totals = run_test(program("sh").args(["-c", good])).unwrap();
        assert_eq!(totals, Totals { passed: 2, failed: 0 });
        let failed = r#"echo "test result: FAILED. 1 passed; 1 failed; 0 ignored""#;
        for script in
            [format!("{good}; exit 101"), format!("{failed}; exit 101"), failed.to_owned()]
        {
            let failure = run_test(program("sh").args(["-c", &script])).unwrap_err().to_string();
            assert!(failure.starts_with("unprivileged: failed"), "{failure}");
        }
    }
}
