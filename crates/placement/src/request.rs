//! The request that a launch becomes.

use crate::error::Error;
use crate::launch::Launch;
use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::limits::ARGUMENT_BYTES_MAX;
use placement_contract::request::{Argument, Preferences, PreparerOptions};
use placement_contract::{
    Access, ActionId, AttemptId, BindingRef, CleanupScope, Code, EnvironmentName, ExitObservation,
    GrantRef, IdempotencyKey, LaunchRequest, OwnerId, PolicyRef, ProfileId, Purpose, Refusal,
    ResourceGrant, ResourceName, RootRef, SessionRef, Subpath, Supervision, Timestamp, Window,
    WindowSize,
};
use placement_policy::{Named, SESSION_ROOT, Snapshot};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// The names under which a launch is recorded.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// The attempt.
    pub(crate) attempt: AttemptId,
    /// Its key.
    pub(crate) key: IdempotencyKey,
}

impl Names {
    /// Derives the attempt's id from owner and key, or makes a fresh one that is its own key.
    pub(crate) fn of(owner: &OwnerId, key: Option<&str>, now: &Timestamp) -> Result<Self, Error> {
        let Some(key) = key else {
            let fresh = fresh_id(now)?;
            let attempt = AttemptId::parse(&fresh).expect("a ULID is an id");
            let key = IdempotencyKey::parse(&fresh).expect("a ULID is an id");
            return Ok(Self { attempt, key });
        };
        let parsed =
            IdempotencyKey::parse(key).map_err(|rule| invalid(format!("the key {rule}")))?;
        let hash = Sha256::new().chain_update(owner.as_str()).chain_update("\n").chain_update(key);
        let mut first = [0_u8; 16];
        first.copy_from_slice(&hash.finalize()[..16]);
        let derived = ulid::Ulid::from_bytes(first).to_string();
        Ok(Self { attempt: AttemptId::parse(&derived).expect("a ULID is an id"), key: parsed })
    }
}

/// What the host fills in where a launch leaves it open.
#[derive(Debug, Clone)]
pub(crate) struct FilledIn {
    binding: Named<BindingRef>,
    profile: Named<ProfileId>,
    policy: PolicyRef,
    required_cleanup: CleanupScope,
    window: Option<Window>,
}

impl FilledIn {
    /// Takes what the host has now.
    pub(crate) fn of_host(snapshot: &Snapshot, strongest: CleanupScope) -> Self {
        Self {
            binding: snapshot.binding().clone(),
            profile: snapshot.profile().clone(),
            policy: snapshot.policy().r#ref.clone(),
            required_cleanup: strongest,
            window: None,
        }
    }

