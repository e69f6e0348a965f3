//! A test in a process of its own.

use std::process::Command;

const OWN_PROCESS: &str = "PLACEMENT_TEST_OWN_PROCESS";

/// Runs a test's body in a process of its own, because it changes what belongs to a whole process.
///
/// The test is named as its program lists it, with its modules.
///
/// # Panics
///
/// When the body does, or no such test is in the program.
#[expect(clippy::disallowed_methods, reason = "the test starts itself again")]
#[expect(clippy::print_stdout, reason = "the other process's output belongs to the test")]
#[track_caller]
pub fn in_own_process(test: &str, body: impl FnOnce()) {
    if std::env::var_os(OWN_PROCESS).is_some_and(|name| name == test) {
        body();
        return;
    }
    let output = Command::new("/proc/self/exe")
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(OWN_PROCESS, test)
        .output()
        .expect("the test starts itself");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{test} failed in its own process: {}", output.status);
    assert!(text.contains("1 passed"), "{test} did not run in its own process");
}

#[cfg(test)]
mod tests {
    use super::{OWN_PROCESS, in_own_process};

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
}
