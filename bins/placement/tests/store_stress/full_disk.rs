//! A disk without room: one clear error, no exit is lost, and everything goes on once there is room.

use crate::places::SmallDisk;
use crate::{WAITS, assert_refused, let_go, program, refused, wait_for_end};
use placement::{Code, ExecutionState, Exit, OnHostLoss, Timeouts};
use placement_testkit::{in_own_mounts, wait_until};
use placement_world::{PATIENCE, Program, shell};
use std::fs::{self, File};
use std::process::Stdio;

const FULL: &str = "the disk of the store is full";
const MAKE_ROOM: &str = "make room";

/// Asserts that looking works as ever.
#[track_caller]
fn assert_looked_at(program: &Program, attempts: usize) {
    for command in [&["ps", "--all"][..], &["verify", "--all"]] {
        let said = program.run([&["--json"], command].concat());
        assert_eq!((said.code, said.stdout.lines().count()), (0, attempts), "{said:?}");
    }
}

#[test]
fn a_launch_is_refused_and_leaves_nothing() {
    in_own_mounts("full_disk::a_launch_is_refused_and_leaves_nothing", || {
        let (world, disk) = SmallDisk::world();
        let program = world.program();
        assert_eq!(program.run(["run", "--", "true"]).code, 0);
        disk.fill();
        for command in [&["run", "--", "true"][..], &["start", "--", "true"]] {
            assert_refused(&program.refused(125, command), "STORAGE", FULL, MAKE_ROOM);
        }
        assert_looked_at(&program, 1);
        disk.make_room();
        assert_eq!(program.run(["run", "--", "true"]).code, 0);
        assert_looked_at(&program, 2);
    });
}

#[test]
fn a_new_root_is_refused_and_can_be_made_once_there_is_room() {
    in_own_mounts("full_disk::a_new_root_is_refused_and_can_be_made_once_there_is_room", || {
        let program = program();
        let disk = SmallDisk::below(&program.root());
        // The pages in between let the creation come further each time.
        for pages in [0, 1, 2, 4, 8] {
            disk.fill_but(pages);
            let refused = refused(&program, &["run", "--", "true"]);
            assert_refused(&refused, "STORAGE", FULL, MAKE_ROOM);
            disk.make_room();
        }
        assert_eq!(program.run(["run", "--", "true"]).code, 0);
        program.assert_nothing_is_left();
    });
}

#[test]
fn an_exit_is_recorded_by_its_runner_once_there_is_room() {
    in_own_mounts("full_disk::an_exit_is_recorded_by_its_runner_once_there_is_room", || {
        let (world, disk) = SmallDisk::world();
        let attempt =
            world.launch_shell("while [ ! -e go ]; do sleep 0.01; done; echo out; exit 7");
        disk.fill();
        let_go(&world);
        world.wait_for_runner(attempt.id(), "the exit", |runner| {
            runner.execution == ExecutionState::Exited && runner.output_full
        });
        let listed = world.program().run(["ps"]);
        assert!(listed.stdout.contains("running, output full"), "{listed:?}");
        disk.make_room();
        assert_eq!(world.text(&attempt).stdout, "out\n");
        let end = attempt.finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code: 7 }), "{end}");
        world.assert_clean(&end);
    });
}

#[test]
fn an_exit_outlives_its_runner_and_the_full_disk() {
    in_own_mounts("full_disk::an_exit_outlives_its_runner_and_the_full_disk", || {
        let (world, disk) = SmallDisk::world();
        // By a host that is gone: one that looks as soon as the runner has ended may find the room that
        // the runner left, and record the exit before the disk is full again.
        let timeouts = Timeouts { drain_ms: 100, ..Timeouts::default() };
        let launch = shell(WAITS).write(world.work()).on_host_loss(OnHostLoss::Keep);
        let id = world.another_host().launch(launch.timeouts(timeouts)).unwrap().id().clone();
        let runner = world.runner_pid(&id);
        disk.fill();
        let_go(&world);
        wait_for_end(runner);
        // What was set aside for it is taken by now.
        disk.fill();
        let refused = world.host().reconcile(&id).unwrap_err();
        assert_eq!((refused.code(), refused.refusal().message.as_str()), (Code::Storage, FULL));
        assert_eq!(world.host().attempt(&id).unwrap().execution_state, ExecutionState::Running);
        assert_eq!(world.homes_left().len(), 1, "its home is kept");
        assert_looked_at(&world.program(), 1);
        disk.make_room();
        let end = world.host().attach(&id).unwrap().finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code: 7 }), "{end}");
        assert!(world.kinds(&end.attempt().attempt_id).contains(&"record.taken"));
        world.assert_clean(&end);
    });
}