    /// Takes what a recorded request has, so that a retry is the same request whatever the host has
    /// by now.
    pub(crate) fn of_recorded(request: LaunchRequest) -> Self {
        Self {
            binding: Named { r#ref: request.binding_ref, digest: request.binding_digest },
            profile: Named { r#ref: request.profile_id, digest: request.profile_digest },
            policy: request.policy_ref,
            required_cleanup: request.required_cleanup,
            window: request.supervision.window,
        }
    }
}

/// Makes the request, admitting the named directories into the host's snapshot.
///
/// Nothing on disk is looked at, so that the same launch is the same request whatever became of
/// its directories.
pub(crate) fn request(
    launch: Launch,
    names: Names,
    owner: &OwnerId,
    filled_in: FilledIn,
    snapshot: &mut Snapshot,
) -> Result<LaunchRequest, Error> {
    let (mut resources, working_directory_ref) = grants(&launch, snapshot)?;
    let session_ref = launch.session.as_deref().map(session).transpose()?;
    let home = session_ref.as_ref().map(|_| session_home());
    let home_ref = home.as_ref().map(|home| home.name.clone());
    resources.extend(home);
    let environment = environment(launch.environment)?;
    let policy_ref = match &launch.policy {
        Some(name) => {
            PolicyRef::parse(name).map_err(|rule| invalid(format!("the policy {rule}")))?
        }
        None => filled_in.policy,
    };
    let window = window(launch.window, filled_in.window)?;
    let arguments = launch.arguments.iter().map(|text| argument("argument", text));
    let request = LaunchRequest {
        idempotency_key: names.key,
        owner_id: owner.clone(),
        owner_incarnation: 1,
        action_id: ActionId::parse(names.attempt.as_str()).expect("an attempt id is an id"),
        attempt_id: names.attempt,
        binding_ref: filled_in.binding.r#ref,
        policy_ref,
        profile_id: filled_in.profile.r#ref,
        binding_digest: filled_in.binding.digest,
        profile_digest: filled_in.profile.digest,
        placement_binding_ref: None,
        placement_binding_digest: None,
        placement_profile_ref: None,
        placement_profile_digest: None,
        launch: placement_contract::Launch {
            argv: arguments.collect::<Result<_, _>>()?,
            stdin_eof: launch.stdin_text.is_some() && launch.session_end.is_none(),
            session_end: launch.session_end,
            stdin: launch.stdin_text,
            environment: environment.keys().cloned().collect(),
            working_directory_ref,
            home_ref,
            ..placement_contract::Launch::of(program(&launch.program)?)
        },
        configuration_digest: None,
        configuration_context: None,
        preferences: Preferences::default(),
        executable: launch.executable,
        gateway: None,
        resources,
        environment,
        environment_refs: BTreeMap::new(),
        projections: Vec::new(),
        session_ref,
        required_cleanup: launch.required_cleanup.unwrap_or(filled_in.required_cleanup),
        required_exit_observation: ExitObservation::Independent,
        timeouts: launch.timeouts,
        options: PreparerOptions::default(),
        supervision: Supervision { window, ..launch.supervision },
    };
    Ok(request.checked().map_err(Refusal::from)?)
}

/// Names the directory that stands in the way of a launch which was never recorded.
pub(crate) fn check_directories(request: &LaunchRequest, snapshot: &Snapshot) -> Result<(), Error> {
    for grant in &request.resources {
        let Some(root) = snapshot.root(&grant.root_ref) else { continue };
        if let Err(rule) = placement_paths::resolve_directory(&root.directory) {
            return Err(invalid(format!("directory {:?}: {rule}", root.directory)));
        }
    }
    Ok(())
}

fn fresh_id(now: &Timestamp) -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| Refusal::new(Code::Internal, "the system gave no random bytes"))?;
    let now_ms = now.unix_ms().cast_unsigned();
    bytes[..6].copy_from_slice(&now_ms.to_be_bytes()[2..]);
    Ok(ulid::Ulid::from_bytes(bytes).to_string())
}

fn grants(
    launch: &Launch,
    snapshot: &mut Snapshot,
) -> Result<(Vec<ResourceGrant>, Option<ResourceName>), Error> {
    let mut resources = Vec::new();
    let mut first_written = None;
    for (path, access) in &launch.directories {
        let name = grant(&mut resources, path, *access, snapshot)?;
        if *access == Access::Write && first_written.is_none() {
            first_written = Some(name);
        }
    }
    let working = match &launch.working_directory {
        Some(path) => Some(grant(&mut resources, path, Access::Read, snapshot)?),
        None => first_written,
    };
    Ok((resources, working))
}

