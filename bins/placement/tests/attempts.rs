//! Detached attempts: listing, watching, taking over, stopping, verifying.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use placement_testkit::wait_until;
use placement_world::{PATIENCE, Program, Running, StoppedWriter};
use std::process::Stdio;

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_placement"))
}

#[track_caller]
fn started(program: &Program, script: &str) -> String {
    let said = program.run(["start", "--", "/bin/sh", "-c", script]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    said.stdout.trim().to_owned()
}

#[track_caller]
fn wait_for_file(program: &Program, name: &str) {
    wait_until(PATIENCE, name, || program.work().join(name).exists());
}

fn signal(running: &Running, signal: Signal) {
    let pid = i32::try_from(running.pid()).expect("a process id fits");
    kill(Pid::from_raw(pid), signal).expect("the host runs");
}

#[test]
fn a_started_attempt_goes_on_without_its_host() {
    let program = program();
    let id = started(&program, "echo said; read x < fifo 2>/dev/null; sleep 600");
    let listed = program.run(["ps"]);
    assert!(listed.stdout.starts_with("ATTEMPT"), "{listed:?}");
    let row = listed.stdout.lines().nth(1).expect("it is listed");
    assert!(row.starts_with(&id) && row.contains("running") && row.contains("/bin/sh"), "{row}");
    let stopped = program.run(["stop", "--force", &id]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert_eq!(program.run(["wait", &id]).code, 128 + 9);
    assert_eq!(program.run(["cleanup", &id]).code, 0);
    assert!(program.homes_left().is_empty());
}

#[test]
fn a_cooperative_stop_lets_the_child_end_by_itself() {
    let program = program();
    let id =
        started(&program, "trap 'echo bye; exit 9' TERM; touch up; while :; do sleep 0.05; done");
    wait_for_file(&program, "up");
    assert_eq!(program.run(["stop", &id]).code, 0);
    assert_eq!(program.run(["wait", &id]).code, 9);
    let logs = program.run(["logs", &id]);
    assert_eq!(logs.stdout, "bye\n", "{logs:?}");
}

#[test]
fn an_ended_attempt_can_be_shown_and_verified() {
    let program = program();
    let id = started(&program, "echo out; echo err >&2; exit 4");
    assert_eq!(program.run(["wait", &id]).code, 4);
    assert_eq!(program.run(["cleanup", &id]).code, 0);
    let shown = program.run(["show", &id]);
    assert!(shown.stdout.contains("exited (code 4)"), "{shown:?}");
    let verified = program.run(["verify", &id]);
    assert_eq!(verified.code, 0, "{verified:?}");
    assert!(verified.stdout.starts_with(&format!("{id}  ok  ")), "{verified:?}");
    let evidence = program.run(["evidence", &id]);
    for kind in ["intent.recorded", "runner.started", "child.started", "child.exited"] {
        assert!(evidence.stdout.contains(kind), "{kind}: {evidence:?}");
    }
    let logs = program.run(["logs", &id, "--stream", "stderr"]);
    assert_eq!((logs.stdout.as_str(), logs.stderr.as_str()), ("", "err\n"));
}

#[test]
fn a_head_that_was_kept_elsewhere_is_compared() {
    let program = program();
    let id = started(&program, "true");
    program.run(["wait", &id]);
    let said = program.run(["verify", &id, "--head", &"0".repeat(64)]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stdout.contains("wrong"), "{said:?}");
}

#[test]
fn evidence_comes_in_pages() {
    let program = program();
    let id = started(&program, "true");
    program.run(["wait", &id]);
    let said = program.run(["--json", "evidence", &id, "--after", "1", "--limit", "2"]);
    let rows: Vec<serde_json::Value> =
        said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sequences: Vec<_> = rows.iter().map(|row| row["sequence"].as_u64()).collect();
    assert_eq!(sequences, [Some(2), Some(3)]);
    assert_eq!(rows[0]["attempt_id"], id.as_str());
}

#[test]
fn an_attachment_takes_the_streams_of_a_run() {
    let program = program();
    let script = "touch up; while [ ! -e go ]; do sleep 0.02; done; echo late; exit 6";
    let run = program.start(["run", "--key", "k", "--", "/bin/sh", "-c", script], Stdio::null());
    wait_for_file(&program, "up");
    let listed = program.run(["--json", "ps"]);
    let row: serde_json::Value = serde_json::from_str(listed.stdout.trim()).unwrap();
    let id = row["attempt_id"].as_str().unwrap().to_owned();
    let generation = row["attachment_generation"].as_u64();
    let attached = program.start(["attach", &id], Stdio::null());
    wait_until(PATIENCE, "the attachment", || {
        let shown = program.run(["--json", "show", &id]);
        let status: serde_json::Value = serde_json::from_str(shown.stdout.trim()).unwrap();
        status["attempt"]["attachment_generation"].as_u64() > generation
    });
    std::fs::write(program.work().join("go"), "").unwrap();
    let (attached, run) = (attached.said(), run.said());
    assert_eq!((attached.code, attached.stdout.as_str()), (6, "late\n"), "{attached:?}");
    assert_eq!((run.code, run.stdout.as_str()), (6, ""), "{run:?}");
    assert!(run.stderr.contains("were taken over"), "{run:?}");
}

#[test]
fn an_observer_sees_everything_and_takes_nothing() {
    let program = program();
    let script = "echo one; touch up; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 2";
    let run = program.start(["run", "--", "/bin/sh", "-c", script], Stdio::null());
    wait_for_file(&program, "up");
    let listed = program.run(["--json", "ps"]);
    let row: serde_json::Value = serde_json::from_str(listed.stdout.trim()).unwrap();
    let id = row["attempt_id"].as_str().unwrap();
    let observed = program.start(["attach", "--observe", id], Stdio::null());
    std::fs::write(program.work().join("go"), "").unwrap();
    let (observed, run) = (observed.said(), run.said());
    assert_eq!((observed.code, observed.stdout.as_str()), (2, "one\ntwo\n"), "{observed:?}");
    assert_eq!((run.code, run.stdout.as_str()), (2, "one\ntwo\n"), "{run:?}");
}

#[test]
fn the_first_interrupt_asks_and_the_attempt_is_still_cleaned_up() {
    let program = program();
    let script = "trap 'echo bye; exit 11' TERM; touch up; while :; do sleep 0.05; done";
    let run = program.start(["run", "--", "/bin/sh", "-c", script], Stdio::null());
    wait_for_file(&program, "up");
    signal(&run, Signal::SIGINT);
    let said = run.said();
    assert_eq!((said.code, said.stdout.as_str()), (11, "bye\n"), "{said:?}");
    assert!(program.homes_left().is_empty());
}

#[test]
fn the_second_interrupt_forces() {
    let program = program();
    let script = "trap 'touch asked' TERM; touch up; while :; do sleep 0.05; done";
    let run =
        program.start(["run", "--grace", "60s", "--", "/bin/sh", "-c", script], Stdio::null());
    wait_for_file(&program, "up");
    signal(&run, Signal::SIGINT);
    wait_for_file(&program, "asked");
    signal(&run, Signal::SIGTERM);
    let said = run.said();
    assert_eq!(said.code, 128 + 9, "{said:?}");
    assert!(program.homes_left().is_empty());
}

#[test]
fn interrupts_during_the_start_are_kept_for_the_attempt() {
    let program = program();
    assert_eq!(program.run(["ps"]).code, 0);
    let store = StoppedWriter::below(&program.root());
    let run = program.start(["run", "--", "/bin/sh", "-c", "sleep 600"], Stdio::null());
    let status = format!("/proc/{}/status", run.pid());
    wait_until(PATIENCE, "the host to take its signals", || {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        status.lines().any(|line| line.starts_with("SigBlk:") && !line.ends_with("0000"))
    });
    signal(&run, Signal::SIGINT);
    signal(&run, Signal::SIGTERM);
    drop(store);
    let said = run.said();
    assert!([128 + 15, 128 + 9].contains(&said.code), "{said:?}");
    program.assert_nothing_is_left();
}

#[test]
fn capabilities_and_doctor_say_what_was_measured() {
    let program = program();
    let said = program.run(["--json", "capabilities"]);
    let measured: serde_json::Value = serde_json::from_str(said.stdout.trim()).unwrap();
    assert!(measured["mechanisms"].as_array().is_some_and(|all| !all.is_empty()), "{said:?}");
    let doctor = program.run(["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    assert!(doctor.stdout.starts_with("contained_tree"), "{doctor:?}");
}
