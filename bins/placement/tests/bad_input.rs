//! Bad input on the command line: one clear error in words and in JSON, and nothing left behind.

use placement_testkit::{is_root, wait_until};
use placement_world::{PATIENCE, Program, Refused, Running, Said};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_placement"))
}

#[track_caller]
fn assert_refused(refused: &Refused, code: &str, words: &str) {
    assert_eq!(refused.code, code, "{refused:?}");
    assert!(refused.message.contains(words), "{words:?} in {refused:?}");
}

/// Runs `true` with options that are refused before anything is recorded.
#[track_caller]
fn assert_invalid(program: &Program, options: &[&str], words: &str) {
    let arguments = [&["run"], options, &["--", "true"]].concat();
    assert_refused(&program.refused(125, &arguments), "INVALID", words);
    assert!(program.attempts().is_empty(), "{options:?}");
}

/// Runs a command as another owner on the same root.
#[track_caller]
fn json_of(program: &Program, owner: &str, arguments: &[&str]) -> Said {
    let root = program.root();
    let arguments = [&["--json", "--root", root.as_str(), "--owner", owner], arguments].concat();
    let mut command = program.bare_command(arguments);
    Running::start(command.stdin(Stdio::null())).said()
}

/// Writes an executable file to the working directory.
fn executable(program: &Program, name: &str, content: &[u8]) {
    let path = program.work().join(name);
    fs::write(&path, content).expect("the working directory is writable");
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("the file is this user's");
}

#[test]
fn environment_that_is_none_is_invalid() {
    let program = program();
    for (pair, words) in [
        ("lower=x", "\"lower\" must be of A-Z, 0-9 and underscore"),
        ("=x", "\"\" must be of A-Z, 0-9 and underscore"),
        ("A B=x", "\"A B\" must be of A-Z, 0-9 and underscore"),
        ("NAME", "--env NAME has no value"),
        (&format!("A={}", "x".repeat(16_385)), "environment.A: must be at most 16384 bytes"),
    ] {
        assert_invalid(&program, &["--env", pair], words);
    }
}

#[test]
fn environment_that_placement_sets_cannot_be_supplied() {
    let program = program();
    for name in ["PATH", "HOME", "TMPDIR", "PLACEMENT_ATTEMPT_ID"] {
        let pair = format!("{name}=canary");
        let refused = program.refused(125, &["run", "--env", &pair, "--", "true"]);
        assert_refused(&refused, "INVALID", &format!("environment.{name}: is set by placement"));
        assert!(!format!("{refused:?}").contains("canary"), "{refused:?}");
        assert_eq!(refused.hint, format!("leave {name} out"));
    }
}

#[test]
fn too_many_variables_are_invalid() {
    let pairs: Vec<String> = (0..65).map(|number| format!("--env=A{number}=x")).collect();
    let options: Vec<&str> = pairs.iter().map(String::as_str).collect();
    assert_invalid(&program(), &options, "launch.environment: must have at most 64 items");
}

#[test]
fn an_environment_of_the_caller_that_is_out_of_bounds_is_no_obstacle() {
    let program = program();
    let mut command = program.command(["run", "--", "/bin/sh", "-c", "echo ${LANG-unset} $TZ"]);
    let command = command.env("LANG", "x".repeat(100_000)).env("TZ", "UTC");
    let said = Running::start(command.stdin(Stdio::null())).said();
    assert_eq!((said.code, said.stdout.as_str()), (0, "unset UTC\n"), "{said:?}");
}

#[test]
fn arguments_out_of_bounds_are_invalid() {
    let program = program();
    let long = "x".repeat(16_385);
    let refused = program.refused(125, &["run", "--", "true", &long]);
    assert_refused(&refused, "INVALID", "the argument must be at most 16384 bytes without NUL");
    let refused = program.refused(125, &["run", "--", &long]);
    assert_refused(&refused, "INVALID", "the program must be at most 16384 bytes without NUL");
    let many = [&["run", "--", "true"][..], &["x"; 129]].concat();
    let refused = program.refused(125, &many);
    assert_refused(&refused, "INVALID", "launch.argv: must have at most 128 items");
    assert!(program.attempts().is_empty());
}