/// Adds a grant, or widens the one that the directory has already.
fn grant(
    resources: &mut Vec<ResourceGrant>,
    path: &Utf8Path,
    access: Access,
    snapshot: &mut Snapshot,
) -> Result<ResourceName, Error> {
    let root_ref = snapshot.admit_named(absolute(path)?, access).map_err(|refusal| Refusal {
        message: format!("directory {path:?}: {}", refusal.message),
        ..refusal
    })?;
    if let Some(known) = resources.iter_mut().find(|known| known.root_ref == root_ref) {
        known.access = known.access.max(access);
        return Ok(known.name.clone());
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
}

fn session(name: &str) -> Result<SessionRef, Error> {
    SessionRef::parse(name).map_err(|rule| invalid(format!("the session {rule}")))
}

/// The grant on the retained home of the launch's session.
fn session_home() -> ResourceGrant {
    ResourceGrant {
        name: ResourceName::parse("home").expect("a short ASCII name is an id"),
        grant_ref: GrantRef::parse(SESSION_ROOT).expect("a short ASCII name is an id"),
        root_ref: RootRef::parse(SESSION_ROOT).expect("a short ASCII name is an id"),
        subpath: Subpath::default(),
        access: Access::Write,
        purpose: Purpose::Session,
    }
}

/// Makes the window of a launch. A recorded one stands: whoever follows it has another terminal, which
/// does not make it another launch.
fn window(
    asked: Option<(u16, u16, String)>,
    recorded: Option<Window>,
) -> Result<Option<Window>, Error> {
    let Some((columns, rows, term)) = asked else { return Ok(None) };
    if recorded.is_some() {
        return Ok(recorded);
    }
    let size = WindowSize::new(columns, rows)
        .ok_or_else(|| invalid("a window has 1 to 1000 columns and 1 to 500 rows".to_owned()))?;
    let window = Window::new(size, &term).ok_or_else(|| {
        invalid("the kind of terminal must be 1 to 64 printable ASCII characters".to_owned())
    })?;
    Ok(Some(window))
}

/// Takes a path from the current directory; `..` is resolved where the path exists.
fn absolute(path: &Utf8Path) -> Result<Utf8PathBuf, Error> {
    let not_found = || invalid(format!("{path:?} is empty or the current directory is gone"));
    let full = camino::absolute_utf8(path).map_err(|_| not_found())?;
    let plain: Utf8PathBuf = full.components().collect();
    if plain.components().any(|part| part == camino::Utf8Component::ParentDir) {
        return Ok(plain.canonicalize_utf8().unwrap_or(plain));
    }
    Ok(plain)
}

/// Takes a relative path with a slash in it from the current directory.
fn program(text: &str) -> Result<Argument, Error> {
    if text.contains('/') && !text.starts_with('/') {
        return argument("program", absolute(Utf8Path::new(text))?.as_str());
    }
    argument("program", text)
}

fn argument(what: &str, text: &str) -> Result<Argument, Error> {
    Argument::parse(text).ok_or_else(|| {
        invalid(format!("the {what} must be at most {ARGUMENT_BYTES_MAX} bytes without NUL"))
    })
}

fn environment(
    values: BTreeMap<String, String>,
) -> Result<BTreeMap<EnvironmentName, String>, Error> {
    let mut environment = BTreeMap::new();
    for (name, value) in values {
        let name = EnvironmentName::parse(&name).ok_or_else(|| {
            invalid(format!("environment name {name:?} must be of A-Z, 0-9 and underscore"))
        })?;
        environment.insert(name, value);
    }
    Ok(environment)
}

fn invalid(message: String) -> Error {
    Refusal::new(Code::Invalid, message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> OwnerId {
        OwnerId::parse("local:test").unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::from_unix_ms(1_800_000_000_000)
    }

    fn made(launch: Launch) -> Result<(LaunchRequest, Snapshot), Error> {
        let mut snapshot = Snapshot::embedded();
        let names = Names::of(&owner(), launch.key.as_deref(), &now())?;
        let filled_in = FilledIn::of_host(&snapshot, CleanupScope::ContainedTree);
        let request = request(launch, names, &owner(), filled_in, &mut snapshot)?;
        Ok((request, snapshot))
    }

    #[test]
    fn the_same_launch_with_a_key_is_the_same_request() {
        let launch = || Launch::program("sh").args(["-c", "true"]).write("/srv/gone").key("k");
        let (one, two) = (made(launch()).unwrap().0, made(launch()).unwrap().0);
        assert_eq!(one.digest(), two.digest());
        assert_eq!(one.action_id.as_str(), one.attempt_id.as_str());
    }

    #[test]
    fn without_a_key_every_launch_is_its_own() {
        let launch = || Launch::program("true");
        let (one, two) = (made(launch()).unwrap().0, made(launch()).unwrap().0);
        assert_ne!(one.attempt_id, two.attempt_id);
        assert_eq!(one.idempotency_key.as_str(), one.attempt_id.as_str());
    }

    #[test]
    fn another_owner_with_the_same_key_is_another_attempt() {
        let other = OwnerId::parse("local:other").unwrap();
        let one = Names::of(&owner(), Some("k"), &now()).unwrap();
        assert_ne!(one.attempt, Names::of(&other, Some("k"), &now()).unwrap().attempt);
    }

    #[test]
    fn the_first_written_directory_is_the_working_directory() {
        let launch = Launch::program("true").read("/srv/data").write("/srv/one").write("/srv/two");
        let (request, snapshot) = made(launch).unwrap();
        let name = request.launch.working_directory_ref.unwrap();
        let grant = request.resources.iter().find(|grant| grant.name == name).unwrap();
        assert_eq!(snapshot.root(&grant.root_ref).unwrap().directory, "/srv/one");
    }

    #[test]
    fn a_directory_named_twice_is_one_grant_with_the_wider_access() {
        let (request, _) = made(Launch::program("true").write("/srv/./a/").cwd("/srv/a")).unwrap();
        assert_eq!(request.resources.len(), 1);
        assert_eq!(request.resources[0].access, Access::Write);
    }

    #[test]
    fn relative_paths_are_taken_from_the_current_directory() {
        let (request, snapshot) = made(Launch::program("./tool").write(".")).unwrap();
        let here = Utf8PathBuf::from_path_buf(std::env::current_dir().unwrap()).unwrap();
        assert_eq!(request.launch.executable.as_str(), here.join("tool"));
        assert_eq!(snapshot.admitted_roots()[0].directory, here);
    }

    #[test]
    fn a_missing_directory_is_named() {
        let (request, snapshot) = made(Launch::program("true").write("/nowhere/at/all")).unwrap();
        let error = check_directories(&request, &snapshot).unwrap_err();
        assert_eq!(error.code(), Code::Invalid);
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    }

    #[test]
    fn a_session_is_its_own_home_and_another_launch_than_without() {
        let launch = || Launch::program("true").write("/srv/a").key("k");
        let (request, _) = made(launch().session("issue-12")).unwrap();
        assert_eq!(request.retained_session().map(SessionRef::as_str), Some("issue-12"));
        assert_eq!(request.resources.len(), 2);
        assert_ne!(request.digest(), made(launch()).unwrap().0.digest());
        let patient = launch().session("issue-12").wait_session(std::time::Duration::from_secs(1));
        assert_eq!(request.digest(), made(patient).unwrap().0.digest());
    }

    #[test]
    fn a_recorded_window_stands() {
        let launch = |columns| Launch::program("sh").key("k").window(columns, 24, "xterm");
        let (first, mut snapshot) = made(launch(80)).unwrap();
        let names = Names::of(&owner(), Some("k"), &now()).unwrap();
        let recorded = FilledIn::of_recorded(first.clone());
        let again = request(launch(100), names, &owner(), recorded, &mut snapshot).unwrap();
        assert_eq!(again.digest(), first.digest());
        assert_ne!(made(launch(100)).unwrap().0.digest(), first.digest());
    }

    #[test]
    fn a_window_out_of_bounds_is_refused() {
        for (columns, rows, term) in [(0, 24, "xterm"), (80, 501, "xterm"), (80, 24, "a\u{1b}b")] {
            let error = made(Launch::program("sh").window(columns, rows, term)).unwrap_err();
            assert_eq!(error.code(), Code::Invalid);
        }
    }

    #[test]
    fn a_bad_name_or_key_is_refused() {
        for launch in [
            Launch::program("true").env("lower", "x"),
            Launch::program("true").key(""),
            Launch::program("true").session(""),
            Launch::program("true").session("two\nlines"),
            Launch::program("a\0b"),
            Launch::program(""),
        ] {
            assert_eq!(made(launch).unwrap_err().code(), Code::Invalid);
        }
    }
}
