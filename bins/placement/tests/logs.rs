//! Looking on: the transcript while an attempt lives and after its end.

use camino::Utf8Path;
use placement::{AttemptId, OnHostLoss};
use placement_world::{Program, Running, Said, World, shell};
use std::process::Stdio;

/// Says one thing, waits for the file `go`, says another and exits with 6.
const TWO_PARTS: &str =
    "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; echo err >&2; exit 6";

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

#[track_caller]
fn start(program: &Program, script: &str) -> AttemptId {
    let said = program.run(["start", "--", "/bin/sh", "-c", script]);
    AttemptId::parse(said.stdout.trim()).unwrap_or_else(|_| panic!("{said:?}"))
}

/// Waits until the log has everything that the child has said so far.
#[track_caller]
fn wait_for_output(world: &World, id: &AttemptId, bytes: u64) {
    world.wait_for_runner(id, "the output", |runner| runner.unacknowledged_bytes == bytes);
}

/// Reads how many bytes the program said are no longer kept, over all its notices.
#[track_caller]
fn gone(said: &Said) -> usize {
    let notices = said.stderr.lines().map(|line| {
        let number = line.strip_prefix("placement: ")?;
        number.strip_suffix(" bytes of output are no longer kept")?.parse::<usize>().ok()
    });
    notices.sum::<Option<usize>>().unwrap_or_else(|| panic!("{}", said.stderr))
}

fn files_below(directory: &Utf8Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in directory.read_dir_utf8().expect("it can be listed") {
        let path = entry.expect("it can be listed").into_path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else if path.is_file() {
            found.push(std::fs::read(path).expect("it can be read"));
        }
    }
    found
}

#[test]
fn logs_of_a_living_attempt_are_what_it_has_said_so_far() {
    let world = world();
    let program = world.program();
    let id = start(&program, TWO_PARTS);
    wait_for_output(&world, &id, 4);
    let said = program.run(["logs", id.as_str()]);
    assert_eq!(said, Said { code: 0, stdout: "one\n".into(), stderr: String::new() });
    std::fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(program.run(["wait", id.as_str()]).code, 6);
    let said = program.run(["logs", id.as_str()]);
    assert_eq!(said, Said { code: 0, stdout: "one\ntwo\n".into(), stderr: "err\n".into() });
    let said = program.run(["logs", "--stream", "stderr", id.as_str()]);
    assert_eq!(said, Said { code: 0, stdout: String::new(), stderr: "err\n".into() });
}

#[test]
fn whoever_follows_sees_everything_to_the_end_and_takes_nothing() {
    let world = world();
    let program = world.program();
    let id = start(&program, TWO_PARTS);
    let followers: Vec<Running> = [
        &["logs", "-f", id.as_str()][..],
        &["logs", "-f", "--stream", "stdout", id.as_str()],
        &["attach", "--observe", id.as_str()],
    ]
    .into_iter()
    .map(|arguments| program.start(arguments.iter().copied(), Stdio::null()))
    .collect();
    wait_for_output(&world, &id, 4);
    let before = world.host().attempt(&id).unwrap();
    std::fs::write(world.work().join("go"), "").unwrap();
    let said: Vec<Said> = followers.into_iter().map(Running::said).collect();
    let all = |code| Said { code, stdout: "one\ntwo\n".into(), stderr: "err\n".into() };
    assert_eq!(said[0], all(0));
    assert_eq!(said[1], Said { stderr: String::new(), ..all(0) });
    assert_eq!(said[2], all(6));
    let after = world.host().attempt(&id).unwrap();
    assert_eq!(after.attachment_generation, before.attachment_generation);
    let said = program.run(["attach", id.as_str()]);
    assert_eq!(said, all(6), "nothing was acknowledged by looking on");
}

#[test]
fn the_oldest_output_goes_and_whoever_looks_on_is_told_and_slows_nothing() {
    let world = world();
    let program = world.program();
    let script = "while [ ! -e go ]; do sleep 0.01; done; seq 13000000 | tee all; exit 2";
    let attempt = world.launch(shell(script).on_host_loss(OnHostLoss::Keep));
    let id = attempt.id().clone();
    // It stands still as long as nobody reads its output.
    let mut command = program.command(["attach", "--observe", id.as_str()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut observer = command.spawn().unwrap();
    std::fs::write(world.work().join("go"), "").unwrap();
    let mut first = [0; 2];
    let mut output = observer.stdout.take().unwrap();
    std::io::Read::read_exact(&mut output, &mut first).unwrap();
    let read = world.bytes(&attempt);
    let wanted = std::fs::read(world.work().join("all")).unwrap();
    assert!(wanted.len() > 100_000_000);
    assert!(read == wanted, "{} bytes of {} came", read.len(), wanted.len());
    assert!(!attempt.finish().unwrap().is_success());

    let log = program.run(["logs", id.as_str()]);
    assert_eq!((log.code, gone(&log) + log.stdout.len()), (0, wanted.len()));
    assert!(wanted.ends_with(log.stdout.as_bytes()));
    let (kept, bound) = (log.stdout.len(), 64 * 1024 * 1024);
    assert!((bound - 5 * 1024 * 1024..=bound).contains(&kept), "{kept} bytes are kept");

    let mut seen = first.to_vec();
    std::io::Read::read_to_end(&mut output, &mut seen).unwrap();
    let ended = observer.wait_with_output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let missed = gone(&Said { code: 2, stdout: String::new(), stderr });
    assert_eq!(missed + seen.len(), wanted.len());
    let begin = seen.len() - kept;
    assert!(wanted.starts_with(&seen[..begin]), "what was seen before the gap");
    assert!(wanted.ends_with(&seen[begin..]), "what was seen after it");
}

#[test]
fn without_a_transcript_nothing_stays_that_was_delivered() {
    let world = world();
    let program = world.program();
    // The product stands in the output and nowhere else.
    let script = "echo $((1234577 * 7654321))";
    let run = program.run(["run", "--no-transcript", "--", "/bin/sh", "-c", script]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "9449848657217\n"), "{run:?}");
    let id = world.host().attempts().all().unwrap().attempts[0].attempt_id.clone();
    let said = program.run(["logs", id.as_str()]);
    assert_eq!((said.code, said.stdout.as_str(), gone(&said)), (0, "", 14));
    for file in files_below(&world.root()) {
        assert!(!file.windows(13).any(|window| window == b"9449848657217"));
    }
}

#[test]
fn without_a_transcript_what_nobody_read_is_kept_until_somebody_does() {
    let world = world();
    let program = world.program();
    let start = ["start", "--no-transcript", "--", "/bin/sh", "-c", "echo out; exit 3"];
    let id = program.run(start).stdout;
    let id = id.trim();
    assert_eq!(program.run(["wait", id]).code, 3);
    assert_eq!(program.run(["logs", id]).stdout, "out\n");
    assert_eq!(program.run(["attach", id]).stdout, "out\n");
    let said = program.run(["logs", id]);
    assert_eq!((said.stdout.as_str(), gone(&said)), ("", 4));
}

#[test]
fn a_launch_without_a_log_has_none_to_look_at() {
    let world = world();
    let attempt = world.launch(shell("echo out").spool_bytes_max(0));
    assert_eq!(world.text(&attempt).stdout, "out\n");
    let said = world.program().run(["logs", attempt.id().as_str()]);
    assert_eq!((said.code, said.stdout.as_str()), (125, ""), "{said:?}");
    assert!(said.stderr.starts_with("placement: CONFLICT: the launch keeps no log"), "{said:?}");
}
