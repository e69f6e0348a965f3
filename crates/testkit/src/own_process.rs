//! A test in a process of its own, or in mounts of its own.

use crate::user::is_root;
use std::process::{Command, Output};

const OWN_PROCESS: &str = "PLACEMENT_TEST_OWN_PROCESS";

/// Runs a test's body in a process of its own, because it changes what belongs to a whole process.
///
/// The test is named as its program lists it, with its modules.
///
/// # Panics
///
/// When the body does, or no such test is in the program.
#[track_caller]
pub fn in_own_process(test: &str, body: impl FnOnce()) {
    if is_there(test) {
        body();
        return;
    }
    assert_passed(test, &again(itself(), test));
}

/// Runs a test's body in a process with a mount namespace of its own, in which it may mount what it
/// likes: nobody else sees it, and it goes with the processes that the body leaves.
///
/// An ordinary user gets a user namespace in which it has the number 0. Says why where the system
/// grants neither; the body does not run then.
///
/// # Panics
///
/// As [`in_own_process`].
#[expect(clippy::print_stdout, reason = "a test says what it does not cover here")]
#[track_caller]
pub fn in_own_mounts(test: &str, body: impl FnOnce()) {
    if is_there(test) {
        body();
        return;
    }
    let probe = unshared("true").output().expect("unshare (util-linux) is installed");
    if !probe.status.success() {
        let why = String::from_utf8_lossy(&probe.stderr);
        println!("{test} is not run here: {}", why.trim());
        return;
    }
    let own = std::env::current_exe().expect("a test knows its own path");
    assert_passed(test, &again(unshared(&own.to_string_lossy()), test));
}

/// Says whether this is the other process already.
#[expect(clippy::disallowed_methods, reason = "the other process is told so by its environment")]
fn is_there(test: &str) -> bool {
    std::env::var_os(OWN_PROCESS).is_some_and(|name| name == test)
}

#[expect(clippy::disallowed_methods, reason = "the test starts itself again")]
fn itself() -> Command {
    Command::new("/proc/self/exe")
}

/// Makes a command that runs a program in a mount namespace of its own.
#[expect(clippy::disallowed_methods, reason = "testkit imports nothing of ours")]
fn unshared(program: &str) -> Command {
    let mut command = Command::new("unshare");
    if !is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "--propagation", "private", "--", program]);
    command
}

fn again(mut command: Command, test: &str) -> Output {
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(OWN_PROCESS, test)
        .output()
        .expect("the test starts itself")
}

#[expect(clippy::print_stdout, reason = "the other process's output belongs to the test")]
#[track_caller]
fn assert_passed(test: &str, output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{test} failed in its own process: {}", output.status);
    assert!(text.contains("1 passed"), "{test} did not run in its own process");
}

#[cfg(test)]
mod tests {
    use super::{OWN_PROCESS, in_own_mounts, in_own_process};

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it asks in which of the two processes it is")]
    fn the_body_runs_in_the_other_process_only() {
        let mut ran = false;
        let test = "own_process::tests::the_body_runs_in_the_other_process_only";
        in_own_process(test, || ran = true);
        assert_eq!(ran, std::env::var_os(OWN_PROCESS).is_some());
    }

    #[test]
    #[should_panic(expected = "did not run in its own process")]
    fn a_test_that_is_not_there_is_no_success() {
        in_own_process("own_process::tests::nowhere", || {});
    }

    #[test]
    fn the_mounts_are_those_of_the_other_process_only() {
        let test = "own_process::tests::the_mounts_are_those_of_the_other_process_only";
        in_own_mounts(test, || {
            let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt"));
            let parent = std::os::unix::process::parent_id().to_string();
            match of(&parent) {
                Ok(theirs) => assert_ne!(theirs, of("self").unwrap()),
                Err(error) => println!("from a user namespace its parent is not seen: {error}"),
            }
        });
    }
}
