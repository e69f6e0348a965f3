//! Retained sessions, as whoever launches sees them.

use placement::{Code, Launch, Placement, SessionHolder, StopMode};
use placement_testkit::TempRoot;
use placement_world::{OWNER, PATIENCE, Program, Refused, Said, World, shell};
use serde_json::Value;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::sync::mpsc;
use std::time::Duration;

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_placement"))
}

/// One turn: says HOME and what the marker file has, and adds a line to it.
const TURN: &str =
    "echo \"$HOME\"; cat \"$HOME/marker\" 2>/dev/null; echo \"$1\" >> \"$HOME/marker\"";

#[track_caller]
fn turn(program: &Program, owner: &str, session: &str, word: &str) -> Said {
    let root = program.root();
    let arguments = ["--root", root.as_str(), "--owner", owner, "run", "--session", session, "--"];
    let words = ["/bin/sh", "-c", TURN, "sh", word];
    let mut command = program.bare_command(arguments.into_iter().chain(words));
    let said = placement_world::Running::start(&mut command).said();
    assert_eq!(said.code, 0, "{said:?}");
    said
}

#[test]
fn a_turn_finds_what_the_one_before_it_left() {
    let program = program();
    let first = turn(&program, OWNER, "s", "one");
    let (home, rest) = first.stdout.split_once('\n').unwrap();
    assert_eq!(rest, "");
    let second = turn(&program, OWNER, "s", "two");
    assert_eq!(second.stdout, format!("{home}\none\n"));
    let marker = std::fs::read_to_string(format!("{home}/marker")).unwrap();
    assert_eq!(marker, "one\ntwo\n");
    assert!(home.starts_with(program.root().join("sessions").as_str()), "{home}");
    program.assert_nothing_is_left();
}

#[test]
fn two_owners_of_one_name_never_meet() {
    let program = program();
    let one = turn(&program, OWNER, "s", "one");
    let other = turn(&program, "local:other", "s", "two");
    assert_eq!(other.stdout.lines().count(), 1, "{other:?}");
    assert_ne!(one.stdout, other.stdout);
}

#[test]
fn a_session_that_is_held_is_refused_by_its_holder() {
    let world = world();
    let holder = world.launch(shell("exec sleep 300").session("issue-12"));
    let started = world.host().attempt(holder.id()).unwrap().created_at;
    let said = world.program().run(["--json", "run", "--session", "issue-12", "--", "true"]);
    assert_eq!(said.code, 125);
    let refused = Refused::in_json(&said);
    let id = holder.id();
    assert_eq!(refused.code, "CONFLICT");
    let wanted =
        format!("session \"issue-12\" is held by attempt {id} (running, started {started})");
    assert_eq!(refused.message, wanted);
    let said = world.program().run(["run", "--session", "issue-12", "--", "true"]);
    let hint = "Stop it, or wait with --wait-session.";
    assert_eq!(said.stderr, format!("placement: CONFLICT: {wanted}. {hint}\n"));
    assert_eq!(world.host().attempts().all().unwrap().attempts.len(), 1);
    world.host().stop(holder.id(), StopMode::Forced).unwrap();
    world.assert_clean(&holder.finish().unwrap());
    assert_eq!(world.program().run(["run", "--session", "issue-12", "--", "true"]).code, 0);
}

#[test]
fn what_is_exited_and_not_cleaned_up_holds_it_and_the_hint_says_how_it_lets_go() {
    let world = world();
    let ended = world.launch(shell("exit 3").session("s"));
    let id = ended.id().clone();
    world.text(&ended);
    world.host().wait(&id, None).unwrap();
    let refused = world.host().launch(shell("true").session("s")).unwrap_err();
    assert_eq!(refused.code(), Code::Conflict);
    assert!(refused.to_string().contains("(exited, cleanup pending, started "), "{refused}");
    assert!(refused.hint().contains(&format!("placement cleanup {id}")), "{refused}");
    world.host().cleanup(&id).unwrap();
    world.assert_clean(&world.launch(shell("true").session("s")).finish().unwrap());
}

