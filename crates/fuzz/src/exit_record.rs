//! What a runner could not commit, as its file has it.

use crate::stored::{ATTEMPTS, id, identity, with};
use placement_contract::{EvidenceKind, RunnerId, Timestamp};
use placement_store::{ExitRecord, Fields, RecordError, RecordedRow, RunnerClaim};

/// The first byte chooses the attempt into which the record is taken.
pub(crate) fn run(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let Ok(record) = ExitRecord::decode(bytes) else { return };
    let written = record.encode().expect("what was read can be written");
    assert_eq!(ExitRecord::decode(&written).as_ref(), Ok(&record));
    let attempt = id(ATTEMPTS[usize::from(*choice) % ATTEMPTS.len()]);
    let record = ExitRecord { attempt_id: attempt.clone(), ..record };
    with(|bed| {
        let before = bed.store.find_any(&attempt).expect("it is sound").expect("it is there");
        match bed.store.take_exit_record(&record) {
            Ok(taken) => {
                let again = bed.store.take_exit_record(&record).expect("it was taken before");
                assert_eq!(again, taken, "a record is taken in once");
            }
            Err(RecordError::Store(error)) => panic!("a record became {error:?}"),
            Err(_) => {
                let after = bed.store.find_any(&attempt).expect("it is sound");
                assert_eq!(after, Some(before), "a record that is refused changes nothing");
            }
        }
        let verdict = bed.store.verify(&attempt, None).expect("it is sound");
        assert!(verdict.is_some_and(|verdict| verdict.is_sound()), "the evidence still holds");
    });
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let row = |kind, detail: &str| RecordedRow {
        kind,
        detail: detail.to_owned(),
        at: Timestamp::from_unix_ms(1_796_000_000_000),
    };
    let started = [
        row(EvidenceKind::RunnerStarted, "runner"),
        row(EvidenceKind::ChildCreating, "in a cgroup"),
        row(EvidenceKind::ChildIdentified, "pid and group"),
        row(EvidenceKind::ChildStarted, "executed"),
    ];
    let ended = [
        row(EvidenceKind::ChildExited, "code 3"),
        row(EvidenceKind::TreeGone, "cgroup: populated 0"),
        row(EvidenceKind::RunnerFinished, ""),
    ];
    let runner = RunnerClaim {
        id: RunnerId::parse("runner").expect("a short text is an id"),
        identity: identity(7),
    };
    let fields = Fields {
        runner: Some(runner),
        child: Some(identity(8)),
        leaf_path: Some("/placement/x".into()),
        leaf_id: Some(77),
        ..Fields::default()
    };
    let record = |rows: &[RecordedRow], fields: &Fields| {
        let record = ExitRecord {
            attempt_id: id(ATTEMPTS[0]),
            based_on_count: 1,
            rows: rows.to_vec(),
            fields: fields.clone(),
        };
        record.encode().expect("it is small")
    };
    let whole = [&started[..], &ended[..]].concat();
    let records = [
        (0, record(&whole, &fields)),
        (1, record(&ended, &Fields::default())),
        (2, record(&ended[2..], &Fields::default())),
    ];
    records.into_iter().map(|(choice, record)| [vec![choice], record].concat()).collect()
}
