//! Files of a store that are damaged, cut off, empty or somebody else's: one stable code, a word of
//! what to do, and nothing is changed or removed.

use crate::{assert_refused, program, refused, shown, told};
use placement_world::{Known, Program, damage_pages_with, damage_root_page, take_log_in};
use std::collections::BTreeMap;
use std::fs;

const DAMAGED: &str = "the file of the store is damaged";
const INTACT_COPY: &str = "an intact copy";
/// Commands that read the store, or would write it.
const COMMANDS: [&[&str]; 6] = [
    &["run", "--", "true"],
    &["start", "--", "true"],
    &["ps", "--all"],
    &["verify", "--all"],
    &["doctor"],
    &["prune", "--older-than", "0s"],
];

/// Some attempts that ended and were cleaned up.
fn program_with(attempts: usize) -> (Program, Vec<String>) {
    let program = program();
    for _ in 0..attempts {
        assert_eq!(program.run(["run", "--", "/bin/sh", "-c", "echo out; exit 3"]).code, 3);
    }
    let id = |attempt: &serde_json::Value| attempt["attempt_id"].as_str().unwrap().to_owned();
    let ids = program.attempts().iter().map(id).collect();
    (program, ids)
}

/// Everything below the root with its content, but what SQLite shares between processes and an empty
/// log, which it makes wherever it looks.
fn content(program: &Program) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![program.root()];
    while let Some(directory) = open.pop() {
        for entry in directory.read_dir_utf8().into_iter().flatten().flatten() {
            let path = entry.path().to_owned();
            if path.is_dir() {
                open.push(path);
            } else if !path.as_str().ends_with("-shm") {
                let bytes = fs::read(&path).unwrap_or_default();
                if !(path.as_str().ends_with("-wal") && bytes.is_empty()) {
                    found.insert(path.to_string(), bytes);
                }
            }
        }
    }
    found
}

/// Asserts that each command is refused alike, and that nothing is changed by it.
#[track_caller]
fn assert_all_refused(program: &Program, words: &str, hint: &str) {
    let before = content(program);
    for command in COMMANDS {
        assert_refused(&refused(program, command), "STORAGE", words, hint);
        assert!(content(program) == before, "{command:?} changed something");
    }
}

fn change(program: &Program, change: impl FnOnce(&mut Vec<u8>)) {
    let database = program.root().join("placement.db");
    let mut bytes = fs::read(&database).unwrap();
    change(&mut bytes);
    fs::write(database, bytes).unwrap();
}

#[test]
fn a_damaged_header_is_refused() {
    let (program, _) = program_with(1);
    take_log_in(&program.root());
    change(&program, |bytes| bytes[..16].fill(0xa5));
    assert_all_refused(&program, "the file of the store is not a database", INTACT_COPY);
}

#[test]
fn a_damaged_schema_is_refused() {
    let (program, _) = program_with(1);
    take_log_in(&program.root());
    change(&program, |bytes| bytes[100..4096].fill(0xa5));
    assert_all_refused(&program, DAMAGED, INTACT_COPY);
}

#[test]
fn a_damaged_table_of_attempts_is_refused() {
    let (program, _) = program_with(2);
    damage_root_page(&program.root(), "placement_attempts");
    let before = content(&program);
    for command in COMMANDS.iter().filter(|command| **command != ["doctor"]) {
        assert_refused(&refused(&program, command), "STORAGE", DAMAGED, INTACT_COPY);
    }
    let said = program.run(["--json", "doctor"]);
    assert_eq!((said.code, &told(&said)["store"]["damaged"]), (1, &true.into()), "{said:?}");
    assert!(said.stderr.contains(DAMAGED) && said.stderr.contains(INTACT_COPY), "{said:?}");
    assert!(content(&program) == before);
}

#[test]
fn a_damaged_index_is_found_though_no_attempt_is_missing() {
    let (program, _) = program_with(2);
    damage_root_page(&program.root(), "placement_attempts_settled");
    let before = content(&program);
    for command in [&["verify", "--all"][..], &["doctor"]] {
        let said = program.run(command.iter().copied());
        assert_eq!(said.code, 1, "{command:?}: {said:?}");
        let told = said.stderr.contains(DAMAGED) && said.stderr.contains("n intact copy");
        assert!(told, "{command:?}: {said:?}");
    }
    assert_eq!(program.attempts().len(), 2, "what can be read is");
    let pruned = refused(&program, &["prune", "--older-than", "0s"]);
    assert_refused(&pruned, "STORAGE", DAMAGED, INTACT_COPY);
    assert!(content(&program) == before);
}

#[test]
fn damaged_evidence_keeps_no_other_attempt_from_being_verified() {
    let (program, ids) = program_with(12);
    let rows = program.run(["--json", "evidence", &ids[5]]).stdout;
    let rows: Vec<serde_json::Value> =
        rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let chain = rows[rows.len() / 2]["chain"].as_str().unwrap_or_else(|| panic!("{rows:?}"));
    damage_pages_with(&program.root(), chain);
    let one = refused(&program, &["verify", &ids[5]]);
    assert_refused(&one, "STORAGE", DAMAGED, INTACT_COPY);
    let said = program.run(["--json", "verify", "--all"]);
    assert_eq!(said.code, 125, "{said:?}");
    let sound = said.stdout.lines().filter(|line| line.contains("\"sound\":true")).count();
    assert!((6..12).contains(&sound), "{sound} are sound: {said:?}");
    assert_eq!(program.attempts().len(), 12);
    assert_eq!(shown(&program, &ids[5])["execution_state"], "exited");
}

