//! The token that opens an attempt's sockets.

use crate::hex;
use crate::limits::TOKEN_BYTES;
use placement_contract::Secret;
use serde::{Deserializer, Serializer, de};

/// Proves that its holder may command an attempt's runner.
///
/// It is wiped when dropped and cannot be printed; only a hello and an order carry it. Compare
/// two of them in constant time.
#[derive(Debug)]
pub struct Token(Secret);

impl Token {
    /// Makes a token from random bytes.
    pub fn new(bytes: [u8; TOKEN_BYTES]) -> Self {
        Self(Secret::new(bytes.to_vec()))
    }

    /// Takes over the bytes of a recorded token; `None` if they are not as many as a token has.
    pub fn from_secret(secret: Secret) -> Option<Self> {
        (secret.expose().len() == TOKEN_BYTES).then_some(Self(secret))
    }

    /// Shows the bytes to the code that records or compares them.
    pub fn expose(&self) -> &[u8] {
        self.0.expose()
    }
}

pub(crate) fn serialize<S: Serializer>(token: &Token, serializer: S) -> Result<S::Ok, S::Error> {
    hex::serialize(token.expose(), serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Token, D::Error> {
    Token::from_secret(hex::deserialize(deserializer)?)
        .ok_or_else(|| de::Error::custom("must be 32 bytes"))
}

/// The same for a link that may have none.
pub(crate) mod option {
    use super::Token;
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    struct Present(#[serde(with = "super")] Token);

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(crate) fn serialize<S: Serializer>(
        token: &Option<Token>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match token {
            Some(token) => super::serialize(token, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Token>, D::Error> {
        Ok(Option::<Present>::deserialize(deserializer)?.map(|present| present.0))
    }
}
