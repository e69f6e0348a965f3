//! Taking a window over from another terminal, and watching one.

use crate::seat::Seat;
use crate::{in_window, the_attempt, world};
use placement::OnHostLoss;

/// Paints its size at the start and whenever it is told, until somebody types a line.
const PAINTER: &str = "trap 'stty size' WINCH; stty size; \
     until read -r line; do :; done; echo \"got $line\"; exit 8";

#[test]
fn another_terminal_takes_over_with_its_size() {
    let world = world();
    let (first_seat, second_seat) = (Seat::new(80, 24), Seat::new(100, 30));
    let (first_before, second_before) = (first_seat.settings(), second_seat.settings());
    let program = world.program();
    let script = "trap 'stty size' WINCH; stty size; while [ ! -e go ]; do sleep 0.01; done; \
                  read -r line; echo \"got $line\"; exit 8";
    let mut first = first_seat.start(&program, &["window", "--", "/bin/sh", "-c", script]);
    first_seat.wait_for("24 80\r\n");
    let id = the_attempt(&world);
    let mut second = second_seat.start(&program, &["attach", id.as_str()]);
    second_seat.wait_for("30 100\r\n");
    first_seat.wait_for("was taken over");
    std::fs::write(world.work().join("go"), "").unwrap();
    second_seat.type_in("mine\r");
    assert_eq!(second.code(), 8, "{}", second_seat.said());
    second_seat.wait_for("got mine\r\n");
    assert_eq!(first.code(), 8, "{}", first_seat.said());
    assert!(!first_seat.said().contains("got mine"), "{}", first_seat.said());
    assert_eq!(first_seat.settings(), first_before);
    assert_eq!(second_seat.settings(), second_before);
    world.assert_nothing_left(&id);
}

#[test]
fn a_terminal_of_the_same_size_has_the_program_paint_again() {
    let world = world();
    let (mut first_seat, second_seat) = (Seat::new(80, 24), Seat::new(80, 24));
    let program = world.program();
    let options = ["window", "--on-host-loss", "keep", "--", "/bin/sh", "-c", PAINTER];
    let mut first = first_seat.start(&program, &options);
    first_seat.wait_for("24 80\r\n");
    let id = the_attempt(&world);
    first_seat.hang_up();
    assert_eq!(first.code(), 129);
    let mut second = second_seat.start(&program, &["attach", id.as_str()]);
    second_seat.wait_for("24 80\r\n");
    second_seat.wait_until_raw();
    second_seat.type_in("x\r");
    assert_eq!(second.code(), 8, "{}", second_seat.said());
    world.assert_nothing_left(&id);
}

#[test]
fn a_window_without_a_terminal_gets_the_size_of_whoever_attaches() {
    let world = world();
    let script = "trap 'stty size' WINCH; : >ready; while :; do sleep 0.01; done";
    let attempt = world.launch(in_window(script).on_host_loss(OnHostLoss::Keep));
    world.wait_for_file("ready");
    let id = attempt.id().clone();
    let program = world.program();
    let mut seat = Seat::new(210, 59);
    let mut first = seat.start(&program, &["attach", id.as_str()]);
    seat.wait_for("59 210\r\n");
    for rows in [50, 51, 52, 53, 54] {
        seat.resize(200, rows);
    }
    seat.wait_for("54 200\r\n");
    seat.hang_up();
    assert_eq!(first.code(), 129);
    let seat = Seat::new(80, 24);
    let mut second = seat.start(&program, &["attach", id.as_str()]);
    seat.wait_for("24 80\r\n");
    seat.resize(65_535, 65_535);
    seat.wait_for("500 1000\r\n");
    seat.resize(0, 0);
    let last = |text: &str| text.ends_with("24 80\r\n");
    placement_testkit::wait_until(placement_world::PATIENCE, "the usual size", || {
        last(&seat.said())
    });
    assert_eq!(program.run(["stop", "--force", id.as_str()]).code, 0);
    assert_eq!(second.code(), 128 + 9, "{}", seat.said());
}

#[test]
fn an_observer_sees_the_bytes_and_takes_nothing_over() {
    let world = world();
    let seat = Seat::new(80, 24);
    let program = world.program();
    let script = "printf '\\033[1mbold\\033[0m\\n'; while [ ! -e go ]; do sleep 0.01; done; exit 9";
    let mut window = seat.start(&program, &["window", "--", "/bin/sh", "-c", script]);
    seat.wait_for("bold");
    let id = the_attempt(&world);
    let observer = program.start(["attach", "--observe", id.as_str()], std::process::Stdio::null());
    std::fs::write(world.work().join("go"), "").unwrap();
    let seen = observer.said();
    assert_eq!((seen.code, seen.stdout.as_str()), (9, "\u{1b}[1mbold\u{1b}[0m\r\n"), "{seen:?}");
    assert_eq!(window.code(), 9);
    assert_eq!(world.host().attempt(&id).unwrap().attachment_generation.number(), 1);
}
