//! What a person sees and types, and what the terminal is afterwards.

use crate::seat::Seat;
use crate::{the_attempt, world};

#[test]
fn the_size_is_set_before_the_program_runs() {
    let world = world();
    let seat = Seat::new(123, 45);
    let script =
        "stty size; echo $TERM; test -t 0 && test -t 1 && test -t 2 && : </dev/tty && exit 3";
    let mut window = seat.start(&world.program(), &["window", "--", "/bin/sh", "-c", script]);
    assert_eq!(window.code(), 3, "{}", seat.said());
    assert_eq!(seat.said(), "45 123\r\nxterm-test\r\n");
    world.assert_nothing_left(&the_attempt(&world));
}

#[test]
fn a_resize_reaches_the_program() {
    let world = world();
    let seat = Seat::new(80, 24);
    let script = "trap 'stty size; test $(stty size | cut -d\" \" -f1) = 34 && exit 0' WINCH; \
                  echo ready; while :; do sleep 0.01; done";
    let mut window = seat.start(&world.program(), &["window", "--", "/bin/sh", "-c", script]);
    seat.wait_for("ready");
    for rows in 30..35 {
        seat.resize(100, rows);
    }
    assert_eq!(window.code(), 0, "{}", seat.said());
    assert!(seat.said().ends_with("34 100\r\n"), "the last size counts: {}", seat.said());
}

#[test]
fn what_is_typed_reaches_the_program_and_is_echoed_by_its_terminal() {
    let world = world();
    let seat = Seat::new(80, 24);
    let script = "echo ready; read line; echo \"got $line\"; cat";
    let mut window = seat.start(&world.program(), &["window", "--", "/bin/sh", "-c", script]);
    seat.wait_for("ready\r\n");
    seat.wait_until_raw();
    seat.type_in("hello \u{d55c}\r");
    seat.wait_for("got hello \u{d55c}\r\n");
    assert!(seat.said().contains("ready\r\nhello \u{d55c}\r\n"), "one echo: {}", seat.said());
    // The key for the end of the input, as the line discipline reads it.
    seat.type_in("\u{4}");
    assert_eq!(window.code(), 0, "{}", seat.said());
}

#[test]
fn an_interrupt_key_reaches_the_foreground_program_and_stops_nothing_else() {
    let world = world();
    let seat = Seat::new(80, 24);
    let script = "trap 'echo interrupted; exit 7' INT; echo ready; while :; do sleep 0.01; done";
    let mut window = seat.start(&world.program(), &["window", "--", "/bin/sh", "-c", script]);
    seat.wait_for("ready\r\n");
    seat.wait_until_raw();
    seat.type_in("\u{3}");
    assert_eq!(window.code(), 7, "{}", seat.said());
    let id = the_attempt(&world);
    assert!(!world.kinds(&id).contains(&"stop.requested"), "{}", world.told(&id));
    world.assert_nothing_left(&id);
}

#[test]
fn every_line_that_was_written_before_the_end_comes() {
    let world = world();
    let seat = Seat::new(80, 24);
    let mut window = seat.start(&world.program(), &["window", "--", "seq", "30000"]);
    assert_eq!(window.code(), 0);
    // What the program under test wrote may still be on its way through this terminal.
    seat.wait_for("\r\n30000\r\n");
    let said = seat.said();
    let seen: Vec<u32> = said.split_terminator("\r\n").map(|line| line.parse().unwrap()).collect();
    assert!(seen.into_iter().eq(1..=30_000), "{} bytes", said.len());
}

#[test]
fn a_program_that_closes_its_terminal_and_opens_it_again_loses_nothing() {
    let world = world();
    let seat = Seat::new(80, 24);
    let script = "echo one; exec </dev/null >/dev/null 2>&1; sleep 0.3; exec >/dev/tty; echo two";
    let mut window = seat.start(&world.program(), &["window", "--", "/bin/sh", "-c", script]);
    assert_eq!(window.code(), 0);
    seat.wait_for("one\r\ntwo\r\n");
}

#[test]
fn a_terminal_that_does_not_tell_its_size_counts_as_80_by_24() {
    let world = world();
    let seat = Seat::new(0, 0);
    let mut window = seat.start(&world.program(), &["window", "--", "stty", "size"]);
    assert_eq!(window.code(), 0);
    seat.wait_for("24 80\r\n");
}

#[test]
fn an_absurd_size_is_cut() {
    let world = world();
    let seat = Seat::new(65_535, 65_535);
    let mut window = seat.start(&world.program(), &["window", "--", "stty", "size"]);
    assert_eq!(window.code(), 0);
    seat.wait_for("500 1000\r\n");
}

#[test]
fn the_terminal_is_given_back_as_it_was() {
    let world = world();
    let seat = Seat::new(80, 24);
    let before = seat.settings();
    let script = "stty raw -echo; printf '\\033[?1049h\\033[?25l'; exit 4";
    let mut window = seat.start(&world.program(), &["window", "--", "/bin/sh", "-c", script]);
    assert_eq!(window.code(), 4);
    assert_eq!(seat.settings(), before);
    let said = seat.said();
    assert!(said.ends_with("\u{1b}[?25l"), "nothing is added to what the program said: {said:?}");
}

#[test]
fn what_a_killed_program_left_on_the_screen_is_ended() {
    let world = world();
    let seat = Seat::new(80, 24);
    let before = seat.settings();
    let script = "printf '\\033[?1049h\\033[?25l'; kill -KILL $$";
    let mut window = seat.start(&world.program(), &["window", "--", "/bin/sh", "-c", script]);
    assert_eq!(window.code(), 128 + 9);
    assert_eq!(seat.settings(), before);
    for ended in ["\u{1b}[?1049l", "\u{1b}[?25h", "\u{1b}[0m"] {
        seat.wait_for(ended);
    }
}
