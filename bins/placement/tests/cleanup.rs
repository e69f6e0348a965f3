//! Removing what an attempt leaves, and keeping it where nothing is proven.

use placement::{
    AttemptId, CleanupScope, CleanupState, Code, EvidenceKind, ExecutionState, Exit, Leftovers,
    Timeouts,
};
use placement_testkit::{TempRoot, is_root, wait_until};
use placement_world::store::{Draft, Fields};
use placement_world::{Known, PATIENCE, World, contained, shell};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

#[track_caller]
fn await_exit(world: &World, id: &AttemptId) {
    wait_until(PATIENCE, "the recorded exit", || {
        let attempt = world.host().attempt(id).expect("the attempt is recorded");
        attempt.execution_state == ExecutionState::Exited
    });
}

#[test]
fn nothing_is_cleaned_before_the_start_or_while_the_child_runs() {
    let world = world();
    let stage = world.stage();
    let id = stage.prepare(&stage.request("a", "exec sleep 300"));
    let refused = stage.service().cleanup(&id).unwrap_err();
    assert_eq!(refused.code, Code::Conflict, "{refused}");
    stage.start(&id).unwrap();
    let refused = stage.service().cleanup(&id).unwrap_err();
    assert_eq!(refused.code, Code::Conflict, "{refused}");
    assert!(world.home(&id).is_dir());
    assert!(!world.kinds(&id).contains(&"cleanup.refused"), "{}", world.told(&id));
    world.host().stop(&id, placement::StopMode::Forced).unwrap();
    await_exit(&world, &id);
    let cleaned = stage.service().cleanup(&id).unwrap();
    assert_eq!(cleaned.execution_state, ExecutionState::Exited);
    world.assert_nothing_left(&id);
}

#[test]
fn a_missing_group_identity_refuses_and_says_so_twice() {
    let world = world();
    let stage = world.stage();
    let request = contained(stage.request("a", "true"), None);
    let id = stage.prepare(&request);
    stage.claim(&id, Known::of(std::process::id()).identity());
    stage.run(&id, None);
    let Draft { kind, detail } = Draft::exited(Some(Exit::Code { code: 0 }));
    let rows = [(kind, detail.as_str()), (EvidenceKind::RunnerFinished, "staged")];
    stage.record(&id, &rows, &Fields::default());
    let refused = stage.service().cleanup(&id).unwrap_err();
    assert_eq!(refused.code, Code::Conflict);
    assert_eq!(refused.message, "the group identity is missing");
    let evidence = world.host().evidence(&id, 0, None).unwrap();
    let last = evidence.last().unwrap();
    assert_eq!((last.kind, &last.detail), (EvidenceKind::CleanupRefused, &refused.message));
    let attempt = stage.recorded(&id);
    assert_eq!(attempt.cleanup_state, CleanupState::Pending);
    assert!(world.home(&id).is_dir(), "everything is kept");
    world.assert_verified(&id);
}

#[test]
fn what_stays_in_the_group_is_ended_before_the_home_goes() {
    let world = world();
    let quiet = "< /dev/null > /dev/null 2>&1";
    let script = format!(
        "sleep 300 {quiet} & echo $! > one; sleep 300 {quiet} & echo $! > two; echo end
         while [ ! -e go ]; do sleep 0.01; done; exit 0"
    );
    let trees = world.mechanisms().into_iter().map(|mechanism| shell(&script).mechanism(mechanism));
    for launch in trees.chain([shell(&script).require(CleanupScope::ProcessGroup)]) {
        let attempt = world.launch(launch);
        let id = attempt.id().clone();
        let sleeps = ["one", "two"].map(|name| Known::named_in(world.work().join(name)));
        std::fs::write(world.work().join("go"), "").unwrap();
        await_exit(&world, &id);
        // The runner is about to end them; the cleanup waits for that.
        world.host().cleanup(&id).unwrap();
        assert!(sleeps.iter().all(|sleep| !sleep.is_running()));
        let end = attempt.finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code: 0 }));
        let stopped = end.first(EvidenceKind::LeftoversStopped).map(|row| row.detail.as_str());
        assert_eq!(stopped, Some("2 processes, by SIGTERM"));
        world.assert_clean(&end);
        for name in ["one", "two", "go"] {
            std::fs::remove_file(world.work().join(name)).unwrap();
        }
    }
}

