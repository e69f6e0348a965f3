//! Containment through the real runner: what a child starts ends with it and is proven gone.

use placement::{
    AttemptId, CleanupScope, CleanupState, EvidenceKind, ExecutionState, Exit, Leftovers,
    Mechanism, Placement, StreamName, Timeouts,
};
use placement_testkit::wait_until;
use placement_world::{Known, PATIENCE, Said, World, replace_in_store, shell};
use std::time::{Duration, Instant};

/// What a whole run leaves behind, in order.
const WHOLE_RUN: [&str; 12] = [
    "intent.recorded",
    "attach",
    "runner.started",
    "home.created",
    "executable.measured",
    "child.creating",
    "child.identified",
    "child.started",
    "child.exited",
    "tree.gone",
    "runner.finished",
    "cleanup.complete",
];
/// Two processes that hold the output: one in the group, and one in a session of its own.
const TWO_SLEEPS: &str = "(setsid sleep 300 &) ; sleep 300 & exit 0";
/// Long enough for a loaded machine, and far below every time limit of a launch.
const AT_ONCE: Duration = Duration::from_secs(2);

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

/// Runs a test in a world of its own for each way of containing a tree.
fn each_mechanism(test: impl Fn(&World, Mechanism)) {
    for mechanism in world().mechanisms() {
        test(&world(), mechanism);
    }
}

#[track_caller]
fn only_attempt(host: &Placement) -> AttemptId {
    let listed = host.attempts().all().expect("the store is readable");
    assert!(listed.unreadable.is_empty(), "{listed:?}");
    let [attempt] = listed.attempts.as_slice() else { panic!("not one attempt: {listed:?}") };
    attempt.attempt_id.clone()
}

#[track_caller]
fn detail_of(world: &World, attempt: &AttemptId, kind: EvidenceKind) -> String {
    let rows = world.host().evidence(attempt, 0, None).expect("the evidence is readable");
    let row = rows.into_iter().find(|row| row.kind == kind);
    row.unwrap_or_else(|| panic!("no {kind}:\n{}", world.told(attempt))).detail
}

/// Waits for a row that comes after what the test has seen happen.
#[track_caller]
fn awaited_detail(world: &World, attempt: &AttemptId, kind: EvidenceKind) -> String {
    wait_until(PATIENCE, kind.label(), || world.kinds(attempt).contains(&kind.label()));
    detail_of(world, attempt, kind)
}

#[test]
fn a_run_keeps_the_streams_apart_and_leaves_its_evidence_and_nothing_else() {
    each_mechanism(|world, mechanism| {
        let script = "echo out; echo err >&2; exit 3";
        let run = ["run", "--mechanism", mechanism.label(), "--", "/bin/sh", "-c", script];
        let said = world.program().run(run);
        let expected = Said { code: 3, stdout: "out\n".into(), stderr: "err\n".into() };
        assert_eq!(said, expected, "{mechanism}");
        let id = only_attempt(world.host());
        let attempt = world.host().attempt(&id).unwrap();
        assert_eq!(attempt.execution_state, ExecutionState::Exited);
        assert_eq!(attempt.cleanup_state, CleanupState::Complete);
        assert_eq!(attempt.exit, Some(Exit::Code { code: 3 }));
        assert_eq!(attempt.mechanism, Some(mechanism));
        assert_eq!(world.kinds(&id), WHOLE_RUN, "{}", world.told(&id));
        world.assert_nothing_left(&id);
    });
}

#[test]
fn one_changed_character_of_the_evidence_is_found() {
    let world = world();
    assert_eq!(world.program().run(["run", "--", "/bin/sh", "-c", "exit 3"]).code, 3);
    let id = only_attempt(world.host());
    let row = detail_of(&world, &id, EvidenceKind::ChildIdentified);
    let program = world.program();
    let root = world.root();
    // Nobody may have the store open while its bytes are changed beneath it.
    drop(world);
    assert_eq!(program.run(["verify", id.as_str()]).code, 0);
    let changed = row.replacen("pid", "pit", 1);
    assert!(replace_in_store(&root, &row, &changed) > 0, "{row}");
    let said = program.run(["verify", id.as_str()]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stdout.contains("  wrong  row "), "{said:?}");
    // The damage is to the row and to nothing else: put back, the chain is whole again.
    assert!(replace_in_store(&root, &changed, &row) > 0);
    assert_eq!(program.run(["verify", id.as_str()]).code, 0);
}

