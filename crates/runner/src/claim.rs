//! From the order to a claimed attempt whose sockets answer.

use crate::clock::SystemClock;
use crate::closing::Closing;
use crate::desk::{Desk, FIRST_STATE};
use crate::input::Input;
use crate::output::Output;
use crate::refused::NotStarted;
use crate::runner::{Gate, Pipes, Runner};
use crate::scribe::{Entry, NotRecorded, Scribe};
use crate::stop::Stop;
use placement_contract::limits::CHUNK_BYTES_MAX;
use placement_contract::{
    CleanupScope, Code, EvidenceKind, ExecutionState, Generation, LaunchRequest, Mechanism,
    Refusal, RunnerId, Secret,
};
use placement_crash::point;
use placement_executable::KnownDigests;
use placement_homes::{
    AliveLock, AttemptDir, CONTROL_SOCKET, DATA_SOCKET, HomeKey, LogLimits, LogWriter, ReopenError,
    Root,
};
use placement_identity::{Presence, ProcessIdentity};
use placement_paths::DirectoryId;
use placement_process::Signals;
use placement_protocol::{LaunchOrder, RootId, Token, Writes};
use placement_resources::ResolvedGrant;
use placement_store::{Fields, Row, RunnerClaim, StorePaths};
use placement_transport::{Link, Listener, bind};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A claimed attempt that could not be made ready; the caller answers and ends.
pub(crate) struct ClaimFailed {
    pub(crate) port: Link,
    pub(crate) refusal: Refusal,
    pub(crate) order: LaunchOrder,
    /// Present once the claim was recorded: the end must be recorded too.
    pub(crate) claimed: Option<(Scribe, NotStarted)>,
}

impl Runner {
    /// Claims the attempt for this process (durable), makes its directory and answers on its
    /// sockets from then on.
    ///
    /// A second runner of one attempt fails here and has touched nothing.
    pub(crate) fn claim(
        order: LaunchOrder,
        port: Link,
        signals: Signals,
    ) -> Result<Self, Box<ClaimFailed>> {
        let paths =
            StorePaths { database: order.store.database.clone(), lock: order.store.lock.clone() };
        let started = Scribe::start(paths, order.attempt_id.clone(), Arc::new(SystemClock));
        let Ok(mut scribe) = started else {
            let refusal = Refusal::new(Code::Unavailable, "the runner has no second thread");
            return Err(Box::new(ClaimFailed { port, refusal, order, claimed: None }));
        };
        let by = Instant::now() + Duration::from_millis(order.start_ms);
        let row = match claim_row(&mut scribe, order.generation, by) {
            Ok(row) => row,
            Err(refusal) => {
                return Err(Box::new(ClaimFailed { port, refusal, order, claimed: None }));
            }
        };
        let claimed = match Claimed::open(&order, &row) {
            Ok(claimed) => claimed,
            Err(not_started) => {
                let refusal = not_started.refusal();
                let claimed = Some((scribe, not_started));
                return Err(Box::new(ClaimFailed { port, refusal, order, claimed }));
            }
        };
        Ok(claimed.into_runner(order, port, signals, scribe))
    }
}

/// What the claim has made.
struct Claimed {
    request: LaunchRequest,
    grants: Vec<ResolvedGrant>,
    mechanism: Option<Mechanism>,
    root: Root,
    attempt_dir: AttemptDir,
    known_digests: Option<KnownDigests>,
    alive: AliveLock,
    output: Output,
    control: Listener,
    data: Listener,
    host: Option<OwnedFd>,
}

impl Claimed {
    fn open(order: &LaunchOrder, row: &Row) -> Result<Self, NotStarted> {
        let storage = |what: &str| {
            NotStarted::new(EvidenceKind::EnvironmentFailed, Code::Storage, what.to_owned())
        };
        let request = row.request().map_err(|_| storage("the stored request is malformed"))?;
        let grants = row.grants().map_err(|_| storage("the stored grants are malformed"))?;
        let (root, attempt_dir) = make_attempt_dir(order)?;
        point("runner.attempt-directory.made");
        let failed = |phrase: &str| {
            NotStarted::new(EvidenceKind::HomeFailed, Code::Unavailable, phrase.to_owned())
        };
        attempt_dir.reserve_exit_record();
        let alive =
            attempt_dir.lock_alive().map_err(|_| failed("the runner's lock could not be taken"))?;
        point("runner.alive.locked");
        let output = make_output(&request, &attempt_dir, order)
            .ok_or_else(|| failed("the output log could not be made"))?;
        point("runner.log.made");
        let socket = |name| bind(attempt_dir.dir().as_fd(), name);
        let control =
            socket(CONTROL_SOCKET).map_err(|_| failed("the control socket could not be made"))?;
        let data = socket(DATA_SOCKET).map_err(|_| failed("the data socket could not be made"))?;
        point("runner.sockets.bound");
        let host = watch_host(&order.host)?;
        let contained = row.required_cleanup == CleanupScope::ContainedTree;
        Ok(Self {
            request,
            grants,
            mechanism: row.mechanism.filter(|_| contained),
            known_digests: root
                .digests()
                .map(|file| KnownDigests::new(file, Arc::new(SystemClock))),
            root,
            attempt_dir,
            alive,
            output,
            control,
            data,
            host,
        })
    }

