use crate::testing::*;
use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::request::Argument;
use placement_contract::{Code, Digest, ExecutableKind};
use placement_policy::{Definitions, Snapshot};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

fn program(world: &World, name: &str, content: &[u8]) -> Utf8PathBuf {
    let path = world.root.join(name);
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o555)).unwrap();
    path
}

#[test]
fn a_script_is_measured_with_its_interpreter() {
    let world = World::new();
    let path = program(&world, "tool", b"#!/bin/sh -e\nexit 0\n");
    let measured = world.service.measure_executable(&path).unwrap();
    assert_eq!(measured.revision, "bee.executable-measurement@1");
    assert_eq!((measured.kind, measured.size), (ExecutableKind::Script, 20));
    assert_eq!(measured.digest, Digest::of_bytes(b"#!/bin/sh -e\nexit 0\n"));
    let interpreter = measured.interpreter.unwrap();
    assert_eq!(interpreter.line, "/bin/sh -e");
    assert_eq!(interpreter.digest, Digest::of_bytes(&fs::read("/bin/sh").unwrap()));
}

#[test]
fn what_cannot_be_measured_is_unavailable_and_leaves_no_file() {
    let world = World::new();
    let before = world.root.path().read_dir_utf8().unwrap().count();
    for (path, words) in [
        ("relative", "the program's path is not absolute"),
        ("/nowhere/at/all", "there is no such file"),
        ("/tmp", "it is not a regular file"),
        ("/etc/passwd", "it is not executable"),
        ("/a\0b", "the program's path is longer than a launch may name"),
    ] {
        let refused = refusal(world.service.measure_executable(Utf8Path::new(path)));
        assert_eq!(refused.code, Code::Unavailable, "{path}");
        assert!(refused.message.contains(words), "{path}: {refused}");
    }
    assert_eq!(world.root.path().read_dir_utf8().unwrap().count(), before);
}

#[test]
fn a_missing_interpreter_is_named() {
    let world = World::new();
    let path = program(&world, "tool", b"#!/nowhere/interpreter\n");
    let refused = refusal(world.service.measure_executable(&path));
    assert_eq!(refused.message, "the script's interpreter is missing");
}

#[test]
fn a_policy_that_lists_programs_lets_only_these_be_measured() {
    let world = World::new();
    let mut definitions = Definitions::embedded();
    let listed = ["sh", "/usr/bin/env"].map(|name| Argument::parse(name).unwrap());
    let rules = definitions.policies.get_mut(&definitions.default_policy).unwrap();
    rules.executables = Some(listed.to_vec());
    world.service.change_snapshot(|snapshot| {
        *snapshot = Snapshot::new(definitions).unwrap().with_search_path("/bin");
    });
    for path in ["/bin/sh", "/usr/bin/env"] {
        assert!(world.service.measure_executable(Utf8Path::new(path)).is_ok(), "{path}");
    }
    for path in ["/bin/ls", "/nowhere", "sh"] {
        let refused = world.service.measure_executable(Utf8Path::new(path));
        let code = if path == "sh" { Code::Unavailable } else { Code::Denied };
        assert_eq!(refusal(refused).code, code, "{path}");
    }
}
