//! Taking in what a runner could not commit.

use crate::support::{World, id, intend, record, running};
use placement_contract::EvidenceKind::{
    self, ChildExited, ChildStarted, ReconcileAbsent, ReconcileUnidentified, RecordTaken,
    RunnerFinished, RunnerStarted, SignalTerm, StopRequested, TreeGone,
};
use placement_contract::{Code, Exit, ExitSource, Refusal, Timestamp};
use placement_identity::ProcessIdentity;
use placement_store::{
    ChildIdentity, ExitRecord, ExitRecordError, Fields, RecordError, RecordedRow, Store,
};

fn seen(kind: EvidenceKind, detail: &str, at_ms: i64) -> RecordedRow {
    RecordedRow { kind, detail: detail.into(), at: Timestamp::from_unix_ms(at_ms) }
}

fn ending(based_on_count: u64) -> ExitRecord {
    ExitRecord {
        attempt_id: id("a"),
        based_on_count,
        rows: vec![
            seen(StopRequested, "cooperative", 10),
            seen(SignalTerm, "group", 11),
            seen(ChildExited, "signal 15", 12),
            seen(TreeGone, "cgroup: populated 0", 13),
            seen(RunnerFinished, "", 14),
        ],
        fields: Fields::default(),
    }
}

fn kinds(store: &Store) -> Vec<EvidenceKind> {
    store.all_evidence(&id("a")).unwrap().iter().map(|row| row.kind).collect()
}

fn is_sound(store: &Store) -> bool {
    store.verify(&id("a"), None).unwrap().unwrap().is_sound()
}

#[test]
fn a_record_is_taken_in_with_its_times_and_its_end() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    let row = store.take_exit_record(&ending(5)).unwrap();
    assert_eq!(row.exit, Some(Exit::Signal { signal: 15, core: false }));
    assert_eq!(row.exit_source, Some(ExitSource::Runner));
    assert_eq!(row.tree_gone_by.as_deref(), Some("cgroup: populated 0"));
    assert!(row.runner.unwrap().finished);
    let rows = store.all_evidence(&id("a")).unwrap();
    assert_eq!(rows[7].at, Timestamp::from_unix_ms(12));
    assert_eq!(rows.last().unwrap().kind, RecordTaken);
    assert!(is_sound(&store));
}

#[test]
fn a_record_is_taken_in_once() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    let first = store.take_exit_record(&ending(5)).unwrap();
    assert_eq!(store.take_exit_record(&ending(5)).unwrap(), first);
}

#[test]
fn two_that_take_the_same_record_at_once_take_it_once() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| world.open().take_exit_record(&ending(5)).unwrap());
        }
    });
    assert_eq!(kinds(&store).iter().filter(|kind| **kind == RecordTaken).count(), 1);
    assert!(is_sound(&store));
}

#[test]
fn a_row_that_was_committed_after_all_is_not_repeated() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    let row = record(&store, "a", &[(StopRequested, "cooperative")]).unwrap();
    let mut late = ending(5);
    late.rows[0].at = row.updated_at;
    store.take_exit_record(&late).unwrap();
    let stops = kinds(&store).iter().filter(|kind| **kind == StopRequested).count();
    assert_eq!(stops, 1);
}

#[test]
fn an_exit_is_learnt_after_a_reconcile_has_settled_the_attempt() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    record(&store, "a", &[(ReconcileAbsent, "its leader has ended")]).unwrap();
    let row = store.take_exit_record(&ending(5)).unwrap();
    assert_eq!(row.exit_source, Some(ExitSource::Runner));
    assert_eq!(row.exit, Some(Exit::Signal { signal: 15, core: false }));
    assert!(is_sound(&store));
}

#[test]
fn a_row_that_no_longer_fits_is_left_out_and_counted() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    record(&store, "a", &[(ReconcileAbsent, "")]).unwrap();
    let mut late = ending(5);
    late.rows.insert(0, seen(ChildStarted, "", 9));
    store.take_exit_record(&late).unwrap();
    let rows = store.all_evidence(&id("a")).unwrap();
    let taken = rows.last().unwrap();
    assert!(taken.detail.contains("did not fit: 1"), "{}", taken.detail);
    assert!(is_sound(&store));
}

