//! Starting a recorded attempt: its runner is spawned, given its order and waited for.

use crate::Service;
use crate::limits::{LOOK, OTHER_START};
use crate::places::with_errno;
use crate::refusal::{not_started, unavailable};
use crate::service::Found;
use crate::streams::Streams;
use crate::wait::wait_readable;
use placement_contract::{
    Attempt, AttemptId, Code, EvidenceKind, ExecutionState, Id, LaunchRequest, RecipientId,
    Refusal, Secret,
};
use placement_crash::point;
use placement_identity::{Pid, ProcessIdentity};
use placement_policy::{Snapshot, resolve};
use placement_process::spawn_runner;
use placement_protocol::limits::TOKEN_BYTES;
use placement_protocol::{
    Environment, Hello, LaunchOrder, LinkKind, Order, OrderReply, RUNNER_ARGUMENT, RootId,
    StoreLocation, Token,
};
use placement_resources::{OwnHome, ResolvedGrant, admit};
use placement_store::{Attachment, ChildIdentity, Draft, Durability, Fields, Row};
use placement_transport::{Link, LinkError, Stream, open, pair};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

/// What a start came to.
#[derive(Debug)]
pub struct Started {
    /// The attempt as it is recorded now; where the start budget ran out still starting, or
    /// intended if the runner has not claimed it yet.
    pub attempt: Attempt,
    /// The output, if this call is the one that started the attempt.
    pub streams: Option<Streams>,
}

/// What a runner answered to its order.
enum Answer {
    Started,
    Refused(Refusal),
    /// It ended, or closed its port, without an answer.
    Gone,
    /// The start budget ran out; it goes on.
    Late,
}

impl Service {
    /// Starts a prepared attempt and waits for its child within the launch's start budget.
    ///
    /// An attempt that is not intended any more is returned as it is recorded. Where the budget
    /// runs out first the start goes on, and the attempt is returned as starting, or as intended if
    /// the runner has not claimed it yet.
    ///
    /// # Errors
    /// `NOT_FOUND`; FORBIDDEN and the like where a grant no longer holds (`grant.refused`); DENIED
    /// and CONFLICT where the host's definitions or the launch policy no longer admit the launch
    /// (`policy.refused`); the attempt stays intended then. UNAVAILABLE where no runner could be
    /// started or it ended before its claim (the attempt stays intended); the runner's own refusal, after which the attempt is
    /// exited and no child was; UNCERTAIN where the runner ended and nothing is proven; STORAGE.
    pub fn start(
        &self,
        attempt_id: &AttemptId,
        recipient: &RecipientId,
    ) -> Result<Started, Refusal> {
        let row = match self.find(attempt_id)? {
            Found::Row(row) => *row,
            Found::Pruned(attempt) => return Ok(Started { attempt: *attempt, streams: None }),
        };
        if row.state.execution != ExecutionState::Intended {
            return Ok(Started { attempt: row.attempt(), streams: None });
        }
        let request = row.request()?;
        // The runner takes them as they are recorded; once it has claimed, the attempt is spent.
        row.grants::<ResolvedGrant>()?;
        // One for all of it: what was admitted is what is used.
        let snapshot = self.snapshot();
        self.authorize_again(&row, &request, &snapshot)?;
        let token = self.make_token(&row)?;
        let former = row.attachment.clone();
        let Some(row) = self.bind_first(&row, recipient)? else {
            // Another start or a stop came first.
            return self.await_other(attempt_id);
        };
        let order = self.order(&row, &request, &snapshot, token, recipient)?;
        let deadline = Instant::now() + request.timeouts.start();
        let (answer, runner) = self.spawn(&row, &order, deadline)?;
        match answer {
            Answer::Refused(refusal) => self.conclude_refused(&row, &former, runner, refusal),
            Answer::Gone => self.conclude_without_runner(&row, &former, runner, recipient),
            Answer::Started | Answer::Late => {
                let attempt = self.row(attempt_id)?.attempt();
                Ok(Started { attempt, streams: Some(self.first_streams(&row, recipient)) })
            }
        }
    }

