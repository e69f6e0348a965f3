//! Input of the child, and readers of its output that go away.

use placement_testkit::wait_until;
use placement_world::{PATIENCE, Program};
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_placement"))
}

#[test]
fn without_input_the_child_reads_nothing_though_ours_is_open() {
    let program = program();
    let started = Instant::now();
    let mut running = program.start(["run", "--", "cat"], Stdio::piped());
    let _held_open = running.process().stdin.take();
    assert_eq!(running.said().code, 0);
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn input_is_pumped_where_it_is_asked_for() {
    let program = program();
    let mut running = program.start(["run", "-i", "--", "cat"], Stdio::piped());
    let text = "0123456789abcde\n".repeat(20_000);
    let mut stdin = running.process().stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    let said = running.said();
    assert_eq!((said.code, said.stdout.len()), (0, text.len()), "{}", said.stderr);
    assert_eq!(said.stdout, text);
}

#[test]
fn a_file_is_pumped_to_its_end() {
    let program = program();
    std::fs::write(program.work().join("brief"), "do it\n").unwrap();
    let said = program.run(["run", "--stdin", "brief", "--", "cat"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "do it\n"), "{said:?}");
}

#[test]
fn a_missing_input_file_is_refused_before_anything_runs() {
    let program = program();
    let said = program.run(["run", "--stdin", "nowhere", "--", "cat"]);
    assert_eq!(said.code, 125);
    assert!(said.stderr.contains("\"nowhere\" does not exist"), "{said:?}");
    let listed = program.run(["--json", "ps", "--all"]);
    assert_eq!(listed.stdout, "");
}

#[test]
fn a_child_that_ends_without_reading_is_no_error() {
    let program = program();
    let mut running =
        program.start(["run", "-i", "--", "/bin/sh", "-c", "echo no >&2; exit 5"], Stdio::piped());
    let mut stdin = running.process().stdin.take().unwrap();
    // The host may have gone before it read everything; that is the fact under test.
    stdin.write_all(&vec![b'x'; 2 * 1024 * 1024]).ok();
    drop(stdin);
    let said = running.said();
    assert_eq!((said.code, said.stderr.as_str()), (5, "no\n"));
}

#[test]
fn a_reader_that_goes_away_stops_the_child() {
    let program = program();
    let script = "echo $$ > pid; while :; do echo line; done";
    let mut command = program.command(["run", "--", "/bin/sh", "-c", script]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut first = [0; 5];
    let mut stdout = child.stdout.take().unwrap();
    std::io::Read::read_exact(&mut stdout, &mut first).unwrap();
    drop(stdout);
    let mut status = None;
    wait_until(PATIENCE, "the end of the host", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(128 + 15));
    assert!(program.homes_left().is_empty());
}
