//! 64-bit numbers as decimal strings, because canonical JSON rounds integers above 2^53.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
pub(crate) fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// The same for a fact that may be missing.
pub(crate) mod option {
    use super::{Deserialize, Deserializer, Serializer, parse};
    use serde::de::Error as _;

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(crate) fn serialize<S: Serializer>(
        value: &Option<u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(number) => serializer.collect_str(number),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u64>, D::Error> {
        match Option::<String>::deserialize(deserializer)? {
            Some(text) => parse(&text).map(Some).map_err(D::Error::custom),
            None => Ok(None),
        }
    }
}

/// Takes exactly the form that is written: no sign, no leading zero, no blank.
fn parse(text: &str) -> Result<u64, &'static str> {
    let number: u64 = text.parse().map_err(|_| "not a decimal number of 64 bits")?;
    if number.to_string() == text { Ok(number) } else { Err("not in canonical decimal form") }
}
