use crate::list::Listed;
use crate::testing::*;
use camino::Utf8Path;
use placement_contract::{
    Access, CleanupScope, CleanupState, Code, EnvironmentName, ExecutionState, ExitObservation,
    GrantRef, Id, LaunchRequest, Mechanism, Purpose, ResourceGrant, ResourceName, RootRef, Subpath,
};
use placement_policy::Snapshot;

fn nothing_is_recorded(world: &World) {
    assert!(world.service.list(Listed::All).unwrap().attempts.is_empty());
}

pub(super) fn grant(root_ref: RootRef, access: Access) -> ResourceGrant {
    ResourceGrant {
        name: ResourceName::parse("project").unwrap(),
        grant_ref: GrantRef::parse("g").unwrap(),
        root_ref,
        subpath: Subpath::default(),
        access,
        purpose: Purpose::Project,
    }
}

fn with_root(world: &World, admitted: Access, asked: Access) -> LaunchRequest {
    let path = world.root.join("project");
    std::fs::create_dir(&path).unwrap();
    let root = world.service.change_snapshot(|snapshot| snapshot.admit(&path, admitted)).unwrap();
    LaunchRequest { resources: vec![grant(root, asked)], ..request("a", "k") }
}

#[test]
fn the_first_prepare_records_an_intent_and_nothing_else() {
    let world = World::new();
    let prepared = world.service.prepare(&request("a", "k")).unwrap();
    assert_eq!(prepared.execution_state, ExecutionState::Intended);
    assert_eq!(prepared.cleanup_state, CleanupState::Pending);
    assert_eq!(prepared.capability, CleanupScope::ContainedTree);
    assert_eq!((prepared.evidence_count, prepared.mechanism), (1, None));
    assert!(!world.root.join("attempts").exists(), "nothing outside the store");
}

#[test]
fn the_intent_says_what_the_attempt_gets() {
    let world = World::new();
    let tree = LaunchRequest { required_cleanup: CleanupScope::ContainedTree, ..request("a", "k") };
    assert_eq!(world.service.prepare(&tree).unwrap().mechanism, Some(Mechanism::Cgroup));
    assert_eq!(world.last_detail(&attempt("a")), "contained_tree (cgroup), independent exit");
    world.prepare(&request("b", "l"));
    assert_eq!(
        world.last_detail(&attempt("b")),
        "direct_process, independent exit; contained_tree measured"
    );
}

#[test]
fn the_same_request_again_is_answered_whatever_the_host_offers_by_now() {
    let world = World::new();
    let launch = with_root(&world, Access::Write, Access::Write);
    let first = world.service.prepare(&launch).unwrap();
    world.service.change_snapshot(|snapshot| *snapshot = Snapshot::embedded());
    *world.service.inner.capability.lock().unwrap() = None;
    assert_eq!(world.service.prepare(&launch).unwrap(), first);
}

#[test]
fn another_request_under_the_key_is_a_conflict() {
    let world = World::new();
    world.prepare(&request("a", "k"));
    let refused = refusal(world.service.prepare(&request("b", "k")));
    assert_eq!(refused.code, Code::Conflict);
    assert_eq!(refusal(world.service.recorded(&attempt("b"))).code, Code::NotFound);
}

#[test]
fn a_taken_attempt_id_is_one_conflict_whoever_owns_it() {
    let world = World::new();
    world.prepare(&request("a", "k"));
    let own = refusal(world.service.prepare(&request("a", "l")));
    let other = world.another("local:other");
    let foreign = LaunchRequest { owner_id: other.owner().clone(), ..request("a", "l") };
    let foreign = refusal(other.prepare(&foreign));
    assert_eq!((own.code, &own.message), (Code::Conflict, &foreign.message));
}

#[test]
fn another_owners_request_is_forbidden() {
    let world = World::new();
    let other = world.another("local:other");
    assert_eq!(refusal(other.prepare(&request("a", "k"))).code, Code::Forbidden);
    nothing_is_recorded(&world);
}

#[test]
fn a_root_that_is_not_admitted_is_forbidden() {
    let world = World::new();
    let root = RootRef::parse("dir:0").unwrap();
    let launch = LaunchRequest { resources: vec![grant(root, Access::Read)], ..request("a", "k") };
    assert_eq!(refusal(world.service.prepare(&launch)).code, Code::Forbidden);
    nothing_is_recorded(&world);
}

#[test]
fn writing_below_a_root_for_reading_is_forbidden_and_reading_is_not() {
    let world = World::new();
    let write = with_root(&world, Access::Read, Access::Write);
    assert_eq!(refusal(world.service.prepare(&write)).code, Code::Forbidden);
    nothing_is_recorded(&world);
    let mut read = write;
    read.resources[0].access = Access::Read;
    world.prepare(&read);
}

