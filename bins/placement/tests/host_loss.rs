//! Hosts that are killed: what goes on, what comes again, and what ends with them.

use placement::{AttemptId, ExecutionState, Exit, OnHostLoss};
use placement_testkit::{example, wait_until};
use placement_world::{OWNER, PATIENCE, World};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// A running example host.
struct Host {
    child: Child,
    output: Option<JoinHandle<Vec<u8>>>,
}

impl Host {
    /// Starts one that acknowledges so many chunks, and waits until it has.
    #[expect(clippy::disallowed_methods, reason = "a test runs the example")]
    #[track_caller]
    fn start(world: &World, rule: OnHostLoss, chunks: u32, script: &str) -> (Self, AttemptId) {
        let mut command = Command::new(example("host"));
        command.args([world.root().as_str(), OWNER, rule.label(), &chunks.to_string()]);
        command.args(["/bin/sh", "-c", script]).current_dir(world.work());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the example starts");
        let output = child.stdout.take().map(|mut stdout| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                stdout.read_to_end(&mut bytes).expect("a pipe can be read");
                bytes
            })
        });
        let stderr = child.stderr.take().expect("it is piped");
        let host = Self { child, output };
        let mut line = String::new();
        BufReader::new(stderr).read_line(&mut line).expect("a pipe can be read");
        let id = line.trim().strip_prefix("attempt ").unwrap_or_else(|| panic!("{line}"));
        (host, AttemptId::parse(id).expect("it says its attempt"))
    }

    /// Kills it with -9 and returns what it had said.
    #[track_caller]
    fn killed(mut self) -> Vec<u8> {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is our child");
        let output = self.output.take().map(JoinHandle::join);
        output.expect("it is piped").expect("a reader does not fail")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // One that has ended takes no signal; that is what is wanted.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[track_caller]
fn count(world: &World, id: &AttemptId, kind: &str) -> usize {
    world.kinds(id).into_iter().filter(|other| *other == kind).count()
}

/// Waits for the end of an attempt that nobody stops any more, and cleans it up.
#[track_caller]
fn assert_ends_with_proof(world: &World, id: &AttemptId) {
    let end = world.host().wait(id, None).expect("the attempt is recorded").expect("it ends");
    assert_eq!(end.attempt().execution_state, ExecutionState::Exited);
    assert!(end.attempt().tree_gone_by.is_some(), "{}", world.told(id));
    world.host().cleanup(id).unwrap_or_else(|error| panic!("{error}\n{}", world.told(id)));
    world.assert_nothing_left(id);
}

#[test]
fn what_killed_hosts_did_not_acknowledge_comes_to_the_next_one_and_nothing_else_does() {
    let world = World::new(env!("CARGO_BIN_EXE_placement"));
    let script = "seq 6900000 | tee all; while [ ! -e go ]; do sleep 0.01; done; exit 3";
    let (first, id) = Host::start(&world, OnHostLoss::Keep, 1, script);
    world.wait_for_runner(&id, "output that is not sent", |runner| {
        runner.unacknowledged_bytes > 10_000_000
    });
    let mut bytes = first.killed();
    assert!((1..=65_536).contains(&bytes.len()), "one chunk was acknowledged: {}", bytes.len());
    let (second, same) = Host::start(&world, OnHostLoss::Keep, 3, script);
    assert_eq!(same, id);
    bytes.extend(second.killed());

    wait_until(PATIENCE, "the second loss", || count(&world, &id, "host.lost") == 2);
    std::fs::write(world.work().join("go"), "").unwrap();
    let attempt = world.host().attach(&id).unwrap();
    for chunk in attempt.output() {
        let chunk = chunk.unwrap();
        assert_eq!(chunk.offset(), bytes.len() as u64, "nothing comes again or is left out");
        assert!(chunk.sequence() > 4);
        bytes.extend_from_slice(chunk.bytes());
    }
    let wanted = std::fs::read(world.work().join("all")).unwrap();
    assert!(wanted.len() > 50_000_000);
    assert!(bytes == wanted, "{} bytes of {} came", bytes.len(), wanted.len());
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 3 }));
    assert_eq!(count(&world, &id, "host.lost"), 2);
    assert_eq!(count(&world, &id, "stop.requested"), 0);
    assert_ends_with_proof(&world, &id);
}

#[test]
fn nothing_lives_after_a_killed_host_whose_launch_says_stop() {
    let world = World::new(env!("CARGO_BIN_EXE_placement"));
    let script = "(setsid sleep 600 &); sleep 600 & seq 1000000; sleep 600";
    let (host, id) = Host::start(&world, OnHostLoss::Stop, 1, script);
    host.killed();
    assert_ends_with_proof(&world, &id);
    let kinds = world.kinds(&id);
    let place = |kind| kinds.iter().position(|other| *other == kind);
    assert!(place("host.lost").is_some(), "{kinds:?}");
    assert!(place("host.lost") < place("stop.requested"), "{kinds:?}");
    assert!(place("signal.term") < place("child.exited"), "{kinds:?}");
}

#[test]
fn whoever_takes_over_is_the_host_from_then_on() {
    let world = World::new(env!("CARGO_BIN_EXE_placement"));
    let script = "echo up; exec sleep 600";
    let (first, id) = Host::start(&world, OnHostLoss::Stop, 1, script);
    let (second, _) = Host::start(&world, OnHostLoss::Stop, 0, script);
    first.killed();
    // The runner would have seen that end before this question.
    assert_eq!(world.runner(&id).execution, ExecutionState::Running);
    assert!(!world.kinds(&id).contains(&"host.lost"));
    second.killed();
    assert_ends_with_proof(&world, &id);
    assert!(world.kinds(&id).contains(&"host.lost"));
}

#[test]
fn a_killed_run_takes_its_tree_along() {
    let world = World::new(env!("CARGO_BIN_EXE_placement"));
    let script = "(setsid sleep 600 &); touch up; sleep 600";
    let mut run = world.program().start(["run", "--", "/bin/sh", "-c", script], Stdio::null());
    world.wait_for_file("up");
    let id = world.host().attempts().live().unwrap().attempts[0].attempt_id.clone();
    run.process().kill().unwrap();
    assert_ends_with_proof(&world, &id);
    assert!(world.kinds(&id).contains(&"host.lost"), "{}", world.told(&id));
}

#[test]
fn a_killed_attachment_leaves_a_kept_attempt_running() {
    let world = World::new(env!("CARGO_BIN_EXE_placement"));
    let program = world.program();
    let script = "touch up; while [ ! -e go ]; do sleep 0.01; done; echo late; exit 8";
    let id = program.run(["start", "--", "/bin/sh", "-c", script]).stdout;
    let id = AttemptId::parse(id.trim()).unwrap();
    let mut attached = program.start(["attach", id.as_str()], Stdio::null());
    wait_until(PATIENCE, "the adoption", || world.kinds(&id).contains(&"host.adopted"));
    attached.process().kill().unwrap();
    wait_until(PATIENCE, "the second loss", || count(&world, &id, "host.lost") == 2);
    std::fs::write(world.work().join("go"), "").unwrap();
    let said = program.run(["attach", id.as_str()]);
    assert_eq!((said.code, said.stdout.as_str()), (8, "late\n"), "{said:?}");
    world.assert_nothing_left(&id);
}
