//! One intent made real step by step, and every way in which that ends early.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::{Access, Code, EnvironmentName, EvidenceKind, LaunchRequest, Secret};
use placement_homes::{AttemptDir, HomeKey, Root, SessionKey};
use placement_materialize::{
    Failed, Inputs, Materialization, Progress, RESERVED_NAMES, Ready, Values, reserved_conflict,
};
use placement_policy::{SESSION_ROOT, Snapshot};
use placement_resources::{OwnHome, ResolvedGrant, admit};
use placement_testkit::TempRoot;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

const CANARY: &str = "canary-91c2";

struct World {
    attempt: AttemptDir,
    scratch: TempRoot,
    snapshot: Snapshot,
    request: Value,
    values: Values,
    search_path: String,
}

/// A project that is granted for writing, and `bin/tool`, an ELF file of three steps.
fn world() -> World {
    let scratch = TempRoot::new();
    for name in ["base", "bin", "outside", "project", "project/sub"] {
        fs::create_dir(scratch.join(name)).unwrap();
    }
    let mut content = vec![1_u8; 2 * 1024 * 1024 + 1];
    content[..4].copy_from_slice(b"\x7fELF");
    program(&scratch.join("bin/tool"), &content);
    let mut snapshot = Snapshot::embedded();
    let root_ref = snapshot.admit(scratch.join("project"), Access::Write).unwrap();
    let request = json!({
        "idempotency_key": "k", "owner_id": "o", "owner_incarnation": 1, "action_id": "a",
        "attempt_id": "attempt-7", "binding_ref": snapshot.binding().r#ref,
        "policy_ref": snapshot.policy().r#ref, "profile_id": snapshot.profile().r#ref,
        "binding_digest": snapshot.binding().digest, "profile_digest": snapshot.profile().digest,
        "launch": {
            "executable": "tool", "argv": ["-x", ""], "working_directory_ref": "project",
            "readiness": "started",
        },
        "resources": [{
            "name": "project", "grant_ref": "g", "root_ref": root_ref, "subpath": "sub",
            "access": "write", "purpose": "project",
        }],
        "required_cleanup": "process_group",
    });
    let search_path = scratch.join("bin").into_string();
    let root = Root::open(scratch.join("root")).unwrap();
    let key = HomeKey::parse(&"7".repeat(32)).unwrap();
    let attempt = root.create_attempt(&key).unwrap();
    World { attempt, scratch, snapshot, request, values: Values::default(), search_path }
}

fn granted(request: &LaunchRequest, snapshot: &Snapshot) -> Vec<ResolvedGrant> {
    let own = OwnHome { root: "/placement".into(), home: "/placement/home".into() };
    admit(&request.resources, snapshot, own).unwrap()
}

fn program(path: &Utf8Path, content: &[u8]) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn name(text: &str) -> EnvironmentName {
    EnvironmentName::parse(text).unwrap()
}

impl World {
    fn home(&self) -> Utf8PathBuf {
        self.attempt.dir().path().unwrap().join("home")
    }

    fn request(&self) -> LaunchRequest {
        LaunchRequest::decode(&serde_json::to_vec(&self.request).unwrap()).unwrap()
    }

    /// Admits the grants now and hands everything over; `between` runs after the admission.
    fn materialization(&mut self, between: impl FnOnce(&TempRoot)) -> Materialization {
        let request = self.request();
        let grants = granted(&request, &self.snapshot);
        between(&self.scratch);
        Materialization::new(Inputs {
            request,
            grants,
            root: Root::open(self.scratch.join("root")).unwrap(),
            temporary_base: Some(self.scratch.join("base")),
            search_path: self.search_path.clone(),
            values: std::mem::take(&mut self.values),
            known_digests: None,
        })
    }

    fn run(&mut self) -> Result<(Ready, Vec<(EvidenceKind, String)>), Failed> {
        let materialization = self.materialization(|_| ());
        run(materialization, &self.attempt)
    }

    #[track_caller]
    fn failed(&mut self) -> Failed {
        let failed = self.run().unwrap_err();
        self.assert_says_nothing_private(&failed);
        failed
    }

    #[track_caller]
    fn assert_says_nothing_private(&self, failed: &Failed) {
        assert!(!failed.detail.contains(self.scratch.path().as_str()), "{failed:?}");
        assert!(!failed.detail.contains(CANARY), "{failed:?}");
        assert!(!failed.detail.contains("os error"), "{failed:?}");
    }
}

