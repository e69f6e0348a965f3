//! The command line: streams, exit codes, errors, replay.

use placement_world::{Program, Said};

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_placement"))
}

fn shell<'a>(options: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let mut arguments = vec!["run"];
    arguments.extend_from_slice(options);
    arguments.extend(["--", "/bin/sh", "-c", script]);
    arguments
}

#[track_caller]
fn error_of(said: &Said) -> serde_json::Value {
    let line = said.stderr.lines().next_back().expect("an error was said");
    let value: serde_json::Value = serde_json::from_str(line).expect("the error is JSON");
    value["error"].clone()
}

#[test]
fn streams_stay_apart_and_the_exit_is_the_childs() {
    let program = program();
    let said = program.run(shell(&[], "echo out; echo err >&2; exit 3"));
    assert_eq!(said, Said { code: 3, stdout: "out\n".into(), stderr: "err\n".into() });
    assert!(program.homes_left().is_empty());
    assert!(program.temporary_left().is_empty());
}

#[test]
fn output_without_a_newline_and_with_any_byte_passes_through() {
    let said = program().run(shell(&[], r"printf '\001a\r\n\011b'"));
    assert_eq!(said.stdout, "\u{1}a\r\n\tb");
}

#[test]
fn a_signal_is_128_and_its_number() {
    let said = program().run(shell(&[], "kill -KILL $$"));
    assert_eq!(said.code, 128 + 9, "{said:?}");
}

#[test]
fn a_program_that_is_not_there_is_127() {
    let said = program().run(["run", "--", "no-such-program-anywhere"]);
    assert_eq!(said.code, 127, "{said:?}");
    assert!(said.stderr.contains("EXECUTABLE_NOT_FOUND"), "{said:?}");
}

#[test]
fn a_file_that_is_no_program_is_126() {
    let program = program();
    std::fs::write(program.work().join("note"), "text").unwrap();
    let said = program.run(["run", "--", "./note"]);
    assert_eq!(said.code, 126, "{said:?}");
    assert!(said.stderr.contains("EXECUTABLE_REFUSED"), "{said:?}");
}

#[test]
fn a_timeout_is_124() {
    let program = program();
    let said = program.run(shell(&["--timeout", "300ms"], "sleep 600"));
    assert_eq!(said.code, 124, "{said:?}");
    assert!(program.homes_left().is_empty());
}

#[test]
fn wrong_arguments_are_2_and_run_nothing() {
    let program = program();
    for wrong in [
        &["run"][..],
        &["run", "--timeout", "5", "--", "true"],
        &["run", "--require", "everything", "--", "true"],
        &["no-such-command"],
        &["show"],
        &["cleanup", "--all", "x"],
        &["evidence", "x", "--after", "-1"],
        &["evidence", "x", "--limit", "1.5"],
        &["stop"],
        &[],
    ] {
        let said = program.run(wrong.iter().copied());
        assert_eq!(said.code, 2, "{wrong:?}: {said:?}");
        assert_eq!(said.stdout, "");
    }
    assert!(!program.root().exists());
}

#[test]
fn a_usage_error_is_json_where_json_is_asked_for() {
    let said = program().run(["--json", "run", "--no-such-option", "--", "true"]);
    assert_eq!(said.code, 2);
    let error = error_of(&said);
    assert_eq!(error["code"], "INVALID");
    assert!(error["message"].as_str().unwrap().contains("--no-such-option"), "{error}");
}

#[test]
fn options_of_later_versions_are_refused_by_name() {
    let program = program();
    for option in [
        &["--secret", "NAME=env:X"][..],
        &["--worktree"],
        &["--confine", "write_roots"],
        &["--wait-login", "1s"],
    ] {
        let said = program.run(shell(option, "true"));
        assert_eq!(said.code, 125, "{option:?}: {said:?}");
        assert!(said.stderr.contains("UNSUPPORTED"), "{said:?}");
        assert!(said.stderr.contains(option[0]), "{said:?}");
    }
    assert!(!program.root().exists(), "nothing was made for what was refused");
}

#[test]
fn commands_of_later_versions_are_refused_by_name() {
    let program = program();
    for command in
        [&["turn", "claude", "--model", "m", "do it"][..], &["profile", "list"], &["locate"]]
    {
        let said = program.run(command.iter().copied());
        assert_eq!(said.code, 125, "{command:?}: {said:?}");
        let expected =
            format!("placement: UNSUPPORTED: this version does not offer {}", command[0]);
        assert!(said.stderr.starts_with(&expected), "{said:?}");
    }
    assert!(!program.root().exists());
}

#[test]
fn an_error_says_what_to_do() {
    let said = program().run(["show", "no-such-attempt"]);
    assert_eq!(said.code, 125);
    assert!(said.stderr.starts_with("placement: NOT_FOUND: "), "{said:?}");
    assert!(said.stderr.ends_with("`placement ps --all` lists the attempts of this owner.\n"));
}

#[test]
fn an_error_is_json_where_json_is_asked_for() {
    let said = program().run(["--json", "show", "no-such-attempt"]);
    assert_eq!((said.code, said.stdout.as_str()), (125, ""));
    let error = error_of(&said);
    assert_eq!(error["code"], "NOT_FOUND");
    assert!(error["message"].is_string() && error["hint"].is_string(), "{error}");
}

