//! The examples run, and end by themselves.

use placement_testkit::{TempRoot, example, wait_until};
use std::process::{Command, Stdio};
use std::time::Duration;

#[expect(clippy::disallowed_methods, reason = "a test runs the example")]
fn command(name: &str, directory: &TempRoot) -> Command {
    let mut command = Command::new(example(name));
    command.current_dir(directory.path()).stdin(Stdio::null());
    command
}

#[test]
fn the_first_launch_prints_its_output_and_its_end_and_leaves_no_home() {
    let directory = TempRoot::new();
    let first = command("first_launch", &directory).output().unwrap();
    let text = String::from_utf8(first.stdout).unwrap();
    let (hello, end) = text.split_once('\n').expect("two lines");
    assert_eq!(hello, "hello", "{}", String::from_utf8_lossy(&first.stderr));
    assert!(end.starts_with("exited 0; ") && end.ends_with(" evidence rows\n"), "{end}");
    for attempt in std::fs::read_dir(directory.join("state/attempts")).unwrap() {
        assert!(!attempt.unwrap().path().join("home").exists(), "the home is gone");
    }

    let again = command("first_launch", &directory).output().unwrap();
    let text = String::from_utf8(again.stdout).unwrap();
    assert!(text.starts_with("exited 0; "), "what was acknowledged does not come again: {text}");
}

#[test]
fn a_host_that_is_killed_with_the_stop_rule_takes_its_child_along() {
    let directory = TempRoot::new();
    let script = "echo $$ > pid; echo up; sleep 600";
    let mut host = command("host", &directory)
        .args(["state", "somebody", "stop", "1", "/bin/sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = directory.join("pid");
    wait_until(Duration::from_mins(1), "the child", || {
        std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'))
    });
    let child = std::fs::read_to_string(&pid).unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
    let stat = format!("/proc/{}/stat", child.trim());
    wait_until(Duration::from_mins(1), "the end of the child", || !std::fs::exists(&stat).unwrap());
}
