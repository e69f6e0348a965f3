//! The ends of a window: a stop, a signal, a lost terminal, a lost runner.

use crate::seat::Seat;
use crate::{assert_in_order, in_window, the_attempt, world};
use placement::{AttemptId, CleanupScope, ExecutionState, Exit};
use placement_testkit::wait_until;
use placement_world::identity::Signal;
use placement_world::{Known, PATIENCE, World};

/// Goes on for ever, whatever becomes of its terminal.
const FOREVER: &str = "trap '' HUP; echo ready; while :; do sleep 0.01; done";

/// The same, and says its size whenever it is told to paint.
const PAINTER: &str = "trap 'set -- $(stty size); echo painted $2 $1' WINCH
    echo ready; while :; do sleep 0.01; done";

#[track_caller]
fn wait_until_ended(world: &World, id: &AttemptId) {
    wait_until(PATIENCE, "the end of the attempt", || {
        let attempt = world.host().attempt(id).unwrap();
        attempt.execution_state == ExecutionState::Exited && attempt.runner.is_none()
    });
}

#[test]
fn a_stop_from_elsewhere_ends_it_and_gives_the_terminal_back() {
    let world = world();
    let seat = Seat::new(80, 24);
    let before = seat.settings();
    let mut window = seat.start(&world.program(), &["window", "--", "/bin/sh", "-c", FOREVER]);
    seat.wait_for("ready\r\n");
    let id = the_attempt(&world);
    assert_eq!(world.program().run(["stop", id.as_str()]).code, 0);
    assert_eq!(window.code(), 128 + 15, "{}", seat.said());
    assert_eq!(seat.settings(), before);
    assert_in_order(&world, &id, &["stop.requested", "signal.term", "child.exited"]);
    world.assert_nothing_left(&id);
}

#[test]
fn a_stop_is_recorded_before_the_program_hears_of_it() {
    let world = world();
    let binary = env!("CARGO_BIN_EXE_placement");
    let (root, owner) = (world.root(), placement_world::OWNER);
    let evidence = format!("{binary} --root {root} --owner {owner} evidence $PLACEMENT_ATTEMPT_ID");
    let script =
        format!("trap '{evidence} >heard; exit 0' TERM; : >ready; while :; do sleep 0.01; done");
    let attempt = world.launch(in_window(&script));
    let id = attempt.id().clone();
    world.wait_for_file("ready");
    attempt.stop().unwrap();
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 0 }), "{}", world.told(&id));
    let heard = std::fs::read_to_string(world.work().join("heard")).unwrap();
    assert!(heard.contains("stop.requested"), "{heard}");
}

#[test]
fn a_signal_to_the_host_stops_it_and_gives_the_terminal_back() {
    for signal in [Signal::Term, Signal::Int, Signal::Quit] {
        let world = world();
        let seat = Seat::new(80, 24);
        let before = seat.settings();
        let mut window = seat.start(&world.program(), &["window", "--", "/bin/sh", "-c", FOREVER]);
        seat.wait_for("ready\r\n");
        seat.wait_until_raw();
        Known::of(window.pid()).signal(signal);
        assert_eq!(window.code(), 128 + 15, "{}: {}", signal.name(), seat.said());
        assert_eq!(seat.settings(), before, "{}", signal.name());
        world.assert_nothing_left(&the_attempt(&world));
    }
}

#[test]
fn a_host_that_is_suspended_gives_the_terminal_back_until_it_goes_on() {
    let world = world();
    let seat = Seat::new(80, 24);
    let before = seat.settings();
    let options = ["window", "--", "/bin/sh", "-c", PAINTER];
    // A shell that looks after its jobs: what is suspended is its to continue.
    let shell = "set -m; \"$@\"; echo suspended; while [ ! -e go ]; do sleep 0.01; done; fg";
    let mut window = seat.start_under(&world.program(), &options, shell);
    seat.wait_for("ready\r\n");
    seat.wait_until_raw();
    let host = window.only_child();
    nix::sys::signal::kill(host, nix::sys::signal::Signal::SIGTSTP).unwrap();
    seat.wait_for("suspended\r\n");
    assert_eq!(seat.settings(), before);
    let id = the_attempt(&world);
    assert_eq!(world.runner(&id).execution, ExecutionState::Running, "its program goes on");
    assert!(!seat.said().contains("painted"));
    std::fs::write(world.work().join("go"), "").unwrap();
    seat.wait_until_raw();
    seat.wait_for("painted 80 24\r\n");
    assert_eq!(world.program().run(["stop", id.as_str()]).code, 0);
    assert_eq!(window.code(), 128 + 15, "{}", seat.said());
    assert_eq!(seat.settings(), before);
    world.assert_nothing_left(&id);
}

