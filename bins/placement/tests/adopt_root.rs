//! A root that was moved here from another machine.

use placement_world::{Known, Program, replace_in_store};
use serde_json::Value;
use std::fs::{self, File};

/// Its runner is its parent.
const CHILD: &str = "echo $PPID > runner; echo $$ > child; exec sleep 300";

/// A root as another machine left it, with an attempt that ran there; `None` where this machine has
/// no id by which to tell.
#[expect(clippy::print_stdout, reason = "a test says what it does not cover here")]
fn moved() -> Option<(Program, String)> {
    let own = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let own = own.trim();
    if own.is_empty() {
        println!("not tested here: this machine has no id");
        return None;
    }
    let program = Program::new(env!("CARGO_BIN_EXE_placement"));
    let words = ["start", "--mechanism", "subreaper", "--", "/bin/sh", "-c", CHILD];
    let id = program.run(words).stdout.trim().to_owned();
    let child = Known::named_in(program.work().join("child"));
    let runner = fs::read_to_string(program.work().join("runner")).expect("it came first");
    let runner = Known::of(runner.trim().parse().expect("a number"));
    runner.kill();
    runner.wait_gone();
    child.wait_gone();
    let another = "0".repeat(own.len());
    assert!(replace_in_store(&program.root(), own, &another) > 0);
    Some((program, id))
}

fn shown(program: &Program, id: &str) -> Value {
    let said = program.run(["--json", "show", id]);
    serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("it is JSON: {said:?}"))
}

#[test]
fn a_moved_root_is_refused_until_somebody_says_that_it_was_moved() {
    let Some((program, id)) = moved() else { return };
    let refused = program.run(["ps"]);
    assert_eq!(refused.code, 125, "{refused:?}");
    assert!(refused.stderr.contains("CONFLICT"), "{refused:?}");
    assert!(refused.stderr.contains("adopt-root"), "{refused:?}");
    let said = program.run(["adopt-root"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.contains("is now of this machine"), "{said:?}");
    let said = program.run(["reconcile", "--all"]);
    assert!(said.stdout.contains("uncertain"), "nothing of there can be observed: {said:?}");
    let words = ["resolve", &id, "--operator", "--as", "exited", "--reason", "moved"];
    assert_eq!(program.run(words).code, 0);
    let told = shown(&program, &id).to_string();
    assert!(told.contains("\"exited\"") && told.contains("\"operator\""), "{told}");
    assert_eq!(program.homes_left().len(), 1, "its home is kept");
}

#[test]
fn a_root_in_which_a_runner_lives_was_not_moved() {
    let Some((program, _)) = moved() else { return };
    let attempts = program.root().join("attempts");
    let attempt = attempts.read_dir_utf8().unwrap().next().unwrap().unwrap();
    let alive = File::open(attempt.path().join("alive")).unwrap();
    alive.lock().unwrap();
    let refused = program.run(["adopt-root"]);
    assert_eq!(refused.code, 125, "{refused:?}");
    assert!(refused.stderr.contains("a runner lives in"), "{refused:?}");
    alive.unlock().unwrap();
    assert_eq!(program.run(["adopt-root"]).code, 0);
}

#[test]
fn a_root_of_this_machine_is_left_as_it_is() {
    let program = Program::new(env!("CARGO_BIN_EXE_placement"));
    assert_eq!(program.run(["run", "--", "true"]).code, 0);
    let said = program.run(["--json", "adopt-root"]);
    let told: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    assert_eq!((said.code, &told["moved"]), (0, &false.into()), "{said:?}");
}

#[test]
fn where_there_is_no_root_none_is_made() {
    let program = Program::new(env!("CARGO_BIN_EXE_placement"));
    let refused = program.run(["adopt-root"]);
    assert_eq!(refused.code, 125, "{refused:?}");
    assert!(refused.stderr.contains("STORAGE: there is no store"), "{refused:?}");
    assert!(!program.root().exists());
}
