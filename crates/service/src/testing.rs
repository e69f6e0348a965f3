//! What the unit tests share: a root with a service, and a runner played by the test.

use crate::{RunnerCommand, Service, ServiceConfig};
use placement_contract::request::{Argument, Preferences, PreparerOptions};
use placement_contract::{
    Access, ActionId, AttemptId, CapabilityReport, CleanupScope, Clock, Digest, EvidenceKind,
    ExitObservation, Generation, GrantRef, IdempotencyKey, Launch, LaunchRequest, Mechanism,
    MechanismReport, OwnerId, Purpose, RecipientId, Refusal, ResourceGrant, ResourceName, RunnerId,
    Secret, Subpath, Supervision, Timeouts, Timestamp,
};
use placement_homes::{AliveLock, AttemptDir, HomeKey, RunnerAlive};
use placement_identity::{Pid, ProcessIdentity};
use placement_policy::Snapshot;
use placement_process::{Started, dev_null, spawn_runner};
use placement_protocol::{
    ControlAnswer, ControlCall, ControlReply, ControlRequest, FromRecipient, FromRunner, LinkKind,
    Token,
};
use placement_store::{Attachment, Change, Draft, Durability, Fields, Row, RunnerClaim};
use placement_testkit::{FakeTime, TempRoot, wait_until};
use placement_transport::{Filled, Gate, Link, Listener, bind};
use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Measured once for all tests.
static EMBEDDED: LazyLock<Snapshot> = LazyLock::new(Snapshot::embedded);

/// The token of an attempt: no two have one.
pub(crate) fn token(id: &AttemptId) -> [u8; 32] {
    let mut token = [0; 32];
    token.copy_from_slice(&Digest::of_bytes(id.as_str().as_bytes()).as_str().as_bytes()[..32]);
    token
}

#[derive(Debug)]
struct TestClock(FakeTime);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.0.advance(Duration::from_millis(1));
        Timestamp::from_unix_ms(self.0.unix_ms())
    }
}

pub(crate) fn owner() -> OwnerId {
    OwnerId::parse("local:test").unwrap()
}

pub(crate) fn attempt(id: &str) -> AttemptId {
    AttemptId::parse(id).unwrap()
}

pub(crate) fn recipient(name: &str) -> RecipientId {
    RecipientId::parse(name).unwrap()
}

/// A request of the embedded definitions that requires the direct process only.
pub(crate) fn request(id: &str, key: &str) -> LaunchRequest {
    let snapshot = &*EMBEDDED;
    LaunchRequest {
        idempotency_key: IdempotencyKey::parse(key).unwrap(),
        owner_id: owner(),
        owner_incarnation: 1,
        action_id: ActionId::parse(id).unwrap(),
        attempt_id: attempt(id),
        binding_ref: snapshot.binding().r#ref.clone(),
        policy_ref: snapshot.policy().r#ref.clone(),
        profile_id: snapshot.profile().r#ref.clone(),
        binding_digest: snapshot.binding().digest.clone(),
        profile_digest: snapshot.profile().digest.clone(),
        placement_binding_ref: None,
        placement_binding_digest: None,
        placement_profile_ref: None,
        placement_profile_digest: None,
        launch: Launch::of(Argument::parse("true").unwrap()),
        configuration_digest: None,
        configuration_context: None,
        preferences: Preferences::default(),
        executable: None,
        gateway: None,
        resources: Vec::new(),
        environment: BTreeMap::new(),
        environment_refs: BTreeMap::new(),
        projections: Vec::new(),
        session_ref: None,
        required_cleanup: CleanupScope::DirectProcess,
        required_exit_observation: ExitObservation::Independent,
        timeouts: Timeouts { start_ms: 5_000, stop_grace_ms: 100, drain_ms: 100, retain_ms: 100 },
        options: PreparerOptions::default(),
        supervision: Supervision::default(),
    }
}

