//! Codes, refusals and hints: one table feeds replies, `--json`, the docs and the tests.

use crate::limits::MESSAGE_BYTES_MAX;
use crate::state::labels;
use serde::{Deserialize, Serialize};
use std::fmt;

labels! {
    /// A stable error code.
    Code {
        /// Malformed input.
        Invalid = "INVALID",
        /// No authenticated caller.
        Unauthenticated = "UNAUTHENTICATED",
        /// The root or the access is not admitted.
        Forbidden = "FORBIDDEN",
        /// A policy stands against it.
        Denied = "DENIED",
        /// No such attempt for this owner.
        NotFound = "NOT_FOUND",
        /// What is recorded stands against it.
        Conflict = "CONFLICT",
        /// This machine cannot clean or observe what the launch requires.
        UnsupportedCapability = "UNSUPPORTED_CAPABILITY",
        /// Something needed did not answer or failed; a retry may succeed.
        Unavailable = "UNAVAILABLE",
        /// The outcome is not known.
        Uncertain = "UNCERTAIN",
        /// The store failed or holds malformed content.
        Storage = "STORAGE",
        /// Placement itself failed.
        Internal = "INTERNAL",
        /// This version does not offer it.
        Unsupported = "UNSUPPORTED",
        /// The program does not exist on the search path.
        ExecutableNotFound = "EXECUTABLE_NOT_FOUND",
        /// The program exists and cannot be executed.
        ExecutableRefused = "EXECUTABLE_REFUSED",
    }
}

impl Code {
    /// Says what the code means, in one sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Invalid => "the request is malformed, out of bounds or contradicts itself",
            Self::Unauthenticated => "the caller is not known",
            Self::Forbidden => "the host does not admit that directory or that access",
            Self::Denied => "the launch policy does not allow it",
            Self::NotFound => "there is no such attempt for this owner",
            Self::Conflict => "what is recorded already stands against it",
            Self::UnsupportedCapability => {
                "this machine cannot clean or observe what the launch requires"
            }
            Self::Unavailable => "something that is needed did not answer or failed",
            Self::Uncertain => "what became of the child cannot be proven",
            Self::Storage => "the store could not be read or written, or its content is damaged",
            Self::Internal => "placement itself failed",
            Self::Unsupported => "this version does not offer it",
            Self::ExecutableNotFound => "the program was not found",
            Self::ExecutableRefused => "the program cannot be executed",
        }
    }

    /// Says what to do about it, unless a refusal has a better hint of its own.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Invalid => "correct the named field and try again",
            Self::Unauthenticated => "open the root as one of its owners",
            Self::Forbidden => {
                "name an admitted directory, or admit this one with --write or --read"
            }
            Self::Denied => "ask whoever keeps the launch policy to allow it",
            Self::NotFound => "`placement ps --all` lists the attempts of this owner",
            Self::Conflict => "`placement show ATTEMPT` tells what is recorded and observed",
            Self::UnsupportedCapability => {
                "`placement doctor` tells what is missing and how to get it; --require asks for less"
            }
            Self::Unavailable => "try again; the same --key never starts a second child",
            Self::Uncertain => {
                "`placement reconcile ATTEMPT` looks for a proof; nothing is removed"
            }
            Self::Storage => {
                "check that the disk has room and that the root is intact; nothing was lost by asking"
            }
            Self::Internal => {
                "this is a defect of placement; `placement evidence ATTEMPT` shows how far it came"
            }
            Self::Unsupported => "leave the option out",
            Self::ExecutableNotFound => "check the name and PATH, or give an absolute path",
            Self::ExecutableRefused => {
                "check that the file is executable and made for this machine"
            }
        }
    }

    /// Says whether repeating the same request may succeed without changing it.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Unavailable | Self::Storage)
    }
}

/// A refusal: what was asked, what stood against it and what to do.
///
/// Carries fixed phrases and ids, never secret bytes and never the text of the operating system
/// or of another program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// The stable code.
    pub code: Code,
    /// What stood against it; a lowercase fragment of at most 4096 bytes.
    pub message: String,
    /// What to do, if better than the code's own hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Refusal {
    /// Makes a refusal with the hint of its code.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let mut message = message.into();
        truncate_at_char(&mut message, MESSAGE_BYTES_MAX);
        Self { code, message, hint: None }
    }

    /// Replaces the hint of the code by a better one.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns what to do.
    pub fn hint(&self) -> &str {
        self.hint.as_deref().unwrap_or(self.code.hint())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

/// Cuts a text to at most `bytes_max` bytes at a character boundary.
pub(crate) fn truncate_at_char(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_meaning_and_a_hint() {
        for code in Code::ALL {
            assert!(code.meaning().len() > 10, "{code}");
            assert!(code.hint().len() > 10, "{code}");
            assert_eq!(Code::from_label(code.label()), Some(*code));
        }
    }

    #[test]
    fn a_message_is_cut_at_a_character() {
        let refusal = Refusal::new(Code::Invalid, "ä".repeat(MESSAGE_BYTES_MAX));
        assert_eq!(refusal.message.len(), MESSAGE_BYTES_MAX);
    }
}