#[test]
fn a_home_is_kept_while_something_kept_lives_and_goes_with_the_same_call_afterwards() {
    let world = world();
    let script = "sleep 300 < /dev/null > /dev/null 2>&1 & echo $! > member; exit 0";
    let timeouts = Timeouts { drain_ms: 100, stop_grace_ms: 100, ..Timeouts::default() };
    let trees = world.mechanisms().into_iter().map(|mechanism| shell(script).mechanism(mechanism));
    for launch in trees.chain([shell(script).require(CleanupScope::ProcessGroup)]) {
        let attempt = world.launch(launch.leftovers(Leftovers::Keep).timeouts(timeouts));
        let id = attempt.id().clone();
        let member = Known::named_in(world.work().join("member"));
        await_exit(&world, &id);
        let refused = world.host().cleanup(&id).unwrap_err();
        assert_eq!(refused.code(), Code::Conflict, "{refused}");
        let told = world.told(&id);
        let kinds = world.kinds(&id);
        assert_eq!(kinds.last(), Some(&"cleanup.refused"), "{told}");
        assert!(!kinds.contains(&"leftovers.stopped"), "{told}");
        assert_eq!(world.host().attempt(&id).unwrap().cleanup_state, CleanupState::Pending);
        assert!(world.home(&id).is_dir() && member.is_running(), "{told}");
        member.kill();
        world.host().cleanup(&id).unwrap();
        world.assert_nothing_left(&id);
        attempt.detach();
        std::fs::remove_file(world.work().join("member")).unwrap();
    }
}

#[test]
fn many_cleanups_at_once_are_one() {
    let world = world();
    let attempt = world.launch_shell("i=0; while [ $i -lt 200 ]; do : > ~/$i; i=$((i+1)); done");
    let id = attempt.id().clone();
    await_exit(&world, &id);
    let other = world.another_host();
    std::thread::scope(|scope| {
        for host in [world.host(), &other, world.host(), &other] {
            scope.spawn(|| {
                let cleaned = host.cleanup(&id).unwrap();
                assert_eq!(cleaned.cleanup_state, CleanupState::Complete);
            });
        }
    });
    let completed = world.kinds(&id).iter().filter(|kind| **kind == "cleanup.complete").count();
    assert_eq!(completed, 1, "{}", world.told(&id));
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn a_home_that_somebody_removed_already_is_no_error() {
    let world = world();
    let attempt = world.launch_shell("exit 0");
    let id = attempt.id().clone();
    attempt.wait().unwrap();
    std::fs::remove_dir(world.home(&id)).unwrap();
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn links_and_closed_directories_in_a_home_lead_nowhere() {
    let world = world();
    let outside = TempRoot::new();
    std::fs::write(outside.join("precious"), "kept").unwrap();
    let script = format!(
        "cd && mkdir -p a/b/c && : > a/b/c/file && ln -s {0} link && ln -s {0}/precious a/b/link &&
         ln {0}/precious hard; mkfifo a/fifo; : > a/.hidden; chmod 000 a/b/c a/b; exit 0",
        outside.path()
    );
    let attempt = world.launch_shell(&script);
    let end = attempt.finish().unwrap();
    world.assert_clean(&end);
    assert_eq!(std::fs::read_to_string(outside.join("precious")).unwrap(), "kept");
}

#[test]
fn a_removal_that_fails_is_recorded_and_goes_on_with_a_later_call() {
    if is_root() {
        println!("root removes from any directory: run as an ordinary user for this");
        return;
    }
    let world = world();
    let attempt = world.launch_shell("mkdir ~/kept; : > ~/kept/file");
    let id = attempt.id().clone();
    attempt.wait().unwrap();
    let home = world.home(&id);
    let directory = home.parent().unwrap();
    let mode = |mode| std::fs::set_permissions(directory, Permissions::from_mode(mode)).unwrap();
    mode(0o500);
    let failed = world.host().cleanup(&id);
    mode(0o700);
    let failed = failed.unwrap_err();
    assert_eq!(failed.code(), Code::Unavailable, "{failed}");
    let recorded = world.host().attempt(&id).unwrap();
    assert_eq!(recorded.cleanup_state, CleanupState::Uncertain, "{}", world.told(&id));
    assert_eq!(world.kinds(&id).last(), Some(&"cleanup.failed"));
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn a_home_is_kept_where_the_launch_asked_for_it() {
    let world = world();
    let attempt = world.launch(shell("echo note > ~/note; echo scrap > $TMPDIR/scrap").keep_home());
    let id = attempt.id().clone();
    let end = attempt.finish().unwrap();
    assert_eq!(end.attempt().cleanup_state, CleanupState::Complete);
    let note = std::fs::read_to_string(world.home(&id).join("note"));
    assert_eq!(note.unwrap(), "note\n");
    assert!(world.temporary_left().is_empty());
    world.assert_verified(&id);
}

#[test]
fn home_and_temporary_directory_are_private_and_there_while_the_child_runs() {
    let world = world();
    let script = "umask 000; stat -c %a ~ $TMPDIR; echo $TMPDIR; : > ~/file; : > $TMPDIR/file";
    let attempt = world.launch_shell(script);
    let text = world.text(&attempt).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["700", "700"], "{text}");
    assert!(lines[2].starts_with(world.temporary_base().as_str()), "{text}");
    world.assert_clean(&attempt.finish().unwrap());
    assert!(!std::fs::exists(lines[2]).unwrap());
}
