//! Every bound of the protocol, with its unit and its reason.

use placement_contract::limits::{
    CHUNK_BYTES_MAX, ENVIRONMENT_MAX, ENVIRONMENT_VALUE_BYTES_MAX, REQUEST_BYTES_MAX,
    WRITE_BYTES_MAX,
};

/// Bytes of the header that starts every frame.
pub const HEADER_BYTES: usize = 32;
/// Largest JSON payload but for an order's, in bytes: what a chunk may have, so that one buffer
/// serves every frame of a link.
pub const JSON_BYTES_MAX: usize = 65_536;
/// Largest order, in bytes: every resolved environment value in hexadecimal, with as much room
/// again as the largest request needs.
pub const ORDER_BYTES_MAX: usize = REQUEST_BYTES_MAX + 1024 * 1024;
/// Bytes of the token that opens an attempt's sockets: not to be guessed within its life.
pub const TOKEN_BYTES: usize = 32;
/// Longest search path in an order, in bytes: the longest text that the kernel passes as one
/// variable.
pub const SEARCH_PATH_BYTES_MAX: usize = 131_072;

const _: () = assert!(JSON_BYTES_MAX >= CHUNK_BYTES_MAX);
const _: () = assert!(JSON_BYTES_MAX >= WRITE_BYTES_MAX);
const _: () = assert!(
    ORDER_BYTES_MAX
        > 2 * ENVIRONMENT_MAX * ENVIRONMENT_VALUE_BYTES_MAX
            + SEARCH_PATH_BYTES_MAX
            + JSON_BYTES_MAX
);
const _: () = assert!(ORDER_BYTES_MAX < u32::MAX as usize);
