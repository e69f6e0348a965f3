//! Hosts that are killed: what goes on, what comes again, and what ends with them.

use placement::{AttemptId, ExecutionState, Exit, OnHostLoss, Placement};
use placement_testkit::{TempRoot, example, wait_until};
use placement_world::{PATIENCE, Survivors, World, survivors};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// The example host on a root of its own, and a look from outside.
struct Scene {
    directory: TempRoot,
    seen: Placement,
}

/// A running example host.
struct Host {
    child: Child,
    output: Option<JoinHandle<Vec<u8>>>,
}

impl Scene {
    fn new() -> Self {
        let directory = TempRoot::new();
        let seen = Placement::builder()
            .root(directory.join("state"))
            .runner_at(env!("CARGO_BIN_EXE_placement"))
            .open()
            .unwrap();
        Self { directory, seen }
    }

    /// Starts a host that acknowledges so many chunks, and waits until it has.
    #[expect(clippy::disallowed_methods, reason = "a test runs the example")]
    #[track_caller]
    fn host(&self, rule: OnHostLoss, chunks: u32, script: &str) -> (Host, AttemptId) {
        let mut command = Command::new(example("host"));
        command.args(["state", rule.label(), &chunks.to_string(), "/bin/sh", "-c", script]);
        let child = command.current_dir(self.directory.path()).stdin(Stdio::null());
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let output = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let stderr = child.stderr.take().unwrap();
        let host = Host { child, output: Some(output) };
        let mut line = String::new();
        BufReader::new(stderr).read_line(&mut line).unwrap();
        let id = line.trim().strip_prefix("attempt ").unwrap_or_else(|| panic!("{line}"));
        (host, AttemptId::parse(id).unwrap())
    }

    /// What the runner itself says: where it stands, and how much nobody has acknowledged.
    #[track_caller]
    fn runner(&self, id: &AttemptId) -> (ExecutionState, u64) {
        let runner = self.seen.status(id).unwrap().runner.expect("the runner answers");
        (runner.execution, runner.unacknowledged_bytes)
    }

    #[track_caller]
    fn kinds(&self, id: &AttemptId) -> Vec<&'static str> {
        let rows = self.seen.evidence(id, 0, None).unwrap();
        rows.iter().map(|row| row.kind.label()).collect()
    }

    #[track_caller]
    fn count(&self, id: &AttemptId, kind: &str) -> usize {
        self.kinds(id).into_iter().filter(|other| *other == kind).count()
    }

    #[track_caller]
    fn assert_nothing_lives(&self, id: &AttemptId) {
        let end = self.seen.wait(id, None).unwrap().unwrap();
        assert_eq!(end.attempt().execution_state, ExecutionState::Exited);
        assert!(end.attempt().tree_gone_by.is_some(), "{:?}", self.kinds(id));
        self.seen.cleanup(id).unwrap();
        assert!(self.seen.verify(id, None).unwrap().sound);
        assert!(!matches!(survivors(id), Survivors::These(_)), "{:?}", survivors(id));
    }
}

impl Host {
    /// Kills it with -9 and returns what it had said.
    fn killed(mut self) -> Vec<u8> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.output.take().unwrap().join().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // One that has ended takes no signal; that is what is wanted.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn what_killed_hosts_did_not_acknowledge_comes_to_the_next_one_and_nothing_else_does() {
    let scene = Scene::new();
    let script = "seq 6900000 | tee all; while [ ! -e go ]; do sleep 0.01; done; exit 3";
    let (first, id) = scene.host(OnHostLoss::Keep, 1, script);
    wait_until(PATIENCE, "output that is not sent", || scene.runner(&id).1 > 10_000_000);
    let mut bytes = first.killed();
    assert!((1..=65_536).contains(&bytes.len()), "one chunk was acknowledged: {}", bytes.len());
    let (second, same) = scene.host(OnHostLoss::Keep, 3, script);
    assert_eq!(same, id);
    bytes.extend(second.killed());

    wait_until(PATIENCE, "the second loss", || scene.count(&id, "host.lost") == 2);
    std::fs::write(scene.directory.join("go"), "").unwrap();
    let attempt = scene.seen.attach(&id).unwrap();
    for chunk in attempt.output() {
        let chunk = chunk.unwrap();
        assert_eq!(chunk.offset(), bytes.len() as u64, "nothing comes again or is left out");
        assert!(chunk.sequence() > 4);
        bytes.extend_from_slice(chunk.bytes());
    }
    let wanted = std::fs::read(scene.directory.join("all")).unwrap();
    assert!(wanted.len() > 50_000_000);
    assert!(bytes == wanted, "{} bytes of {} came", bytes.len(), wanted.len());
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 3 }));
    assert_eq!(scene.count(&id, "host.lost"), 2);
    assert_eq!(scene.count(&id, "stop.requested"), 0);
    scene.assert_nothing_lives(&id);
}

#[test]
fn nothing_lives_after_a_killed_host_whose_launch_says_stop() {
    let scene = Scene::new();
    let script = "(setsid sleep 600 &); sleep 600 & seq 1000000; sleep 600";
    let (host, id) = scene.host(OnHostLoss::Stop, 1, script);
    host.killed();
    scene.assert_nothing_lives(&id);
    let kinds = scene.kinds(&id);
    let place = |kind| kinds.iter().position(|other| *other == kind);
    assert!(place("host.lost").is_some(), "{kinds:?}");
    assert!(place("host.lost") < place("stop.requested"), "{kinds:?}");
    assert!(place("signal.term") < place("child.exited"), "{kinds:?}");
}

#[test]
fn whoever_takes_over_is_the_host_from_then_on() {
    let scene = Scene::new();
    let script = "echo up; exec sleep 600";
    let (first, id) = scene.host(OnHostLoss::Stop, 1, script);
    let (second, _) = scene.host(OnHostLoss::Stop, 0, script);
    first.killed();
    // The runner would have seen that end before this question.
    assert_eq!(scene.runner(&id).0, ExecutionState::Running);
    assert!(!scene.kinds(&id).contains(&"host.lost"));
    second.killed();
    scene.assert_nothing_lives(&id);
    assert!(scene.kinds(&id).contains(&"host.lost"));
}

#[test]
fn a_killed_run_takes_its_tree_along() {
    let world = World::new(env!("CARGO_BIN_EXE_placement"));
    let script = "(setsid sleep 600 &); touch up; sleep 600";
    let mut run = world.program().start(["run", "--", "/bin/sh", "-c", script], Stdio::null());
    world.wait_for_file("up");
    let id = world.host().attempts().live().unwrap().attempts[0].attempt_id.clone();
    run.process().kill().unwrap();
    world.host().wait(&id, None).unwrap();
    world.host().cleanup(&id).unwrap();
    world.assert_nothing_left(&id);
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
    wait_until(PATIENCE, "the second loss", || {
        world.kinds(&id).iter().filter(|kind| **kind == "host.lost").count() == 2
    });
    std::fs::write(world.work().join("go"), "").unwrap();
    let said = program.run(["attach", id.as_str()]);
    assert_eq!((said.code, said.stdout.as_str()), (8, "late\n"), "{said:?}");
    world.assert_nothing_left(&id);
}
