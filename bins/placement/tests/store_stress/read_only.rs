//! A file system that cannot be written for a while.

use crate::places::Covered;
use crate::{WAITS, assert_refused, let_go, refused, world};
use placement::{ExecutionState, Exit};
use placement_testkit::{in_own_mounts, wait_until};
use placement_world::{PATIENCE, World};

/// Waits until a runner has put the store down, so that it has to open it again.
#[track_caller]
fn wait_until_put_down(world: &World, runner: u32) {
    let descriptors = format!("/proc/{runner}/fd");
    wait_until(PATIENCE, "a runner without its store", || {
        let opened = std::fs::read_dir(&descriptors).unwrap().flatten();
        let mut opened = opened.filter_map(|entry| entry.path().read_link().ok());
        opened.all(|target| !target.ends_with(world.root().join("placement.db")))
    });
}

#[test]
fn an_exit_is_recorded_once_the_store_can_be_written_again() {
    in_own_mounts("read_only::an_exit_is_recorded_once_the_store_can_be_written_again", || {
        let world = world();
        let program = world.program();
        let attempt = world.launch_shell(WAITS);
        wait_until_put_down(&world, world.runner_pid(attempt.id()));
        let covered = Covered::read_only(&world.root().join("placement.db"));
        let_go(&world);
        world
            .wait_for_runner(attempt.id(), "the exit", |it| it.execution == ExecutionState::Exited);
        for command in [&["run", "--", "true"][..], &["reconcile", "--all"]] {
            let refused = refused(&program, command);
            let hint = "make it writable";
            assert_refused(&refused, "STORAGE", "the store cannot be written", hint);
        }
        // Whoever has it open reads on.
        assert_eq!(attempt.attempt().unwrap().execution_state, ExecutionState::Running);
        world.assert_verified(attempt.id());
        drop(covered);
        let end = attempt.finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code: 7 }), "{end}");
        world.assert_clean(&end);
        assert!(!world.kinds(&end.attempt().attempt_id).contains(&"record.taken"));
    });
}

#[test]
fn a_root_that_others_may_only_read_stays_whole_for_whoever_writes_it() {
    let test = "read_only::a_root_that_others_may_only_read_stays_whole_for_whoever_writes_it";
    in_own_mounts(test, || {
        let world = world();
        let program = world.program();
        let attempt = world.launch_shell(WAITS);
        let covered = Covered::read_only(&world.root());
        for command in [&["run", "--", "true"][..], &["stop", "--all"], &["reconcile", "--all"]] {
            let refused = refused(&program, command);
            let words = "the root directory lies on a read-only file system";
            assert_refused(&refused, "STORAGE", words, "--root");
        }
        assert_eq!(world.runner(attempt.id()).execution, ExecutionState::Running);
        drop(covered);
        let_go(&world);
        let end = attempt.finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code: 7 }), "{end}");
        world.assert_clean(&end);
    });
}
