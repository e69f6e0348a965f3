//! What holds for every exact decoder.

use placement_contract::limits::MESSAGE_BYTES_MAX;
use placement_contract::{Code, DecodeError, Refusal};
use serde::Serialize;
use std::fmt::Debug;

/// Decodes; an accepted value is written and read again as the same one, an error is a refusal with
/// a code of the list.
pub(crate) fn check<T: Serialize + PartialEq + Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
) -> Option<T> {
    match decode(bytes) {
        Ok(value) => {
            let written = serde_json::to_vec(&value).expect("what was decoded can be written");
            let again = decode(&written);
            assert_eq!(again.as_ref(), Ok(&value), "what was written is read as it was");
            Some(value)
        }
        Err(error) => {
            assert!(!error.rule.is_empty(), "an error names its rule");
            refused(&Refusal::from(error), &[Code::Invalid]);
            None
        }
    }
}

/// Looks at a refusal: one of the codes that may be here, and a bounded message.
pub(crate) fn refused(refusal: &Refusal, expected: &[Code]) {
    assert!(expected.contains(&refusal.code), "{refusal} has a code that is not for this");
    assert_eq!(Code::from_label(refusal.code.label()), Some(refusal.code));
    assert!(refusal.message.len() <= MESSAGE_BYTES_MAX, "a message is bounded");
    assert!(!refusal.hint().is_empty(), "a refusal has a hint");
}
