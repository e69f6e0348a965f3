//! A host that forgets to become a runner cannot start itself for ever.
//!
//! Without the test harness, so that the process under test is started as a runner is.

use placement::{Code, Placement};
use placement_testkit::TempRoot;

fn main() {
    if std::env::args().nth(1).is_some_and(|argument| argument == "--placement-runner") {
        refuses_everything_in_a_runner_process();
    } else {
        refuses_without_a_runner();
        run_as_a_runner();
    }
}

fn refuses_without_a_runner() {
    let root = TempRoot::new();
    for builder in [Placement::builder(), Placement::builder().runner_itself()] {
        let error = builder.root(root.join("state")).open().expect_err("there is no runner");
        assert_eq!(error.code(), Code::Invalid);
        assert!(error.hint().contains("placement::runner::enter()"), "{}", error.hint());
    }
    assert!(!root.join("state").exists(), "nothing was made");
}

#[expect(clippy::disallowed_methods, reason = "a test runs itself")]
fn run_as_a_runner() {
    let own = std::env::current_exe().expect("a test knows its own path");
    let status = std::process::Command::new(own).arg("--placement-runner").status();
    assert!(status.expect("it starts").success());
}

fn refuses_everything_in_a_runner_process() {
    let root = TempRoot::new();
    let by_path = Placement::builder().root(root.join("state")).runner_at("/bin/sh").open();
    for opened in [by_path, Placement::open(root.join("state"))] {
        let error = opened.expect_err("a runner opens nothing");
        assert_eq!(error.code(), Code::Conflict);
        assert!(error.hint().contains("before anything else in main"), "{}", error.hint());
    }
    assert!(!root.join("state").exists(), "nothing was made");
}