#[test]
fn output_waits_for_room_and_run_says_so_once() {
    in_own_mounts("full_disk::output_waits_for_room_and_run_says_so_once", || {
        let (world, disk) = SmallDisk::world();
        let program = world.program();
        let stderr = world.work().join("stderr");
        let script = "seq 1000000 | tee all; exit 3";
        let mut running = program
            .command(["run", "--", "/bin/sh", "-c", script])
            .stdin(Stdio::null())
            .stdout(File::create(world.work().join("stdout")).unwrap())
            .stderr(File::create(&stderr).unwrap())
            .spawn()
            .unwrap();
        let told = || fs::read_to_string(&stderr).unwrap();
        wait_until(PATIENCE, "the word of it", || told().ends_with('\n'));
        let listed = program.run(["ps"]);
        assert!(listed.stdout.contains("running, output full"), "{listed:?}");
        disk.grow();
        wait_until(PATIENCE, "the end", || running.try_wait().unwrap().is_some());
        assert_eq!(running.wait().unwrap().code(), Some(3), "{}", told());
        let same = |name: &str| fs::read(world.work().join(name)).unwrap();
        assert!(same("stdout") == same("all"), "the resumed bytes differ");
        assert_eq!(told().lines().count(), 1, "{}", told());
        assert!(told().contains("has no room"), "{}", told());
        program.assert_nothing_is_left();
    });
}

/// How many pages are free, one launch after the other; `cargo xtask full-disk` names more, among them
/// those with which a runner waits for room.
#[expect(clippy::disallowed_methods, reason = "the longer campaign says so by the environment")]
fn free_pages() -> Vec<u64> {
    match std::env::var("PLACEMENT_TEST_FREE_PAGES") {
        Ok(pages) => pages.split(',').map(|pages| pages.parse().unwrap()).collect(),
        Err(_) => vec![2, 5, 8],
    }
}

#[test]
fn with_whatever_room_is_left_a_launch_ends_well_or_is_refused_and_nothing_is_lost() {
    let test = "full_disk::with_whatever_room_is_left_a_launch_ends_well_or_is_refused_and_nothing_is_lost";
    in_own_mounts(test, || {
        let (world, disk) = SmallDisk::world();
        let program = world.program();
        assert_eq!(program.run(["run", "--", "true"]).code, 0);
        for pages in free_pages() {
            disk.fill_but(pages);
            let ran = world.work().join("ran");
            let script = "echo ran >> ran; exit 3";
            let begun = std::time::Instant::now();
            let said = program.run(["run", "--", "/bin/sh", "-c", script]);
            let runs = fs::read_to_string(&ran).unwrap_or_default().lines().count();
            println!("{pages} pages in {:?}: {said:?}, it ran {runs} times", begun.elapsed());
            assert!(runs <= 1, "{said:?}");
            if said.code == 3 {
                assert_eq!((runs, said.stderr.as_str()), (1, ""), "{said:?}");
            } else {
                assert!([120, 125].contains(&said.code), "{said:?}");
            }
            fs::remove_file(&ran).ok();
            disk.make_room();
            // What was prepared and found no room to start can be started again by its key, or is
            // let go.
            for attempt in program.attempts() {
                if attempt["execution_state"] == "intended" {
                    let id = attempt["attempt_id"].as_str().unwrap();
                    assert_eq!(program.run(["stop", id]).code, 0, "{pages} pages");
                }
            }
            for command in ["reconcile", "cleanup"] {
                let said = program.run([command, "--all"]);
                assert_eq!(said.code, 0, "{pages} pages, {command}: {said:?}");
            }
            program.assert_nothing_is_left();
            assert_eq!(program.run(["verify", "--all"]).code, 0);
            let newest = program.attempts().remove(0);
            assert!(runs == 0 || newest["exit"]["code"] == 3, "its exit is lost: {newest}");
        }
    });
}
