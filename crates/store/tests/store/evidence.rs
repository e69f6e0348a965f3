//! Reading evidence, and that it only grows.

use crate::support::{World, complete, id, record, running};
use placement_contract::EvidenceKind;
use placement_store::{Page, StoreError};

#[test]
fn pages_follow_each_other_without_gap_or_overlap() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    for number in 0..150 {
        record(&store, "a", &[(EvidenceKind::StdinAccepted, &format!("{number} bytes"))]).unwrap();
    }
    let mut seen = Vec::new();
    let mut after = 0;
    loop {
        let Page { rows, next_after } = store.evidence(&id("a"), after, 64).unwrap();
        assert!(rows.len() <= 64);
        seen.extend(rows.iter().map(|row| row.sequence));
        match next_after {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(seen, (1..=155).collect::<Vec<u64>>());
}

#[test]
fn a_page_that_ends_with_the_last_row_has_no_next() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    assert_eq!(store.evidence(&id("a"), 0, 5).unwrap().next_after, None);
    assert_eq!(store.evidence(&id("a"), 0, 4).unwrap().next_after, Some(4));
    assert_eq!(store.evidence(&id("a"), 5, 4).unwrap(), Page { rows: vec![], next_after: None });
    assert_eq!(store.evidence(&id("a"), u64::MAX, 4).unwrap().rows.len(), 0);
}

#[test]
fn a_limit_outside_its_range_is_the_largest() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    for _ in 0..70 {
        record(&store, "a", &[(EvidenceKind::StdinAccepted, "")]).unwrap();
    }
    for limit in [0, 65, u32::MAX] {
        assert_eq!(store.evidence(&id("a"), 0, limit).unwrap().rows.len(), 64);
    }
}

#[test]
fn evidence_is_never_changed_or_removed_by_sql() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    let connection = rusqlite::Connection::open(world.paths().database).unwrap();
    for sql in [
        "UPDATE placement_evidence SET detail = 'x'",
        "DELETE FROM placement_evidence",
        "INSERT OR REPLACE INTO placement_evidence
         SELECT * FROM placement_evidence WHERE sequence = 5",
    ] {
        connection.execute_batch("PRAGMA recursive_triggers = ON").unwrap();
        let error = connection.execute(sql, []).unwrap_err();
        assert!(error.to_string().contains("evidence is never"), "{sql}: {error}");
    }
    assert_eq!(store.all_evidence(&id("a")).unwrap().len(), 5);
}

#[test]
fn an_attempt_with_evidence_cannot_be_removed() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    let connection = rusqlite::Connection::open(world.paths().database).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = ON").unwrap();
    assert!(connection.execute("DELETE FROM placement_attempts", []).is_err());
}

#[test]
fn a_malformed_row_is_named_by_its_column() {
    for (column, value) in [
        ("at", "'yesterday'"),
        ("kind", "'child.vanished'"),
        ("from_state", "'asleep/pending'"),
        ("to_state", "'running'"),
        ("chain", "'xyz'"),
    ] {
        let world = World::new();
        let store = world.open();
        complete(&store, "a");
        world.tamper(&format!(
            "UPDATE placement_evidence SET {column} = {value} WHERE sequence = 4"
        ));
        let error = store.evidence(&id("a"), 0, 64).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { column: c } if c == column), "{error:?}");
    }
}

#[test]
fn the_evidence_folds_into_what_the_row_says() {
    let world = World::new();
    let store = world.open();
    let row = complete(&store, "a");
    let folded = store.folded(&id("a")).unwrap();
    assert_eq!((folded.state, folded.exit), (row.state, row.exit));
    assert_eq!((folded.exit_source, folded.count), (row.exit_source, row.evidence_count));
    assert_eq!(folded.tree_gone_by, row.tree_gone_by);
    assert!(!folded.child_start_failed && !folded.child_not_started && !folded.group_gone);
}