#[test]
fn a_name_of_placements_own_is_invalid() {
    let world = World::new();
    for name in ["HOME", "PATH", "TMPDIR", "PLACEMENT_ATTEMPT_ID"] {
        let mut launch = request("a", "k");
        launch.environment.insert(EnvironmentName::parse(name).unwrap(), "x".to_owned());
        assert_eq!(refusal(world.service.prepare(&launch)).code, Code::Invalid, "{name}");
    }
    nothing_is_recorded(&world);
}

#[test]
fn a_reference_into_the_hosts_environment_is_not_offered() {
    let world = World::new();
    let mut launch = request("a", "k");
    let name = EnvironmentName::parse("KEY").unwrap();
    launch.environment_refs.insert(name, Id::parse("vault:key").unwrap());
    assert_eq!(refusal(world.service.prepare(&launch)).code, Code::Unsupported);
    nothing_is_recorded(&world);
}

#[test]
fn another_profile_is_denied_and_a_stale_digest_a_conflict() {
    let world = World::new();
    let mut other = request("a", "k");
    other.profile_id = placement_contract::ProfileId::parse("other").unwrap();
    assert_eq!(refusal(world.service.prepare(&other)).code, Code::Denied);
    let mut stale = request("a", "k");
    stale.binding_digest = placement_contract::Digest::of_bytes(b"older");
    assert_eq!(refusal(world.service.prepare(&stale)).code, Code::Conflict);
    nothing_is_recorded(&world);
}

#[test]
fn a_tree_that_cannot_be_contained_leaves_nothing_behind() {
    let world = World::new();
    *world.service.inner.capability.lock().unwrap() = Some(report(&[]));
    let tree = LaunchRequest { required_cleanup: CleanupScope::ContainedTree, ..request("a", "k") };
    assert_eq!(refusal(world.service.prepare(&tree)).code, Code::UnsupportedCapability);
    nothing_is_recorded(&world);
}

#[test]
fn a_probe_that_cannot_be_started_or_does_not_answer_is_unavailable() {
    for program in ["/nowhere/placement-runner", "/bin/true"] {
        let world = World::with_runner(program);
        let refused = refusal(world.service.prepare(&request("a", "k")));
        assert_eq!(refused.code, Code::Unavailable, "{program}: {refused}");
        nothing_is_recorded(&world);
    }
}

#[test]
fn two_identical_prepares_at_once_are_one_attempt() {
    let world = World::new();
    let other = world.another("local:test");
    let launch = request("a", "k");
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| world.service.prepare(&launch).unwrap());
        (other.prepare(&launch).unwrap(), one.join().unwrap())
    });
    assert_eq!(one, two);
    assert_eq!(one.evidence_count, 1);
}

#[test]
fn a_root_open_to_others_is_refused_with_its_reason() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let open = world.root.join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = refusal(crate::Service::open(crate::ServiceConfig {
        root: Utf8Path::new(&open).to_owned(),
        owner: owner(),
        snapshot: Snapshot::embedded(),
        runner: crate::RunnerCommand::this_executable(),
        clock: world.service.inner.clock.clone(),
        temporary_base: None,
    }));
    assert_eq!(refused.code, Code::Invalid);
    assert!(refused.message.contains("0755"), "{refused}");
    assert!(!open.join("placement.db").exists());
}

/// A host whose runner cannot be measured and whose only policy is this one.
fn unmeasured(policy: &serde_json::Value) -> World {
    let world = World::with_runner("/nowhere/placement-runner");
    let rules = placement_contract::definition::LaunchPolicy::decode(policy.to_string().as_bytes());
    let mut definitions = placement_policy::Definitions::embedded();
    definitions.policies.insert(definitions.default_policy.clone(), rules.unwrap());
    let snapshot = Snapshot::new(definitions).unwrap();
    world.service.change_snapshot(|host| *host = snapshot);
    world
}

#[test]
fn a_policy_that_selects_another_placement_is_denied_before_anything_is_measured() {
    let world = unmeasured(&serde_json::json!({ "placement_binding": "docker" }));
    assert_eq!(refusal(world.service.prepare(&request("a", "k"))).code, Code::Denied);
    nothing_is_recorded(&world);
}

#[test]
fn another_placement_is_denied_before_anything_else() {
    let world = unmeasured(&serde_json::json!({}));
    let mut other = request("a", "k");
    other.placement_binding_ref = placement_contract::PlacementBindingRef::parse("docker").ok();
    other.placement_binding_digest = Some(placement_contract::Digest::of_bytes(b"x"));
    other.owner_id = placement_contract::OwnerId::parse("somebody").unwrap();
    assert_eq!(refusal(world.service.prepare(&other)).code, Code::Denied);
    nothing_is_recorded(&world);
}

