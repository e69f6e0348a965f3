//! A root or a store that cannot be used: one clear error, and what is there stays as it is.

use placement_testkit::{ORDINARY_ID, is_root};
use placement_world::{Program, Refused, Running, make_store_newer, replace_in_store, through};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::process::{Command, Stdio};

/// Commands that open the root, one of which would launch something.
const COMMANDS: [&[&str]; 4] =
    [&["run", "--", "true"], &["start", "--", "true"], &["ps"], &["show", "some-attempt"]];

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_placement"))
}

/// A program whose root holds one attempt that ended and was cleaned up, and that attempt.
fn program_with_an_attempt() -> (Program, serde_json::Value) {
    let program = program();
    let said = program.run(["run", "--key", "k", "--", "/bin/sh", "-c", "echo out"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "out\n"), "{said:?}");
    let attempt = program.attempts().remove(0);
    (program, attempt)
}

fn text<'a>(attempt: &'a serde_json::Value, field: &str) -> &'a str {
    attempt[field].as_str().expect("an attempt has it")
}

#[track_caller]
fn assert_refused(refused: &Refused, code: &str, words: &str) {
    assert_eq!(refused.code, code, "{refused:?}");
    assert!(refused.message.contains(words), "{words:?} in {refused:?}");
}

/// Every file below the root with its content, but what SQLite shares between processes.
fn content(program: &Program) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![program.root()];
    while let Some(directory) = open.pop() {
        for entry in directory.read_dir_utf8().into_iter().flatten().flatten() {
            let path = entry.path().to_owned();
            if path.is_dir() {
                found.insert(path.to_string(), Vec::new());
                open.push(path);
            } else if !path.as_str().ends_with("-shm") {
                found.insert(path.to_string(), fs::read(&path).unwrap_or_default());
            }
        }
    }
    found
}

/// Asserts that every command is refused alike and that nothing below the root is changed.
#[track_caller]
fn assert_all_refused(program: &Program, code: &str, words: &str) -> Refused {
    let before = content(program);
    let mut last = None;
    for command in COMMANDS {
        let refused = refused_unlisted(program, command, |command| command);
        assert_refused(&refused, code, words);
        last = Some(refused);
    }
    assert!(content(program) == before, "something below the root was changed");
    last.expect("there are commands")
}

/// Runs a command that is refused where the attempts cannot be listed.
#[track_caller]
fn refused_unlisted(
    program: &Program,
    arguments: &[&str],
    change: impl Fn(Command) -> Command,
) -> Refused {
    let arguments = [&["--json"], arguments].concat();
    let mut command = change(program.command(arguments.iter().copied()));
    let said = Running::start(command.stdin(Stdio::null())).said();
    assert_eq!(said.code, 125, "{arguments:?}: {said:?}");
    assert!(program.homes_left().is_empty());
    assert!(program.temporary_left().is_empty());
    Refused::in_json(&said)
}

fn make_root(program: &Program, mode: u32) {
    fs::create_dir(program.root()).unwrap();
    fs::set_permissions(program.root(), Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_root_that_is_open_to_others_is_refused_and_not_narrowed() {
    for mode in [0o755, 0o750, 0o701, 0o777] {
        let program = program();
        make_root(&program, mode);
        let words = format!("the root directory is open to others (mode {mode:04o}");
        let refused = assert_all_refused(&program, "INVALID", &words);
        assert_eq!(refused.hint, "chmod 700 the root directory, or name another with --root");
        let now = fs::metadata(program.root()).unwrap().permissions().mode();
        assert_eq!(now & 0o7777, mode);
    }
}

#[test]
fn a_root_of_another_user_is_refused() {
    let program = program();
    make_root(&program, 0o700);
    if is_root() {
        chown(program.root(), Some(ORDINARY_ID), Some(ORDINARY_ID)).unwrap();
        let words = format!("the root directory belongs to user {ORDINARY_ID}");
        assert_all_refused(&program, "INVALID", &words);
    } else {
        let refused = program.refused_as(125, &["ps"], |command| with_root(&command, "/usr/bin"));
        assert_refused(&refused, "INVALID", "the root directory belongs to user 0");
    }
}

#[test]
fn a_root_that_is_no_directory_is_refused() {
    let program = program();
    fs::write(program.root(), "mine").unwrap();
    assert_all_refused(&program, "INVALID", "the root directory is not a directory");
    assert_eq!(fs::read_to_string(program.root()).unwrap(), "mine");
}

#[test]
fn a_root_below_a_file_is_refused() {
    let program = program();
    fs::write(program.work().join("file"), "").unwrap();
    let below = program.work().join("file/root");
    let refused = program.refused_as(125, &["ps"], |command| with_root(&command, below.as_str()));
    assert_refused(&refused, "INVALID", "the root directory is not a directory");
}

#[test]
fn a_root_that_cannot_be_made_is_refused() {
    let program = program();
    for root in ["/proc/placement", "/dev/null/placement"] {
        let arguments = ["run", "--", "true"];
        let refused = program.refused_as(125, &arguments, |command| with_root(&command, root));
        assert!(["STORAGE", "INVALID"].contains(&refused.code.as_str()), "{refused:?}");
        assert!(refused.message.starts_with("the root directory "), "{refused:?}");
        assert!(refused.hint.contains("--root"), "{refused:?}");
    }
}

#[test]
fn no_root_at_all_is_refused() {
    let program = program();
    for home in [None, Some(""), Some("relative")] {
        let refused = program.refused_as(125, &["ps"], |command| {
            let mut command = without_root(&command);
            match home {
                Some(home) => command.env("HOME", home),
                None => command.env_remove("HOME"),
            };
            command
        });
        assert_refused(&refused, "INVALID", "no root is named and HOME is not set");
        assert_eq!(refused.hint, "name one with --root DIR");
    }
}

#[test]
fn an_empty_root_is_refused() {
    let refused = program().refused_as(125, &["ps"], |command| with_root(&command, ""));
    assert_refused(&refused, "INVALID", "the root is empty");
}

#[test]
fn a_root_may_be_relative_or_a_link() {
    let program = program();
    let real = program.work().join("real");
    fs::create_dir(&real).unwrap();
    fs::set_permissions(&real, Permissions::from_mode(0o700)).unwrap();
    symlink(&real, program.work().join("link")).unwrap();
    for root in ["relative/below", "link", "./link/../real"] {
        let mut command = with_root(&program.command(["run", "--", "true"]), root);
        let said = Running::start(command.stdin(Stdio::null())).said();
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{root}");
    }
    let mode = fs::metadata(program.work().join("relative")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700, "what is made on the way is private too");
}

/// Names another root than the program's own.
fn with_root(command: &Command, root: &str) -> Command {
    let mut command = without_root(command);
    command.args(["--root", root]);
    reorder(&command)
}

fn without_root(command: &Command) -> Command {
    let program = command.get_program().to_str().expect("a path of a test is UTF-8").to_owned();
    let mut other = through(&[&program], command);
    let kept: Vec<_> = command.get_args().skip(2).map(ToOwned::to_owned).collect();
    other = through(&["/usr/bin/env", "--"], &other);
    drop(kept);
    other
}

fn reorder(command: &Command) -> Command {
    through(&["/usr/bin/env"], command)
}