/// Launches with patience, and does something when the holder is shown first.
fn wait_for(
    host: &Placement,
    launch: &Launch,
    once: impl FnOnce(&SessionHolder) -> ControlFlow<()>,
) -> Result<placement::AttemptHandle, placement::Error> {
    let mut once = Some(once);
    host.launch_waiting(launch, |holder| match once.take() {
        Some(once) => once(holder),
        None => ControlFlow::Continue(()),
    })
}

#[test]
fn who_waits_gets_the_session_once_its_holder_is_cleaned_up() {
    let world = world();
    let holder = world.launch(shell("echo one > \"$HOME/marker\"; exec sleep 300").session("s"));
    let mut holder = Some(holder);
    let launch = shell("cat \"$HOME/marker\"").session("s").wait_session(Duration::from_mins(1));
    let next = wait_for(world.host(), &launch, |seen| {
        let holder = holder.take().unwrap();
        assert_eq!(seen.attempt_id, *holder.id());
        std::fs::write(world.directory().join("seen"), "").unwrap();
        world.host().stop(holder.id(), StopMode::Forced).unwrap();
        holder.finish().unwrap();
        ControlFlow::Continue(())
    });
    let next = next.unwrap();
    assert!(world.directory().join("seen").exists());
    assert_eq!(world.bytes(&next), b"one\n");
    world.assert_clean(&next.finish().unwrap());
}

#[test]
fn a_wait_is_bounded_and_given_up_on_demand() {
    let world = world();
    let holder = world.launch(shell("exec sleep 300").session("s"));
    let launch = |patience| shell("true").session("s").wait_session(patience);
    let refused = world.host().launch(launch(Duration::from_millis(20))).unwrap_err();
    assert_eq!(refused.code(), Code::Conflict);
    let far = launch(Duration::from_hours(1));
    let refused = wait_for(world.host(), &far, |_| ControlFlow::Break(())).unwrap_err();
    assert_eq!(refused.code(), Code::Conflict);
    assert_eq!(world.host().attempts().all().unwrap().attempts.len(), 1);
    world.host().stop(holder.id(), StopMode::Forced).unwrap();
    world.assert_clean(&holder.finish().unwrap());
}

#[test]
fn who_waits_keeps_no_other_launch_from_being_admitted() {
    let world = world();
    let holder = world.launch(shell("exec sleep 300").session("s"));
    let far = shell("true").session("s").wait_session(Duration::from_hours(1));
    let (host, work) = (world.host().clone(), world.work());
    let refused = wait_for(world.host(), &far, |_| {
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            // Together more than a host admits, so that all are taken out of its list in between.
            for number in 0..18 {
                let mut launch = shell("true");
                for part in 0..15 {
                    let directory = work.join(format!("{number}-{part}"));
                    std::fs::create_dir(&directory).unwrap();
                    launch = launch.read(directory);
                }
                host.launch(launch).unwrap().finish().unwrap();
            }
            tell.send(()).unwrap();
        });
        told.recv_timeout(PATIENCE).unwrap();
        ControlFlow::Break(())
    });
    assert_eq!(refused.unwrap_err().code(), Code::Conflict);
    world.host().stop(holder.id(), StopMode::Forced).unwrap();
    world.assert_clean(&holder.finish().unwrap());
}

#[test]
fn the_same_key_follows_the_holder_itself() {
    let world = world();
    let launch = || shell("echo out; exec sleep 300").session("s").key("k");
    let holder = world.launch(launch());
    let again = world.launch(launch());
    assert!(again.is_replay());
    assert_eq!(again.id(), holder.id());
    world.host().stop(holder.id(), StopMode::Forced).unwrap();
    world.assert_clean(&again.finish().unwrap());
}

