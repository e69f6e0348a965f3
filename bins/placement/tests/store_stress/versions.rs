//! A version of the program beside a newer one.

use crate::{WAITS, assert_refused, let_go, refused, wait_for_end, world};
use placement::{Code, ExecutionState, Exit};
use placement_world::change_store;

/// What a newer version's migration does here: a column, and the number of the schema.
const MIGRATED: &str = "BEGIN IMMEDIATE;
    ALTER TABLE placement_attempts ADD COLUMN of_a_newer_version TEXT;
    UPDATE placement_store_binding SET schema = schema + 1;
    COMMIT;";
/// What makes this version stand in for the newer one.
const KNOWN_AGAIN: &str = "UPDATE placement_store_binding SET schema = schema - 1;";

#[test]
fn a_runner_of_an_older_version_leaves_its_exit_for_the_newer_one() {
    let world = world();
    let program = world.program();
    let attempt = world.launch_shell(WAITS);
    let id = attempt.id().clone();
    let runner = world.runner_pid(&id);
    change_store(&world.root(), MIGRATED);

    // The runner goes on and answers, whatever the store is by now.
    let refused_here = world.host().attempt(&id).unwrap_err();
    assert_eq!(refused_here.code(), Code::Storage, "{refused_here}");
    assert!(refused_here.hint().contains("use the version that migrated it"), "{refused_here}");
    for command in [&["run", "--", "true"][..], &["ps"], &["stop", "--all"], &["sweep"]] {
        let refused = refused(&program, command);
        let hint = "use the version that migrated it, or a newer one";
        assert_refused(&refused, "STORAGE", "and this version knows", hint);
    }
    assert!(std::fs::exists(format!("/proc/{runner}")).unwrap());
    assert_eq!(world.homes_left().len(), 1);
    let_go(&world);
    wait_for_end(runner);

    change_store(&world.root(), KNOWN_AGAIN);
    assert_eq!(attempt.attempt().unwrap().execution_state, ExecutionState::Running);
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 7 }), "{end}");
    assert!(world.kinds(&id).contains(&"record.taken"), "{}", world.told(&id));
    world.assert_clean(&end);
}
