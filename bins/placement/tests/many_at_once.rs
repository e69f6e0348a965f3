//! 64 launches that begin together: every one succeeds, and nobody hears of a busy store.

use placement::{CleanupState, ExecutionState, Exit};
use placement_world::{Running, World, shell};
use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::Barrier;

const AT_ONCE: usize = 64;

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

/// Asserts that there are 64 attempts, each exited, cleaned and verified, and nothing else.
#[track_caller]
fn assert_all_ended(world: &World) {
    let list = world.host().attempts().all().expect("the store is readable");
    assert!(list.unreadable.is_empty(), "{:?}", list.unreadable);
    let ids: BTreeSet<_> = list.attempts.iter().map(|attempt| &attempt.attempt_id).collect();
    assert_eq!(ids.len(), AT_ONCE);
    for attempt in &list.attempts {
        let told = world.told(&attempt.attempt_id);
        assert_eq!(attempt.execution_state, ExecutionState::Exited, "{told}");
        assert_eq!(attempt.exit, Some(Exit::Code { code: 7 }), "{told}");
        assert_eq!(attempt.cleanup_state, CleanupState::Complete, "{told}");
        world.assert_verified(&attempt.attempt_id);
    }
    assert!(world.homes_left().is_empty() && world.temporary_left().is_empty());
    let said = std::fs::read_to_string(world.work().join("said")).expect("each has said so");
    assert_eq!(said.lines().count(), AT_ONCE, "each program ran once");
}

#[test]
fn sixty_four_launches_at_once_in_one_host_all_succeed() {
    let world = world();
    let begin = Barrier::new(AT_ONCE);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                begin.wait();
                let end = world.launch(shell("echo up >> said; exit 7")).finish();
                let end = end.unwrap_or_else(|error| panic!("{}: {error}", error.code()));
                assert_eq!(end.exit(), Some(Exit::Code { code: 7 }), "{end}");
            });
        }
    });
    assert_all_ended(&world);
}

#[test]
fn sixty_four_processes_at_once_on_one_root_all_succeed() {
    let world = world();
    let program = world.program();
    let arguments = ["run", "--", "/bin/sh", "-c", "echo up >> said; exit 7"];
    let running: Vec<Running> =
        (0..AT_ONCE).map(|_| program.start(arguments, Stdio::null())).collect();
    for one in running {
        let said = one.said();
        assert_eq!((said.code, said.stderr.as_str()), (7, ""), "{said:?}");
    }
    assert_all_ended(&world);
}