#[test]
fn a_session_is_shown_where_attempts_are() {
    let world = world();
    let plain = world.launch(shell("exec sleep 300"));
    let said = world.program().run(["ps"]);
    assert!(!said.stdout.contains("SESSION"), "{said:?}");
    let holder = world.launch(shell("exec sleep 300").session("issue-12"));
    let said = world.program().run(["ps"]);
    assert!(said.stdout.lines().next().unwrap().contains("SESSION"), "{said:?}");
    assert_eq!(said.stdout.matches("issue-12").count(), 1, "{said:?}");
    let said = world.program().run(["show", holder.id().as_str()]);
    assert!(said.stdout.contains("session:"), "{said:?}");
    let said = world.program().run(["--json", "show", holder.id().as_str()]);
    let status: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(status["attempt"]["session_ref"], "issue-12");
    assert_eq!(status["private_home"], true);
    for attempt in [plain, holder] {
        world.host().stop(attempt.id(), StopMode::Forced).unwrap();
        attempt.finish().unwrap();
    }
}

#[test]
fn the_evidence_tells_of_the_home_and_a_pruning_leaves_it() {
    let world = world();
    let attempt = world.launch(shell("echo kept > \"$HOME/marker\"").session("s"));
    let id = attempt.id().clone();
    world.assert_clean(&attempt.finish().unwrap());
    let kinds = world.kinds(&id);
    let at = |kind| kinds.iter().position(|seen| *seen == kind).unwrap();
    assert!(at("home.created") < at("session.attached"), "{kinds:?}");
    assert_eq!(world.program().run(["prune", "--older-than", "0s"]).code, 0);
    let said = world.program().run(["show", id.as_str()]);
    assert!(said.stdout.contains("session:"), "{said:?}");
    let next = world.launch(shell("cat \"$HOME/marker\"").session("s"));
    assert_eq!(world.bytes(&next), b"kept\n");
    world.assert_clean(&next.finish().unwrap());
}

#[test]
fn what_a_program_puts_in_the_place_of_its_home_is_not_followed() {
    for replace in ["$HOME", "${HOME%/home}"] {
        let world = world();
        let outside = TempRoot::new();
        let script = format!(
            "cd /; rm -r \"{replace}\" && ln -s \"$1\" \"{replace}\"; mkdir -p \"$1/home\""
        );
        let launch = Launch::program("/bin/sh").args(["-c", &script, "sh"]);
        let ended = world.launch(launch.arg(outside.path().as_str()).session("s"));
        world.assert_clean(&ended.finish().unwrap());
        let said = world.program().run(["run", "--session", "s", "--", "touch", "x"]);
        assert_eq!(said.code, 125, "{said:?}");
        assert!(said.stderr.contains("symbolic link"), "{said:?}");
        let names: Vec<_> = outside.path().read_dir_utf8().unwrap().map(Result::unwrap).collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert_eq!(outside.join("home").read_dir_utf8().unwrap().count(), 0);
    }
}

#[test]
fn a_link_that_comes_after_the_admission_is_refused_by_the_runner() {
    let world = world();
    let outside = TempRoot::new();
    let stage = world.stage();
    let launched = world.launch(shell("echo \"$HOME\"").session("s"));
    let home = String::from_utf8(world.bytes(&launched)).unwrap();
    let request = stage.service().request(launched.id()).unwrap();
    world.assert_clean(&launched.finish().unwrap());
    let request = placement_world::contract::LaunchRequest {
        attempt_id: placement::AttemptId::parse("next").unwrap(),
        action_id: placement_world::contract::ActionId::parse("next").unwrap(),
        idempotency_key: placement_world::contract::IdempotencyKey::parse("next").unwrap(),
        ..request
    };
    stage.service().prepare(&request).unwrap();
    std::fs::remove_dir(home.trim_end()).unwrap();
    symlink(outside.path(), home.trim_end()).unwrap();
    let refused = stage.start(&request.attempt_id).unwrap_err();
    assert_eq!(refused.code, Code::Unavailable, "{refused}");
    let kinds = world.kinds(&request.attempt_id);
    assert!(kinds.contains(&"session.failed"), "{kinds:?}");
    assert!(kinds.contains(&"child.not_started"), "{kinds:?}");
    assert_eq!(outside.path().read_dir_utf8().unwrap().count(), 0);
    world.host().cleanup(&request.attempt_id).unwrap();
    world.assert_nothing_left(&request.attempt_id);
}
