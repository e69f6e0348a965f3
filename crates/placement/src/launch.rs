//! One launch as an embedder words it, and the request it becomes.

use crate::error::Error;
use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::request::Argument;
use placement_contract::{
    Access, ActionId, AttemptId, CleanupScope, Code, EnvironmentName, GrantRef, IdempotencyKey,
    LaunchRequest, Leftovers, Mechanism, OnHostLoss, OwnerId, Purpose, Refusal, ResourceGrant,
    ResourceName, StdinMode, Subpath, Supervision, Timeouts,
};
use placement_policy::Snapshot;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;

/// What to launch, where, and how it is supervised.
///
/// Without a key the launch gets a fresh attempt; with one it happens at most once per owner and
/// root. Nothing is checked before it is handed to [`crate::Placement::launch`].
#[derive(Debug, Clone)]
pub struct Launch {
    program: String,
    arguments: Vec<String>,
    working_directory: Option<Utf8PathBuf>,
    directories: Vec<(Utf8PathBuf, Access)>,
    environment: BTreeMap<String, String>,
    key: Option<String>,
    stdin_text: Option<String>,
    required_cleanup: Option<CleanupScope>,
    timeouts: Timeouts,
    supervision: Supervision,
}

impl Launch {
    /// Names the program: an absolute path, or a name that is searched on the host's PATH.
    pub fn program(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            working_directory: None,
            directories: Vec::new(),
            environment: BTreeMap::new(),
            key: None,
            stdin_text: None,
            required_cleanup: None,
            timeouts: Timeouts::default(),
            supervision: Supervision::default(),
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Lets the launch write below a directory; the first one named is its working directory
    /// unless [`Launch::cwd`] says otherwise.
    #[must_use]
    pub fn write(mut self, directory: impl AsRef<Utf8Path>) -> Self {
        self.directories.push((directory.as_ref().to_owned(), Access::Write));
        self
    }

    /// Names a directory that the launch reads.
    #[must_use]
    pub fn read(mut self, directory: impl AsRef<Utf8Path>) -> Self {
        self.directories.push((directory.as_ref().to_owned(), Access::Read));
        self
    }

    /// Sets the working directory; it is read-only for the launch unless also named by
    /// [`Launch::write`].
    #[must_use]
    pub fn cwd(mut self, directory: impl AsRef<Utf8Path>) -> Self {
        self.working_directory = Some(directory.as_ref().to_owned());
        self
    }

    /// Sets a nonsecret environment value; the child sees no other than these, PATH, HOME, TMPDIR
    /// and what the policy passes on by name.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Sets the key under which this launch happens at most once.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Gives the child this text as its whole input, at most 65 536 bytes.
    #[must_use]
    pub fn stdin_text(mut self, text: impl Into<String>) -> Self {
        self.stdin_text = Some(text.into());
        self
    }

    /// Gives the child an input pipe that the host writes to.
    #[must_use]
    pub fn stdin_pipe(mut self) -> Self {
        self.supervision.stdin = StdinMode::Pipe;
        self
    }

    /// Requires that cleanup can prove this scope gone; the strongest measured one otherwise.
    #[must_use]
    pub fn require(mut self, scope: CleanupScope) -> Self {
        self.required_cleanup = Some(scope);
        self
    }

    /// Chooses the containment; the strongest measured one otherwise.
    #[must_use]
    pub fn mechanism(mut self, mechanism: Mechanism) -> Self {
        self.supervision.mechanism = Some(mechanism);
        self
    }

    /// Requires a proof of an empty tree that outlives the runner.
    #[must_use]
    pub fn require_surviving_proof(mut self) -> Self {
        self.supervision.require_surviving_proof = true;
        self
    }

    /// Says what happens when the host ends: the child is stopped unless told to keep it.
    #[must_use]
    pub fn on_host_loss(mut self, rule: OnHostLoss) -> Self {
        self.supervision.on_host_loss = rule;
        self
    }

    /// Says what happens to what is left after the exit: it is stopped unless told to keep it.
    #[must_use]
    pub fn leftovers(mut self, rule: Leftovers) -> Self {
        self.supervision.leftovers = rule;
        self
    }

    /// Stops the child after this run time, up to 30 days.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.supervision.deadline_ms = Some(whole_ms(deadline));
        self
    }