/// A report of a machine where these mechanisms work.
pub(crate) fn report(mechanisms: &[Mechanism]) -> CapabilityReport {
    let seen = |mechanism: &Mechanism| MechanismReport {
        mechanism: *mechanism,
        available: true,
        proof_survives_runner: *mechanism != Mechanism::Subreaper,
        failed_at: None,
        errno: None,
    };
    CapabilityReport {
        capability: match mechanisms.first() {
            Some(_) => CleanupScope::ContainedTree,
            None => CleanupScope::ProcessGroup,
        },
        mechanism: mechanisms.first().copied(),
        exit_observation: ExitObservation::Independent,
        controllers: Vec::new(),
        mechanisms: mechanisms.iter().map(seen).collect(),
    }
}

/// A root of its own with a service on it.
pub(crate) struct World {
    pub(crate) root: TempRoot,
    pub(crate) service: Service,
}

impl World {
    /// A machine where every mechanism works, and no runner program.
    pub(crate) fn new() -> Self {
        let world = Self::with_runner("/nowhere/placement-runner");
        let report = report(Mechanism::ALL);
        *world.service.inner.capability.lock().unwrap() = Some(report);
        world
    }

    pub(crate) fn with_runner(program: &str) -> Self {
        let root = TempRoot::new();
        let service = open(&root, owner(), program);
        Self { root, service }
    }

    /// Another service on the same root.
    pub(crate) fn another(&self, owner: &str) -> Service {
        let service = open(&self.root, OwnerId::parse(owner).unwrap(), "/nowhere/runner");
        let known = self.service.inner.capability.lock().unwrap().clone();
        *service.inner.capability.lock().unwrap() = known;
        service
    }

    pub(crate) fn prepare(&self, request: &LaunchRequest) -> AttemptId {
        self.service.prepare(request).unwrap().attempt_id
    }

    pub(crate) fn row(&self, id: &AttemptId) -> Row {
        self.service.row(id).unwrap()
    }

    /// The kinds of an attempt's evidence after its intent.
    pub(crate) fn kinds(&self, id: &AttemptId) -> Vec<EvidenceKind> {
        let rows = self.service.inner.store.all_evidence(id).unwrap();
        rows.iter().skip(1).map(|row| row.kind).collect()
    }

    pub(crate) fn last_detail(&self, id: &AttemptId) -> String {
        self.service.inner.store.all_evidence(id).unwrap().pop().unwrap().detail
    }

    pub(crate) fn record(&self, id: &AttemptId, rows: &[Draft], fields: &Fields) -> Row {
        let change = Change { attempt_id: id, expect: None, expect_generation: None, rows, fields };
        self.service.inner.store.record(&change, Durability::Normal).unwrap()
    }
}

fn open(root: &TempRoot, owner: OwnerId, program: &str) -> Service {
    open_with_clock(root, owner, program, Arc::new(TestClock(FakeTime::at(1_800_000_000_000))))
}

pub(crate) fn open_with_clock(
    root: &TempRoot,
    owner: OwnerId,
    program: &str,
    clock: Arc<dyn Clock>,
) -> Service {
    Service::open(ServiceConfig {
        root: root.path().to_owned(),
        owner,
        snapshot: EMBEDDED.clone(),
        runner: RunnerCommand::at(program),
        clock,
        temporary_base: None,
    })
    .unwrap()
}

/// Prepares an attempt that may write below the directory `project` of its world.
pub(crate) fn granted(world: &World) -> AttemptId {
    let path = world.root.join("project");
    std::fs::create_dir(&path).unwrap();
    let root_ref =
        world.service.change_snapshot(|snapshot| snapshot.admit(&path, Access::Write)).unwrap();
    let grant = ResourceGrant {
        name: ResourceName::parse("project").unwrap(),
        grant_ref: GrantRef::parse("g").unwrap(),
        root_ref,
        subpath: Subpath::default(),
        access: Access::Write,
        purpose: Purpose::Project,
    };
    world.prepare(&LaunchRequest { resources: vec![grant], ..request("a", "k") })
}

/// Starts a process in a session and group of its own.
pub(crate) fn process(line: &str) -> (Started, ProcessIdentity) {
    let started =
        spawn_runner(Path::new("/usr/bin/setsid"), ["/bin/sh", "-c", line], dev_null().unwrap())
            .unwrap();
    let mut seen = started.identity().unwrap();
    wait_until(PATIENCE, "its own group", || {
        seen = started.identity().unwrap();
        seen.pgid == seen.pid
    });
    (started, seen)
}

