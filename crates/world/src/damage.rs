//! Changes to a store past its guards: by SQL as another program would make them, and damage done
//! beneath SQLite, so that no trigger and no lock of it is in the way.

use camino::Utf8Path;
use placement_store::SCHEMA;
use rusqlite::Connection;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

/// Bytes of the log's header, and of the header of each frame in it.
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The part of a header that its checksum covers.
const LOG_SUMMED: usize = 24;
const FRAME_SUMMED: usize = 8;

/// Replaces a text by another of the same length wherever it lies in a closed store, and returns
/// how often it did: in the database, and in its write-ahead log, whose checksums are made anew.
///
/// # Panics
/// When the texts differ in length, when a file cannot be read or written, or when the log is of an
/// unknown form.
#[track_caller]
pub fn replace_in_store(root: &Utf8Path, text: &str, by: &str) -> usize {
    assert_eq!(text.len(), by.len(), "a damage moves nothing");
    let database = root.join("placement.db");
    let mut bytes = std::fs::read(&database).expect("the store is there");
    let mut count = replace(&mut bytes, text.as_bytes(), by.as_bytes());
    std::fs::write(&database, bytes).expect("the store can be written");
    let log = root.join("placement.db-wal");
    let mut bytes = std::fs::read(&log).unwrap_or_default();
    if bytes.len() > LOG_HEADER {
        count += replace(&mut bytes, text.as_bytes(), by.as_bytes());
        sum_again(&mut bytes);
        std::fs::write(&log, bytes).expect("the log can be written");
    }
    count
}

/// Changes a store by SQL, whoever has it open.
///
/// # Panics
/// When it cannot be opened or the statements fail.
#[track_caller]
pub fn change_store(root: &Utf8Path, sql: &str) {
    let database = root.join("placement.db");
    let connection = Connection::open(database.as_std_path()).expect("the store is there");
    connection.execute_batch(sql).expect("the store takes the change");
}

/// Makes a root whose store is the one that was dumped as SQL.
///
/// # Panics
/// When there is a root, or the text is no dump.
#[track_caller]
pub fn load_store(root: &Utf8Path, dump: &str) {
    std::fs::create_dir(root).expect("there is no root yet");
    std::fs::set_permissions(root, Permissions::from_mode(0o700)).expect("it is our own");
    let database = root.join("placement.db");
    std::fs::write(&database, "").expect("the root is writable");
    std::fs::set_permissions(&database, Permissions::from_mode(0o600)).expect("it is our own");
    change_store(root, dump);
}

/// Takes the log of a closed store into the database, so that all of it lies in one file.
///
/// # Panics
/// As [`change_store`].
#[track_caller]
pub fn take_log_in(root: &Utf8Path) {
    let connection =
        Connection::open(root.join("placement.db").as_std_path()).expect("it is there");
    let left: i64 = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .expect("the log can be taken in");
    assert_eq!(left, 0, "somebody has the store open");
}

/// Overwrites the first page of a table or an index of a closed store.
///
/// # Panics
/// When there is none, or the file cannot be written.
#[track_caller]
pub fn damage_root_page(root: &Utf8Path, name: &str) {
    take_log_in(root);
    let database = root.join("placement.db");
    let connection = Connection::open(database.as_std_path()).expect("the store is there");
    let page: i64 = connection
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [name], |row| row.get(0))
        .expect("the store has it");
    drop(connection);
    let page = usize::try_from(page).expect("a page has a number") - 1;
    damage_pages(&database, |number, _| number == page);
}

/// Overwrites each page of a closed store that holds a text.
///
/// # Panics
/// When none does, or the file cannot be written.
#[track_caller]
pub fn damage_pages_with(root: &Utf8Path, text: &str) {
    take_log_in(root);
    let holds = |page: &[u8]| page.windows(text.len()).any(|window| window == text.as_bytes());
    damage_pages(&root.join("placement.db"), |_, page| holds(page));
}

