//! A root or a store that cannot be used: one clear error, and what is there stays as it is.

use placement_testkit::{ORDINARY_ID, is_root};
use placement_world::{
    Program, Refused, Running, World, make_store_newer, replace_in_store, through,
};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::process::Stdio;

/// Commands that open the root, two of which would launch something.
const COMMANDS: [&[&str]; 5] = [
    &["run", "--", "true"],
    &["start", "--", "true"],
    &["ps", "--all"],
    &["stop", "--all"],
    &["show", "some-attempt"],
];

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_placement"))
}

/// The arguments of a launch with a key that no other root has.
fn launch(program: &Program) -> [String; 7] {
    let key = program.root().to_string();
    ["run", "--key", &key, "--", "/bin/sh", "-c", "echo out"].map(str::to_owned)
}

/// A program whose root holds one attempt that ended and was cleaned up, and that attempt.
fn program_with_an_attempt() -> (Program, serde_json::Value) {
    let program = program();
    let said = program.run(launch(&program).iter().map(String::as_str));
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

/// Runs a command that is refused while the attempts cannot be listed.
#[track_caller]
fn refused_unlisted(program: &Program, arguments: &[&str]) -> Refused {
    let said = program.run([&["--json"], arguments].concat());
    assert_eq!(said.code, 125, "{arguments:?}: {said:?}");
    assert!(program.homes_left().is_empty());
    assert!(program.temporary_left().is_empty());
    Refused::in_json(&said)
}

/// Asserts that every command is refused alike and that nothing below the root is changed.
#[track_caller]
fn assert_all_refused(program: &Program, code: &str, words: &str) -> Refused {
    let before = content(program);
    let refused = COMMANDS.map(|command| refused_unlisted(program, command));
    for one in &refused {
        assert_refused(one, code, words);
    }
    assert!(content(program) == before, "something below the root was changed");
    let [first, ..] = refused;
    first
}

/// Everything below the root with its content, but what SQLite shares between processes.
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

fn make_root(program: &Program, mode: u32) {
    fs::create_dir(program.root()).expect("there is no root yet");
    fs::set_permissions(program.root(), Permissions::from_mode(mode))
        .expect("the directory is this user's");
}

/// Runs a command on another root, which is refused.
#[track_caller]
fn refused_at(program: &Program, root: &str, arguments: &[&str]) -> Refused {
    program.refused_by(125, arguments, |arguments| {
        program.bare_command([&["--root", root], arguments].concat())
    })
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
    if is_root() {
        make_root(&program, 0o700);
        chown(program.root(), Some(ORDINARY_ID), Some(ORDINARY_ID)).unwrap();
        let words = format!("the root directory belongs to user {ORDINARY_ID}");
        assert_all_refused(&program, "INVALID", &words);
    } else {
        let refused = refused_at(&program, "/usr/bin", &["ps"]);
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
fn a_root_that_cannot_be_made_is_refused() {
    let program = program();
    fs::write(program.work().join("file"), "").unwrap();
    for root in ["/proc/placement", "/dev/null/placement", "file/placement"] {
        let refused = refused_at(&program, root, &["run", "--", "true"]);
        assert!(["STORAGE", "INVALID"].contains(&refused.code.as_str()), "{refused:?}");
        assert!(refused.message.starts_with("the root directory "), "{refused:?}");
        assert!(refused.hint.contains("--root"), "{refused:?}");
    }
}

#[test]
fn no_root_at_all_is_invalid() {
    let program = program();
    assert_refused(&refused_at(&program, "", &["ps"]), "INVALID", "the root is empty");
    for home in ["", "relative"] {
        let refused = program.refused_by(125, &["ps"], |arguments| {
            let mut command = program.bare_command(arguments.iter().copied());
            command.env("HOME", home);
            command
        });
        assert_refused(&refused, "INVALID", "no root is named and HOME is not set");
        assert_eq!(refused.hint, "name one with --root DIR");
    }
}

#[test]
fn a_root_may_be_relative_or_a_link() {
    let program = program();
    let real = program.work().join("real");
    fs::create_dir(&real).unwrap();
    fs::set_permissions(&real, Permissions::from_mode(0o700)).unwrap();
    symlink(&real, program.work().join("link")).unwrap();
    for root in ["relative/below", "link", "./link/../real"] {
        let mut command = program.bare_command(["--root", root, "run", "--", "true"]);
        let said = Running::start(command.stdin(Stdio::null())).said();
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{root}");
    }
    let mode = fs::metadata(program.work().join("relative")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700, "what is made on the way is private too");
}

#[test]
fn a_root_on_a_read_only_file_system_is_refused() {
    // In a mount namespace that ends with the command.
    let made = "mount -t tmpfs -o ro,mode=700 tmpfs \"$0\"; exec \"$@\"";
    let existing = "mount --bind \"$0\" \"$0\"; mount -o remount,bind,ro \"$0\"; exec \"$@\"";
    let (program, _) = program_with_an_attempt();
    let work = program.work();
    for (script, root, place) in [
        (made, work.join("new"), work.clone()),
        (made, work.clone(), work.clone()),
        (existing, program.root(), program.root()),
    ] {
        let script = format!("set -e; {script}");
        let wrapper = ["unshare", "--mount", "--", "/bin/sh", "-c", &script, place.as_str()];
        let wrapper: Vec<&str> =
            if is_root() { wrapper.to_vec() } else { as_root_of_a_namespace(&wrapper) };
        let run = |arguments: &[&str]| {
            let arguments = [&["--root", root.as_str()], arguments].concat();
            through(&wrapper, &program.bare_command(arguments))
        };
        let probe = Running::start(&mut through(&wrapper, &program.bare_command(["--version"])));
        let probe = probe.said();
        if probe.code != 0 {
            println!("not tested here: {} ({})", root, probe.stderr.trim());
            continue;
        }
        for command in [&["run", "--", "true"][..], &["ps"]] {
            let refused = program.refused_by(125, command, run);
            let words = "the root directory lies on a read-only file system";
            assert_refused(&refused, "STORAGE", words);
            assert!(refused.hint.contains("--root"), "{refused:?}");
        }
    }
}

/// An ordinary user may mount in a user namespace of its own, where the system lets it make one.
fn as_root_of_a_namespace<'a>(wrapper: &[&'a str]) -> Vec<&'a str> {
    let mut wrapped = wrapper.to_vec();
    wrapped.insert(1, "--map-root-user");
    wrapped
}

