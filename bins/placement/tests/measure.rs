//! Programs by their content: measured, planned, and known again.

use camino::Utf8PathBuf;
use placement::{Code, Digest, EvidenceKind, ExecutionState, Launch};
use placement_testkit::wait_until;
use placement_world::contract::request::Argument;
use placement_world::contract::{Id, LaunchRequest, PlannedExecutable};
use placement_world::{PATIENCE, Program, Stage, World};
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::time::{Duration, UNIX_EPOCH};

const LARGE: u64 = 200 * 1024 * 1024;

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

fn script(world: &World, content: &str) -> Utf8PathBuf {
    let path = world.work().join("tool");
    fs::write(&path, content).expect("the directory is writable");
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("the file is ours");
    path
}

/// A request for the tool as it is now.
fn planned(stage: &Stage, tool: &Utf8PathBuf) -> LaunchRequest {
    let measured = stage.service().measure_executable(tool).expect("it can be measured");
    let mut request = stage.request("a", "");
    request.launch.executable = Argument::parse(tool.as_str()).expect("a path is an argument");
    request.launch.argv = Vec::new();
    request.executable = Some(PlannedExecutable {
        revision: Id::parse(&measured.revision).expect("a revision is an id"),
        kind: measured.kind,
        digest: measured.digest,
    });
    request
}