fn run(
    mut materialization: Materialization,
    attempt: &AttemptDir,
) -> Result<(Ready, Vec<(EvidenceKind, String)>), Failed> {
    let mut recorded = Vec::new();
    loop {
        match materialization.step(attempt)? {
            Progress::Working { evidence } => recorded.extend(evidence),
            Progress::Done(ready) => return Ok((*ready, recorded)),
        }
    }
}

fn environment(ready: &Ready) -> BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    ready.environment.iter().map(|(name, value)| (name.to_owned(), text(value))).collect()
}

#[test]
fn everything_a_child_needs_is_made() {
    let mut world = world();
    let (ready, _) = world.run().unwrap();
    assert_eq!(ready.argv, ["tool", "-x", ""]);
    assert_eq!(ready.working_directory.path().unwrap(), world.scratch.join("project/sub"));
    assert_eq!(ready.program.path(), world.scratch.join("bin/tool"));
    for made in [&ready.home, ready.tmp.path()] {
        assert_eq!(fs::metadata(made).unwrap().permissions().mode() & 0o7777, 0o700);
        assert_eq!(fs::read_dir(made).unwrap().count(), 0);
    }
    assert_ne!(ready.home, ready.tmp.path());
}

#[test]
fn evidence_tells_what_was_made_in_order() {
    let mut world = world();
    let digest =
        placement_contract::Digest::of_bytes(&fs::read(world.scratch.join("bin/tool")).unwrap());
    let (_, recorded) = world.run().unwrap();
    let expected = [
        (EvidenceKind::HomeCreated, "private home".to_owned()),
        (EvidenceKind::ExecutableMeasured, format!("elf {digest} 2097153 bytes")),
    ];
    assert_eq!(recorded, expected);
}

#[test]
fn a_script_is_measured_with_its_interpreter() {
    let mut world = world();
    let script = format!("#!{}\n", world.scratch.join("bin/tool"));
    program(&world.scratch.join("bin/script"), script.as_bytes());
    world.request["launch"]["executable"] = json!("script");
    let (_, recorded) = world.run().unwrap();
    let detail = &recorded.last().unwrap().1;
    assert!(detail.starts_with("script "), "{detail}");
    assert!(detail.contains(" bytes, interpreter "), "{detail}");
    assert!(!detail.contains('/'), "{detail}");
}

#[test]
fn a_large_program_is_hashed_in_many_steps() {
    let mut world = world();
    let mut materialization = world.materialization(|_| ());
    let mut steps = 0;
    while matches!(materialization.step(&world.attempt).unwrap(), Progress::Working { .. }) {
        steps += 1;
    }
    // Home, temporary directory, environment, working directory, finding, three slices.
    assert_eq!(steps, 8);
}

#[test]
fn the_environment_is_what_was_admitted_and_nothing_else() {
    let mut world = world();
    world.request["environment"] = json!({ "LEVEL": "debug", "LANG": "C" });
    world.request["environment_refs"] = json!({ "REGION": "host:region" });
    world.values.passed = [("LANG", "de_DE.UTF-8"), ("USER", "me"), ("HOME", "/root")]
        .map(|(key, value)| (name(key), value.to_owned()))
        .into();
    world.values.resolved =
        [(name("REGION"), Secret::new(b"eu\xff".to_vec())), (name("UNASKED"), Secret::new(vec![]))]
            .into();
    let (ready, _) = world.run().unwrap();
    let given: Vec<_> =
        ready.environment.iter().map(|(name, value)| (name, value.to_vec())).collect();
    let expected = [
        ("HOME", ready.home.as_str().as_bytes()),
        ("LANG", b"C"),
        ("LEVEL", b"debug"),
        ("PATH", world.search_path.as_bytes()),
        ("PLACEMENT_ATTEMPT_ID", b"attempt-7"),
        ("REGION", b"eu\xff"),
        ("TMPDIR", ready.tmp.path().as_str().as_bytes()),
        ("USER", b"me"),
    ]
    .map(|(name, value)| (name, value.to_vec()));
    assert_eq!(given, expected);
    let assignments = ready.environment.assignments();
    assert_eq!(assignments[2].as_bytes(), b"LEVEL=debug");
    assert_eq!(assignments.len(), 8);
}

