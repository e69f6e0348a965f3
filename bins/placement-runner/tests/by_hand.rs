//! The runner program, started by hand.

use std::process::{Command, Output, Stdio};

#[expect(clippy::disallowed_methods, reason = "a test runs the program under test")]
fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_placement-runner"));
    command.args(arguments).stdin(Stdio::null()).output().expect("it starts")
}

#[test]
fn without_its_argument_it_says_who_starts_it() {
    for arguments in [&[][..], &["--help"], &["x", "--placement-runner"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("by a host"), "{output:?}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn without_an_order_it_ends_at_once() {
    let output = run(&["--placement-runner"]);
    assert_eq!(output.status.code(), Some(1));
}