    fn into_runner(
        self,
        order: LaunchOrder,
        port: Link,
        signals: Signals,
        scribe: Scribe,
    ) -> Runner {
        let mut desk = Desk::new(
            order.attempt_id.clone(),
            Token::from_secret(Secret::new(order.control_token.expose().to_vec()))
                .expect("a token's bytes are a token"),
            order.generation,
            order.recipient.clone(),
        );
        desk.listen(self.control, self.data);
        let host_is_lost = self.host.is_none();
        let mut runner = Runner {
            order,
            request: self.request,
            grants: self.grants,
            mechanism: self.mechanism,
            root: Some(self.root),
            attempt_dir: self.attempt_dir,
            known_digests: self.known_digests,
            alive: self.alive,
            port: Some(port),
            signals,
            host: self.host,
            scribe,
            desk,
            output: self.output,
            input: Input::default(),
            closing: Closing::default(),
            writes: Writes::new(),
            queued_write: 0,
            torn_write: None,
            stop: Stop::default(),
            state: FIRST_STATE,
            exit: None,
            tree: None,
            gate: Gate::Shut,
            oom_kills: 0,
            gone_without_child: None,
            pipes: Pipes::default(),
            window: None,
            deadline: None,
            orphans_ended: false,
            spool_failed: false,
            bytes_came: false,
            scratch: vec![0; CHUNK_BYTES_MAX].into_boxed_slice(),
        };
        if host_is_lost {
            runner.host_lost();
        }
        runner
    }
}

/// Records the claim and waits for it; nothing else is there to be served yet.
fn claim_row(scribe: &mut Scribe, generation: Generation, by: Instant) -> Result<Row, Refusal> {
    let identity = ProcessIdentity::this_process()
        .map_err(|_| Refusal::new(Code::Unavailable, "the runner cannot tell its own identity"))?;
    let id = RunnerId::parse(&format!("runner-{}-{}", identity.pid.get(), identity.start_ticks))
        .expect("two numbers fit an id");
    let detail = id.as_str().to_owned();
    let fields = Fields { runner: Some(RunnerClaim { id, identity }), ..Fields::default() };
    let entry = Entry::row(EvidenceKind::RunnerStarted, detail)
        .expecting(&[ExecutionState::Intended])
        .under(generation)
        .with(fields)
        .durable();
    let ticket = scribe.push(entry);
    loop {
        if let Some(answer) = scribe.answer(ticket) {
            return answer.map_err(NotRecorded::into);
        }
        if Instant::now() >= by {
            scribe.give_up();
        }
        let left = by.saturating_duration_since(Instant::now()).max(Duration::from_millis(20));
        let left = Timespec::try_from(left).ok();
        let mut polled = [PollFd::from_borrowed_fd(scribe.descriptor(), PollFlags::IN)];
        rustix::event::poll(&mut polled, left.as_ref()).ok();
        scribe.collect();
    }
}

/// Opens the root of the host, and no other directory that its path leads to by now.
pub(crate) fn open_root(order: &LaunchOrder) -> Result<Root, ReopenError> {
    let RootId { device, inode } = order.root_id;
    Root::reopen(&order.root, DirectoryId { device, inode })
}

/// Opens the root and makes the attempt's directory in it.
fn make_attempt_dir(order: &LaunchOrder) -> Result<(Root, AttemptDir), NotStarted> {
    let failed = |phrase: &str| {
        NotStarted::new(EvidenceKind::HomeFailed, Code::Unavailable, phrase.to_owned())
    };
    let root = open_root(order).map_err(|error| match error {
        ReopenError::Replaced => failed("the root directory was replaced"),
        ReopenError::Private(_) | ReopenError::Path(_) | ReopenError::Io(_) => {
            failed("the root directory could not be opened")
        }
    })?;
    let key =
        HomeKey::parse(order.home_key.as_str()).map_err(|_| failed("the home key is malformed"))?;
    let attempt_dir =
        root.create_attempt(&key).map_err(|_| failed("the attempt directory could not be made"))?;
    Ok((root, attempt_dir))
}

fn make_output(
    request: &LaunchRequest,
    attempt_dir: &AttemptDir,
    order: &LaunchOrder,
) -> Option<Output> {
    let supervision = &request.supervision;
    if supervision.spool_bytes_max == 0 {
        return Some(Output::to_memory(order.generation));
    }
    let limits = LogLimits {
        spool_bytes_max: supervision.spool_bytes_max,
        transcript_bytes_max: supervision.transcript_bytes_max,
    };
    let writer = LogWriter::create(attempt_dir, limits).ok()?;
    Output::to_file(writer, limits.spool_bytes_max, order.generation).ok()
}

/// Holds the host by a verified descriptor; `None` if it is gone already. One of which nothing can be told
/// is not called lost.
fn watch_host(host: &ProcessIdentity) -> Result<Option<OwnedFd>, NotStarted> {
    match host.observe() {
        Presence::Present(verified) => Ok(Some(verified.into_pidfd())),
        Presence::Absent(_) => Ok(None),
        Presence::Unknown(why) => Err(NotStarted::new(
            EvidenceKind::EnvironmentFailed,
            Code::Unavailable,
            format!("the host cannot be watched: {}", why.because()),
        )),
    }
}