#[test]
fn this_placement_is_admitted_by_its_binding_and_profile() {
    use placement_contract::definition::{NATIVE_BINDING, NATIVE_PROFILE};
    let world = World::new();
    let snapshot = world.service.snapshot();
    let binding = placement_contract::PlacementBindingRef::parse(NATIVE_BINDING).unwrap();
    let profile = placement_contract::PlacementProfileRef::parse(NATIVE_PROFILE).unwrap();
    let mut placed = request("a", "k");
    let measured = snapshot.placement_binding(&binding).unwrap();
    placed.placement_binding_digest = Some(measured.binding_digest.clone());
    placed.placement_profile_digest = snapshot.placement_profile_digest(&profile).cloned();
    placed.placement_binding_ref = Some(binding);
    placed.placement_profile_ref = Some(profile);
    world.prepare(&placed);
    let mut stale = LaunchRequest {
        placement_binding_digest: Some(placement_contract::Digest::of_bytes(b"older")),
        ..request("b", "l")
    };
    stale.placement_binding_ref = placed.placement_binding_ref;
    assert_eq!(refusal(world.service.prepare(&stale)).code, Code::Conflict);
}

#[test]
fn what_is_not_done_yet_is_refused_by_name() {
    let world = World::new();
    let mut launch = request("a", "k");
    launch.projections = vec![placement_contract::ProjectionId::parse("login").unwrap()];
    let refused = refusal(world.service.prepare(&launch));
    assert_eq!(refused.code, Code::Unsupported);
    assert_eq!(refused.message, "projections: is not offered by this version");
    nothing_is_recorded(&world);
}

#[test]
fn a_request_that_was_not_decoded_is_checked_all_the_same() {
    let world = World::new();
    let mut launch = request("a", "k");
    launch.owner_incarnation = 0;
    assert_eq!(refusal(world.service.prepare(&launch)).code, Code::Invalid);
    nothing_is_recorded(&world);
}

#[test]
fn a_conflict_of_a_key_names_the_attempt_that_has_it() {
    let world = World::new();
    let id = world.prepare(&request("a", "k"));
    let refused = refusal(world.service.prepare(&request("b", "k")));
    assert!(refused.hint().contains("placement show a"), "{}", refused.hint());
    world.service.stop(&id, crate::StopMode::Forced, crate::IfUncertain::Leave).unwrap();
    world.service.prune(std::time::Duration::ZERO).unwrap();
    let pruned = refusal(world.service.prepare(&request("b", "k")));
    assert_eq!((pruned.code, pruned.hint()), (Code::Conflict, refused.hint()));
}

/// The requests that the contract accepts, made ones of this host.
fn accepted_requests() -> impl Iterator<Item = (String, LaunchRequest)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/requests/accepted");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let launches = files.filter_map(|path| {
        let name = path.file_name()?.to_str()?.to_owned();
        name.starts_with("launch.").then(|| (name, std::fs::read(path).unwrap()))
    });
    launches.map(|(name, bytes)| {
        let asked = LaunchRequest::decode(&bytes).unwrap();
        let ours = request("a", "k");
        let request = LaunchRequest {
            idempotency_key: ours.idempotency_key,
            owner_id: ours.owner_id,
            placement_binding_ref: None,
            placement_binding_digest: None,
            ..asked
        };
        (name, request)
    })
}

#[test]
fn what_a_later_version_does_is_refused_by_name_and_leaves_nothing() {
    let world = World::new();
    let mut fields = std::collections::BTreeSet::new();
    for (name, launch) in accepted_requests() {
        let Some(later) = launch.not_offered() else { continue };
        let refused = refusal(world.service.prepare(&launch));
        assert_eq!((refused.code, &refused), (Code::Unsupported, &later), "{name}");
        fields.insert(refused.message);
    }
    assert!(fields.len() >= 6, "{fields:?}");
    nothing_is_recorded(&world);
}

#[test]
fn a_scope_and_an_exit_that_cannot_be_had_here_leave_nothing_behind() {
    let world = World::new();
    let mut weak = report(&[]);
    weak.capability = CleanupScope::DirectProcess;
    *world.service.inner.capability.lock().unwrap() = Some(weak.clone());
    let group = LaunchRequest { required_cleanup: CleanupScope::ProcessGroup, ..request("a", "k") };
    assert_eq!(refusal(world.service.prepare(&group)).code, Code::UnsupportedCapability);
    weak.exit_observation = ExitObservation::EofGated;
    *world.service.inner.capability.lock().unwrap() = Some(weak);
    let refused = refusal(world.service.prepare(&request("a", "k")));
    assert_eq!(refused.code, Code::UnsupportedCapability);
    nothing_is_recorded(&world);
    let gated =
        LaunchRequest { required_exit_observation: ExitObservation::EofGated, ..request("a", "k") };
    world.prepare(&gated);
}
