//! What a runner answers over the control link, and the checks before an answer is believed.

use crate::frame::Frame;
use crate::json::{self, MessageError};
use crate::kind::Kind;
use placement_contract::attempt::RunnerStatus;
use placement_contract::{AttemptId, ExecutionState, Generation, Refusal};
use serde::{Deserialize, Serialize};

/// Output streams that a child has, and so the most ends that a status may count.
const STREAMS: u8 = 2;

/// One answer over the control link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlReply {
    /// The attempt that the runner serves.
    pub attempt_id: AttemptId,
    /// The current attachment; in the answer to an attach the one that was asked for.
    pub generation: Generation,
    /// The number of the call.
    pub probe: u64,
    /// What is answered.
    pub answer: ControlAnswer,
}

/// What a runner answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlAnswer {
    /// What it has come to.
    Status(RunnerStatus),
    /// Whether the stop was accepted.
    Stop(StopReply),
    /// Whether the new recipient is bound.
    Attach(AttachReply),
    /// Whether the input is closed.
    CloseStdin(StdinReply),
    /// The call is refused as a whole.
    Refused(Refusal),
}

/// Whether a stop was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopReply {
    /// Whether the runner acts on it.
    pub accepted: bool,
    /// Whether `stop.requested` is committed yet.
    pub recorded: bool,
    /// What the runner has come to.
    pub execution: ExecutionState,
}

/// Why an attachment is refused; the phrase is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum AttachRefused {
    /// The generation is not newer than the current one.
    #[error("not newer than the current attachment")]
    NotNewer,
    /// No pidfd of the host came with an attachment that adopts.
    #[error("no descriptor of the host came with it")]
    NoDescriptor,
    /// The descriptor is no pidfd of the process that asked.
    #[error("the host cannot be monitored")]
    NotMonitorable,
}

/// Whether the new recipient is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachReply {
    /// Whether every earlier recipient is fenced and this one is bound.
    pub fenced: bool,
    /// Why not; present exactly if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<AttachRefused>,
    /// The last sequence that was acknowledged; output comes again from the next one.
    pub consumed_through: u64,
    /// The largest write id that was accepted or waits for the child, 0 for none; new ones go on
    /// from there.
    pub last_write_id: u64,
}

/// Why the input is not closed; the phrase is fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum StdinRefused {
    /// This version does not offer it.
    #[error("closing the input is not offered by this version")]
    Unsupported,
    /// The child has exited.
    #[error("the child has exited")]
    Exited,
    /// The child does not run yet.
    #[error("the child does not run yet")]
    NotStarted,
    /// The child has not taken what was written before.
    #[error("what was written before waits for the child; the input is closed after it")]
    Waiting,
    /// It cannot be said whether the input was closed.
    #[error("it is not known whether the input was closed")]
    Uncertain,
}

/// Whether the child's input is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StdinReply {
    /// Whether it is closed, now or before.
    pub closed: bool,
    /// Why not; present exactly if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<StdinRefused>,
}

/// What an answer must match to be believed.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// The attempt that was asked about.
    pub attempt_id: &'a AttemptId,
    /// The recorded attachment, or the one that was asked for.
    pub generation: Generation,
    /// The number of the call.
    pub probe: u64,
}

/// Why an answer is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// It is not exactly an answer: unknown field, state or reason, or a count that is none.
    #[error("answer that is not one")]
    Malformed(#[source] MessageError),
    /// It is about another attempt.
    #[error("answer about another attempt")]
    OtherAttempt,
    /// It is from another attachment.
    #[error("answer from another attachment")]
    OtherGeneration,
    /// It answers another call.
    #[error("answer to another call")]
    OtherProbe,
    /// It counts more ends than there are streams.
    #[error("answer that counts more than two ends of streams")]
    EofSeen,
    /// It contradicts itself.
    #[error("answer that contradicts itself")]
    Contradiction,
}

impl ControlReply {
    /// Writes the answer as a frame.
    ///
    /// # Errors
    /// [`MessageError::Frame`] if a hint is above the bound of a frame.
    pub fn to_frame(&self) -> Result<Frame, MessageError> {
        json::frame(Kind::Reply, self)
    }

    /// Reads an answer and checks it against the call.
    ///
    /// # Errors
    /// [`ReplyError`] names the first check that failed; nothing of the answer is used then.
    pub fn from_frame(frame: &Frame, expected: &Expected<'_>) -> Result<Self, ReplyError> {
        let reply: Self = json::read(Kind::Reply, frame).map_err(ReplyError::Malformed)?;
        if reply.attempt_id != *expected.attempt_id {
            return Err(ReplyError::OtherAttempt);
        }
        if reply.probe != expected.probe {
            return Err(ReplyError::OtherProbe);
        }
        if reply.generation != expected.generation {
            return Err(ReplyError::OtherGeneration);
        }
        reply.check_answer()?;
        Ok(reply)
    }

    fn check_answer(&self) -> Result<(), ReplyError> {
        match &self.answer {
            ControlAnswer::Status(status) if status.eof_seen > STREAMS => Err(ReplyError::EofSeen),
            ControlAnswer::Status(status) if status.generation != self.generation => {
                Err(ReplyError::OtherGeneration)
            }
            ControlAnswer::Attach(attach) if attach.fenced == attach.refused.is_some() => {
                Err(ReplyError::Contradiction)
            }
            ControlAnswer::CloseStdin(stdin) if stdin.closed == stdin.reason.is_some() => {
                Err(ReplyError::Contradiction)
            }
            ControlAnswer::Status(_)
            | ControlAnswer::Stop(_)
            | ControlAnswer::Attach(_)
            | ControlAnswer::CloseStdin(_)
            | ControlAnswer::Refused(_) => Ok(()),
        }
    }
}
