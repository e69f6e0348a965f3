//! Every bound of the transport, with its unit and its reason.

use placement_contract::limits::{CHUNK_BYTES_MAX, OUTSTANDING_CHUNKS_MAX};
use placement_protocol::limits::HEADER_BYTES;

/// Bytes that one [`crate::Link::fill`] reads at most: one whole chunk.
pub const FILL_BYTES_MAX: usize = HEADER_BYTES + CHUNK_BYTES_MAX;
/// Bytes that may wait in a link to be written: every chunk of a full window, and room for one
/// more so that answers and ends of streams find a place beside them. A larger frame is taken only
/// when nothing else waits.
pub const OUTGOING_BYTES_MAX: usize =
    (OUTSTANDING_CHUNKS_MAX + 1) * (HEADER_BYTES + CHUNK_BYTES_MAX);
/// Frames that may wait in a link to be written: small ones cost more than their bytes.
pub const OUTGOING_FRAMES_MAX: usize = 256;
/// Frames that one system call writes at most: a full window with its ends.
pub const GATHER_FRAMES_MAX: usize = 8;
/// Connections that wait to be accepted: more callers than one attempt has.
pub const BACKLOG: i32 = 16;

const _: () = assert!(OUTGOING_BYTES_MAX > OUTSTANDING_CHUNKS_MAX * FILL_BYTES_MAX);
