//! Decoders with a fault each, behind bytes that only coverage leads to.

/// What all of them look for first.
const MAGIC: &[u8; 4] = b"PLNT";

fn body(bytes: &[u8]) -> Option<&[u8]> {
    // Byte by byte, so that each right one is a step that a fuzzer sees.
    for (place, wanted) in MAGIC.iter().enumerate() {
        if bytes.get(place) != Some(wanted) {
            return None;
        }
    }
    bytes.get(MAGIC.len()..)
}

/// Trusts a length.
pub(crate) fn panics(bytes: &[u8]) {
    let Some([length, rest @ ..]) = body(bytes) else { return };
    assert!(rest[..usize::from(*length)].len() <= rest.len());
}

/// Reads one value otherwise once it was written.
pub(crate) fn changes(bytes: &[u8]) {
    let Some([value, ..]) = body(bytes) else { return };
    let written = if *value == b'!' { b'?' } else { *value };
    assert_eq!(written, *value, "a value is another one once it was written");
}

/// Never gets to the end of an empty piece.
pub(crate) fn hangs(bytes: &[u8]) {
    let Some(mut rest) = body(bytes) else { return };
    while let Some((length, pieces)) = rest.split_first() {
        let length = usize::from(*length).min(pieces.len());
        rest = if length == 0 { rest } else { &pieces[length..] };
    }
}

/// Sets aside what a length asks for.
pub(crate) fn swells(bytes: &[u8]) {
    let Some([a, b, c, d, ..]) = body(bytes) else { return };
    let length = u32::from_le_bytes([*a, *b, *c, *d]);
    let room: Vec<u8> = Vec::with_capacity(usize::try_from(length).unwrap_or(usize::MAX));
    assert!(std::hint::black_box(room).is_empty());
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    vec![b"P".to_vec()]
}