#[test]
fn a_tree_that_holds_the_output_is_ended_at_once_and_counted() {
    each_mechanism(|world, mechanism| {
        let program = world.program();
        let run = ["run", "--mechanism", mechanism.label(), "--", "/bin/sh", "-c", TWO_SLEEPS];
        let began = Instant::now();
        let said = program.run(run);
        let took = began.elapsed();
        assert_eq!(said, Said { code: 0, stdout: String::new(), stderr: String::new() });
        let id = only_attempt(world.host());
        assert!(took < AT_ONCE, "{mechanism} took {took:?}:\n{}", world.told(&id));
        let stopped = detail_of(world, &id, EvidenceKind::LeftoversStopped);
        assert_eq!(stopped, "2 processes, by SIGTERM");
        assert!(!world.kinds(&id).contains(&"output.drain_elapsed"), "{}", world.told(&id));
        let proof = world.host().attempt(&id).unwrap().tree_gone_by;
        assert!(proof.is_some_and(|proof| proof.starts_with(mechanism.label())));
        world.assert_nothing_left(&id);
    });
}

#[test]
fn neither_stream_of_an_ended_tree_is_truncated() {
    each_mechanism(|world, mechanism| {
        let attempt = world.launch(shell(TWO_SLEEPS).mechanism(mechanism));
        assert_eq!(world.text(&attempt).stdout, "");
        for stream in [StreamName::Stdout, StreamName::Stderr] {
            assert_eq!(attempt.is_truncated(stream), Some(false), "{mechanism} {stream}");
        }
        let end = attempt.finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code: 0 }));
        world.assert_clean(&end);
    });
}

#[test]
fn a_group_reports_who_left_it_and_claims_nothing_of_the_tree() {
    let world = world();
    let script = "setsid sh -c 'echo $$ > far; exec sleep 300' & sleep 300 &
        while [ ! -s far ]; do sleep 0.01; done; exit 0";
    let run = ["-v", "run", "--require", "process_group", "--", "/bin/sh", "-c", script];
    let began = Instant::now();
    let said = world.program().run(run);
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!(said.code, 0, "{said:?}");
    let far = Known::named_in(world.work().join("far"));
    assert!(far.is_running(), "it is reported, not ended");
    let id = only_attempt(world.host());
    let told = world.told(&id);
    let reported = detail_of(&world, &id, EvidenceKind::LeftoversReported);
    assert_eq!(reported, "1 process outside the group, left alone");
    assert_eq!(detail_of(&world, &id, EvidenceKind::LeftoversStopped), "1 process, by SIGTERM");
    let kinds = world.kinds(&id);
    assert!(kinds.contains(&"group.gone") && !kinds.contains(&"tree.gone"), "{told}");
    let attempt = world.host().attempt(&id).unwrap();
    assert_eq!((attempt.mechanism, &attempt.tree_gone_by), (None, &None), "{told}");
    for text in [&said.stderr, &world.program().run(["show", id.as_str()]).stdout] {
        assert!(!text.contains("tree gone"), "{text}");
    }
    world.assert_verified(&id);
    far.kill();
}

#[test]
fn what_ignores_the_request_to_end_is_killed_after_the_grace() {
    each_mechanism(|world, mechanism| {
        let script = "setsid sh -c 'trap \"\" TERM; echo $$ > far; while :; do sleep 1; done' &
            while [ ! -s far ]; do sleep 0.01; done; exit 4";
        let grace = Duration::from_millis(200);
        let attempt = world.launch(shell(script).mechanism(mechanism).grace(grace));
        let far = Known::named_in(world.work().join("far"));
        let end = attempt.finish().unwrap();
        assert!(!far.is_running());
        assert_eq!(end.exit(), Some(Exit::Code { code: 4 }));
        let stopped = end.first(EvidenceKind::LeftoversStopped).map(|row| row.detail.as_str());
        assert!(stopped.is_some_and(|detail| detail.ends_with(", by SIGKILL")), "{stopped:?}");
        world.assert_clean(&end);
    });
}