#[test]
fn a_store_of_another_machine_is_refused() {
    let (program, _) = program_with_an_attempt();
    let own = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    if own.trim().is_empty() {
        println!("not tested here: this machine has no id");
        return;
    }
    assert!(replace_in_store(&program.root(), own.trim(), &"0123456789abcdef".repeat(2)) > 0);
    assert_all_refused(&program, "CONFLICT", "the store belongs to another machine");
}

#[test]
fn a_store_of_a_newer_version_is_refused() {
    let (program, _) = program_with_an_attempt();
    make_store_newer(&program.root());
    let refused = assert_all_refused(&program, "STORAGE", "the store has schema ");
    assert!(refused.message.contains(" and this version knows "), "{refused:?}");
}

#[test]
fn garbage_instead_of_the_store_is_refused() {
    let program = program();
    make_root(&program, 0o700);
    fs::write(program.root().join("placement.db"), "no database\n".repeat(2_000)).unwrap();
    assert_all_refused(&program, "STORAGE", "the file of the store is not a database");
}

#[test]
fn a_directory_instead_of_a_file_of_the_store_is_refused() {
    for (name, words) in [
        ("placement.db", "the store is not a file"),
        ("placement.lock", "the lock of the store cannot be opened"),
    ] {
        let program = program();
        make_root(&program, 0o700);
        fs::create_dir(program.root().join(name)).unwrap();
        assert_all_refused(&program, "STORAGE", words);
    }
}

#[test]
fn a_store_that_cannot_be_written_is_refused() {
    if is_root() {
        println!("not tested here: root writes every file");
        return;
    }
    let (program, _) = program_with_an_attempt();
    let database = program.root().join("placement.db");
    fs::set_permissions(database, Permissions::from_mode(0o400)).unwrap();
    assert_all_refused(&program, "STORAGE", "the store cannot be written");
}