#[test]
fn an_environment_prints_names_only() {
    let mut world = world();
    world.request["environment"] = json!({ "LEVEL": CANARY });
    let (ready, _) = world.run().unwrap();
    assert_eq!(environment(&ready)["LEVEL"], CANARY);
    let shown = format!("{ready:?}");
    assert!(shown.contains("LEVEL"), "{shown}");
    assert!(!shown.contains(CANARY), "{shown}");
}

#[test]
fn without_a_working_directory_the_home_is_it() {
    let mut world = world();
    world.request["launch"].as_object_mut().unwrap().remove("working_directory_ref");
    let (ready, _) = world.run().unwrap();
    assert_eq!(ready.working_directory.path().unwrap(), ready.home);
}

#[test]
fn a_reserved_name_is_refused_at_admission() {
    for reserved in RESERVED_NAMES {
        for field in ["environment", "environment_refs"] {
            let mut world = world();
            world.request[field] = json!({ *reserved: CANARY });
            let refusal = reserved_conflict(&world.request()).unwrap();
            assert_eq!(refusal.code, Code::Invalid);
            assert!(refusal.message.starts_with(&format!("{field}.{reserved}: ")), "{refusal}");
            assert!(!refusal.message.contains(CANARY), "{refusal}");
        }
    }
    assert_eq!(reserved_conflict(&world().request()), None);
}

#[test]
fn a_reserved_name_is_refused_again_at_materialization() {
    let mut world = world();
    world.request["environment"] = json!({ "HOME": CANARY });
    let failed = world.failed();
    assert_eq!((failed.kind, failed.code), (EvidenceKind::EnvironmentRefused, Code::Invalid));
    assert!(failed.detail.contains("HOME"), "{failed}");
}

#[test]
fn a_reference_that_was_not_resolved_fails_by_its_name() {
    let mut world = world();
    world.request["environment_refs"] = json!({ "REGION": CANARY });
    let failed = world.failed();
    assert_eq!((failed.kind, failed.code), (EvidenceKind::EnvironmentFailed, Code::Unavailable));
    assert_eq!(failed.detail, "the value of REGION is missing");
}

#[test]
fn a_value_with_a_nul_fails_by_its_name() {
    let mut world = world();
    world.request["environment_refs"] = json!({ "REGION": "host:region" });
    let value = format!("{CANARY}\0");
    world.values.resolved = [(name("REGION"), Secret::new(value.into_bytes()))].into();
    let failed = world.failed();
    assert_eq!(failed.detail, "the value of REGION has a NUL");
}

#[test]
fn a_home_that_is_there_already_is_not_adopted() {
    let mut world = world();
    world.run().unwrap();
    let failed = world.failed();
    assert_eq!((failed.kind, failed.code), (EvidenceKind::HomeFailed, Code::Unavailable));
}

#[test]
fn the_temporary_directory_lies_below_its_base() {
    let mut world = world();
    let (ready, _) = world.run().unwrap();
    assert!(ready.tmp.path().starts_with(world.scratch.join("base")), "{:?}", ready.tmp);
}

#[test]
fn without_a_base_the_temporary_directory_lies_in_the_attempt() {
    let mut world = world();
    let request = world.request();
    let grants = granted(&request, &world.snapshot);
    let materialization = Materialization::new(Inputs {
        request,
        grants,
        root: Root::open(world.scratch.join("root")).unwrap(),
        temporary_base: None,
        search_path: world.search_path.clone(),
        values: std::mem::take(&mut world.values),
        known_digests: None,
    });
    let (ready, _) = run(materialization, &world.attempt).unwrap();
    assert!(ready.tmp.path().starts_with(world.attempt.dir().path().unwrap()));
}

/// Lets the launch go on with a session; returns where its retained home is, or would be.
fn with_session(world: &mut World) -> Utf8PathBuf {
    world.request["session_ref"] = json!("s");
    world.request["launch"]["home_ref"] = json!("home");
    let home = json!({
        "name": "home", "grant_ref": "g", "root_ref": SESSION_ROOT, "access": "write",
        "purpose": "session",
    });
    world.request["resources"].as_array_mut().unwrap().push(home);
    let request = world.request();
    let key = SessionKey::of(&request.owner_id, request.session_ref.as_ref().unwrap());
    Root::open(world.scratch.join("root")).unwrap().session_home_path(&key)
}