    /// Waits shortly until the start that came first has claimed the attempt.
    pub(crate) fn await_other(&self, attempt_id: &AttemptId) -> Result<Started, Refusal> {
        let deadline = Instant::now() + OTHER_START;
        loop {
            let row = self.look(attempt_id)?;
            if row.state.execution != ExecutionState::Intended {
                return Ok(Started { attempt: row.attempt(), streams: None });
            }
            if Instant::now() >= deadline {
                return Err(unavailable("another start has not claimed the attempt yet"));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Asks again what prepare asked of the host, which may admit less by now: the grants, then
    /// everything that its definitions and the launch policy say. A refusal is recorded once, and only
    /// where it is one: that the file system did not answer takes nothing back.
    fn authorize_again(
        &self,
        row: &Row,
        request: &LaunchRequest,
        snapshot: &Snapshot,
    ) -> Result<(), Refusal> {
        let own = OwnHome { root: &self.inner.root_path, home: &self.home_of(request) };
        let grants = admit(&request.resources, snapshot, own);
        let admitted =
            grants.map_err(|refusal| (EvidenceKind::GrantRefused, refusal)).and_then(|_| {
                resolve(request, snapshot)
                    .and_then(|resolved| resolved.check_configuration(request, snapshot))
                    .map_err(|refusal| (EvidenceKind::PolicyRefused, refusal))
            });
        let Err((kind, refusal)) = admitted else { return Ok(()) };
        if refusal.code != Code::Unavailable && !self.was_seen(row, kind)? {
            let refused = [Draft::new(kind, refusal.to_string())];
            self.commit(row, &refused, &Fields::default(), Durability::Normal)?;
        }
        Err(refusal)
    }

    fn make_token(&self, row: &Row) -> Result<Token, Refusal> {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|_| Refusal::new(Code::Internal, "the system gave no random bytes"))?;
        let fresh = Secret::new(bytes.to_vec());
        let recorded = self.inner.store.authority(&row.attempt_id, &fresh)?;
        Token::from_secret(recorded)
            .ok_or_else(|| Refusal::new(Code::Storage, "the recorded control token is malformed"))
    }

    fn bind_first(&self, row: &Row, recipient: &RecipientId) -> Result<Option<Row>, Refusal> {
        let generation = row.attachment.generation.next();
        let bound = [Draft::new(EvidenceKind::Attach, format!("generation {generation}"))];
        let fields = Fields {
            attachment: Some(Attachment { generation, recipient: Some(recipient.clone()) }),
            ..Fields::default()
        };
        self.commit(row, &bound, &fields, Durability::Normal)
    }

    fn order(
        &self,
        row: &Row,
        request: &LaunchRequest,
        snapshot: &Snapshot,
        control_token: Token,
        recipient: &RecipientId,
    ) -> Result<Order, Refusal> {
        let malformed =
            |what| Refusal::new(Code::Storage, format!("the recorded {what} is malformed"));
        let home_key = row.home_key.as_deref().and_then(|key| Id::parse(key).ok());
        let host = ProcessIdentity::this_process()
            .map_err(|error| unavailable(format!("the host's identity: {error}")))?;
        let passed = snapshot.environment(&request.policy_ref);
        let passed = passed.map(|(name, value)| (name.clone(), Secret::new(value.into())));
        let root_id = self.inner.root.id().map_err(|error| unavailable(with_errno(&error)))?;
        Ok(Order::Launch(Box::new(LaunchOrder {
            attempt_id: row.attempt_id.clone(),
            owner_id: row.owner_id.clone(),
            root: self.inner.root_path.clone(),
            root_id: RootId { device: root_id.device, inode: root_id.inode },
            store: StoreLocation {
                database: self.inner.paths.database.clone(),
                lock: self.inner.paths.lock.clone(),
            },
            home_key: home_key.ok_or_else(|| malformed("home"))?,
            tmp_base: self.inner.temporary_base.clone(),
            control_token,
            search_path: snapshot.search_path().to_owned(),
            environment: Environment(passed.collect()),
            host,
            generation: row.attachment.generation,
            recipient: recipient.clone(),
            start_ms: request.timeouts.start_ms,
        })))
    }

    /// Spawns the runner, hands its order over and waits for its answer.
    fn spawn(&self, row: &Row, order: &Order, deadline: Instant) -> Result<(Answer, Pid), Refusal> {
        let internal = |_| Refusal::new(Code::Internal, "the order does not fit its bounds");
        let order = order.to_frame().map_err(internal)?;
        let (ours, theirs) = pair().map_err(|error| unavailable(error.to_string()))?;
        let stream = Stream::adopt(ours).map_err(|error| unavailable(error.to_string()))?;
        let mut port = Link::new(stream, LinkKind::HostPort);
        let runner = spawn_runner(self.inner.runner.program(), [RUNNER_ARGUMENT], theirs)
            .map_err(not_started)?;
        point("service.runner.spawned");
        let pid = runner.pid();
        let pidfd = runner.pidfd().try_clone_to_owned();
        let weak = Arc::downgrade(&self.inner);
        let held = self.inner.warden.take(&row.attempt_id, runner, || {
            Box::new(move |ended| {
                if let Some(inner) = weak.upgrade() {
                    Self { inner }.look_after(ended);
                }
            })
        });
        if let Err((mut runner, _)) = held {
            drop(port);
            // Without an order it ends at once.
            runner.wait().ok();
            return Err(unavailable("the runner could not be watched"));
        }
        let answer = open(&mut port, &Hello::host_port(), deadline)
            .map_err(|error| match error {
                placement_transport::HelloError::Link(error) => error,
                placement_transport::HelloError::Peer(_)
                | placement_transport::HelloError::Message(_)
                | placement_transport::HelloError::Refused(_)
                | placement_transport::HelloError::Silent(_) => LinkError::Closed,
            })
            .and_then(|_| {
                point("service.order.ready");
                port.call(order, deadline)
            });
        point("service.order.answered");
        let answer = match answer {
            Ok(frame) => match OrderReply::from_frame(&frame) {
                Ok(OrderReply::Started { attempt_id }) if attempt_id == row.attempt_id => {
                    Answer::Started
                }
                Ok(OrderReply::Refused(refusal)) => Answer::Refused(refusal),
                Ok(OrderReply::Started { .. } | OrderReply::Probed(_)) | Err(_) => Answer::Late,
            },
            Err(LinkError::Deadline) => Answer::Late,
            Err(LinkError::Closed | LinkError::Broken { .. } | LinkError::Protocol(_)) => {
                gone_or_late(pidfd.ok(), deadline)
            }
        };
        Ok((answer, pid))
    }

    fn first_streams(&self, row: &Row, recipient: &RecipientId) -> Streams {
        Streams::of_start(self, &row.attempt_id, recipient, row.attachment.generation)
    }

    /// A runner that did not get the claim has lost to a stop or to another start: then the attempt
    /// is returned as they left it. Else the refusal is the answer.
    pub(crate) fn conclude_refused(
        &self,
        bound: &Row,
        former: &Attachment,
        runner: Pid,
        refusal: Refusal,
    ) -> Result<Started, Refusal> {
        let row = self.row(&bound.attempt_id)?;
        if row.state.execution == ExecutionState::Intended || claimed_by(&row) == Some(runner) {
            return Err(refusal);
        }
        self.conclude_lost(&row, bound, former)
    }

    /// Another start or a stop came first: the attempt is returned as they left it.
    fn conclude_lost(
        &self,
        row: &Row,
        bound: &Row,
        former: &Attachment,
    ) -> Result<Started, Refusal> {
        if row.runner.is_some() && row.attachment == bound.attachment {
            // The runner that won serves the recipient that was bound before.
            let detail = format!("generation {}: another start won", row.attachment.generation);
            let rows = [Draft::new(EvidenceKind::AttachRefused, detail)];
            let fields = Fields { attachment: Some(former.clone()), ..Fields::default() };
            self.commit(row, &rows, &fields, Durability::Normal)?;
        }
        Ok(Started { attempt: self.row(&bound.attempt_id)?.attempt(), streams: None })
    }

    /// The runner ended without an answer: what it committed says how far it came.
    fn conclude_without_runner(
        &self,
        bound: &Row,
        former: &Attachment,
        runner: Pid,
        recipient: &RecipientId,
    ) -> Result<Started, Refusal> {
        let row = self.row(&bound.attempt_id)?;
        if row.state.execution == ExecutionState::Intended {
            return Err(unavailable("the runner ended before it claimed the attempt"));
        }
        // The end of a runner that never claimed says nothing of the one that did.
        if claimed_by(&row) != Some(runner) {
            return self.conclude_lost(&row, bound, former);
        }
        let settled = self.reconcile_row(row)?;
        match settled.state.execution {
            ExecutionState::Exited if settled.child == ChildIdentity::None => {
                Err(unavailable("the runner ended before the child was made")
                    .with_hint("launch it again under another key"))
            }
            ExecutionState::Exited => {
                let streams = Some(self.first_streams(bound, recipient));
                Ok(Started { attempt: settled.attempt(), streams })
            }
            ExecutionState::Intended
            | ExecutionState::Starting
            | ExecutionState::Running
            | ExecutionState::Stopping
            | ExecutionState::Uncertain => self.leave_uncertain(&settled),
        }
    }

    fn leave_uncertain(&self, row: &Row) -> Result<Started, Refusal> {
        let message = "the runner ended before it acknowledged the start";
        if row.state.execution.is_live() {
            let ended = [Draft::new(EvidenceKind::RunnerExited, message)];
            self.commit(row, &ended, &Fields::default(), Durability::Normal)?;
        }
        Err(Refusal::new(Code::Uncertain, message))
    }
}

fn claimed_by(row: &Row) -> Option<Pid> {
    row.runner.as_ref().map(|runner| runner.identity.pid)
}

/// A closed port is told from the end of the runner, which alone proves something.
fn gone_or_late(pidfd: Option<OwnedFd>, deadline: Instant) -> Answer {
    match pidfd {
        Some(pidfd) if wait_readable(pidfd.as_fd(), Some(deadline)) => Answer::Gone,
        Some(_) | None => Answer::Late,
    }
}