#[test]
fn a_cut_off_file_is_refused() {
    let (program, _) = program_with(4);
    take_log_in(&program.root());
    let whole = content(&program);
    for kept in [0.2, 0.5, 0.9] {
        change(&program, |bytes| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a part of a small file"
            )]
            bytes.truncate((bytes.len() as f64 * kept) as usize);
        });
        let before = content(&program);
        let said = program.run(["--json", "doctor"]);
        assert!(said.code == 125 || said.code == 1, "{said:?}");
        assert!(said.stderr.contains(DAMAGED) && said.stderr.contains(INTACT_COPY), "{said:?}");
        assert!(content(&program) == before, "the doctor changed something");
        let database = program.root().join("placement.db");
        fs::write(&database, &whole[database.as_str()]).unwrap();
        assert_eq!(program.run(["verify", "--all"]).code, 0, "a copy helps");
    }
}

#[test]
fn without_its_store_a_root_with_attempts_is_refused_and_no_key_is_free_again() {
    let words = "the store is missing or empty, and the root holds attempts";
    let launch = ["run", "--key", "once", "--", "/bin/sh", "-c", "echo ran >> ran"];
    let program = program();
    assert_eq!(program.run(launch).code, 0);
    take_log_in(&program.root());
    let database = program.root().join("placement.db");
    let copy = fs::read(&database).unwrap();
    for log in ["placement.db-wal", "placement.db-shm"] {
        fs::remove_file(program.root().join(log)).ok();
    }
    fs::write(&database, "").unwrap();
    assert_all_refused(&program, words, "a copy of placement.db");
    fs::remove_file(&database).unwrap();
    assert_all_refused(&program, words, "a copy of placement.db");
    assert_refused(&refused(&program, &launch), "STORAGE", words, "a copy of placement.db");
    fs::write(&database, copy).unwrap();
    fs::set_permissions(&database, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(program.run(launch).code, 0);
    assert_eq!(fs::read_to_string(program.work().join("ran")).unwrap(), "ran\n");
}

#[test]
fn another_programs_database_is_refused() {
    let (program, _) = program_with(1);
    for log in ["placement.db", "placement.db-wal", "placement.db-shm"] {
        fs::remove_file(program.root().join(log)).ok();
    }
    placement_world::change_store(&program.root(), "CREATE TABLE recipes (name TEXT)");
    assert_all_refused(&program, "the database belongs to another program", INTACT_COPY);
}

#[test]
fn a_log_that_is_cut_off_anywhere_leaves_whole_attempts_and_the_loss_is_told() {
    let (program, ids) = program_with(3);
    let log = program.root().join("placement.db-wal");
    let whole = fs::read(&log).unwrap();
    let homes = fs::read_dir(program.root().join("attempts")).unwrap().count();
    let mut lost = 0;
    for cut in (1..16).map(|part| whole.len() / 16 * part + part) {
        fs::remove_file(program.root().join("placement.db-shm")).ok();
        fs::write(&log, &whole[..cut]).unwrap();
        let said = program.run(["--json", "verify", "--all"]);
        let kept = said.stdout.lines().count();
        assert!(said.stdout.lines().all(|line| line.contains("\"sound\":true")), "{said:?}");
        let told = said.stderr.contains("the store knows nothing of")
            || said.stderr.contains("the store is missing or empty");
        assert_eq!(told, kept < ids.len(), "cut at {cut}: {said:?}");
        assert_eq!(said.code == 0, kept == ids.len(), "cut at {cut}: {said:?}");
        lost += usize::from(told);
        assert_eq!(fs::read_dir(program.root().join("attempts")).unwrap().count(), homes);
    }
    assert!(lost > 5, "the log was cut before the last attempt");
}

#[test]
fn an_exit_that_a_damaged_file_cannot_take_is_kept_until_an_intact_one_is_there() {
    let world = crate::world();
    let program = world.program();
    let id = program.run(["start", "--", "/bin/sh", "-c", crate::WAITS]).stdout.trim().to_owned();
    let runner = program.run(["--json", "show", &id]).stdout;
    let runner: serde_json::Value = serde_json::from_str(&runner).unwrap();
    let runner = runner["attempt"]["runner"].as_str().unwrap().split('-').nth(1).unwrap();
    let runner = Known::of(runner.parse().unwrap());
    let root = world.root();
    let files = ["placement.db", "placement.db-wal"];
    let copies = files.map(|name| fs::read(root.join(name)).unwrap_or_default());
    let descriptors = format!("/proc/{}/fd", runner.pid());
    if let Err(error) = fs::read_dir(&descriptors) {
        crate::let_go(&world);
        return println!("not seen here, whether a runner has put the store down: {error}");
    }
    placement_testkit::wait_until(placement_world::PATIENCE, "a closed store", || {
        let link = |fd: fs::DirEntry| fs::read_link(fd.path()).unwrap_or_default();
        let mut opened = fs::read_dir(&descriptors).unwrap().flatten();
        opened.all(|fd| !link(fd).ends_with("state/placement.db"))
    });
    let database = root.join("placement.db");
    fs::write(root.join("placement.db-wal"), "").unwrap();
    fs::write(&database, vec![0xa5; 8192]).unwrap();
    crate::let_go(&world);
    runner.wait_gone();
    for (name, bytes) in files.iter().zip(copies) {
        fs::write(root.join(name), bytes).unwrap();
    }
    fs::remove_file(root.join("placement.db-shm")).ok();
    assert_eq!(program.run(["wait", &id]).code, 7);
    assert_eq!(program.run(["verify", "--all"]).code, 0);
}