#[test]
fn the_home_of_a_session_is_the_childs_and_the_attempts_own_is_made_all_the_same() {
    let mut world = world();
    let retained = with_session(&mut world);
    let (ready, recorded) = world.run().unwrap();
    assert_eq!(ready.home, retained);
    assert_eq!(environment(&ready)["HOME"], retained);
    assert!(ready.tmp.path().starts_with(world.scratch.join("base")), "it is the attempt's");
    assert!(world.home().is_dir());
    let kinds: Vec<_> = recorded.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds[..2], [EvidenceKind::HomeCreated, EvidenceKind::SessionAttached]);
    assert_eq!(recorded[1].1, "a new retained home");
}

#[test]
fn a_home_without_a_session_is_the_attempts_own() {
    let mut world = world();
    let retained = with_session(&mut world);
    world.request.as_object_mut().unwrap().remove("session_ref");
    let (ready, _) = world.run().unwrap();
    assert_eq!(ready.home, world.home());
    assert!(!retained.exists());
}

#[test]
fn the_working_directory_is_the_home_of_the_session_where_it_is_named_and_where_none_is() {
    for name in [Some("home"), None] {
        let mut world = world();
        let retained = with_session(&mut world);
        let launch = world.request["launch"].as_object_mut().unwrap();
        launch.remove("working_directory_ref");
        launch.extend(name.map(|name| ("working_directory_ref".to_owned(), json!(name))));
        let (ready, _) = world.run().unwrap();
        assert_eq!(ready.working_directory.path().unwrap(), retained);
    }
}

#[test]
fn what_stands_in_the_place_of_a_sessions_home_is_refused_and_untouched() {
    for is_home in [false, true] {
        let mut world = world();
        let retained = with_session(&mut world);
        let place = if is_home { retained.clone() } else { retained.parent().unwrap().to_owned() };
        let sessions = world.scratch.join("root/sessions");
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        for made in [&sessions, place.parent().unwrap()] {
            fs::set_permissions(made, fs::Permissions::from_mode(0o700)).unwrap();
        }
        symlink(world.scratch.join("outside"), place).unwrap();
        let failed = world.failed();
        assert_eq!(failed.kind, EvidenceKind::SessionFailed);
        assert_eq!(failed.code, Code::Unavailable);
        assert!(failed.detail.contains("symbolic link"), "{failed:?}");
        assert_eq!(fs::read_dir(world.scratch.join("outside")).unwrap().count(), 0);
    }
}

#[test]
fn a_linked_home_is_not_followed() {
    let mut world = world();
    symlink(world.scratch.join("outside"), world.home()).unwrap();
    let failed = world.failed();
    assert_eq!(failed.kind, EvidenceKind::HomeFailed);
    assert_eq!(fs::read_dir(world.scratch.join("outside")).unwrap().count(), 0);
}

#[test]
fn a_working_directory_that_is_gone_fails() {
    let mut world = world();
    let materialization = world.materialization(|scratch| {
        fs::remove_dir(scratch.join("project/sub")).unwrap();
    });
    let failed = run(materialization, &world.attempt).unwrap_err();
    world.assert_says_nothing_private(&failed);
    assert_eq!((failed.kind, failed.code), (EvidenceKind::WorkdirFailed, Code::Unavailable));
}

#[test]
fn a_working_directory_that_leads_out_of_its_root_fails() {
    let mut world = world();
    let materialization = world.materialization(|scratch| {
        fs::remove_dir(scratch.join("project/sub")).unwrap();
        symlink(scratch.join("outside"), scratch.join("project/sub")).unwrap();
    });
    let failed = run(materialization, &world.attempt).unwrap_err();
    world.assert_says_nothing_private(&failed);
    assert_eq!((failed.kind, failed.code), (EvidenceKind::WorkdirFailed, Code::Forbidden));
}

#[test]
fn a_working_directory_replaced_later_stays_the_one_that_was_opened() {
    let mut world = world();
    let inode = fs::metadata(world.scratch.join("project/sub")).unwrap().ino();
    let (ready, _) = world.run().unwrap();
    fs::rename(world.scratch.join("project/sub"), world.scratch.join("project/was")).unwrap();
    symlink(world.scratch.join("outside"), world.scratch.join("project/sub")).unwrap();
    assert_eq!(ready.working_directory.facts().unwrap().inode, inode);
}

fn with_program(change: impl FnOnce(&mut World)) -> Failed {
    let mut world = world();
    change(&mut world);
    let failed = world.failed();
    // The kind of the row tells what the code does: nobody reads the detail for it.
    let kind = if failed.code == Code::ExecutableNotFound {
        EvidenceKind::ExecutableNotFound
    } else {
        EvidenceKind::ExecutableRefused
    };
    assert_eq!(failed.kind, kind);
    failed
}