#[test]
fn a_host_that_goes_on_after_a_stop_takes_the_terminal_again() {
    let world = world();
    let seat = Seat::new(80, 24);
    let before = seat.settings();
    let mut window = seat.start(&world.program(), &["window", "--", "/bin/sh", "-c", PAINTER]);
    seat.wait_for("ready\r\n");
    seat.wait_until_raw();
    let host = Known::of(window.pid());
    host.signal(Signal::Stop);
    // Nobody hears of this stop; whoever made it gives the terminal back, as shells do.
    seat.give_back();
    assert_eq!(seat.settings(), before);
    host.signal(Signal::Cont);
    seat.wait_until_raw();
    seat.wait_for("painted 80 24\r\n");
    host.signal(Signal::Term);
    assert_eq!(window.code(), 128 + 15, "{}", seat.said());
    assert_eq!(seat.settings(), before);
    world.assert_nothing_left(&the_attempt(&world));
}

#[test]
fn a_suspension_where_no_shell_continues_anybody_stops_nothing() {
    let world = world();
    let seat = Seat::new(80, 24);
    let mut window = seat.start(&world.program(), &["window", "--", "/bin/sh", "-c", PAINTER]);
    seat.wait_for("ready\r\n");
    seat.wait_until_raw();
    let host = i32::try_from(window.pid()).unwrap();
    let host = nix::unistd::Pid::from_raw(host);
    nix::sys::signal::kill(host, nix::sys::signal::Signal::SIGTSTP).unwrap();
    // It leads its session, so the kernel stops it for no suspension; it paints and goes on.
    seat.wait_for("painted 80 24\r\n");
    seat.wait_until_raw();
    Known::of(window.pid()).signal(Signal::Term);
    assert_eq!(window.code(), 128 + 15, "{}", seat.said());
}

#[test]
fn the_loss_of_the_runner_gives_the_terminal_back() {
    let world = world();
    let seat = Seat::new(80, 24);
    let before = seat.settings();
    let options = ["window", "--mechanism", "subreaper", "--", "/bin/sh", "-c", FOREVER];
    let mut window = seat.start(&world.program(), &options);
    seat.wait_for("ready\r\n");
    seat.wait_until_raw();
    let id = the_attempt(&world);
    Known::of(world.runner_pid(&id)).kill();
    assert_eq!(window.code(), 120, "{}", seat.said());
    assert_eq!(seat.settings(), before);
    world.program().run(["stop", "--force", id.as_str()]);
}

#[test]
fn a_terminal_that_is_closed_is_a_lost_host() {
    let world = world();
    let mut seat = Seat::new(80, 24);
    let mut window = seat.start(&world.program(), &["window", "--", "/bin/sh", "-c", FOREVER]);
    seat.wait_for("ready\r\n");
    let id = the_attempt(&world);
    seat.hang_up();
    assert_eq!(window.code(), 129);
    wait_until_ended(&world, &id);
    assert_in_order(
        &world,
        &id,
        &["host.lost", "stop.requested", "signal.term", "child.exited", "tree.gone"],
    );
    world.program().run(["cleanup", id.as_str()]);
    world.assert_nothing_left(&id);
}

#[test]
fn a_window_that_outlives_its_host_goes_on_without_a_terminal() {
    let world = world();
    let mut seat = Seat::new(80, 24);
    let options = ["window", "--on-host-loss", "keep", "--", "/bin/sh", "-c", FOREVER];
    let mut window = seat.start(&world.program(), &options);
    seat.wait_for("ready\r\n");
    let id = the_attempt(&world);
    seat.hang_up();
    assert_eq!(window.code(), 129);
    wait_until(PATIENCE, "the loss of the host", || world.kinds(&id).contains(&"host.lost"));
    assert_eq!(world.runner(&id).execution, ExecutionState::Running);
    world.program().run(["stop", "--force", id.as_str()]);
}

#[test]
fn a_window_leaves_nothing_whatever_contains_it() {
    let world = world();
    // One that left the session, and one in a job of its own; both hold the terminal.
    let script = "set -m; setsid sleep 600 & sleep 600 & echo up; exit 5";
    let trees = world.mechanisms().into_iter().map(|it| in_window(script).mechanism(it));
    for launch in trees {
        let attempt = world.launch(launch);
        let id = attempt.id().clone();
        assert_eq!(world.text(&attempt).stdout, "up\r\n");
        let end = attempt.finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code: 5 }), "{}", world.told(&id));
        assert!(world.kinds(&id).contains(&"leftovers.stopped"), "{}", world.told(&id));
        assert!(!world.kinds(&id).contains(&"output.drain_elapsed"), "{}", world.told(&id));
        world.assert_clean(&end);
    }
}

#[test]
fn a_window_whose_group_is_cleaned_leaves_nothing_of_it() {
    let world = world();
    let script = "sleep 600 & echo up; while [ ! -e go ]; do sleep 0.01; done; exit 5";
    let attempt = world.launch(in_window(script).require(CleanupScope::ProcessGroup));
    let id = attempt.id().clone();
    assert_eq!(world.host().cleanup(&id).unwrap_err().code(), placement::Code::Conflict);
    std::fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(world.text(&attempt).stdout, "up\r\n");
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 5 }), "{}", world.told(&id));
    assert!(world.kinds(&id).contains(&"group.gone"), "{}", world.told(&id));
    world.assert_clean(&end);
}
