//! Children that do what nobody expects, and a host in odd circumstances: the outcome is told, and
//! nothing is left.

use placement::Timeouts;
use placement_testkit::wait_until;
use placement_world::{PATIENCE, Program, Running, Said, StoppedWriter, World, shell, through};
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_placement"))
}

fn run(program: &Program, script: &str) -> Said {
    program.run(["run", "--grace", "200ms", "--", "/bin/sh", "-c", script])
}

/// Asserts the exit and the output of a script after which nothing is left.
#[track_caller]
fn assert_told(script: &str, code: i32, stdout: &str, stderr: &str) {
    let program = program();
    let expected = Said { code, stdout: stdout.to_owned(), stderr: stderr.to_owned() };
    assert_eq!(run(&program, script), expected, "{script}");
    program.assert_nothing_is_left();
}

#[test]
fn a_child_may_remove_its_home_and_its_temporary_directory() {
    assert_told("rm -rf \"$HOME\" \"$TMPDIR\"; echo out; exit 7", 7, "out\n", "");
}

#[test]
fn a_child_may_close_every_directory_that_it_has() {
    let script = "mkdir -p $HOME/a/b $TMPDIR/c; : > $HOME/a/b/f; \
                  chmod 000 $HOME/a/b $HOME/a $HOME $TMPDIR/c $TMPDIR; exit 8";
    assert_told(script, 8, "", "");
}

#[test]
fn what_a_child_links_to_from_its_home_stays() {
    let program = program();
    fs::create_dir(program.work().join("kept")).unwrap();
    fs::write(program.work().join("kept/file"), "kept").unwrap();
    let script = "ln -s $PWD/kept $HOME/link; ln $PWD/kept/file $HOME/hard; \
                  mkfifo $HOME/pipe; rm -rf $TMPDIR; ln -s $PWD/kept $TMPDIR; exit 0";
    assert_eq!(run(&program, script).code, 0);
    assert_eq!(fs::read_to_string(program.work().join("kept/file")).unwrap(), "kept");
    program.assert_nothing_is_left();
}

#[test]
fn a_child_may_replace_its_home_by_a_link() {
    let program = program();
    fs::write(program.work().join("file"), "kept").unwrap();
    let script = "cd $HOME/..; mv home moved; ln -s $OLDPWD home; exit 9";
    assert_eq!(run(&program, script).code, 9);
    assert_eq!(fs::read_to_string(program.work().join("file")).unwrap(), "kept");
    program.assert_nothing_is_left();
}

#[test]
fn output_may_be_closed_before_the_end() {
    assert_told("echo out; exec <&- >&- 2>&-; sleep 0.1; exit 4", 4, "out\n", "");
}

#[test]
fn two_hundred_escapees_that_ignore_sigterm_are_gone() {
    let script = "trap '' TERM; i=0; while [ $i -lt 200 ]; do setsid sleep 600 & i=$((i+1)); done; \
                  echo out; exit 6";
    assert_told(script, 6, "out\n", "");
}

#[test]
fn a_stopped_tree_is_ended() {
    let program = program();
    let script = "setsid /bin/sh -c 'kill -STOP $$' & sleep 0.1; kill -STOP $$";
    let options = ["run", "--timeout", "300ms", "--grace", "200ms", "--", "/bin/sh", "-c", script];
    assert_eq!(program.run(options).code, 124);
    program.assert_nothing_is_left();
}

#[test]
fn placement_runs_in_placement() {
    let program = program();
    let inner = program.work().join("inner");
    let script = format!(
        "{} --root {inner} run -- /bin/sh -c 'echo out; setsid sleep 600 & exit 3'",
        env!("CARGO_BIN_EXE_placement"),
    );
    let said = run(&program, &script);
    assert_eq!((said.code, said.stdout.as_str()), (3, "out\n"), "{said:?}");
    program.assert_nothing_is_left();
}

