//! Binding another recipient: a newer attachment fences every older one.

use crate::Service;
use crate::control::NoAnswer;
use crate::limits::FENCE;
use crate::refusal::{conflict, runner_silent, unavailable};
use crate::service::unless_overtaken;
use crate::streams::{Resume, Streams};
use crate::verdict::RunnerSeen;
use placement_contract::{Attempt, AttemptId, EvidenceKind, ExecutionState, RecipientId, Refusal};
use placement_protocol::{Attach, AttachReply};
use placement_store::{Attachment, Draft, Durability, Fields, Row};
use placement_transport::Link;
use rustix::process::PidfdFlags;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// Whether a new recipient takes the place of the host too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostPlace {
    /// The host stays who it is.
    Keep,
    /// The calling process is the host from here on: its end is host loss.
    Adopt,
}

/// A recipient that is bound.
#[derive(Debug)]
pub struct Attached {
    /// The attempt as it is recorded now.
    pub attempt: Attempt,
    /// Its output from the acknowledged cursor on.
    pub streams: Streams,
}

impl Service {
    /// Binds a recipient to an attempt; every earlier one gets nothing more.
    ///
    /// What was acknowledged does not come again, what was not does, with the same sequence and
    /// offset. An ended attempt is served from its log.
    ///
    /// # Errors
    /// `NOT_FOUND`; CONFLICT where the attempt was not started, another attachment came first, or the
    /// runner refused (`attach.refused`; the former attachment stands); UNAVAILABLE where the runner
    /// cannot be reached, and nothing was changed; UNCERTAIN where it was asked and did not answer
    /// (`attach.unfenced`); STORAGE.
    pub fn attach(
        &self,
        attempt_id: &AttemptId,
        recipient: &RecipientId,
        host: HostPlace,
    ) -> Result<Attached, Refusal> {
        let row = self.row(attempt_id)?;
        if row.state.execution == ExecutionState::Intended {
            return Err(conflict("the attempt was not started").with_hint("start it first"));
        }
        let deadline = Instant::now() + FENCE;
        // Reached before anything is committed: what cannot be asked changes nothing.
        match self.open_control(&row, deadline) {
            Ok(link) => self.attach_live(&row, link, recipient, host, deadline),
            Err(NoAnswer::NotConnected | NoAnswer::Silent | NoAnswer::Refused(_)) => {
                self.attach_ended(&row, recipient, deadline)
            }
        }
    }

    fn attach_ended(
        &self,
        row: &Row,
        recipient: &RecipientId,
        deadline: Instant,
    ) -> Result<Attached, Refusal> {
        // Between its last answer and its end a runner has no sockets any more.
        self.wait_ended(&row.attempt_id, Some(deadline))?;
        let row = self.row(&row.attempt_id)?;
        if self.runner_seen(&row) == RunnerSeen::Alive
            || (row.state.execution.is_live() && self.runner_seen(&row) != RunnerSeen::Gone)
        {
            return Err(runner_silent());
        }
        let row = self.reconcile_row(row)?;
        let generation = row.attachment.generation;
        let streams = Streams::of_start(self, &row.attempt_id, recipient, generation);
        Ok(Attached { attempt: row.attempt(), streams })
    }

    fn attach_live(
        &self,
        row: &Row,
        mut link: Link,
        recipient: &RecipientId,
        host: HostPlace,
        deadline: Instant,
    ) -> Result<Attached, Refusal> {
        let descriptor = match host {
            HostPlace::Keep => None,
            HostPlace::Adopt => Some(own_pidfd()?),
        };
        let generation = row.attachment.generation.next();
        let bound =
            self.bind(row, Attachment { generation, recipient: Some(recipient.clone()) })?;
        let attach =
            Attach { recipient: recipient.clone(), generation, adopt: host == HostPlace::Adopt };
        match self.ask_attach(&mut link, &bound, attach, descriptor, deadline) {
            Ok(reply) if reply.fenced => self.fenced(&bound, recipient, reply),
            Ok(reply) => {
                let why = reply
                    .refused
                    .map_or_else(|| "without a reason".to_owned(), |refused| refused.to_string());
                self.refused(&bound, &row.attachment, &why)
            }
            Err(NoAnswer::Refused(refusal)) => {
                self.refused(&bound, &row.attachment, &refusal.message)
            }
            Err(NoAnswer::NotConnected | NoAnswer::Silent) => {
                self.unanswered(&bound, recipient, deadline)
            }
        }
    }