#[test]
fn a_corrupt_row_is_named_and_the_others_are_not_harmed() {
    let (program, attempt) = program_with_an_attempt();
    let id = text(&attempt, "attempt_id").to_owned();
    let digest = text(&attempt, "request_digest").to_owned();
    assert!(replace_in_store(&program.root(), &digest, &"z".repeat(64)) > 0);
    for command in
        [&["show"][..], &["logs"], &["attach"], &["wait"], &["stop"], &["cleanup"], &["reconcile"]]
    {
        let refused = refused_unlisted(&program, &[command, &[id.as_str()]].concat());
        assert_refused(&refused, "STORAGE", "request_digest");
    }
    let replayed = launch(&program);
    let replayed: Vec<&str> = replayed.iter().map(String::as_str).collect();
    assert_refused(&refused_unlisted(&program, &replayed), "STORAGE", "request_digest");

    let said = program.run(["run", "--", "/bin/sh", "-c", "echo another"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "another\n"), "{said:?}");
    let message = format!("the row of attempt {id} is malformed (request_digest)");
    for (command, lines) in [("ps", 1), ("verify", 1), ("cleanup", 0)] {
        let said = program.run(["--json", command, "--all"]);
        assert_eq!((said.code, said.stdout.lines().count()), (125, lines), "{command}: {said:?}");
        let alone = placement_world::Said { stdout: String::new(), ..said };
        assert_refused(&Refused::in_json(&alone), "STORAGE", &message);
    }
}

#[test]
fn a_corrupt_row_of_a_live_attempt_is_told_by_each_pass_and_keeps_it_from_no_other() {
    let program = program();
    let script = "echo $PPID > runner; echo $$ > child; exec sleep 300";
    let words = ["start", "--mechanism", "subreaper", "--", "/bin/sh", "-c", script];
    let id = program.run(words).stdout.trim().to_owned();
    let child = placement_world::Known::named_in(program.work().join("child"));
    let runner = fs::read_to_string(program.work().join("runner")).unwrap();
    let runner = placement_world::Known::of(runner.trim().parse().unwrap());
    runner.kill();
    runner.wait_gone();
    child.wait_gone();
    let shown = program.run(["--json", "show", &id]).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let digest = text(&shown["attempt"], "request_digest").to_owned();
    assert!(replace_in_store(&program.root(), &digest, &"z".repeat(64)) > 0);
    for _ in 0..2 {
        let said = program.run(["--json", "sweep"]);
        let told: serde_json::Value = serde_json::from_str(said.stdout.trim()).unwrap();
        assert_eq!(told["outcomes"][0]["code"], "STORAGE", "{said:?}");
        assert_eq!((said.code, &told["reconciled"]), (125, &0.into()), "{said:?}");
    }
}

#[test]
fn a_corrupt_request_keeps_the_home() {
    let program = program();
    let said = program.run(["start", "--", "/bin/sh", "-c", "exit 3"]);
    let id = said.stdout.trim().to_owned();
    assert_eq!(program.run(["wait", &id]).code, 3);
    assert!(replace_in_store(&program.root(), "\"exit 3\"", "\"exit 3\\") > 0);
    let said = program.run(["--json", "cleanup", &id]);
    assert_eq!(said.code, 125, "{said:?}");
    assert_refused(&Refused::in_json(&said), "STORAGE", "request_json");
    assert_eq!(program.homes_left().len(), 1);
}

#[test]
fn an_intent_whose_request_is_corrupt_is_not_started_and_can_be_once_it_is_whole() {
    let world = World::new(env!("CARGO_BIN_EXE_placement"));
    let stage = world.stage();
    let id = stage.prepare(&stage.request("a", "exit 3"));
    drop(stage);
    assert!(replace_in_store(&world.root(), "\"exit 3\"", "\"exit 3\\") > 0);
    let stage = world.stage();
    let refused = stage.start(&id).unwrap_err();
    assert_eq!(refused.code.label(), "STORAGE", "{refused}");
    assert_eq!(stage.recorded(&id).evidence_count, 1);
    assert!(world.homes_left().is_empty());
    drop(stage);
    assert!(replace_in_store(&world.root(), "\"exit 3\\", "\"exit 3\"") > 0);
    let stage = world.stage();
    stage.start(&id).unwrap();
    assert_eq!(world.program().run(["wait", "a"]).code, 3);
}