/// A member of a relay ignores SIGTERM, starts the next one and ends. The relay ends by itself when
/// it is told to, so that it does not run for ever should a test fail.
fn relay(start_next: &str) -> String {
    format!(
        "trap '' TERM\necho $$ >> relay\n[ -e enough ] && exit\n\
         {start_next} sh ./member < /dev/null > /dev/null 2>&1 &\n"
    )
}

#[test]
fn a_relay_of_daemons_does_not_get_away() {
    each_mechanism(|world, mechanism| {
        std::fs::write(world.work().join("member"), relay("setsid")).unwrap();
        let script = "setsid sh ./member & while [ ! -s relay ]; do sleep 0.01; done; exit 0";
        let grace = Duration::from_millis(50);
        let attempt = world.launch(shell(script).mechanism(mechanism).grace(grace));
        let end = attempt.finish().unwrap();
        std::fs::write(world.work().join("enough"), "").unwrap();
        let told = world.told(&end.attempt().attempt_id);
        assert_eq!(end.attempt().cleanup_state, CleanupState::Complete, "{mechanism}:\n{told}");
        world.assert_clean(&end);
    });
}

#[test]
fn a_relay_within_the_group_does_not_get_away() {
    let world = world();
    std::fs::write(world.work().join("member"), relay("")).unwrap();
    let script = "sh ./member & while [ ! -s relay ]; do sleep 0.01; done; exit 0";
    let launch = shell(script).require(CleanupScope::ProcessGroup);
    let attempt = world.launch(launch.grace(Duration::from_millis(50)));
    let end = attempt.finish().unwrap();
    std::fs::write(world.work().join("enough"), "").unwrap();
    assert!(
        end.first(EvidenceKind::GroupGone).is_some(),
        "{}",
        world.told(&end.attempt().attempt_id)
    );
    world.assert_clean(&end);
}

#[test]
fn an_exit_is_told_while_a_descendant_lives_and_holds_the_output() {
    each_mechanism(|world, mechanism| {
        let launch = shell("sleep 300 & echo $! > held; echo last; exit 5");
        let attempt = world.launch(launch.mechanism(mechanism).leftovers(Leftovers::Keep));
        let id = attempt.id().clone();
        let held = Known::named_in(world.work().join("held"));
        wait_until(PATIENCE, "the recorded exit", || {
            world.host().attempt(&id).unwrap().execution_state == ExecutionState::Exited
        });
        let status = world.host().status(&id).unwrap();
        assert_eq!(status.attempt.exit, Some(Exit::Code { code: 5 }));
        assert_eq!(status.liveness.alive, Some(false), "{status:?}");
        let runner = status.runner.expect("the runner stays with what is left");
        assert_eq!(runner.exit, Some(Exit::Code { code: 5 }));
        assert_eq!(runner.descendants, Some(1));
        assert!(held.is_running());
        let output = std::fs::read_link(format!("/proc/{}/fd/1", held.pid())).unwrap();
        assert!(output.to_string_lossy().starts_with("pipe:"), "{output:?}");
        // A stop acts on what is left, and the recorded exit stays.
        attempt.stop().unwrap();
        let end = attempt.finish().unwrap();
        assert!(!held.is_running());
        assert_eq!(end.exit(), Some(Exit::Code { code: 5 }));
        world.assert_clean(&end);
    });
}

#[test]
fn a_kept_descendant_truncates_what_it_holds_after_a_bounded_drain() {
    each_mechanism(|world, mechanism| {
        let launch = shell("printf '1\\n2\\n3\\nend\\n'; sleep 300 & echo $! > held; exit 7");
        let attempt = world.launch(launch.mechanism(mechanism).leftovers(Leftovers::Keep));
        let held = Known::named_in(world.work().join("held"));
        let began = Instant::now();
        assert_eq!(world.text(&attempt).stdout, "1\n2\n3\nend\n");
        assert!(began.elapsed() < AT_ONCE, "the end of the output took {:?}", began.elapsed());
        assert_eq!(attempt.is_truncated(StreamName::Stdout), Some(true));
        let id = attempt.id().clone();
        let drained = awaited_detail(world, &id, EvidenceKind::OutputDrainElapsed);
        assert!(drained.ends_with(": stdout and stderr truncated"), "{drained}");
        let recorded = world.host().attempt(&id).unwrap();
        assert_eq!(recorded.exit, Some(Exit::Code { code: 7 }));
        assert!(held.is_running(), "neither the exit nor the end of the drain ends it");
        held.kill();
        let end = attempt.finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code: 7 }));
        world.assert_clean(&end);
    });
}

