//! The store under stress: a full disk, a file system that cannot be written, damaged and older
//! files, another version beside this one, and hosts that see the root from somewhere else.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;
mod full_disk;
mod machines;
mod namespaces;
mod places;
mod read_only;
mod two_hosts;
mod upgrade;
mod versions;

use placement_testkit::wait_until;
use placement_world::{PATIENCE, Program, Refused, Said, World};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_placement");
/// Until somebody lets it go on; then it ends with 7.
const WAITS: &str = "while [ ! -e go ]; do sleep 0.01; done; exit 7";

fn world() -> World {
    World::new(PROGRAM)
}

fn program() -> Program {
    Program::new(PROGRAM)
}

/// Lets a child go on that waits for it.
#[track_caller]
fn let_go(world: &World) {
    std::fs::write(world.work().join("go"), "").unwrap();
}

/// Reads the one line of JSON that a command answers with.
#[track_caller]
fn told(said: &Said) -> Value {
    serde_json::from_str(said.stdout.trim()).unwrap_or_else(|_| panic!("it is JSON: {said:?}"))
}

/// The recorded attempt, as `show` tells it.
#[track_caller]
fn shown(program: &Program, id: &str) -> Value {
    told(&program.run(["--json", "show", id]))["attempt"].clone()
}

/// Runs a command that is refused, and returns its error; what is left behind is the caller's to
/// look at.
#[track_caller]
fn refused(program: &Program, arguments: &[&str]) -> Refused {
    let said = program.run([&["--json"], arguments].concat());
    assert_eq!(said.code, 125, "{arguments:?}: {said:?}");
    Refused::in_json(&said)
}

#[track_caller]
fn assert_refused(refused: &Refused, code: &str, words: &str, hint: &str) {
    assert_eq!(refused.code, code, "{refused:?}");
    assert!(refused.message.contains(words), "{words:?} in {refused:?}");
    assert!(refused.hint.contains(hint), "{hint:?} in {refused:?}");
}

/// Waits until a process has ended and was reaped.
#[track_caller]
fn wait_for_end(pid: u32) {
    let process = format!("/proc/{pid}");
    wait_until(PATIENCE, "the end of a process", || !std::fs::exists(&process).unwrap());
}