#[test]
fn arguments_within_their_bounds_are_passed_on() {
    let longest = "x".repeat(16_384);
    let script = "echo $# ${#1}";
    let arguments = ["run", "--", "/bin/sh", "-c", script, "sh", &longest];
    let said = program().run([&arguments[..], &["x"; 124]].concat());
    assert_eq!((said.code, said.stdout.as_str()), (0, "125 16384\n"), "{said:?}");
}

#[test]
fn too_many_directories_are_invalid() {
    let program = program();
    let names: Vec<String> = (0..16).map(|number| format!("d{number}")).collect();
    for name in &names {
        fs::create_dir(program.work().join(name)).unwrap();
    }
    // The working directory is the seventeenth.
    let options: Vec<&str> = names.iter().flat_map(|name| ["--read", name]).collect();
    assert_invalid(&program, &options, "resources: must have at most 16 items");
}

#[test]
fn times_out_of_bounds_are_invalid() {
    let program = program();
    for timeout in ["0s", "0ms", "721h", "9999999999h"] {
        let words = "supervision.deadline_ms: must be 1 ms to 30 days";
        assert_invalid(&program, &["--timeout", timeout], words);
    }
    let words = "timeouts.stop_grace_ms: must be 0 to 60000 milliseconds";
    assert_invalid(&program, &["--grace", "61s"], words);
}

#[test]
fn ids_out_of_bounds_are_invalid() {
    let program = program();
    for (text, words) in [
        ("", "must not be empty"),
        (&"k".repeat(161), "must be at most 160 bytes"),
        ("a\tb", "must not contain control characters"),
    ] {
        assert_invalid(&program, &["--key", text], &format!("the key {words}"));
        let refused = program.refused(125, &["show", text]);
        assert_refused(&refused, "INVALID", &format!("the attempt id {words}"));
        let refused = Refused::in_json(&json_of(&program, text, &["run", "--", "true"]));
        assert_refused(&refused, "INVALID", &format!("the owner {words}"));
    }
}

#[test]
fn a_key_may_hold_spaces_and_slashes() {
    let program = program();
    for key in ["a b", "../x", "ticket 4711 / 한글"] {
        let key = format!("{key} {}", program.root());
        let said = program.run(["run", "--key", &key, "--", "true"]);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{key}");
    }
    program.assert_nothing_is_left();
}

#[test]
fn directories_that_are_none_are_invalid() {
    let program = program();
    fs::write(program.work().join("file"), "").unwrap();
    symlink("nowhere", program.work().join("dangling")).unwrap();
    symlink("loop", program.work().join("loop")).unwrap();
    for (directory, words) in [
        ("/nowhere", "\"/nowhere\": the path does not exist"),
        ("nowhere", "/work/nowhere\": the path does not exist"),
        ("nowhere/..", "the path does not exist"),
        ("file", "/work/file\": the path is not a directory"),
        ("file/below", "the path is not a directory"),
        ("dangling", "the path does not exist"),
        ("loop", "the path has too many symbolic links"),
        ("", "\"\" is empty"),
    ] {
        for option in ["--cwd", "--write", "--read"] {
            assert_invalid(&program, &[option, directory], words);
        }
    }
}

#[test]
fn a_directory_that_may_not_be_entered_is_invalid() {
    if is_root() {
        println!("not tested here: root enters every directory");
        return;
    }
    let program = program();
    let closed = program.work().join("closed");
    fs::create_dir_all(closed.join("inner")).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
    assert_invalid(&program, &["--cwd", "closed/inner"], "/work/closed/inner\": ");
    assert_invalid(&program, &["--write", "closed/inner"], "/work/closed/inner\": ");
}

#[test]
fn a_relative_directory_is_taken_from_here_and_a_link_for_what_it_means() {
    let program = program();
    fs::create_dir(program.work().join("real")).unwrap();
    symlink("real", program.work().join("link")).unwrap();
    for directory in ["real", "./real/", "link", "link/../real", "real/../link"] {
        let said = program.run(["run", "--cwd", directory, "--", "/bin/pwd", "-P"]);
        let expected = format!("{}/real\n", program.work());
        assert_eq!((said.code, said.stdout), (0, expected), "{directory}: {}", said.stderr);
    }
    program.assert_nothing_is_left();
}