#[test]
fn the_end_of_both_streams_is_no_exit() {
    let world = world();
    let script = "exec >&- 2>&-; while [ ! -e go ]; do sleep 0.02; done; exit 4";
    let attempt = world.launch_shell(script);
    let text = world.text(&attempt);
    assert_eq!((text.stdout.as_str(), text.stderr.as_str()), ("", ""));
    let status = world.host().status(attempt.id()).unwrap();
    assert_eq!(status.attempt.execution_state, ExecutionState::Running);
    assert_eq!(status.liveness.alive, Some(true));
    let runner = status.runner.expect("the runner answers");
    assert_eq!((runner.eof_seen, runner.exit), (2, None));
    std::fs::write(world.work().join("go"), "").unwrap();
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 4 }));
    world.assert_clean(&end);
}

#[test]
fn chatter_of_a_kept_descendant_cannot_extend_the_drain() {
    let world = world();
    let script = "(while :; do echo chatter; sleep 0.02; done) &
        echo $! > held; exit 7";
    let timeouts = Timeouts { drain_ms: 600, stop_grace_ms: 200, ..Timeouts::default() };
    let launch = shell(script).leftovers(Leftovers::Keep).timeouts(timeouts);
    let attempt = world.launch(launch);
    let held = Known::named_in(world.work().join("held"));
    let began = Instant::now();
    let text = world.text(&attempt);
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert!(text.stdout.starts_with("chatter\n"), "{text:?}");
    assert_eq!(attempt.is_truncated(StreamName::Stdout), Some(true));
    let drained = awaited_detail(&world, attempt.id(), EvidenceKind::OutputDrainElapsed);
    let used_ms: Option<u64> = drained.split(' ').nth(1).and_then(|number| number.parse().ok());
    assert!(used_ms.is_some_and(|used_ms| (600..6_000).contains(&used_ms)), "{drained}");
    // What it still says is read and dropped: the end of the drain does not end it.
    assert!(held.is_running());
    attempt.stop().unwrap();
    let end = attempt.finish().unwrap();
    assert!(!held.is_running());
    assert_eq!(end.exit(), Some(Exit::Code { code: 7 }));
    world.assert_clean(&end);
}

#[test]
fn chatter_that_is_to_be_stopped_is_bounded_and_whole() {
    each_mechanism(|world, mechanism| {
        let script = "(while :; do echo chatter; sleep 0.01; done) & echo $! > held; exit 7";
        let timeouts = Timeouts { drain_ms: 400, stop_grace_ms: 200, ..Timeouts::default() };
        let attempt = world.launch(shell(script).mechanism(mechanism).timeouts(timeouts));
        let held = Known::named_in(world.work().join("held"));
        let text = world.text(&attempt);
        assert!(text.stdout.ends_with("chatter\n"), "{text:?}");
        assert_eq!(attempt.is_truncated(StreamName::Stdout), Some(false));
        let end = attempt.finish().unwrap();
        assert!(!held.is_running());
        assert_eq!(end.first(EvidenceKind::OutputDrainElapsed), None);
        world.assert_clean(&end);
    });
}

#[test]
fn only_the_process_is_required_and_only_the_process_is_claimed() {
    let world = world();
    let script = "sleep 300 < /dev/null > /dev/null 2>&1 & echo $! > near; exit 6";
    let attempt = world.launch(shell(script).require(CleanupScope::DirectProcess));
    let near = Known::named_in(world.work().join("near"));
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 6 }));
    assert_eq!(end.attempt().cleanup_state, CleanupState::Complete);
    assert!(near.is_running(), "nothing but the process was to be ended");
    let told = world.told(&end.attempt().attempt_id);
    for kind in [EvidenceKind::TreeGone, EvidenceKind::GroupGone, EvidenceKind::LeftoversStopped] {
        assert_eq!(end.first(kind), None, "{told}");
    }
    assert!(!end.to_string().contains("tree gone"), "{end}");
    near.kill();
}
