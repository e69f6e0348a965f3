use crate::IfUncertain::Leave;
use crate::list::Listed;
use crate::testing::*;
use crate::{NotPrepared, Service};
use camino::Utf8PathBuf;
use placement_contract::{
    Access, CleanupScope, CleanupState, Code, EvidenceKind, ExecutionState, GrantRef,
    LaunchRequest, Purpose, ResourceGrant, ResourceName, RootRef, SessionRef, Subpath,
};
use placement_homes::SessionKey;
use placement_policy::{SESSION_ROOT, Snapshot};
use placement_protocol::StopMode::Cooperative;
use placement_store::{Draft, Fields};
use std::ops::ControlFlow;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// A request that goes on with a session.
fn asked(id: &str, session: &str) -> LaunchRequest {
    let mut request = request(id, id);
    let home = ResourceName::parse("home").unwrap();
    request.launch.home_ref = Some(home.clone());
    request.session_ref = SessionRef::parse(session).ok();
    request.resources.push(ResourceGrant {
        name: home,
        grant_ref: GrantRef::parse("g").unwrap(),
        root_ref: RootRef::parse(SESSION_ROOT).unwrap(),
        subpath: Subpath::default(),
        access: Access::Write,
        purpose: Purpose::Session,
    });
    request
}

fn key(session: &str) -> SessionKey {
    SessionKey::of(&owner(), &SessionRef::parse(session).unwrap())
}

fn home(world: &World, session: &str) -> Utf8PathBuf {
    world.service.inner.root.session_home_path(&key(session))
}

fn count(service: &Service) -> usize {
    service.list(Listed::All).unwrap().attempts.len()
}

/// Lets an attempt go its whole way, with its cleanup.
fn complete(world: &World, id: &str) {
    let id = attempt(id);
    let mut runner = FakeRunner::claim(world, &id);
    runner.directory.create_home().unwrap();
    runner.run(world, &gone_process());
    let rows = [Draft::exited(None), Draft::new(EvidenceKind::RunnerFinished, "all was sent")];
    world.record(&id, &rows, &Fields::default());
    runner.die();
    world.service.cleanup(&id).unwrap();
}

#[test]
fn an_intent_with_a_session_makes_nothing_on_disk() {
    let world = World::new();
    let prepared = world.service.prepare(&asked("a", "s")).unwrap();
    assert_eq!(prepared.session_ref, SessionRef::parse("s").ok());
    assert!(!world.root.join("sessions").exists());
    let grants = world.row(&attempt("a")).grants::<placement_resources::ResolvedGrant>().unwrap();
    assert_eq!(grants[0].directory, home(&world, "s"));
}

#[test]
fn the_second_is_refused_until_the_first_is_cleaned_up_and_is_not_stored() {
    let world = World::new();
    world.prepare(&asked("a", "s"));
    let refused = refusal(world.service.prepare(&asked("b", "s")));
    assert_eq!(refused.code, Code::Conflict);
    assert!(refused.message.starts_with("session \"s\" is held by attempt a (intended, recorded "));
    assert_eq!(refused.hint(), "stop it, or wait with --wait-session");
    assert_eq!(count(&world.service), 1);
    complete(&world, "a");
    world.prepare(&asked("b", "s"));
}