#[test]
fn a_program_that_is_not_there_is_127_and_cleaned_up() {
    let program = program();
    executable(&program, "tool", b"#!/bin/sh\n");
    symlink("nowhere", program.work().join("dangling")).unwrap();
    let (long_name, long_path) = ("x".repeat(300), format!("./{}", "x/".repeat(3_000)));
    let named = ["no-such-program", "/no/such/program", "./missing", "./dangling"];
    let named = named.into_iter().chain(["./tool/below", &long_name, &long_path]);
    for name in named {
        let refused = program.refused(127, &["run", "--", name]);
        assert_refused(&refused, "EXECUTABLE_NOT_FOUND", "the program was not found");
    }
}

#[test]
fn a_name_that_is_no_program_is_invalid() {
    let program = program();
    let relative = "must be an absolute path or a name without a slash";
    for (name, words) in [("", "must not be empty"), (".", relative), ("..", relative)] {
        let refused = program.refused(125, &["run", "--", name]);
        assert_refused(&refused, "INVALID", &format!("launch.executable: {words}"));
    }
    assert!(program.attempts().is_empty());
}

#[test]
fn a_program_that_cannot_be_executed_is_126_and_cleaned_up() {
    let program = program();
    fs::write(program.work().join("note"), "text").unwrap();
    fs::create_dir(program.work().join("directory")).unwrap();
    symlink("loop", program.work().join("loop")).unwrap();
    executable(&program, "empty", b"");
    executable(&program, "text", b"echo no interpreter is named\n");
    executable(&program, "broken", b"\x7fELFand nothing of a program");
    for (name, words) in [
        ("./note", "the program is not executable"),
        ("./directory", "the program is not executable"),
        ("/dev/null", "the program is not executable"),
        ("/", "the program is not executable"),
        ("./loop", "the program's links lead in a circle"),
        ("./empty", "the program did not start: ENOEXEC"),
        ("./text", "the program did not start: ENOEXEC"),
        ("./broken", "the program did not start: ENOEXEC"),
    ] {
        assert_refused(&program.refused(126, &["run", "--", name]), "EXECUTABLE_REFUSED", words);
    }
}

#[test]
fn a_program_that_may_not_be_read_is_126_and_cleaned_up() {
    if is_root() {
        println!("not tested here: root reads every file");
        return;
    }
    let program = program();
    executable(&program, "secret", b"#!/bin/sh\n");
    fs::set_permissions(program.work().join("secret"), Permissions::from_mode(0o111)).unwrap();
    let refused = program.refused(126, &["run", "--", "./secret"]);
    assert_refused(&refused, "EXECUTABLE_REFUSED", "the program ");
}

#[test]
fn a_script_without_its_interpreter_is_126_and_cleaned_up() {
    let program = program();
    let missing = "the script's interpreter is missing";
    let unusable = "the script's interpreter line is not usable";
    executable(&program, "missing", b"#!/no/such/interpreter -x\n");
    executable(&program, "bare", b"#!");
    executable(&program, "blank", b"#!  \n");
    executable(&program, "relative", b"#!bin/sh\n");
    executable(&program, "endless", format!("#!/{}\n", "x".repeat(5_000)).as_bytes());
    executable(&program, "folder", format!("#!{}\n", program.work()).as_bytes());
    for (name, words) in [
        ("./missing", missing),
        ("./bare", unusable),
        ("./blank", unusable),
        ("./relative", unusable),
        ("./endless", unusable),
        ("./folder", "the script's interpreter cannot be measured: it is not a regular file"),
    ] {
        assert_refused(&program.refused(126, &["run", "--", name]), "EXECUTABLE_REFUSED", words);
    }
}

#[test]
fn a_detached_start_that_fails_is_cleaned_up_too() {
    let program = program();
    fs::write(program.work().join("note"), "text").unwrap();
    let refused = program.refused(126, &["start", "--", "./note"]);
    assert_refused(&refused, "EXECUTABLE_REFUSED", "the program is not executable");
    let refused = program.refused(127, &["start", "--", "no-such-program"]);
    assert_refused(&refused, "EXECUTABLE_NOT_FOUND", "the program was not found");
    assert_eq!(program.attempts().len(), 4, "each was recorded");
}