#[test]
fn a_forced_stop_leaves_the_same_attempt_of_another_root_alone() {
    let (one, other) = (program(), program());
    let key = one.root().to_string();
    // An id is derived from owner and key, so both attempts have the same.
    let lost = "setsid sleep 600 & kill -KILL $PPID; wait";
    let options = ["--key", &key, "--mechanism", "subreaper", "--", "/bin/sh", "-c"];
    assert_eq!(one.run([&["run"], &options[..], &[lost]].concat()).code, 120);
    let running = "touch up; exec sleep 600";
    let id = other.run([&["start"], &options[..], &[running]].concat()).stdout;
    let id = id.trim();
    wait_until(PATIENCE, "the child", || other.work().join("up").exists());

    assert_eq!(one.run(["stop", "--force", id]).code, 0);
    let evidence = one.run(["evidence", id]).stdout;
    assert!(evidence.contains(" by the attempt's marker"), "{evidence}");
    assert_eq!(other.attempts()[0]["execution_state"], "running");
    assert_eq!(other.run(["stop", "--force", id]).code, 0);
    assert_eq!(other.run(["cleanup", id]).code, 0);
    other.assert_nothing_is_left();
}

#[test]
fn a_child_that_removes_its_log_is_told_to_have_lost_output() {
    let program = program();
    let said = run(&program, "rm -rf $HOME/../log; echo lost; exit 3");
    assert_eq!((said.code, said.stdout.as_str()), (3, ""), "{said:?}");
    assert!(said.stderr.contains("placement: output is lost: the spool could not"), "{said:?}");
    program.assert_nothing_is_left();
}

#[test]
fn a_working_directory_that_is_gone_is_refused_and_another_one_is_taken() {
    let program = program();
    let script = "mkdir gone; cd gone; rmdir ../gone; exec \"$@\"";
    let wrapper = ["/bin/sh", "-c", script, "sh"];
    let refused = program.refused_by(125, &["run", "--", "true"], |arguments| {
        through(&wrapper, &program.command(arguments.iter().copied()))
    });
    assert_eq!(refused.message, "the current directory is gone; name another with --cwd");
    let elsewhere = program.command(["run", "--cwd", "/", "--", "/bin/pwd"]);
    let said = Running::start(through(&wrapper, &elsewhere).stdin(Stdio::null())).said();
    assert_eq!((said.code, said.stdout.as_str()), (0, "/\n"), "{said:?}");
}

#[test]
fn a_host_without_its_standard_descriptors_works() {
    let program = program();
    for closed in ["<&-", "1>&-", "2>&-", "<&- 1>&- 2>&-"] {
        let script = format!("exec \"$@\" {closed}");
        let command =
            program.command(["run", "--", "/bin/sh", "-c", "echo out; echo err >&2; exit 3"]);
        let mut command = through(&["/bin/sh", "-c", &script, "sh"], &command);
        let said = Running::start(command.stdin(Stdio::null())).said();
        let expected = |text: &str, number: &str| {
            if closed.contains(number) { String::new() } else { text.to_owned() }
        };
        assert_eq!(said.code, 3, "{closed}: {said:?}");
        assert_eq!(said.stdout, expected("out\n", "1>&-"), "{closed}");
        assert_eq!(said.stderr, expected("err\n", "2>&-"), "{closed}");
        program.assert_nothing_is_left();
    }
}

#[test]
fn a_spool_that_stays_broken_is_recorded_once() {
    let world = World::new(env!("CARGO_BIN_EXE_placement"));
    let script = "touch up; while [ ! -e go ]; do sleep 0.02; done; rm -rf $HOME/../log; echo lost";
    let timeouts = Timeouts { drain_ms: 100, ..Timeouts::default() };
    let attempt = world.launch(shell(script).timeouts(timeouts));
    world.wait_for_file("up");
    // While the store is held its end waits for its last rows, and tries the spool every second.
    let store = StoppedWriter::below(&world.root());
    fs::write(world.work().join("go"), "").unwrap();
    let held = Instant::now();
    wait_until(PATIENCE, "two tries", || held.elapsed() > Duration::from_millis(2_500));
    drop(store);
    let end = attempt.finish().unwrap();
    let kinds = world.kinds(&end.attempt().attempt_id);
    let finished = kinds.iter().position(|kind| *kind == "runner.finished");
    let failed = kinds.iter().rposition(|kind| *kind == "spool.failed");
    assert!(failed.is_some() && failed < finished, "{kinds:?}");
    world.assert_clean(&end);
}
