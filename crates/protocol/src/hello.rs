//! The first frame of each side.
//!
//! These three messages tolerate fields that they do not know: a newer peer must be able to read
//! that there is no common version, whatever it has added.

use crate::frame::Frame;
use crate::json::{self, MessageError};
use crate::kind::{Kind, LinkKind};
use crate::token::{self, Token};
use crate::version::{SPOKEN, VersionRange};
use placement_contract::{AttemptId, Generation, RecipientId};
use serde::{Deserialize, Serialize};

/// What whoever connected says first.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The versions that it speaks.
    pub versions: VersionRange,
    /// The link that it wants.
    pub link: LinkKind,
    /// The attempt; none on a host port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<AttemptId>,
    /// The attempt's token; none on a host port.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "token::option")]
    pub token: Option<Token>,
    /// The attachment, on a data link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<Generation>,
    /// The recipient, on a data link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<RecipientId>,
}

impl Hello {
    /// Makes the hello of a host port, which needs no token: only the two have it.
    pub fn host_port() -> Self {
        Self {
            versions: SPOKEN,
            link: LinkKind::HostPort,
            attempt_id: None,
            token: None,
            generation: None,
            recipient: None,
        }
    }

    /// Makes the hello of a control link.
    pub fn control(attempt_id: AttemptId, token: Token) -> Self {
        Self {
            link: LinkKind::Control,
            attempt_id: Some(attempt_id),
            token: Some(token),
            ..Self::host_port()
        }
    }

    /// Makes the hello of a data link.
    pub fn data(
        attempt_id: AttemptId,
        token: Token,
        generation: Generation,
        recipient: RecipientId,
    ) -> Self {
        Self {
            link: LinkKind::Data,
            attempt_id: Some(attempt_id),
            token: Some(token),
            generation: Some(generation),
            recipient: Some(recipient),
            ..Self::host_port()
        }
    }

    /// Writes the message as a frame.
    ///
    /// # Errors
    /// [`MessageError::Frame`] if it does not fit, which the bounds of its parts exclude.
    pub fn to_frame(&self) -> Result<Frame, MessageError> {
        json::frame(Kind::Hello, self)
    }

    /// Reads the message and checks that it has what its link needs.
    ///
    /// # Errors
    /// [`MessageError`] if the frame is another or a field is missing.
    pub fn from_frame(frame: &Frame) -> Result<Self, MessageError> {
        let hello: Self = json::read(Kind::Hello, frame)?;
        if !hello.versions.is_valid() {
            return Err(MessageError::Field("version range"));
        }
        let named = hello.attempt_id.is_some() && hello.token.is_some();
        let bound = hello.generation.is_some() && hello.recipient.is_some();
        match hello.link {
            LinkKind::Control | LinkKind::Data if !named => {
                Err(MessageError::Field("attempt or token"))
            }
            LinkKind::Data if !bound => Err(MessageError::Field("generation or recipient")),
            LinkKind::HostPort | LinkKind::Control | LinkKind::Data => Ok(hello),
        }
    }
}

/// The answer that lets a link go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The version that both speak from here on.
    pub version: u16,
    /// The versions that the answering side speaks.
    pub versions: VersionRange,
}

impl Welcome {
    /// Writes the message as a frame.
    ///
    /// # Errors
    /// [`MessageError::Frame`] if it does not fit, which its size excludes.
    pub fn to_frame(&self) -> Result<Frame, MessageError> {
        json::frame(Kind::Welcome, self)
    }
}

/// Why a hello is refused; the phrase is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum RefusedWhy {
    /// The two sides have no version in common.
    #[error("no common protocol version")]
    Version,
    /// The socket serves another kind of link.
    #[error("this socket serves another link")]
    Link,
    /// The runner serves another attempt.
    #[error("this runner serves another attempt")]
    Attempt,
    /// Another recipient, or none, is bound.
    #[error("not the bound recipient")]
    Recipient,
    /// The attachment is not the current one.
    #[error("not the current attachment")]
    Generation,
    /// There are as many links as the runner serves.
    #[error("too many links")]
    Busy,
    /// A reason that this build does not know.
    #[serde(other)]
    #[error("a reason that this version does not know")]
    Unrecognized,
}

/// The answer that ends a link.
///
/// A wrong token gets no answer at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloRefused {
    /// The reason.
    pub reason: RefusedWhy,
    /// The versions that the answering side speaks.
    pub versions: VersionRange,
}

impl HelloRefused {
    /// Makes a refusal with this build's versions.
    pub const fn new(reason: RefusedWhy) -> Self {
        Self { reason, versions: SPOKEN }
    }

    /// Writes the message as a frame.
    ///
    /// # Errors
    /// [`MessageError::Frame`] if it does not fit, which its size excludes.
    pub fn to_frame(&self) -> Result<Frame, MessageError> {
        json::frame(Kind::HelloRefused, self)
    }
}

impl Welcome {
    /// Reads the answer to a hello that offered this build's versions.
    ///
    /// # Errors
    /// [`MessageError`] if the frame is no answer, or names a version that was not offered.
    pub fn from_frame(frame: &Frame) -> Result<Result<Self, HelloRefused>, MessageError> {
        if frame.kind() == Kind::HelloRefused {
            return json::read(Kind::HelloRefused, frame).map(Err);
        }
        let welcome: Self = json::read(Kind::Welcome, frame)?;
        if (SPOKEN.min..=SPOKEN.max).contains(&welcome.version) {
            Ok(Ok(welcome))
        } else {
            Err(MessageError::Field("version"))
        }
    }
}