#[test]
fn a_missing_directory_is_named() {
    let said = program().run(["run", "--write", "/nowhere/at/all", "--", "true"]);
    assert_eq!(said.code, 125);
    assert!(said.stderr.contains("\"/nowhere/at/all\""), "{said:?}");
}

#[test]
fn the_same_key_never_runs_twice() {
    let program = program();
    let script = "echo once >> count; echo out; echo err >&2; exit 7";
    let first = program.run(shell(&["--key", "k"], script));
    assert_eq!((first.code, first.stdout.as_str()), (7, "out\n"), "{first:?}");
    let second = program.run(shell(&["--key", "k"], script));
    assert_eq!((second.code, second.stdout.as_str()), (7, "out\n"), "{second:?}");
    assert!(second.stderr.contains("replayed"), "{second:?}");
    assert!(second.stderr.contains("err\n"), "{second:?}");
    assert_eq!(std::fs::read_to_string(program.work().join("count")).unwrap(), "once\n");
}

#[test]
fn the_same_key_for_another_launch_is_a_conflict() {
    let program = program();
    assert_eq!(program.run(shell(&["--key", "k"], "true")).code, 0);
    let said = program.run(shell(&["--key", "k"], "echo other"));
    assert_eq!(said.code, 125, "{said:?}");
    assert!(said.stderr.contains("CONFLICT"), "{said:?}");
    assert_eq!(said.stdout, "");
}

#[test]
fn a_failed_start_is_replayed_as_what_it_was() {
    let program = program();
    let arguments = ["run", "--key", "k", "--", "no-such-program-anywhere"];
    assert_eq!(program.run(arguments).code, 127);
    let said = program.run(arguments);
    assert_eq!(said.code, 127, "{said:?}");
    assert!(said.stderr.contains("replayed"), "{said:?}");
}

#[test]
fn verbose_says_the_attempt_first() {
    let said = program().run(["-v", "run", "--", "true"]);
    assert!(said.stderr.starts_with("placement: attempt "), "{said:?}");
    assert!(said.stderr.contains("exited 0; "), "{said:?}");
}

#[test]
fn json_tells_chunks_and_then_the_attempt() {
    let said = program().run(["--json", "run", "--", "/bin/sh", "-c", "echo out; exit 4"]);
    assert_eq!((said.code, said.stderr.as_str()), (4, ""));
    let lines: Vec<serde_json::Value> =
        said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text: String =
        lines.iter().filter_map(|line| line["text"].as_str()).collect::<Vec<_>>().concat();
    assert_eq!(text, "out\n");
    let attempt = &lines.last().unwrap()["attempt"];
    assert_eq!(attempt["exit"]["code"], 4);
    assert_eq!(attempt["cleanup_state"], "complete");
    assert_eq!(attempt["attempt_id"], lines[0]["attempt_id"]);
}

#[test]
fn the_child_sees_only_what_was_admitted() {
    let program = program();
    let mut command = program.command(shell(&["--env", "GIVEN=1"], "env | sort"));
    command.env("ANTHROPIC_API_KEY", "canary").env("LANG", "C.UTF-8").env("SECRET", "canary");
    let said = placement_world::Running::start(&mut command).said();
    let names: Vec<&str> = said.stdout.lines().filter_map(|line| line.split('=').next()).collect();
    for name in &names {
        let known = ["GIVEN", "HOME", "LANG", "PATH", "PLACEMENT_ATTEMPT_ID", "PWD", "TMPDIR"];
        // The shell itself sets the last three.
        assert!(
            known.contains(name) || ["OLDPWD", "SHLVL", "_"].contains(name),
            "{name}: {said:?}"
        );
    }
    assert!(names.contains(&"GIVEN") && names.contains(&"LANG"), "{said:?}");
    assert!(!said.stdout.contains("canary"));
    assert!(!said.stdout.contains(&format!("HOME={}\n", program.user_home())), "{said:?}");
}

#[test]
fn names_that_steer_programs_reach_the_child_only_where_the_launch_gives_them() {
    let program = program();
    let steering = ["BASH_ENV", "GIT_DIR", "LD_PRELOAD", "NODE_OPTIONS"];
    let seen = |options: &[&str]| {
        let mut command = program.command([&["run"], options, &["--", "/usr/bin/env"]].concat());
        command.envs(steering.map(|name| (name, "canary")));
        let said = placement_world::Running::start(&mut command).said();
        let lines = said
            .stdout
            .lines()
            .filter(|line| line.split_once('=').is_some_and(|(name, _)| steering.contains(&name)));
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(seen(&[]), Vec::<String>::new());
    let given = steering.map(|name| format!("{name}=/nowhere"));
    let options: Vec<&str> = given.iter().flat_map(|pair| ["--env", pair.as_str()]).collect();
    assert_eq!(seen(&options), given);
}

#[test]
fn a_failure_of_a_program_in_the_users_home_is_explained() {
    use std::os::unix::fs::PermissionsExt as _;
    let program = program();
    let tool = program.user_home().join("tool");
    std::fs::write(&tool, "#!/bin/sh\nexit $1\n").unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let said = program.run(["run", "--", tool.as_str(), "1"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("private HOME") && said.stderr.contains("--env"), "{said:?}");
    let said = program.run(["run", "--", tool.as_str(), "0"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
}

#[test]
fn a_missing_path_is_127_and_stays_so() {
    let program = program();
    let arguments = ["run", "--key", "k", "--", "/nowhere/program"];
    assert_eq!(program.run(arguments).code, 127);
    assert_eq!(program.run(arguments).code, 127);
}