#[test]
fn a_missing_program_is_not_found() {
    let failed = with_program(|world| world.request["launch"]["executable"] = json!(CANARY));
    assert_eq!(failed.code, Code::ExecutableNotFound);
    assert_eq!(failed.detail, "the program was not found");
    let failed = with_program(|world| {
        world.request["launch"]["executable"] = json!(world.scratch.join(CANARY));
    });
    assert_eq!(failed.code, Code::ExecutableNotFound);
}

#[test]
fn a_program_that_may_not_be_executed_is_refused() {
    let failed = with_program(|world| {
        fs::set_permissions(world.scratch.join("bin/tool"), fs::Permissions::from_mode(0o644))
            .unwrap();
    });
    assert_eq!(failed.code, Code::ExecutableRefused);
    assert_eq!(failed.detail, "the program is not executable");
}

#[test]
fn a_missing_interpreter_is_refused_as_such() {
    let failed = with_program(|world| {
        let script = format!("#!{}\n", world.scratch.join(CANARY));
        program(&world.scratch.join("bin/tool"), script.as_bytes());
    });
    assert_eq!(failed.code, Code::ExecutableRefused);
    assert_eq!(failed.detail, "the script's interpreter is missing");
}

#[test]
fn a_program_that_changes_while_it_is_measured_is_refused() {
    let mut world = world();
    let mut materialization = world.materialization(|_| ());
    for _ in 0..6 {
        assert!(matches!(materialization.step(&world.attempt).unwrap(), Progress::Working { .. }));
    }
    program(&world.scratch.join("bin/tool"), &vec![2_u8; 4 * 1024 * 1024]);
    let failed = run(materialization, &world.attempt).unwrap_err();
    world.assert_says_nothing_private(&failed);
    assert_eq!((failed.kind, failed.code), (EvidenceKind::ExecutableChanged, Code::Unavailable));
}

#[test]
fn nothing_is_made_before_the_first_step() {
    let mut world = world();
    let materialization = world.materialization(|_| ());
    drop(materialization);
    assert_eq!(listing(&world.attempt.dir().path().unwrap()).len(), 0);
    assert_eq!(listing(&world.scratch.join("base")).len(), 0);
}

#[test]
fn the_directory_outside_stays_untouched() {
    let mut world = world();
    let before: Vec<Utf8PathBuf> = listing(&world.scratch.join("project"));
    world.run().unwrap();
    assert_eq!(listing(&world.scratch.join("project")), before);
}

fn listing(directory: &Utf8Path) -> Vec<Utf8PathBuf> {
    directory.read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path()).collect()
}

fn planned(world: &World) -> Value {
    let content = fs::read(world.scratch.join("bin/tool")).unwrap();
    json!({
        "revision": "bee.executable-measurement@1", "kind": "elf",
        "digest": placement_contract::Digest::of_bytes(&content),
    })
}

#[test]
fn the_planned_program_is_measured_and_taken() {
    let mut world = world();
    world.request["executable"] = planned(&world);
    let (ready, recorded) = world.run().unwrap();
    assert_eq!(ready.program.path(), world.scratch.join("bin/tool"));
    assert!(recorded.iter().any(|(kind, _)| *kind == EvidenceKind::ExecutableMeasured));
}

#[test]
fn a_program_that_is_not_the_planned_one_is_changed() {
    for (name, value) in [
        ("digest", json!("e".repeat(64))),
        ("kind", json!("script")),
        ("revision", json!("bee.executable-measurement@9")),
    ] {
        let mut world = world();
        world.request["executable"] = planned(&world);
        world.request["executable"][name] = value;
        let failed = world.failed();
        assert_eq!(failed.kind, EvidenceKind::ExecutableChanged, "{name}");
        assert_eq!(failed.code, Code::ExecutableRefused, "{name}");
        assert!(failed.detail.starts_with("planned "), "{failed:?}");
    }
}

#[test]
fn a_program_that_is_written_after_the_plan_is_changed() {
    let mut world = world();
    world.request["executable"] = planned(&world);
    let materialization = world.materialization(|scratch| {
        program(&scratch.join("bin/tool"), b"#!/bin/sh\nexit 0\n");
    });
    let failed = run(materialization, &world.attempt).unwrap_err();
    assert_eq!(failed.kind, EvidenceKind::ExecutableChanged);
    assert!(failed.detail.contains("found script "), "{failed:?}");
}