#[track_caller]
fn damage_pages(database: &Utf8Path, is_meant: impl Fn(usize, &[u8]) -> bool) {
    let mut bytes = std::fs::read(database).expect("the store is there");
    let size = u16::from_be_bytes(bytes[16..18].try_into().expect("two bytes"));
    let mut count = 0;
    for (number, page) in bytes.chunks_mut(usize::from(size)).enumerate() {
        if is_meant(number, page) {
            page.fill(0xa5);
            count += 1;
        }
    }
    assert!(count > 0, "no page is meant");
    std::fs::write(database, bytes).expect("the store can be written");
}

/// Makes a closed store one that a newer version has migrated.
///
/// # Panics
/// When its binding is not found.
#[track_caller]
pub fn make_store_newer(root: &Utf8Path) {
    // The record of the binding ends with the boot in which it was made and the schema, one byte.
    let boot = placement_identity::boot_id().expect("the kernel tells its boot");
    let schema = |number: u32| format!("{boot}{}", char::from_u32(number).expect("one byte"));
    let count = replace_in_store(root, &schema(SCHEMA), &schema(SCHEMA + 1));
    assert!(count > 0, "the binding of the store is not found");
}

fn replace(bytes: &mut [u8], text: &[u8], by: &[u8]) -> usize {
    let places: Vec<usize> = bytes
        .windows(text.len())
        .enumerate()
        .filter(|(_, window)| *window == text)
        .map(|(place, _)| place)
        .collect();
    for place in &places {
        bytes[*place..*place + by.len()].copy_from_slice(by);
    }
    places.len()
}

/// Makes the checksums of the log's valid frames anew; see "WAL file format" of SQLite.
fn sum_again(log: &mut [u8]) {
    // The last bit of the magic number says in which order the checksum reads its words.
    let word = match log[3] {
        0x82 => u32::from_le_bytes,
        0x83 => u32::from_be_bytes,
        other => panic!("the log has an unknown form: {other:#x}"),
    };
    let page = u32::from_be_bytes(log[8..12].try_into().expect("four bytes"));
    let page = usize::try_from(page).expect("a page fits the memory");
    let salt: [u8; 8] = log[16..24].try_into().expect("eight bytes");
    let mut sum = checksum((0, 0), &log[..LOG_SUMMED], word);
    let mut at = LOG_HEADER;
    // Frames of an earlier run of the log, which carry another salt, are not valid.
    while at + FRAME_HEADER + page <= log.len() && log[at + 8..at + 16] == salt {
        let body = at + FRAME_HEADER;
        sum = checksum(sum, &log[at..at + FRAME_SUMMED], word);
        sum = checksum(sum, &log[body..body + page], word);
        log[at + 16..at + 20].copy_from_slice(&sum.0.to_be_bytes());
        log[at + 20..at + 24].copy_from_slice(&sum.1.to_be_bytes());
        at = body + page;
    }
}

fn checksum(sum: (u32, u32), bytes: &[u8], word: fn([u8; 4]) -> u32) -> (u32, u32) {
    let (mut first, mut second) = sum;
    for pair in bytes.chunks_exact(8) {
        let (left, right) = pair.split_at(4);
        let left = word(left.try_into().expect("four bytes"));
        let right = word(right.try_into().expect("four bytes"));
        first = first.wrapping_add(left).wrapping_add(second);
        second = second.wrapping_add(right).wrapping_add(first);
    }
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_replaced() {
        let mut bytes = *b"abcabc-ab";
        assert_eq!(replace(&mut bytes, b"abc", b"abd"), 2);
        assert_eq!(&bytes, b"abdabd-ab");
    }

    #[test]
    fn the_checksum_of_an_untouched_log_stays() {
        // A header and a frame of an 8-byte page, summed by the definition in words of 1, 2, 3...
        let mut log = vec![0; LOG_HEADER + FRAME_HEADER + 8];
        log[3] = 0x83;
        log[11] = 8;
        log[LOG_HEADER + 3] = 1;
        sum_again(&mut log);
        let once = log.clone();
        sum_again(&mut log);
        assert_eq!(log, once);
        assert_ne!(log[LOG_HEADER + 16..LOG_HEADER + 24], [0; 8]);
    }
}