#[test]
fn a_script_is_measured_with_its_interpreter() {
    let program = Program::new(env!("CARGO_BIN_EXE_placement"));
    let content = "#!/bin/sh -e\nexit 0\n";
    fs::write(program.work().join("tool"), content).unwrap();
    fs::set_permissions(program.work().join("tool"), Permissions::from_mode(0o755)).unwrap();
    // A relative path is taken from the current directory, as everywhere on the command line.
    let said = program.run(["--json", "measure", "tool"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    let told: Value = serde_json::from_str(said.stdout.trim()).unwrap();
    assert_eq!(told["revision"], "bee.executable-measurement@1");
    assert_eq!(told["path"], program.work().join("tool").as_str());
    assert_eq!((&told["kind"], &told["size"]), (&"script".into(), &content.len().into()));
    assert_eq!(told["digest"], Digest::of_bytes(content.as_bytes()).as_str());
    assert_eq!(told["interpreter"]["line"], "/bin/sh -e");
    let words = program.run(["measure", "tool"]);
    assert!(words.stdout.contains("kind:") && words.stdout.contains("script"), "{words:?}");
    assert!(program.attempts().is_empty(), "nothing is launched");
}

#[test]
fn what_cannot_be_measured_is_unavailable() {
    let program = Program::new(env!("CARGO_BIN_EXE_placement"));
    fs::write(program.work().join("plain"), "x").unwrap();
    for (path, words) in [
        ("nowhere", "there is no such file"),
        ("/tmp", "it is not a regular file"),
        ("plain", "it is not executable"),
    ] {
        let refused = program.refused(125, &["measure", path]);
        assert_eq!(refused.code, "UNAVAILABLE", "{path}");
        assert!(refused.message.contains(words), "{refused:?}");
    }
}

#[test]
fn a_program_that_changed_since_its_plan_does_not_run() {
    let world = world();
    let stage = world.stage();
    let tool = script(&world, "#!/bin/sh\ntouch ran\n");
    let id = stage.prepare(&planned(&stage, &tool));
    script(&world, "#!/bin/sh\ntouch ran; echo another\n");
    let refused = stage.start(&id).unwrap_err();
    assert_eq!(refused.code, Code::ExecutableRefused, "{refused}");
    assert!(refused.message.starts_with("planned script "), "{refused}");
    assert!(refused.hint().contains("plan the launch again"), "{refused:?}");
    wait_until(PATIENCE, "the end of the runner", || stage.recorded(&id).runner.is_none());
    let kinds = world.kinds(&id);
    assert!(kinds.contains(&"executable.changed") && kinds.contains(&"child.not_started"));
    assert!(!kinds.contains(&"child.creating"), "{}", world.told(&id));
    assert!(!world.work().join("ran").exists());
    assert_eq!(stage.recorded(&id).execution_state, ExecutionState::Exited);
    stage.service().cleanup(&id).unwrap();
    world.assert_nothing_left(&id);
    assert_eq!(world.program().run(["wait", "a"]).code, 126);
}

#[test]
fn the_program_of_the_plan_runs() {
    let world = world();
    let tool = script(&world, "#!/bin/sh\necho ran\n");
    let measured = world.host().measure(&tool).unwrap();
    let attempt = world.launch(Launch::program(tool.as_str()).measured(&measured));
    assert_eq!(world.text(&attempt).stdout, "ran\n");
    let end = attempt.finish().unwrap();
    let row = end.first(EvidenceKind::ExecutableMeasured).unwrap();
    assert!(row.detail.contains(measured.digest.as_str()), "{}", row.detail);
    world.assert_clean(&end);
    script(&world, "#!/bin/sh\necho another\n");
    let launch = Launch::program(tool.as_str()).measured(&measured).write(world.work());
    assert_eq!(world.host().launch(launch).unwrap_err().code(), Code::ExecutableRefused);
}

#[test]
fn two_hundred_megabytes_are_hashed_once() {
    let world = world();
    let tool = world.work().join("large");
    fs::copy(fs::canonicalize("/bin/true").unwrap(), &tool).unwrap();
    File::options().write(true).open(&tool).unwrap().set_len(LARGE).unwrap();
    // Nobody may write it, and it is left alone for long enough.
    fs::set_permissions(&tool, Permissions::from_mode(0o555)).unwrap();
    let changed = fs::metadata(&tool).unwrap();
    let changed = UNIX_EPOCH + Duration::from_secs(changed.ctime().cast_unsigned() + 3);
    wait_until(PATIENCE, "two quiet seconds", || changed.elapsed().is_ok());
    let details: Vec<String> = (0..3)
        .map(|_| {
            let attempt = world.launch(Launch::program(tool.as_str()));
            let end = attempt.finish().unwrap();
            assert!(end.is_success(), "{end}");
            end.first(EvidenceKind::ExecutableMeasured).unwrap().detail.clone()
        })
        .collect();
    assert!(details[0].ends_with(&format!("{LARGE} bytes")), "{details:?}");
    let known = format!("{}, known by its facts", details[0]);
    assert_eq!(details[1..], [known.clone(), known]);
    let measured = world.host().measure(&tool).unwrap();
    assert!(
        details[0].contains(measured.digest.as_str()),
        "one host knows what the other measured"
    );
}

#[test]
fn the_same_bytes_in_another_file_are_the_program_of_the_plan() {
    let world = world();
    let stage = world.stage();
    let tool = script(&world, "#!/bin/sh\nexit 7\n");
    let id = stage.prepare(&planned(&stage, &tool));
    let copy = world.work().join("copy");
    fs::copy(&tool, &copy).unwrap();
    fs::rename(&copy, &tool).unwrap();
    stage.start(&id).unwrap();
    assert_eq!(world.program().run(["wait", "a"]).code, 7);
}

#[test]
fn a_plan_by_a_link_does_not_run_what_the_link_leads_to_by_then() {
    let world = world();
    let stage = world.stage();
    let planned_for = script(&world, "#!/bin/sh\ntouch ran\n");
    let link = world.work().join("link");
    symlink(&planned_for, &link).unwrap();
    let id = stage.prepare(&planned(&stage, &link));
    let other = world.work().join("other");
    fs::write(&other, "#!/bin/sh\ntouch ran # and more\n").unwrap();
    fs::set_permissions(&other, Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&other, &link).unwrap();
    assert_eq!(stage.start(&id).unwrap_err().code, Code::ExecutableRefused);
    assert!(!world.work().join("ran").exists());
    assert!(world.kinds(&id).contains(&"executable.changed"), "{}", world.told(&id));
}

#[test]
fn what_an_interrupted_update_leaves_is_named_and_nothing_runs() {
    let program = Program::new(env!("CARGO_BIN_EXE_placement"));
    let work = program.work();
    let executable = |name: &str, bytes: &[u8]| {
        fs::write(work.join(name), bytes).unwrap();
        fs::set_permissions(work.join(name), Permissions::from_mode(0o755)).unwrap();
    };
    symlink("loop", work.join("loop")).unwrap();
    symlink("gone", work.join("dangling")).unwrap();
    executable("chain0", b"#!/bin/sh\n");
    for number in 1..=50 {
        symlink(format!("chain{}", number - 1), work.join(format!("chain{number}"))).unwrap();
    }
    let binary = fs::read(fs::canonicalize("/bin/true").unwrap()).unwrap();
    executable("cut", &binary[..100]);
    executable("head", b"#!");
    for (name, code, words) in [
        ("loop", 126, "ELOOP"),
        ("chain50", 126, "ELOOP"),
        ("dangling", 127, "not found"),
        ("cut", 126, "ENOEXEC"),
        ("head", 126, "interpreter"),
    ] {
        let said = program.run(["--json", "run", "--", &format!("./{name}")]);
        assert_eq!((said.code, said.stdout.as_str()), (code, ""), "{name}: {said:?}");
        assert!(said.stderr.contains(words), "{name}: {said:?}");
    }
    assert!(program.homes_left().is_empty());
}
