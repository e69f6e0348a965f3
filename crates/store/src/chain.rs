//! The chain value of one row of evidence.

use placement_contract::Digest;
use serde::Serialize;

/// The name under which a row is hashed.
pub(crate) const CHAIN_REVISION: &str = "placement.evidence@1";

/// Everything that goes into the value; numbers are text, since canonical JSON rounds large ones.
///
/// The value before the first row is the digest of the request, so the chain says of which launch
/// it speaks.
#[derive(Debug, Serialize)]
pub(crate) struct Link<'a> {
    pub(crate) previous: &'a str,
    pub(crate) attempt_id: &'a str,
    pub(crate) sequence: String,
    pub(crate) at: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) from: Option<&'a str>,
    pub(crate) to: &'a str,
    pub(crate) detail: &'a str,
}

impl Link<'_> {
    pub(crate) fn value(&self) -> Digest {
        Digest::of_value(CHAIN_REVISION, self).expect("text has a canonical form")
    }
}
