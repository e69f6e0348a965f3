//! What a service asks of a running attempt's runner.

use crate::frame::Frame;
use crate::json::{self, MessageError};
use crate::kind::Kind;
use placement_contract::{AttemptId, Generation, RecipientId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One call over the control link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlRequest {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// A number that the answer repeats.
    pub probe: u64,
    /// What is asked.
    pub call: ControlCall,
}

/// What is asked of a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlCall {
    /// What it has come to.
    Status,
    /// To end the child.
    Stop(Stop),
    /// To serve a new recipient.
    Attach(Attach),
    /// To close the child's input.
    CloseStdin,
}

/// How a child is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopMode {
    /// SIGTERM, then SIGKILL after the grace.
    Cooperative,
    /// SIGKILL.
    Forced,
}

/// Asks to end the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// How.
    pub mode: StopMode,
    /// The grace in milliseconds; the launch's own where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

impl Stop {
    /// Returns the grace, if one is asked for.
    pub fn grace(&self) -> Option<Duration> {
        self.grace_ms.map(Duration::from_millis)
    }
}

/// Asks to fence every earlier recipient and to serve this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attach {
    /// The new recipient.
    pub recipient: RecipientId,
    /// Its attachment, newer than every earlier one.
    pub generation: Generation,
    /// Whether the caller takes the place of the lost host; its pidfd then comes with the frame.
    pub adopt: bool,
}

impl ControlRequest {
    /// Writes the call as a frame.
    ///
    /// # Errors
    /// [`MessageError::Frame`] if it does not fit, which the bounds of its parts exclude.
    pub fn to_frame(&self) -> Result<Frame, MessageError> {
        json::frame(Kind::Request, self)
    }

    /// Reads the call.
    ///
    /// # Errors
    /// [`MessageError`] if the frame is none or not exactly one; an attachment of generation 0 is
    /// none.
    pub fn from_frame(frame: &Frame) -> Result<Self, MessageError> {
        let request: Self = json::read(Kind::Request, frame)?;
        if let ControlCall::Attach(attach) = &request.call
            && attach.generation == Generation::NONE
        {
            return Err(MessageError::Field("generation"));
        }
        Ok(request)
    }
}
