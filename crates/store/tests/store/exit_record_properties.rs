//! What holds for any exit record and for any bytes in the place of one.

use crate::support::id;
use placement_contract::{EvidenceKind, Timestamp};
use placement_store::{ExitRecord, Fields, RecordedRow};
use proptest::collection::vec;
use proptest::prelude::*;

fn row() -> impl Strategy<Value = RecordedRow> {
    let detail = vec(any::<char>(), 0..40).prop_map(String::from_iter);
    let at = 0_i64..4_000_000_000_000;
    (prop::sample::select(EvidenceKind::ALL), detail, at).prop_map(|(kind, detail, at)| {
        RecordedRow { kind, detail, at: Timestamp::from_unix_ms(at) }
    })
}

fn record() -> impl Strategy<Value = ExitRecord> {
    let fields = (any::<Option<u64>>(), any::<bool>()).prop_map(|(leaf_id, key)| Fields {
        leaf_id,
        home_key: key.then(|| "key".to_owned()),
        ..Fields::default()
    });
    (any::<u64>(), vec(row(), 0..6), fields).prop_map(|(based_on_count, rows, fields)| ExitRecord {
        attempt_id: id("a"),
        based_on_count,
        rows,
        fields,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_record_reads_back_as_it_was_written(record in record()) {
        let bytes = record.encode().unwrap();
        prop_assert_eq!(ExitRecord::decode(&bytes), Ok(record));
    }

    #[test]
    fn a_changed_record_is_refused_or_reads_back(
        record in record(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = record.encode().unwrap();
        for (at, byte) in changes {
            *at.get_mut(&mut bytes) = byte;
        }
        if let Ok(changed) = ExitRecord::decode(&bytes) {
            prop_assert_eq!(ExitRecord::decode(&changed.encode().unwrap()), Ok(changed));
        }
    }

    #[test]
    fn a_record_that_was_cut_is_refused(record in record(), at in any::<prop::sample::Index>()) {
        let bytes = record.encode().unwrap();
        prop_assert!(ExitRecord::decode(&bytes[..at.index(bytes.len())]).is_err());
    }

    #[test]
    fn any_bytes_are_refused(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(ExitRecord::decode(&bytes).is_err());
    }
}
