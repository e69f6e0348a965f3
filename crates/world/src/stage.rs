//! The service beneath a host, for what an embedder cannot ask for: an attempt that is prepared and
//! not started, and rows as a runner that is gone has left them.

use crate::{OWNER, World};
use camino::{Utf8Path, Utf8PathBuf};
use placement::{
    Attempt, AttemptId, CleanupScope, Clock, EvidenceKind, Generation, Leftovers, Mechanism,
    OwnerId, SystemClock, Timeouts,
};
use placement_contract::request::{Argument, Preferences, PreparerOptions};
use placement_contract::{
    Access, ActionId, ExitObservation, GrantRef, IdempotencyKey, LaunchRequest, Purpose,
    RecipientId, Refusal, ResourceGrant, ResourceName, RunnerId, Subpath, Supervision,
};
use placement_homes::{AttemptDir, HomeKey, Root};
use placement_identity::ProcessIdentity;
use placement_policy::Snapshot;
use placement_service::{RunnerCommand, Service, ServiceConfig, Started};
use placement_store::{
    Attachment, Change, Draft, Durability, Fields, Role, Row, RunnerClaim, Store, StorePaths,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A service on the root of a world, and its store.
#[derive(Debug)]
pub struct Stage {
    service: Service,
    store: Store,
    root: Root,
    work: Utf8PathBuf,
}

impl World {
    /// Opens the service on this world's root.
    ///
    /// # Panics
    /// When it does not open.
    #[track_caller]
    pub fn stage(&self) -> Stage {
        self.stage_with_runner(&self.runner)
    }

    /// Opens the service with another program as its runner.
    ///
    /// # Panics
    /// As [`World::stage`].
    #[track_caller]
    pub fn stage_with_runner(&self, runner: impl AsRef<Utf8Path>) -> Stage {
        self.stage_of(OWNER, runner)
    }

    /// Opens the service as another owner.
    ///
    /// # Panics
    /// As [`World::stage`].
    #[track_caller]
    pub fn stage_of(&self, owner: &str, runner: impl AsRef<Utf8Path>) -> Stage {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let mut snapshot = Snapshot::embedded();
        snapshot.admit(self.work(), Access::Write).expect("one directory is admitted");
        let service = Service::open(ServiceConfig {
            root: self.root(),
            owner: OwnerId::parse(owner).expect("a short name is an id"),
            snapshot,
            runner: RunnerCommand::at(runner.as_ref()),
            clock: Arc::clone(&clock),
            temporary_base: Some(self.temporary_base()),
        });
        let store = Store::open(&StorePaths::below(&self.root()), Role::Service, clock);
        Stage {
            service: service.expect("the service opens"),
            store: store.expect("the store opens"),
            root: Root::open(self.root()).expect("the root opens"),
            work: self.work(),
        }
    }
}

impl Stage {
    /// Returns the service.
    pub const fn service(&self) -> &Service {
        &self.service
    }

    /// Makes the request of a shell command in the work directory, under a name that is attempt and
    /// key in one, with short time limits.
    ///
    /// # Panics
    /// When the name is no id.
    #[track_caller]
    pub fn request(&self, name: &str, script: &str) -> LaunchRequest {
        let mut snapshot = self.service.snapshot();
        let root_ref = snapshot.admit(&self.work, Access::Write).expect("it is admitted already");
        let directory = ResourceName::parse("work").expect("a short name is an id");
        let argument = |text: &str| Argument::parse(text).expect("a short text is an argument");
        LaunchRequest {
            idempotency_key: IdempotencyKey::parse(name).expect("the name is an id"),
            owner_id: self.service.owner().clone(),
            owner_incarnation: 1,
            action_id: ActionId::parse(name).expect("the name is an id"),
            attempt_id: AttemptId::parse(name).expect("the name is an id"),
            binding_ref: snapshot.binding().r#ref.clone(),
            policy_ref: snapshot.policy().r#ref.clone(),
            profile_id: snapshot.profile().r#ref.clone(),
            binding_digest: snapshot.binding().digest.clone(),
            profile_digest: snapshot.profile().digest.clone(),
            placement_binding_ref: None,
            placement_binding_digest: None,
            placement_profile_ref: None,
            placement_profile_digest: None,
            launch: placement_contract::Launch {
                argv: vec![argument("-c"), argument(script)],
                working_directory_ref: Some(directory.clone()),
                ..placement_contract::Launch::of(argument("/bin/sh"))
            },
            configuration_digest: None,
            configuration_context: None,
            preferences: Preferences::default(),
            executable: None,
            gateway: None,
            resources: vec![ResourceGrant {
                name: directory,
                grant_ref: GrantRef::parse(root_ref.as_str()).expect("a reference is an id"),
                root_ref,
                subpath: Subpath::default(),
                access: Access::Write,
                purpose: Purpose::Project,
            }],
            environment: BTreeMap::new(),
            environment_refs: BTreeMap::new(),
            projections: Vec::new(),
            session_ref: None,
            required_cleanup: CleanupScope::ContainedTree,
            required_exit_observation: ExitObservation::Independent,
            timeouts: Timeouts { stop_grace_ms: 200, drain_ms: 500, ..Timeouts::default() },
            options: PreparerOptions::default(),
            supervision: Supervision::default(),
        }
    }

    /// Prepares a request.
    ///
    /// # Panics
    /// When it is refused.
    #[track_caller]
    pub fn prepare(&self, request: &LaunchRequest) -> AttemptId {
        self.service.prepare(request).expect("the request is admitted").attempt_id
    }

    /// Starts a prepared attempt.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub fn start(&self, attempt: &AttemptId) -> Result<Started, Refusal> {
        self.service.start(attempt, &RecipientId::parse("stage").expect("a short name is an id"))
    }

    /// Returns what is recorded.
    ///
    /// # Panics
    /// When it cannot be read.
    #[track_caller]
    pub fn recorded(&self, attempt: &AttemptId) -> Attempt {
        self.service.recorded(attempt).expect("the attempt is recorded")
    }

    /// Records rows and fields, as whoever was to record them would have.
    ///
    /// # Panics
    /// When they do not fit what is recorded.
    #[track_caller]
    pub fn record(
        &self,
        attempt: &AttemptId,
        rows: &[(EvidenceKind, &str)],
        fields: &Fields,
    ) -> Row {
        let rows: Vec<Draft> =
            rows.iter().map(|(kind, detail)| Draft::new(*kind, *detail)).collect();
        let change = Change {
            attempt_id: attempt,
            expect: None,
            expect_generation: None,
            rows: &rows,
            fields,
        };
        self.store.record(&change, Durability::Normal).expect("the rows fit")
    }

    /// Claims a prepared attempt for a runner, and makes its directory with a home in it.
    ///
    /// # Panics
    /// As [`Stage::record`].
    #[track_caller]
    pub fn claim(&self, attempt: &AttemptId, runner: &ProcessIdentity) -> AttemptDir {
        let recipient = RecipientId::parse("stage").expect("a short name is an id");
        let id = format!("runner-{}-{}", runner.pid.get(), runner.start_ticks);
        let fields = Fields {
            runner: Some(RunnerClaim {
                id: RunnerId::parse(&id).expect("two numbers fit an id"),
                identity: runner.clone(),
            }),
            attachment: Some(Attachment {
                generation: Generation::FIRST,
                recipient: Some(recipient),
            }),
            ..Fields::default()
        };
        let rows =
            [(EvidenceKind::Attach, "generation 1"), (EvidenceKind::RunnerStarted, id.as_str())];
        let row = self.record(attempt, &rows, &fields);
        let key = HomeKey::parse(&row.home_key.expect("an attempt has a home"));
        let directory = self.root.create_attempt(&key.expect("the key is well formed"));
        let directory = directory.expect("the attempt directory is new");
        directory.create_home().expect("the home is new");
        directory
    }

    /// Records that a child runs, with an identity or without one.
    ///
    /// # Panics
    /// As [`Stage::record`].
    #[track_caller]
    pub fn run(&self, attempt: &AttemptId, child: Option<&ProcessIdentity>) {
        let creating = (EvidenceKind::ChildCreating, "staged");
        let started = (EvidenceKind::ChildStarted, "staged");
        self.record(attempt, &[creating], &Fields::default());
        if let Some(child) = child {
            let fields = Fields { child: Some(child.clone()), ..Fields::default() };
            self.record(attempt, &[(EvidenceKind::ChildIdentified, "staged")], &fields);
        }
        self.record(attempt, &[started], &Fields::default());
    }
}

/// Makes a request contain its tree by a mechanism, or clean its process group only.
#[must_use]
pub fn contained(request: LaunchRequest, mechanism: Option<Mechanism>) -> LaunchRequest {
    let required_cleanup = match mechanism {
        Some(_) => CleanupScope::ContainedTree,
        None => CleanupScope::ProcessGroup,
    };
    let supervision = Supervision { mechanism, ..request.supervision };
    LaunchRequest { required_cleanup, supervision, ..request }
}

/// Makes a request leave what is left after the exit.
#[must_use]
pub fn keeping_leftovers(request: LaunchRequest) -> LaunchRequest {
    let supervision = Supervision { leftovers: Leftovers::Keep, ..request.supervision };
    LaunchRequest { supervision, ..request }
}