    fn bind(&self, row: &Row, attachment: Attachment) -> Result<Row, Refusal> {
        let detail = format!("generation {}", attachment.generation);
        let fields = Fields { attachment: Some(attachment), ..Fields::default() };
        let rows = [Draft::new(EvidenceKind::Attach, detail)];
        self.record_attachment(row, &rows, &fields)?
            .ok_or_else(|| conflict("another attachment came first"))
    }

    fn fenced(
        &self,
        bound: &Row,
        recipient: &RecipientId,
        reply: AttachReply,
    ) -> Result<Attached, Refusal> {
        let generation = bound.attachment.generation;
        let rows = [Draft::new(EvidenceKind::AttachFenced, format!("generation {generation}"))];
        let recorded = self.record_attachment(bound, &rows, &Fields::default())?;
        let resume =
            Resume { consumed_through: reply.consumed_through, last_write_id: reply.last_write_id };
        let id = &bound.attempt_id;
        let streams = Streams::of_attach(self, id, recipient, generation, resume);
        // A newer attachment may be recorded by now: then the streams say so.
        let row = match recorded {
            Some(row) => row,
            None => self.row(id)?,
        };
        Ok(Attached { attempt: row.attempt(), streams })
    }

    /// Restores the former attachment, which the runner still serves.
    fn refused(&self, bound: &Row, former: &Attachment, why: &str) -> Result<Attached, Refusal> {
        let generation = bound.attachment.generation;
        let detail = format!("generation {generation}: {why}");
        let rows = [Draft::new(EvidenceKind::AttachRefused, detail)];
        let fields = Fields { attachment: Some(former.clone()), ..Fields::default() };
        self.record_attachment(bound, &rows, &fields)?;
        Err(conflict(format!("the runner refused the attachment: {why}")))
    }

    /// The runner was asked and may or may not serve the new recipient; one that ended meanwhile has
    /// left its log.
    fn unanswered(
        &self,
        bound: &Row,
        recipient: &RecipientId,
        deadline: Instant,
    ) -> Result<Attached, Refusal> {
        self.wait_ended(&bound.attempt_id, Some(deadline))?;
        let row = self.row(&bound.attempt_id)?;
        if self.runner_seen(&row) == RunnerSeen::Gone {
            return self.attach_ended(&row, recipient, deadline);
        }
        let generation = bound.attachment.generation;
        let detail = format!("generation {generation}: no answer within {} ms", FENCE.as_millis());
        if !row.state.execution.is_live() {
            let rows = [Draft::new(EvidenceKind::AttachUnanswered, detail)];
            self.record_attachment(&row, &rows, &Fields::default())?;
            return Err(conflict("the runner of the ended attempt did not answer"));
        }
        let rows = [Draft::new(EvidenceKind::AttachUnfenced, detail)];
        self.record_attachment(&row, &rows, &Fields::default())?;
        let message = "the runner did not answer the attachment";
        Err(Refusal::new(placement_contract::Code::Uncertain, message))
    }

    /// Records rows on the attachment of `row`, in whatever state the attempt is by now.
    fn record_attachment(
        &self,
        row: &Row,
        rows: &[Draft],
        fields: &Fields,
    ) -> Result<Option<Row>, Refusal> {
        let change = placement_store::Change {
            attempt_id: &row.attempt_id,
            expect: None,
            expect_generation: Some(row.attachment.generation),
            rows,
            fields,
        };
        unless_overtaken(self.inner.store.record(&change, Durability::Normal))
    }
}

fn own_pidfd() -> Result<OwnedFd, Refusal> {
    rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())
        .map_err(|_| unavailable("no descriptor of this process could be had"))
}
