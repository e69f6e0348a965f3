//! The names of an attempt's and of a session's directory: digests, so that no caller's identifier
//! enters a path.

use std::fmt;

use placement_contract::{AttemptId, OwnerId, SessionRef};
use sha2::{Digest, Sha256};

const KEY_CHARACTERS: usize = 32;
const SHORT_CHARACTERS: usize = 12;

/// Names an attempt's directory: the first 32 hex digits of
/// `sha256("attempt/" + owner + LF + attempt)`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HomeKey(String);

/// Names a session's directory: the first 32 hex digits of
/// `sha256("session/" + owner + LF + session)`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey(String);

/// A text is no home key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a home key has {KEY_CHARACTERS} lowercase hexadecimal digits")]
pub struct HomeKeyRefused;

impl HomeKey {
    /// Derives the key of an attempt; two owners' attempts of one name have different keys.
    pub fn of(owner: &OwnerId, attempt: &AttemptId) -> Self {
        Self(digits("attempt/", owner, attempt.as_str()))
    }

    /// Parses a key.
    ///
    /// # Errors
    /// The text is not 32 lowercase hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, HomeKeyRefused> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() == KEY_CHARACTERS && digits {
            Ok(Self(text.to_owned()))
        } else {
            Err(HomeKeyRefused)
        }
    }

    /// Returns the 32 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the first 12 digits, which name the temporary directory.
    pub(crate) fn short(&self) -> &str {
        &self.0[..SHORT_CHARACTERS]
    }
}

impl fmt::Display for HomeKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl SessionKey {
    /// Derives the key of a session; two owners' sessions of one name have different keys.
    pub fn of(owner: &OwnerId, session: &SessionRef) -> Self {
        Self(digits("session/", owner, session.as_str()))
    }

    /// Returns the 32 digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn digits(kind: &str, owner: &OwnerId, name: &str) -> String {
    let digest = Sha256::new()
        .chain_update(kind)
        .chain_update(owner.as_str())
        .chain_update("\n")
        .chain_update(name)
        .finalize();
    let mut key = String::with_capacity(KEY_CHARACTERS);
    for byte in digest.iter().take(KEY_CHARACTERS / 2) {
        for nibble in [byte >> 4, byte & 0x0f] {
            key.push(char::from_digit(u32::from(nibble), 16).expect("a nibble is below 16"));
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(owner: &str, attempt: &str) -> HomeKey {
        HomeKey::of(&OwnerId::parse(owner).unwrap(), &AttemptId::parse(attempt).unwrap())
    }

    #[test]
    fn the_key_is_the_digest_of_owner_and_attempt() {
        // printf 'attempt/ci\na-1' | sha256sum | head -c 32
        assert_eq!(key("ci", "a-1").as_str(), "13e4ec1d8b73c407bdd58aaf6c582452");
    }

    #[test]
    fn two_owners_of_one_name_have_different_keys() {
        assert_ne!(key("one", "a"), key("two", "a"));
    }

    #[test]
    fn the_key_of_a_session_is_the_digest_of_owner_and_session() {
        let key = |owner, session| {
            SessionKey::of(&OwnerId::parse(owner).unwrap(), &SessionRef::parse(session).unwrap())
        };
        // printf 'session/ci\na-1' | sha256sum | head -c 32
        assert_eq!(key("ci", "a-1").as_str(), "640f5dff3fb7cc4b6070b0d7703699c6");
        assert_ne!(key("one", "a"), key("two", "a"));
    }

    #[test]
    fn a_key_is_parsed_back() {
        let key = key("ci", "a-1");
        assert_eq!(HomeKey::parse(key.as_str()), Ok(key));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in ["", "..", &"a".repeat(31), &"a".repeat(33), &"A".repeat(32), &"g".repeat(32)] {
            assert_eq!(HomeKey::parse(text), Err(HomeKeyRefused), "{text:?}");
        }
    }
}