#[test]
fn of_two_at_once_one_gets_the_session_and_the_other_is_not_stored() {
    let world = World::new();
    let barrier = Barrier::new(2);
    let got: Vec<bool> = std::thread::scope(|scope| {
        let tries = ["a", "b"].map(|id| {
            let (world, barrier) = (&world, &barrier);
            scope.spawn(move || {
                barrier.wait();
                match world.service.prepare(&asked(id, "s")) {
                    Ok(_) => true,
                    Err(refused) => {
                        assert_eq!(refused.code, Code::Conflict, "{refused}");
                        false
                    }
                }
            })
        });
        tries.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!((got.iter().filter(|got| **got).count(), count(&world.service)), (1, 1));
}

#[test]
fn two_that_are_the_same_are_one_attempt() {
    let world = World::new();
    let barrier = Barrier::new(2);
    let ids: Vec<_> = std::thread::scope(|scope| {
        let tries = [(), ()].map(|()| {
            let (world, barrier) = (&world, &barrier);
            scope.spawn(move || {
                barrier.wait();
                world.service.prepare(&asked("a", "s")).unwrap().attempt_id
            })
        });
        tries.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(ids, [attempt("a"), attempt("a")]);
    assert_eq!(world.row(&attempt("a")).evidence_count, 1);
}

#[test]
fn another_owner_has_a_session_of_the_name_for_itself() {
    let world = World::new();
    world.prepare(&asked("a", "s"));
    let other = world.another("local:other");
    let request = LaunchRequest { owner_id: other.owner().clone(), ..asked("b", "s") };
    other.prepare(&request).unwrap();
    assert_ne!(other.home_of(&request), home(&world, "s"));
}

#[test]
fn a_stop_before_the_start_lets_go_of_the_session_without_touching_it() {
    for scope in [CleanupScope::DirectProcess, CleanupScope::ProcessGroup] {
        let world = World::new();
        let kept = world.service.inner.root.session_home(&key("s")).unwrap().path().join("kept");
        std::fs::write(&kept, "by the one before").unwrap();
        world.prepare(&LaunchRequest { required_cleanup: scope, ..asked("a", "s") });
        let id = attempt("a");
        for _ in 0..2 {
            let stopped = world.service.stop(&id, Cooperative, Leave).unwrap();
            assert_eq!(stopped.execution_state, ExecutionState::Exited);
            assert_eq!(stopped.cleanup_state, CleanupState::Complete);
            assert_eq!((stopped.evidence_count, stopped.runner), (2, None));
        }
        let late = world.service.start(&id, &recipient("late")).unwrap();
        assert_eq!(late.attempt.execution_state, ExecutionState::Exited);
        assert!(late.streams.is_none());
        assert!(!world.root.join("attempts").exists());
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "by the one before");
        world.prepare(&asked("b", "s"));
    }
}

#[test]
fn no_cleanup_and_no_pruning_removes_the_home_of_a_session() {
    let world = World::new();
    let kept = world.service.inner.root.session_home(&key("s")).unwrap().path().join("kept");
    std::fs::write(&kept, "x").unwrap();
    world.prepare(&asked("a", "s"));
    complete(&world, "a");
    assert!(kept.is_file());
    let pruning = world.service.prune(Duration::ZERO).unwrap();
    assert_eq!(pruning.pruned, [attempt("a")]);
    assert!(kept.is_file());
    let receipt = world.service.recorded(&attempt("a")).unwrap();
    assert_eq!(receipt.session_ref, SessionRef::parse("s").ok());
}

#[test]
fn a_session_is_never_a_directory_of_the_callers() {
    let world = World::new();
    let project = world.root.join("project");
    std::fs::create_dir(&project).unwrap();
    let root = world.service.change_snapshot(|host| host.admit(&project, Access::Write)).unwrap();
    let mut request = asked("a", "s");
    request.resources[0].root_ref = root;
    let refused = refusal(world.service.prepare(&request));
    assert_eq!(refused.code, Code::Forbidden);
    assert!(refused.hint().contains(SESSION_ROOT), "{refused}");
    assert_eq!(count(&world.service), 0);
}

#[test]
fn a_session_without_a_home_is_invalid() {
    let world = World::new();
    let mut request = asked("a", "s");
    request.launch.home_ref = None;
    let refused = refusal(world.service.prepare(&request));
    assert_eq!(refused.code, Code::Invalid);
    assert!(refused.message.starts_with("session_ref: needs launch.home_ref"), "{refused}");
}

#[test]
fn a_link_in_the_place_of_a_sessions_home_is_refused_and_nothing_is_recorded() {
    for up in [0, 1] {
        let world = World::new();
        let outside = world.root.join("outside");
        std::fs::create_dir(&outside).unwrap();
        let home = world.service.inner.root.session_home(&key("s")).unwrap().path().to_owned();
        std::fs::remove_dir(&home).unwrap();
        let place = home.ancestors().nth(up).unwrap();
        if up == 1 {
            std::fs::remove_dir(place).unwrap();
        }
        std::os::unix::fs::symlink(&outside, place).unwrap();
        let refused = refusal(world.service.prepare(&asked("a", "s")));
        assert_eq!(refused.code, Code::Unavailable);
        assert!(refused.message.contains("symbolic link"), "{refused}");
        assert!(refused.hint().contains(home.as_str()), "{refused}");
        assert_eq!(count(&world.service), 0);
        assert_eq!(outside.read_dir_utf8().unwrap().count(), 0);
    }
}

#[test]
fn the_status_says_whose_home_it_is() {
    let world = World::new();
    world.prepare(&asked("a", "s"));
    world.prepare(&request("b", "b"));
    assert_eq!(world.service.status(&attempt("a")).unwrap().private_home, Some(true));
    assert_eq!(world.service.status(&attempt("b")).unwrap().private_home, None);
}

#[test]
fn a_home_from_elsewhere_cannot_be_told() {
    let mut request = asked("a", "s");
    let name = placement_contract::EnvironmentName::parse("HOME").unwrap();
    request.environment_refs.insert(name, placement_contract::Id::parse("odd").unwrap());
    let refused = crate::session::private_home(&request).unwrap_err();
    assert_eq!(refused.code, Code::Storage);
}

#[test]
fn the_home_of_a_session_is_no_grant_that_a_host_takes_back() {
    let world = World::new();
    world.prepare(&asked("a", "s"));
    world.service.change_snapshot(|host| *host = Snapshot::embedded().with_listed_roots_only());
    let refused = refusal(world.service.stop_revoked(&attempt("a")));
    assert_eq!(refused.message, "every grant of the attempt holds");
}

#[test]
fn who_waits_is_shown_the_holder_and_goes_on_when_it_lets_go() {
    let world = World::new();
    world.prepare(&asked("a", "s"));
    let held = world.service.try_prepare(&asked("b", "s")).unwrap_err();
    let NotPrepared::SessionHeld(holder) = held else { panic!("{held}") };
    let mut looks = 0;
    let far = Instant::now() + Duration::from_mins(1);
    let waited = world.service.await_session(&holder, far, |seen| {
        assert_eq!(seen.attempt_id, attempt("a"));
        looks += 1;
        if looks == 2 {
            world.service.stop(&attempt("a"), Cooperative, Leave).unwrap();
        }
        assert!(looks <= 2, "it was let go of");
        ControlFlow::Continue(())
    });
    waited.unwrap();
    assert_eq!(looks, 2);
    world.prepare(&asked("b", "s"));
}

#[test]
fn a_wait_ends_at_its_deadline_and_by_a_break() {
    let world = World::new();
    world.prepare(&asked("a", "s"));
    let held = world.service.try_prepare(&asked("b", "s")).unwrap_err();
    let NotPrepared::SessionHeld(holder) = held else { panic!("{held}") };
    let soon = Instant::now() + Duration::from_millis(30);
    let go_on = |_: &crate::SessionHolder| ControlFlow::Continue(());
    world.service.await_session(&holder, soon, go_on).unwrap();
    assert!(Instant::now() >= soon);
    let far = Instant::now() + Duration::from_mins(1);
    world.service.await_session(&holder, far, |_| ControlFlow::Break(())).unwrap();
    assert!(Instant::now() < far);
}
