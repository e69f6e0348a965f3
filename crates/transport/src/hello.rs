//! The first exchange of a link: who may use it, and in which version.

use crate::link::{Link, LinkError};
use crate::peer::PeerError;
use placement_contract::{AttemptId, Generation, RecipientId};
use placement_protocol::{
    Frame, Hello, HelloRefused, LinkKind, MessageError, RefusedWhy, SPOKEN, Token, Welcome,
};
use std::time::Instant;
use subtle::ConstantTimeEq as _;

/// Judges who may use a link of one attempt.
#[derive(Debug, Clone, Copy)]
pub struct Gate<'a> {
    link: LinkKind,
    secured: Option<(&'a AttemptId, &'a Token)>,
}

/// What a hello earned.
#[derive(Debug)]
pub enum Verdict {
    /// Send [`Admitted::welcome`] and serve the link.
    Admitted(Admitted),
    /// Send [`HelloRefused::new`] with the reason and close the link.
    Refused(RefusedWhy),
    /// Close the link without an answer: whoever has no token is told nothing.
    Silent(Silence),
}

/// A hello that was admitted; whether its recipient is the bound one is the runner's to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The version that both speak.
    pub version: u16,
    /// The attachment that it names, on a data link.
    pub generation: Option<Generation>,
    /// The recipient that it names, on a data link.
    pub recipient: Option<RecipientId>,
}

/// Why a hello gets no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Silence {
    /// The first frame is no hello.
    #[error("first frame that is no hello")]
    Malformed(#[source] MessageError),
    /// The token is another one.
    #[error("wrong token")]
    Token,
}

/// Why a link did not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// The link failed or ended before the exchange was over.
    #[error("link that did not open")]
    Link(#[source] LinkError),
    /// The peer is of another user, or cannot be told.
    #[error("peer that is not accepted")]
    Peer(#[source] PeerError),
    /// A message is none.
    #[error("message of the first exchange")]
    Message(#[source] MessageError),
    /// The hello was refused, with the versions of whoever refused it.
    #[error("hello refused: {}", .0.reason)]
    Refused(HelloRefused),
    /// The hello got no answer.
    #[error("hello without an answer")]
    Silent(#[source] Silence),
}

impl Admitted {
    /// Makes the frame that answers the hello.
    pub fn welcome(&self) -> Frame {
        Welcome { version: self.version, versions: SPOKEN }
            .to_frame()
            .expect("a welcome of three small numbers fits a frame")
    }
}

impl<'a> Gate<'a> {
    /// Guards the runner's end of a host port, which only its own host can reach.
    pub const fn host_port() -> Self {
        Self { link: LinkKind::HostPort, secured: None }
    }

    /// Guards a socket of an attempt.
    pub const fn attempt(link: LinkKind, attempt_id: &'a AttemptId, token: &'a Token) -> Self {
        Self { link, secured: Some((attempt_id, token)) }
    }

    /// Judges the first frame of a link, without a side effect.
    ///
    /// The token comes first and is compared in constant time: without it nothing is told, not even
    /// the versions.
    pub fn judge(&self, frame: &Frame) -> Verdict {
        let hello = match Hello::from_frame(frame) {
            Ok(hello) => hello,
            Err(error) => return Verdict::Silent(Silence::Malformed(error)),
        };
        if let Some((attempt_id, token)) = self.secured {
            let same = |sent: &Token| bool::from(sent.expose().ct_eq(token.expose()));
            if !hello.token.as_ref().is_some_and(same) {
                return Verdict::Silent(Silence::Token);
            }
            if hello.attempt_id.as_ref() != Some(attempt_id) {
                return Verdict::Refused(RefusedWhy::Attempt);
            }
        }
        if hello.link != self.link {
            return Verdict::Refused(RefusedWhy::Link);
        }
        let Some(version) = SPOKEN.common(hello.versions) else {
            return Verdict::Refused(RefusedWhy::Version);
        };
        Verdict::Admitted(Admitted {
            version,
            generation: hello.generation,
            recipient: hello.recipient,
        })
    }

    /// Waits for the hello of a peer of the own user, judges it and answers.
    ///
    /// # Errors
    /// [`HelloError`]; the link is then to be closed.
    pub fn admit(&self, link: &mut Link, deadline: Instant) -> Result<Admitted, HelloError> {
        link.stream().same_user_peer().map_err(HelloError::Peer)?;
        let frame = link.receive(deadline).map_err(HelloError::Link)?;
        match self.judge(&frame) {
            Verdict::Admitted(admitted) => {
                link.send(admitted.welcome(), deadline).map_err(HelloError::Link)?;
                Ok(admitted)
            }
            Verdict::Refused(reason) => {
                let refused = HelloRefused::new(reason);
                let frame = refused.to_frame().map_err(HelloError::Message)?;
                link.send(frame, deadline).map_err(HelloError::Link)?;
                Err(HelloError::Refused(refused))
            }
            Verdict::Silent(silence) => Err(HelloError::Silent(silence)),
        }
    }
}

/// Says hello over a link to a peer of the own user and waits for the answer.
///
/// # Errors
/// [`HelloError::Refused`] with the peer's reason and versions; [`HelloError::Link`] with
/// [`LinkError::Closed`] when the peer closed the link without an answer, as it does for a wrong
/// token.
pub fn open(link: &mut Link, hello: &Hello, deadline: Instant) -> Result<Welcome, HelloError> {
    link.stream().same_user_peer().map_err(HelloError::Peer)?;
    let frame = hello.to_frame().map_err(HelloError::Message)?;
    let answer = link.call(frame, deadline).map_err(HelloError::Link)?;
    Welcome::from_frame(&answer).map_err(HelloError::Message)?.map_err(HelloError::Refused)
}
