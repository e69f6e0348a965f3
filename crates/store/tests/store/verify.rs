//! What a check of the evidence notices.

use crate::support::{World, complete, id, record, running};
use placement_contract::{Digest, EvidenceKind};
use placement_store::Verdict;

fn verdict_after(tampering: &str) -> Verdict {
    let world = World::new();
    let store = world.open();
    complete(&store, "a");
    running(&store, "b");
    let before = store.verify(&id("a"), None).unwrap().unwrap();
    assert!(before.is_sound(), "{before:?}");
    world.tamper(tampering);
    store.verify(&id("a"), None).unwrap().unwrap()
}

#[test]
fn an_untouched_attempt_is_sound() {
    let world = World::new();
    let store = world.open();
    let row = complete(&store, "a");
    let verdict = store.verify(&id("a"), None).unwrap().unwrap();
    assert!(verdict.is_sound());
    assert_eq!((verdict.count, verdict.head), (row.evidence_count, row.chain_head));
    assert_eq!(store.verify(&id("b"), None).unwrap(), None);
}

#[test]
fn one_changed_character_in_any_column_of_any_row_is_noticed() {
    for sequence in 1..=9 {
        for change in [
            "at = replace(at, '.', '1')",
            "at = substr(at, 1, 22) || '9Z'",
            "kind = 'stdin.closed'",
            "kind = kind || 'x'",
            "from_state = coalesce(from_state, '') || 'x'",
            "from_state = 'uncertain/pending'",
            "to_state = 'uncertain/pending'",
            "detail = detail || ' '",
            "chain = replace(chain, substr(chain, 1, 1), 'g')",
            "chain = (CASE substr(chain, 1, 1) WHEN '0' THEN '1' ELSE '0' END) || substr(chain, 2)",
            "attempt_id = 'b', sequence = 99",
            "sequence = 77",
        ] {
            let verdict = verdict_after(&format!(
                "UPDATE placement_evidence SET {change}
                 WHERE attempt_id = 'a' AND sequence = {sequence}"
            ));
            assert!(!verdict.is_sound(), "row {sequence}: {change}");
        }
    }
}

#[test]
fn a_fault_names_its_row() {
    let verdict = verdict_after(
        "UPDATE placement_evidence SET detail = 'other' WHERE attempt_id = 'a' AND sequence = 4",
    );
    assert_eq!(verdict.faults[0].sequence, Some(4));
    assert_eq!(verdict.faults[0].why, "the chain value is not the one of this row");
}

#[test]
fn a_removed_row_is_noticed_wherever_it_was() {
    for sequence in 1..=9 {
        let verdict = verdict_after(&format!(
            "DELETE FROM placement_evidence WHERE attempt_id = 'a' AND sequence = {sequence}"
        ));
        assert!(!verdict.is_sound(), "row {sequence}");
    }
}

#[test]
fn a_removed_last_row_with_its_count_and_state_is_noticed_by_the_head() {
    let verdict = verdict_after(
        "DELETE FROM placement_evidence WHERE attempt_id = 'a' AND sequence = 9;
         UPDATE placement_attempts SET evidence_count = 8, cleanup_state = 'pending'
         WHERE attempt_id = 'a'",
    );
    let whys: Vec<_> = verdict.faults.iter().map(|fault| fault.why).collect();
    assert_eq!(whys, ["the recorded head is not the end of the chain"]);
}

#[test]
fn a_changed_row_of_the_attempt_is_noticed() {
    for (change, why) in [
        ("execution_state = 'uncertain'", "the recorded state is not the one of the evidence"),
        ("cleanup_state = 'pending'", "the recorded state is not the one of the evidence"),
        ("exit_code = 0", "the recorded exit is not the one of the evidence"),
        (
            "exit_source = 'reconcile'",
            "the recorded source of the exit is not the one of the evidence",
        ),
        (
            "tree_gone_by = NULL",
            "the recorded proof of an empty tree is not the one of the evidence",
        ),
        ("evidence_count = 10", "the recorded count is not the number of rows"),
        ("chain_head = request_digest", "the recorded head is not the end of the chain"),
    ] {
        let sql = format!("UPDATE placement_attempts SET {change} WHERE attempt_id = 'a'");
        let whys: Vec<_> = verdict_after(&sql).faults.iter().map(|fault| fault.why).collect();
        assert_eq!(whys, [why], "{change}");
    }
}

#[test]
fn a_changed_request_digest_breaks_the_chain_at_its_first_row() {
    let verdict = verdict_after(
        "UPDATE placement_attempts SET request_digest = replace(hex(zeroblob(32)), '0', 'a')
         WHERE attempt_id = 'a'",
    );
    assert_eq!(verdict.faults[0].sequence, Some(1));
}

#[test]
fn a_head_that_was_kept_is_found_where_it_was_the_head() {
    let world = World::new();
    let store = world.open();
    let kept = running(&store, "a");
    record(&store, "a", &[(EvidenceKind::ChildExited, "code 0")]).unwrap();
    let verdict = store.verify(&id("a"), Some(&kept.chain_head)).unwrap().unwrap();
    assert!(verdict.is_sound());
    assert_eq!(verdict.kept_head_at, Some(kept.evidence_count));
    let other = Digest::of_bytes(b"another");
    let verdict = store.verify(&id("a"), Some(&other)).unwrap().unwrap();
    assert_eq!(verdict.kept_head_at, None);
    assert_eq!(verdict.faults[0].why, "the head that was kept is not in the chain");
}