    /// Sets the time between a cooperative stop and SIGKILL, up to 60 s; 5 s otherwise.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.timeouts.stop_grace_ms = whole_ms(grace);
        self
    }

    /// Sets all time limits.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Keeps the home after the cleanup.
    #[must_use]
    pub fn keep_home(mut self) -> Self {
        self.supervision.keep_home = true;
        self
    }

    /// Drops output once it is acknowledged, so that nothing stays on disk.
    #[must_use]
    pub fn no_transcript(mut self) -> Self {
        self.supervision.transcript_bytes_max = 0;
        self
    }

    /// Bounds the unacknowledged bytes on disk; 0 keeps at most 256 KiB in memory instead.
    #[must_use]
    pub fn spool_bytes_max(mut self, bytes: u64) -> Self {
        self.supervision.spool_bytes_max = bytes;
        self
    }

    /// Returns the rule for the loss of the host.
    pub(crate) fn host_loss_rule(&self) -> OnHostLoss {
        self.supervision.on_host_loss
    }

    /// Makes the request, admitting the named directories into the host's snapshot.
    pub(crate) fn into_request(
        self,
        owner: &OwnerId,
        strongest: CleanupScope,
        snapshot: &mut Snapshot,
    ) -> Result<LaunchRequest, Error> {
        let (attempt, key) = identify(owner, self.key.as_deref())?;
        let (resources, working_directory_ref) =
            grants(&self.directories, self.working_directory.as_deref(), snapshot)?;
        let mut environment = BTreeMap::new();
        for (name, value) in self.environment {
            let name = EnvironmentName::parse(&name).ok_or_else(|| {
                invalid(format!("environment name {name:?} is not of A-Z, 0-9 and underscore"))
            })?;
            environment.insert(name, value);
        }
        let request = LaunchRequest {
            idempotency_key: key,
            owner_id: owner.clone(),
            owner_incarnation: 1,
            action_id: ActionId::parse(attempt.as_str()).expect("an attempt id is an id"),
            attempt_id: attempt,
            binding_ref: snapshot.binding_ref().clone(),
            policy_ref: snapshot.policy_ref().clone(),
            profile_id: snapshot.profile_id().clone(),
            binding_digest: snapshot.binding_digest().clone(),
            profile_digest: snapshot.profile_digest().clone(),
            launch: placement_contract::Launch {
                executable: argument("program", &self.program)?,
                argv: self
                    .arguments
                    .iter()
                    .map(|text| argument("argument", text))
                    .collect::<Result<_, _>>()?,
                stdin_eof: self.stdin_text.is_some(),
                stdin: self.stdin_text,
                environment: environment.keys().cloned().collect(),
                working_directory_ref,
                readiness: "started".to_owned(),
            },
            resources,
            environment,
            environment_refs: BTreeMap::new(),
            required_cleanup: self.required_cleanup.unwrap_or(strongest),
            required_exit_observation: placement_contract::ExitObservation::Independent,
            timeouts: self.timeouts,
            supervision: self.supervision,
        };
        Ok(request.checked().map_err(Refusal::from)?)
    }
}

/// Derives the attempt's id from owner and key, or makes a fresh one that is its own key.
fn identify(owner: &OwnerId, key: Option<&str>) -> Result<(AttemptId, IdempotencyKey), Error> {
    let Some(key) = key else {
        let fresh = fresh_id()?;
        let attempt = AttemptId::parse(&fresh).expect("a ULID is an id");
        return Ok((attempt, IdempotencyKey::parse(&fresh).expect("a ULID is an id")));
    };
    let parsed =
        IdempotencyKey::parse(key).map_err(|rule| invalid(format!("the key {rule}")))?;
    let hash = Sha256::new().chain_update(owner.as_str()).chain_update("\n").chain_update(key);
    let mut first = [0_u8; 16];
    first.copy_from_slice(&hash.finalize()[..16]);
    let derived = ulid::Ulid::from_bytes(first).to_string();
    Ok((AttemptId::parse(&derived).expect("a ULID is an id"), parsed))
}

fn fresh_id() -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| Refusal::new(Code::Internal, "the system gave no random bytes"))?;
    let now_ms = crate::clock::unix_ms().cast_unsigned();
    bytes[..6].copy_from_slice(&now_ms.to_be_bytes()[2..]);
    Ok(ulid::Ulid::from_bytes(bytes).to_string())
}

fn grants(
    directories: &[(Utf8PathBuf, Access)],
    working_directory: Option<&Utf8Path>,
    snapshot: &mut Snapshot,
) -> Result<(Vec<ResourceGrant>, Option<ResourceName>), Error> {
    let mut resources: Vec<ResourceGrant> = Vec::new();
    let mut grant = |path: &Utf8Path, access: Access, snapshot: &mut Snapshot| {
        let root_ref = snapshot.admit(path, access)?;
        if let Some(known) = resources.iter_mut().find(|known| known.root_ref == root_ref) {
            known.access = known.access.max(access);
            return Ok::<_, Error>(known.name.clone());
        }
        let name = ResourceName::parse(&format!("directory-{}", resources.len() + 1))
            .expect("a short ASCII name is an id");
        resources.push(ResourceGrant {
            name: name.clone(),
            grant_ref: GrantRef::parse(root_ref.as_str()).expect("a root reference is an id"),
            root_ref,
            subpath: Subpath::default(),
            access,
            purpose: Purpose::Project,
        });
        Ok(name)
    };
    let mut first_written = None;
    for (path, access) in directories {
        let name = grant(path, *access, snapshot)?;
        if *access == Access::Write && first_written.is_none() {
            first_written = Some(name);
        }
    }
    let working = match working_directory {
        Some(path) => Some(grant(path, Access::Read, snapshot)?),
        None => first_written,
    };
    Ok((resources, working))
}

fn argument(what: &str, text: &str) -> Result<Argument, Error> {
    Argument::parse(text)
        .ok_or_else(|| invalid(format!("the {what} must be at most 16384 bytes without NUL")))
}

fn invalid(message: String) -> Error {
    Refusal::new(Code::Invalid, message).into()
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
