//! Secret bytes as lowercase hexadecimal, written and read without a copy of the text.

use placement_contract::Secret;
use serde::{Deserializer, Serializer, de};
use std::fmt;

pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Hex(bytes))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    deserializer.deserialize_str(HexVisitor)
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

struct HexVisitor;

impl de::Visitor<'_> for HexVisitor {
    type Value = Secret;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("bytes in lowercase hexadecimal")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Secret, E> {
        // The error does not quote the text, which may be a secret.
        decode(text).ok_or_else(|| E::custom("must be bytes in lowercase hexadecimal"))
    }
}

fn decode(text: &str) -> Option<Secret> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(pairs.len());
    for [high, low] in pairs {
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else {
            // What was read so far is wiped with it.
            drop(Secret::new(bytes));
            return None;
        };
        bytes.push(high << 4 | low);
    }
    Some(Secret::new(bytes))
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_reads_back() {
        let bytes: Vec<u8> = (0..=u8::MAX).collect();
        let secret = decode(&Hex(&bytes).to_string()).unwrap();
        assert_eq!(secret.expose(), bytes);
    }

    #[test]
    fn another_text_is_not_hexadecimal() {
        for wrong in ["0", "0g", "AB", "0x", " 0", "00 "] {
            assert!(decode(wrong).is_none(), "{wrong}");
        }
    }
}
