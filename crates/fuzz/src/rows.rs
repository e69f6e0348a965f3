//! Stored rows with anything in a column: each reading names a column, and none panics.

use crate::input::Input;
use crate::stored::{ATTEMPTS, Bed, PRUNED, TABLES, id, owner, with};
use placement_contract::{AttemptId, IdempotencyKey, Secret, Timestamp};
use placement_resources::ResolvedGrant;
use placement_store::{Row, Selection, StoreError};
use rusqlite::ToSql;
use rusqlite::types::Value;

/// Names of what is no single column.
const WHOLE_ROWS: &[&str] = &["(file)", "request_json", "grants_json", "kind"];

pub(crate) fn run(bytes: &[u8]) {
    with(|bed| {
        let mut input = Input::new(bytes);
        for _ in 0..3 {
            if !input.is_empty() {
                change(bed, &mut input);
            }
        }
        for attempt in ATTEMPTS.iter().chain(std::iter::once(&PRUNED)) {
            read(bed, &id(attempt), &format!("key-{attempt}"));
        }
        read_lists(bed);
    });
}

/// Puts a value into one column of one row, or of all: what does not fit the column's type stays as
/// it was.
fn change(bed: &Bed, input: &mut Input<'_>) {
    let column = &bed.columns[usize::from(input.number16()) % bed.columns.len()];
    let row = input.byte();
    let kind = input.byte();
    let bytes = input.piece();
    let number = Input::new(bytes).number64().cast_signed();
    // Only a cast makes text of bytes that are none.
    let (place, value) = match kind % 5 {
        0 => ("CAST(?1 AS TEXT)", Value::Blob(bytes.to_vec())),
        1 => ("?1", Value::Integer(number)),
        2 => ("?1", Value::Null),
        3 => ("?1", Value::Blob(bytes.to_vec())),
        _ => ("?1", Value::Real(f64::from_bits(number.cast_unsigned()))),
    };
    let (table, name) = (column.table, &column.name);
    let sql = format!(
        "UPDATE main.{table} SET {name} = {place}
         WHERE attempt_id = (SELECT attempt_id FROM main.{table} ORDER BY attempt_id LIMIT 1
                             OFFSET ?2 % (SELECT count(*) FROM main.{table}))"
    );
    let parameters: [&dyn ToSql; 2] = [&value, &row];
    bed.raw.execute(&sql, parameters).ok();
}

fn read(bed: &Bed, attempt: &AttemptId, key: &str) {
    let store = &bed.store;
    if let Some(Some(row)) = named(bed, store.find_any(attempt)) {
        read_row(bed, &row);
    }
    named(bed, store.find(&owner(), attempt));
    let key = IdempotencyKey::parse(key).expect("a short text is an id");
    named(bed, store.find_by_key(&owner(), &key));
    named(bed, store.find_pruned(&owner(), attempt));
    named(bed, store.find_pruned_by_key(&owner(), &key));
    named(bed, store.evidence(attempt, 0, 64));
    named(bed, store.all_evidence(attempt));
    named(bed, store.folded(attempt));
    if let Some(Some(verdict)) = named(bed, store.verify(attempt, None)) {
        let kept = verdict.head.clone();
        named(bed, store.verify(attempt, Some(&kept)));
    }
    store.authority(attempt, &Secret::new(vec![7; 32])).ok();
}

fn read_row(bed: &Bed, row: &Row) {
    named(bed, row.request());
    named(bed, row.grants::<ResolvedGrant>());
    let attempt = row.attempt();
    let written = serde_json::to_string(&attempt).expect("a view can be written");
    let again: placement_contract::Attempt =
        serde_json::from_str(&written).expect("what was written is read");
    assert_eq!(again, attempt);
}

fn read_lists(bed: &Bed) {
    let store = &bed.store;
    // All of them at once: the other selections read the same rows.
    for selection in [Selection::All, Selection::Unsettled] {
        if let Some(listing) = named(bed, store.list(None, selection, 100)) {
            listing.corrupt.iter().for_each(|corrupt| is_column(bed, corrupt.column));
        }
        named(bed, store.count(Some(&owner()), selection));
    }
    let late = Timestamp::from_unix_ms(i64::from(u32::MAX) * 1_000);
    let mut after = None;
    for _ in 0..8 {
        let Some(page) = named(bed, store.settled(&owner(), &late, after.as_ref())) else { return };
        after = page.next;
        if after.is_none() {
            return;
        }
    }
    panic!("four attempts have no end of pages");
}

/// An error names a column that there is.
fn named<T>(bed: &Bed, read: Result<T, StoreError>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(StoreError::Corrupt { column }) => {
            is_column(bed, column);
            None
        }
        Err(error) => panic!("a stored value became {error:?}"),
    }
}

fn is_column(bed: &Bed, column: &str) {
    let known = bed.columns.iter().any(|known| known.name == column);
    assert!(known || WHOLE_ROWS.contains(&column), "{column} is no column of {TABLES:?}");
}

/// One change of each column.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for column in 0_u8..80 {
        // A text, a number and nothing, in turn.
        let (kind, value) = [(0, &b"x"[..]), (1, &[255; 8]), (2, &[])][usize::from(column % 3)];
        let length = u8::try_from(value.len()).expect("it is short");
        seeds.push([&[column, 0, 1, kind, length, 0], value].concat());
    }
    seeds
}
