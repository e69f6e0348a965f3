//! Closing a child's input while it runs.

use crate::Service;
use crate::control::NoAnswer;
use crate::limits::{LOOK, STOP_RECORDED};
use crate::refusal::conflict;
use crate::verdict::RunnerSeen;
use placement_contract::{
    Attempt, AttemptId, Code, EvidenceKind, ExecutionState, Refusal, StdinMode,
};
use placement_protocol::{StdinRefused, StdinReply};
use placement_store::Row;
use serde::Serialize;
use std::time::Instant;

/// What closing an input came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StdinClosing {
    /// The attempt as it is recorded then.
    pub attempt: Attempt,
    /// Whether the input is closed, now or before.
    pub closed: bool,
    /// Why it is not; present exactly if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Service {
    /// Closes the child's input after everything that was written to it; again is as good as once.
    ///
    /// A program that was given no input reads its end all the time, which counts as closed. Where
    /// the child does not take what was written before, the answer says that it waits, and the input
    /// is closed when it was taken. An ended child answers with the reason and adds no evidence.
    ///
    /// # Errors
    /// `NOT_FOUND`; CONFLICT for an attempt that was not started, and where no runner answers;
    /// `UNSUPPORTED_CAPABILITY` for a window, whose input has no end; STORAGE.
    pub fn close_stdin(&self, attempt_id: &AttemptId) -> Result<StdinClosing, Refusal> {
        let row = self.look(attempt_id)?;
        if row.request()?.supervision.window.is_some() {
            let refusal =
                Refusal::new(Code::UnsupportedCapability, StdinRefused::Unsupported.to_string());
            return Err(refusal.with_hint("attach and type what the program reads as the end"));
        }
        match row.state.execution {
            ExecutionState::Intended => {
                Err(conflict("the attempt was not started").with_hint("start it first"))
            }
            ExecutionState::Exited => Ok(not_closed(&row, StdinRefused::Exited)),
            ExecutionState::Starting
            | ExecutionState::Running
            | ExecutionState::Stopping
            | ExecutionState::Uncertain => self.close_live(&row),
        }
    }

    fn close_live(&self, row: &Row) -> Result<StdinClosing, Refusal> {
        match self.ask_close_stdin(row) {
            Ok(StdinReply { reason: Some(refused), .. }) => {
                Ok(not_closed(&self.look(&row.attempt_id)?, refused))
            }
            Ok(StdinReply { reason: None, .. }) => {
                let attempt = self.await_closed(row)?.attempt();
                Ok(StdinClosing { attempt, closed: true, reason: None })
            }
            Err(_) if self.runner_seen(row) == RunnerSeen::Gone => {
                let row = self.reconcile_row(self.row(&row.attempt_id)?)?;
                if row.state.execution == ExecutionState::Exited {
                    return Ok(not_closed(&row, StdinRefused::Exited));
                }
                Err(no_answer("the runner of the attempt is gone"))
            }
            Err(NoAnswer::NotConnected | NoAnswer::Silent | NoAnswer::Refused(_)) => {
                Err(no_answer("the runner of the attempt does not answer"))
            }
        }
    }

    /// Waits shortly for the runner's row, so that whoever reads the evidence next finds it.
    fn await_closed(&self, asked: &Row) -> Result<Row, Refusal> {
        let request = asked.request()?;
        let has_input = request.supervision.stdin == StdinMode::Pipe
            || request.launch.session_end.is_some()
            || request.launch.stdin.is_some();
        let deadline = Instant::now() + STOP_RECORDED;
        loop {
            let row = self.look(&asked.attempt_id)?;
            let recorded = || -> Result<bool, Refusal> {
                let rows = self.inner.reader.all_evidence(&asked.attempt_id)?;
                Ok(rows.iter().any(|row| row.kind == EvidenceKind::StdinClosed))
            };
            if !has_input || Instant::now() >= deadline || recorded()? {
                return Ok(row);
            }
            std::thread::sleep(LOOK);
        }
    }
}

fn not_closed(row: &Row, refused: StdinRefused) -> StdinClosing {
    StdinClosing { attempt: row.attempt(), closed: false, reason: Some(refused.to_string()) }
}

fn no_answer(message: &str) -> Refusal {
    conflict(message).with_hint("`placement reconcile ATTEMPT` finds out what became of it")
}
