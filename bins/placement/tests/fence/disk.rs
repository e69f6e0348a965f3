//! A spool that finds no room: the child waits, the exit is recorded, and nothing is missing once
//! there is room again.

use crate::world;
use camino::Utf8PathBuf;
use placement::{AttemptId, ExecutionState, Exit, StreamName, Timeouts};
use placement_testkit::wait_until;
use placement_world::{PATIENCE, Running, World, shell, through};
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::process::{Pid, Resource, Rlimit};
use std::fs::{self, File};
use std::io::Write as _;
use std::process::Stdio;

/// A small file system of its own for the attempts of a world; goes with the test.
struct SmallDisk(Utf8PathBuf);

impl SmallDisk {
    /// Mounts it, or prints why this user may not.
    #[expect(clippy::print_stdout, reason = "a test says what it does not show here")]
    #[track_caller]
    fn below(world: &World) -> Option<Self> {
        let path = world.root().join("attempts");
        fs::create_dir(&path).expect("nothing was launched yet");
        let options = c"size=1m,mode=700";
        match rustix::mount::mount("tmpfs", path.as_str(), "tmpfs", MountFlags::empty(), options) {
            Ok(()) => Some(Self(path)),
            Err(errno) => {
                println!("nothing shown: this user may not mount ({errno})");
                None
            }
        }
    }

    fn fill(&self) {
        let mut file = File::create(self.0.join("filler")).expect("a name takes no room");
        while file.write_all(&[1; 4_096]).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).expect("it was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        rustix::mount::unmount(self.0.as_str(), UnmountFlags::DETACH).ok();
    }
}

#[track_caller]
fn wait_for(world: &World, id: &AttemptId, kind: &str) {
    wait_until(PATIENCE, kind, || world.kinds(id).contains(&kind));
}

fn lines(count: u32) -> Vec<u8> {
    (1..=count).flat_map(|number| format!("{number}\n").into_bytes()).collect()
}

#[test]
fn a_child_waits_while_the_disk_is_full_and_everything_comes_once_it_is_not() {
    let world = world();
    let Some(disk) = SmallDisk::below(&world) else { return };
    let script = "while [ ! -e go ]; do sleep 0.01; done; seq 100000 | tee all; touch done; exit 5";
    let attempt = world.launch_shell(script);
    let id = attempt.id().clone();
    disk.fill();
    fs::write(world.work().join("go"), "").unwrap();
    wait_for(&world, &id, "spool.failed");
    world.wait_for_runner(&id, "a full spool", |runner| runner.output_full);
    let runner = world.runner(&id);
    assert_eq!((runner.execution, runner.eof_seen), (ExecutionState::Running, 0));
    assert!(!world.work().join("done").exists(), "it waits");
    disk.free();
    let bytes = world.bytes(&attempt);
    assert!(bytes == fs::read(world.work().join("all")).unwrap(), "{} bytes came", bytes.len());
    for stream in StreamName::ALL {
        assert_eq!(attempt.is_truncated(*stream), Some(false), "{stream}");
    }
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 5 }));
    let failed = world.kinds(&id).into_iter().filter(|kind| *kind == "spool.failed").count();
    assert_eq!(failed, 1, "it is told once:\n{}", world.told(&id));
    assert!(!world.kinds(&id).contains(&"output.lost"), "{}", world.told(&id));
    world.assert_clean(&end);
}

#[test]
fn an_exit_on_a_full_disk_is_recorded_and_its_last_words_come_once_there_is_room() {
    let world = world();
    let Some(disk) = SmallDisk::below(&world) else { return };
    let script = "while [ ! -e go ]; do sleep 0.01; done; echo last words; echo more >&2; exit 7";
    let timeouts = Timeouts { drain_ms: 60_000, ..Timeouts::default() };
    let attempt = world.launch(shell(script).timeouts(timeouts));
    let id = attempt.id().clone();
    disk.fill();
    fs::write(world.work().join("go"), "").unwrap();
    wait_for(&world, &id, "child.exited");
    wait_for(&world, &id, "spool.failed");
    assert_eq!(attempt.attempt().unwrap().exit, Some(Exit::Code { code: 7 }));
    assert_eq!(world.runner(&id).execution, ExecutionState::Exited, "it waits for room");
    disk.free();
    let text = world.text(&attempt);
    assert_eq!((text.stdout.as_str(), text.stderr.as_str()), ("last words\n", "more\n"));
    for stream in StreamName::ALL {
        assert_eq!(attempt.is_truncated(*stream), Some(false), "{stream}");
    }
    let end = attempt.finish().unwrap();
    assert!(!world.kinds(&id).contains(&"output.lost"), "{}", world.told(&id));
    world.assert_clean(&end);
}

#[test]
fn what_never_finds_room_is_a_recorded_loss_and_the_exit_is_kept() {
    let world = world();
    let Some(disk) = SmallDisk::below(&world) else { return };
    // More at the end than the last page of the file still holds.
    let script = "echo first; while [ ! -e go ]; do sleep 0.01; done; seq 5000; exit 7";
    let timeouts = Timeouts { drain_ms: 300, ..Timeouts::default() };
    let attempt = world.launch(shell(script).timeouts(timeouts));
    let id = attempt.id().clone();
    wait_until(PATIENCE, "the first words in the log", || {
        world.program().run(["logs", id.as_str()]).stdout == "first\n"
    });
    disk.fill();
    fs::write(world.work().join("go"), "").unwrap();
    let end = attempt.wait().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 7 }));
    let kinds = world.kinds(&id);
    let place = |kind| kinds.iter().position(|other| *other == kind);
    assert!(place("child.exited").is_some(), "{kinds:?}");
    assert!(place("spool.failed") < place("output.lost"), "{}", world.told(&id));
    assert!(place("output.lost") < place("runner.finished"), "{}", world.told(&id));
    let lost = end.evidence().iter().find(|row| row.kind.label() == "output.lost").unwrap();
    assert!(lost.detail.starts_with("the spool could not be written: "), "{}", lost.detail);
    assert_eq!(world.text(&attempt).stdout, "first\n", "what was written is there");
    disk.free();
    world.assert_clean(&attempt.finish().unwrap());
}

#[test]
fn a_file_size_limit_of_the_host_ends_no_runner_and_costs_no_output() {
    let world = world();
    let program = world.program();
    // 1 MiB: more than the store has of this, less than a segment of the log.
    let wrapper = ["/bin/sh", "-c", "ulimit -S -f 2048; exec \"$@\"", "sh"];
    let script = "seq 300000; exit 4";
    let start = program.command(["start", "--", "/bin/sh", "-c", script]);
    let said = Running::start(through(&wrapper, &start).stdin(Stdio::null())).said();
    let id = AttemptId::parse(said.stdout.trim()).unwrap_or_else(|_| panic!("{said:?}"));
    wait_for(&world, &id, "spool.failed");
    world.wait_for_runner(&id, "a full spool", |runner| runner.output_full);
    let runner = i32::try_from(world.runner_pid(&id)).unwrap();
    let hard = rustix::process::getrlimit(Resource::Fsize).maximum;
    let limit = Rlimit { current: hard, maximum: hard };
    rustix::process::prlimit(Pid::from_raw(runner), Resource::Fsize, limit).unwrap();
    let attempt = world.host().attach(&id).unwrap();
    let bytes = world.bytes(&attempt);
    assert!(bytes == lines(300_000), "{} bytes came", bytes.len());
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 4 }), "{}", world.told(&id));
    world.assert_clean(&end);
}