/// Returns the identity of a process that was here and is reaped.
pub(crate) fn gone_process() -> ProcessIdentity {
    let (mut started, identity) = process("exit 0");
    started.wait().unwrap();
    identity
}

/// Returns the identity of this process, which plays the runner.
pub(crate) fn this_process() -> ProcessIdentity {
    ProcessIdentity::of(Pid::this_process()).unwrap()
}

/// How a played runner answers, besides what its script says.
pub(crate) struct Manners {
    pub(crate) generation: Generation,
    /// Whether the answer to an attachment that it accepts names that attachment.
    pub(crate) keeps_up: bool,
    /// What it does when somebody has connected, before it says welcome.
    pub(crate) before_welcome: Box<dyn FnMut() + Send>,
}

impl Manners {
    pub(crate) fn usual(generation: Generation) -> Self {
        Self { generation, keeps_up: true, before_welcome: Box::new(|| {}) }
    }
}

/// The runner of one attempt, played by the test.
pub(crate) struct FakeRunner {
    pub(crate) directory: AttemptDir,
    alive: Option<AliveLock>,
    attempt_id: AttemptId,
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl FakeRunner {
    /// Claims a prepared attempt: row, directory and lock, without sockets.
    pub(crate) fn claim(world: &World, id: &AttemptId) -> Self {
        Self::claim_as(world, id, this_process())
    }

    pub(crate) fn claim_as(world: &World, id: &AttemptId, identity: ProcessIdentity) -> Self {
        let store = &world.service.inner.store;
        store.authority(id, &Secret::new(token(id).to_vec())).unwrap();
        let attachment =
            Attachment { generation: Generation::FIRST, recipient: Some(recipient("first")) };
        let claim = RunnerClaim { id: RunnerId::parse("runner").unwrap(), identity };
        let fields =
            Fields { runner: Some(claim), attachment: Some(attachment), ..Fields::default() };
        world.record(
            id,
            &[
                Draft::new(EvidenceKind::Attach, "generation 1"),
                Draft::new(EvidenceKind::RunnerStarted, "runner"),
            ],
            &fields,
        );
        let key = HomeKey::parse(&world.row(id).home_key.unwrap()).unwrap();
        let directory = world.service.inner.root.create_attempt(&key).unwrap();
        let alive = Some(directory.lock_alive().unwrap());
        let end = Arc::new(AtomicBool::new(false));
        Self { directory, alive, attempt_id: id.clone(), end, threads: Vec::new() }
    }

    /// Records a child that runs.
    pub(crate) fn run(&self, world: &World, child: &ProcessIdentity) {
        let child = ProcessIdentity { ..child.clone() };
        let fields = Fields { child: Some(child), ..Fields::default() };
        world.record(
            &self.attempt_id,
            &[
                Draft::new(EvidenceKind::ChildCreating, "in a process group"),
                Draft::new(EvidenceKind::ChildIdentified, "pid and group"),
                Draft::new(EvidenceKind::ChildStarted, "executed"),
            ],
            &fields,
        );
    }

    /// Answers control calls as the script says; a call without an answer gets none.
    pub(crate) fn answer(
        &mut self,
        generation: Generation,
        script: impl FnMut(ControlCall, Option<OwnedFd>) -> Option<ControlAnswer> + Send + 'static,
    ) {
        self.answer_with(Manners::usual(generation), script);
    }

    /// The same, with manners of its own.
    pub(crate) fn answer_with(
        &mut self,
        manners: Manners,
        script: impl FnMut(ControlCall, Option<OwnedFd>) -> Option<ControlAnswer> + Send + 'static,
    ) {
        let listener = bind(self.directory.dir().as_fd(), crate::places::CONTROL_SOCKET).unwrap();
        let id = self.attempt_id.clone();
        let end = Arc::clone(&self.end);
        self.threads.push(std::thread::spawn(move || {
            control(&listener, &id, manners, &end, script);
        }));
    }

    /// Serves one data link: sends the messages, then says what it hears until the link ends.
    pub(crate) fn serve(
        &mut self,
        messages: Vec<FromRunner>,
        heard: impl FnMut(FromRecipient) -> Option<FromRunner> + Send + 'static,
    ) {
        let listener = bind(self.directory.dir().as_fd(), crate::places::DATA_SOCKET).unwrap();
        let id = self.attempt_id.clone();
        let end = Arc::clone(&self.end);
        self.threads.push(std::thread::spawn(move || data(listener, &id, &end, messages, heard)));
    }

    /// Ends the runner as a SIGKILL would: its lock is free and nobody answers.
    pub(crate) fn die(&mut self) {
        self.end.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
        self.directory.remove_sockets().unwrap();
        self.alive = None;
        // A process that another test is starting at this moment has a copy of the lock until exec.
        wait_until(PATIENCE, "the release of the lock", || {
            self.directory.observe_alive() == RunnerAlive::Released
        });
    }
}

impl Drop for FakeRunner {
    fn drop(&mut self) {
        self.end.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}

fn control(
    listener: &Listener,
    id: &AttemptId,
    mut manners: Manners,
    end: &AtomicBool,
    mut script: impl FnMut(ControlCall, Option<OwnedFd>) -> Option<ControlAnswer>,
) {
    let generation = manners.generation;
    let token = Token::new(token(id));
    let mut links: Vec<Link> = Vec::new();
    while !end.load(Ordering::SeqCst) {
        while let Ok(Some(stream)) = listener.accept() {
            let mut link = Link::new(stream, LinkKind::Control);
            let by = Instant::now() + PATIENCE;
            (manners.before_welcome)();
            if Gate::attempt(LinkKind::Control, id, &token).admit(&mut link, by).is_ok() {
                links.push(link);
            }
        }
        links.retain_mut(|link| {
            match link.fill() {
                Err(_) => return false,
                Ok(Filled::Nothing) => return true,
                Ok(Filled::Bytes) => {}
            }
            while let Ok(Some(frame)) = link.next_frame() {
                let descriptor = link.take_descriptor();
                let request = ControlRequest::from_frame(&frame).unwrap();
                let asked = match &request.call {
                    ControlCall::Attach(attach) => attach.generation,
                    ControlCall::Status | ControlCall::Stop(_) | ControlCall::CloseStdin => {
                        generation
                    }
                };
                let Some(answer) = script(request.call, descriptor) else { return true };
                let fenced = manners.keeps_up
                    && matches!(&answer, ControlAnswer::Attach(reply) if reply.fenced);
                let reply = ControlReply {
                    attempt_id: id.clone(),
                    generation: if fenced { asked } else { generation },
                    probe: request.probe,
                    answer,
                };
                link.send(reply.to_frame().unwrap(), Instant::now() + PATIENCE).unwrap();
            }
            true
        });
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn data(
    listener: Listener,
    id: &AttemptId,
    end: &AtomicBool,
    messages: Vec<FromRunner>,
    mut heard: impl FnMut(FromRecipient) -> Option<FromRunner>,
) {
    let pause = || std::thread::sleep(Duration::from_millis(1));
    let token = Token::new(token(id));
    let mut link = loop {
        if end.load(Ordering::SeqCst) {
            return;
        }
        if let Ok(Some(stream)) = listener.accept() {
            break Link::new(stream, LinkKind::Data);
        }
        pause();
    };
    // Nobody else is served, as if another recipient were bound by now.
    drop(listener);
    let by = Instant::now() + PATIENCE;
    Gate::attempt(LinkKind::Data, id, &token).admit(&mut link, by).unwrap();
    for message in messages {
        link.send(message.into_frame().unwrap(), by).unwrap();
    }
    while !end.load(Ordering::SeqCst) && link.fill().is_ok() {
        while let Ok(Some(frame)) = link.next_frame() {
            if let Some(answer) = heard(FromRecipient::from_frame(frame).unwrap()) {
                link.send(answer.into_frame().unwrap(), by).unwrap();
            }
        }
        pause();
    }
}

/// Unwraps a refusal, with the evidence in mind.
pub(crate) fn refusal<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> Refusal {
    answer.expect_err("it must be refused")
}
