//! Bounds of this crate, each with its unit and its reason.

use placement_contract::limits::{CHUNK_BYTES_MAX, DELIVERY_FILE_BYTES_MAX, ID_BYTES_MAX};

/// Payload bytes of one log record: the contract's largest chunk.
pub const RECORD_BYTES_MAX: usize = CHUNK_BYTES_MAX;

/// Bytes that each record adds to its payload on disk; they count against the spool's bound.
pub const RECORD_OVERHEAD_BYTES: u64 = 36;

/// Stored bytes that may go beyond the spool's bound after the exit: two pipe capacities, with the
/// overhead of the records that hold them.
pub const TAIL_BYTES_MAX: u64 = 2 * CHUNK_BYTES_MAX as u64 + 4_096;

/// Bytes after which a segment is followed by a new one: trimming removes whole segments.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Smallest such size: a small transcript bound shall not mean a file per few chunks.
pub(crate) const SEGMENT_BYTES_MIN: u64 = 256 * 1024;

/// Segments that a full transcript is made of at least, so that trimming takes a small part of it.
pub(crate) const SEGMENTS_PER_TRANSCRIPT: u64 = 8;

/// Largest sequence, offset and counter that a file may hold: no writer gets there, and what is reckoned
/// with them never overflows.
pub(crate) const PLACE_MAX: u64 = 1 << 62;

/// Bytes searched at once for a record after a damaged one: bounds the memory of that search.
pub(crate) const SCAN_BYTES: usize = 65_536;

/// Tries of one look into the head while its writer replaces a slot.
pub(crate) const HEAD_TRIES_MAX: u32 = 16;

/// Longest sleep between two looks where inotify cannot be had, in milliseconds.
pub(crate) const POLL_MS: u64 = 50;

/// Bytes set aside for an exit record: the rows of a whole attempt without a store, and the file
/// under its temporary name.
pub(crate) const EXIT_RESERVE_BYTES: usize = 32 * 1024;

/// Bytes of the file that names the base of the temporary directory: the bound of a path, after a number
/// and a space.
pub(crate) const BASE_BYTES_MAX: usize = placement_paths::PATH_BYTES_MAX + 21;

/// Bytes of configuration that is written as it was delivered: twice what a delivery holds of one file,
/// for a secret in it.
pub(crate) const CONFIGURATION_BYTES_MAX: usize = 16_384;

/// Bytes of the marker of a retained home: two ids, a number and their names, escaped.
pub(crate) const MARKER_BYTES_MAX: usize = 2_048;

const _: () = assert!(CONFIGURATION_BYTES_MAX >= 2 * DELIVERY_FILE_BYTES_MAX);
// No id has a control character, so a byte of one takes two at most.
const _: () = assert!(2 * 2 * ID_BYTES_MAX + 128 <= MARKER_BYTES_MAX);
const _: () = assert!(SEGMENT_BYTES_MIN <= SEGMENT_BYTES_MAX);
