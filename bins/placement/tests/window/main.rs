//! Windows: a program on a terminal of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attaching;
mod ends;
mod evidence;
mod refused;
mod seat;
mod session;
mod showing;

use placement::{AttemptId, Launch};
use placement_testkit::wait_until;
use placement_world::{PATIENCE, World, shell};

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

/// Describes a shell in a window of a usual size.
fn in_window(script: &str) -> Launch {
    shell(script).window(80, 24, "xterm-test")
}

/// Waits for the one attempt that there is.
#[track_caller]
fn the_attempt(world: &World) -> AttemptId {
    let mut found = None;
    wait_until(PATIENCE, "an attempt", || {
        let list = world.host().attempts().all().unwrap();
        found = list.attempts.first().map(|it| it.attempt_id.clone());
        found.is_some()
    });
    found.unwrap()
}

/// Asserts that the evidence has these kinds in this order, whatever lies between.
#[track_caller]
fn assert_in_order(world: &World, id: &AttemptId, wanted: &[&str]) {
    let kinds = world.kinds(id);
    let mut rest = kinds.iter();
    for kind in wanted {
        assert!(rest.any(|it| it == kind), "{kind} in its place:\n{}", world.told(id));
    }
}