#[test]
fn an_uncertain_attempt_is_settled_by_its_record() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    record(&store, "a", &[(ReconcileUnidentified, "")]).unwrap();
    let row = store.take_exit_record(&ending(5)).unwrap();
    assert_eq!(row.state.to_string(), "exited/pending");
}

#[test]
fn rows_that_a_power_failure_took_are_counted_and_the_record_is_still_taken_once() {
    let world = World::new();
    let store = world.open();
    running(&store, "a");
    let first = store.take_exit_record(&ending(40)).unwrap();
    let rows = store.all_evidence(&id("a")).unwrap();
    assert!(rows.last().unwrap().detail.ends_with("rows lost before it: 35"));
    assert_eq!(store.take_exit_record(&ending(40)).unwrap(), first);
}

#[test]
fn fields_come_with_the_record_unless_they_are_recorded() {
    let world = World::new();
    let store = world.open();
    intend(&store, "a");
    let this = ProcessIdentity::this_process().unwrap();
    let mut late = ending(1);
    late.rows.insert(0, seen(RunnerStarted, "r-1", 8));
    late.fields = crate::support::claim("r-1");
    late.fields.child = Some(this.clone());
    late.fields.leaf_id = Some(5);
    late.fields.home_key = Some("0f".into());
    let row = store.take_exit_record(&late).unwrap();
    assert_eq!(row.child, ChildIdentity::Complete(this));
    assert_eq!(row.home_key.as_deref(), Some("0f"));
    assert_eq!(row.leaf, None, "an id without its path names no leaf");
    let mut other = ending(1);
    other.fields.home_key = Some("ff".into());
    let row = store.take_exit_record(&other).unwrap();
    assert_eq!(row.home_key.as_deref(), Some("0f"));
}

#[test]
fn a_record_that_fits_nowhere_changes_nothing() {
    let world = World::new();
    let store = world.open();
    let before = intend(&store, "a");
    let refused = store.take_exit_record(&ending(1)).unwrap_err();
    assert!(matches!(refused, RecordError::Refused(_)));
    assert_eq!(store.find_any(&id("a")).unwrap(), Some(before));
    let mut unknown = ending(1);
    unknown.attempt_id = id("b");
    let refused = store.take_exit_record(&unknown).unwrap_err();
    assert_eq!(Refusal::from(refused).code, Code::NotFound);
}

#[test]
fn a_record_reads_back_exactly() {
    let mut record = ending(5);
    record.fields = crate::support::claim("r-1");
    let bytes = record.encode().unwrap();
    assert_eq!(ExitRecord::decode(&bytes), Ok(record));
}

#[test]
fn a_record_in_any_other_form_is_refused() {
    let bytes = ending(5).encode().unwrap();
    for cut in 0..bytes.len() {
        assert_eq!(ExitRecord::decode(&bytes[..cut]), Err(ExitRecordError::Malformed), "{cut}");
    }
    let text = String::from_utf8(bytes).unwrap();
    let extra = text.replacen('{', "{\"more\":1,", 1);
    assert_eq!(ExitRecord::decode(extra.as_bytes()), Err(ExitRecordError::Malformed));
    let twice = text.replacen('{', "{\"based_on_count\":5,", 1);
    assert_eq!(ExitRecord::decode(twice.as_bytes()), Err(ExitRecordError::Malformed));
    let kind = text.replace("signal.term", "signal.tram");
    assert_eq!(ExitRecord::decode(kind.as_bytes()), Err(ExitRecordError::Malformed));
}

#[test]
fn a_record_has_bounds() {
    let mut record = ending(5);
    record.rows = vec![seen(SignalTerm, "", 1); 257];
    assert_eq!(record.encode(), Err(ExitRecordError::TooLarge));
    let rows = serde_json::to_vec(&record).unwrap();
    assert_eq!(ExitRecord::decode(&rows), Err(ExitRecordError::TooLarge));
    assert_eq!(ExitRecord::decode(&vec![b' '; 4 << 20 | 1]), Err(ExitRecordError::TooLarge));
}