#[test]
fn input_that_cannot_be_read_is_refused_before_anything_runs() {
    let program = program();
    fs::create_dir(program.work().join("directory")).unwrap();
    for command in ["run", "start"] {
        for (file, words) in [
            ("nowhere", "the input file \"nowhere\" does not exist"),
            ("", "the input file \"\" does not exist"),
            ("directory", "the input file \"directory\" is a directory"),
        ] {
            let refused = program.refused(125, &[command, "--stdin", file, "--", "cat"]);
            assert_refused(&refused, "INVALID", words);
        }
    }
    assert!(program.attempts().is_empty());
}

#[test]
fn input_of_a_detached_child_is_bounded() {
    let program = program();
    fs::write(program.work().join("large"), "x".repeat(65_537)).unwrap();
    fs::write(program.work().join("bytes"), b"\xff\xfe").unwrap();
    let refused = program.refused(125, &["start", "--stdin", "large", "--", "cat"]);
    assert_refused(&refused, "INVALID", "the input file has more than 65536 bytes");
    let refused = program.refused(125, &["start", "--stdin", "bytes", "--", "cat"]);
    assert_refused(&refused, "INVALID", "the input file is not UTF-8");
    assert!(program.attempts().is_empty());
}

#[test]
fn a_capability_that_is_not_there_is_refused_with_what_was_measured() {
    let program = program();
    let said = program.run(["--json", "capabilities"]);
    let measured: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let cgroup = measured["mechanisms"].as_array().into_iter().flatten();
    let mut cgroup = cgroup.filter(|seen| seen["mechanism"] == "cgroup");
    if cgroup.any(|seen| seen["available"] == true) {
        println!("not tested here: the cgroup is available");
        return;
    }
    let refused = program.refused(125, &["run", "--mechanism", "cgroup", "--", "true"]);
    assert_refused(&refused, "UNSUPPORTED_CAPABILITY", "contained_tree by cgroup is required");
    assert!(program.attempts().is_empty());
}

#[test]
fn what_contradicts_itself_is_invalid() {
    let options = ["--require", "process_group", "--mechanism", "subreaper"];
    let words = "supervision.mechanism: needs required_cleanup contained_tree";
    assert_invalid(&program(), &options, words);
}

#[test]
fn a_head_that_is_none_is_invalid() {
    let program = program();
    for head in ["", "0", &"g".repeat(64), &"A".repeat(64), &"0".repeat(65)] {
        let refused = program.refused(125, &["verify", "some-attempt", "--head", head]);
        assert_refused(&refused, "INVALID", "--head must be 64 lowercase hexadecimal characters");
    }
}

#[test]
fn an_unknown_attempt_and_a_foreign_one_are_told_alike() {
    let program = program();
    let script = "touch up; exec sleep 600";
    let said = program.run(["start", "--", "/bin/sh", "-c", script]);
    let foreign = said.stdout.trim().to_owned();
    wait_until(PATIENCE, "the child", || program.work().join("up").exists());
    let unknown = "01HZZZZZZZZZZZZZZZZZZZZZZZ";
    let refused = |command: &[&str], attempt: &str| {
        let said = json_of(&program, "local:stranger", &[command, &[attempt]].concat());
        assert_eq!(said.code, 125, "{command:?}: {said:?}");
        Refused::in_json(&said)
    };
    for command in [
        &["show"][..],
        &["evidence"],
        &["logs"],
        &["logs", "--follow"],
        &["attach"],
        &["attach", "--observe"],
        &["wait"],
        &["stop"],
        &["stop", "--force"],
        &["cleanup"],
        &["reconcile"],
        &["verify"],
    ] {
        let of_unknown = refused(command, unknown);
        assert_refused(&of_unknown, "NOT_FOUND", &format!("this owner has no attempt {unknown}"));
        let alike =
            Refused { message: of_unknown.message.replace(unknown, &foreign), ..of_unknown };
        assert_eq!(refused(command, &foreign), alike, "{command:?}");
    }
    let attempts = program.attempts();
    assert_eq!(attempts[0]["execution_state"], "running", "{attempts:?}");
    assert_eq!(program.run(["stop", "--force", &foreign]).code, 0);
    assert_eq!(program.run(["cleanup", &foreign]).code, 0);
    program.assert_nothing_is_left();
}
