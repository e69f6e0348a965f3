//! What a window is refused, and that nothing is left then.

use crate::seat::Seat;
use crate::{in_window, world};
use placement::Code;

#[test]
fn a_window_needs_a_terminal() {
    let world = world();
    let said = world.program().run(["window", "--", "true"]);
    assert_eq!(said.code, 125, "{said:?}");
    assert!(said.stderr.starts_with("placement: INVALID: a window needs a terminal"), "{said:?}");
    assert!(world.host().attempts().all().unwrap().attempts.is_empty());
}

#[test]
fn another_input_and_another_form_of_output_are_refused() {
    let world = world();
    for option in [&["-i"][..], &["--stdin", "pipe"], &["--json"]] {
        let seat = Seat::new(80, 24);
        let arguments = [&["window"], option, &["--", "true"]].concat();
        let mut window = seat.start(&world.program(), &arguments);
        assert_eq!(window.code(), 125, "{option:?}: {}", seat.said());
        seat.wait_for("INVALID");
    }
    assert!(world.host().attempts().all().unwrap().attempts.is_empty());
}

#[test]
fn a_refusal_leaves_the_terminal_as_it_was() {
    let world = world();
    let seat = Seat::new(80, 24);
    let before = seat.settings();
    let mut window = seat.start(&world.program(), &["window", "--", "no-such-program"]);
    assert_eq!(window.code(), 127, "{}", seat.said());
    assert_eq!(seat.settings(), before);
    seat.wait_for("EXECUTABLE_NOT_FOUND");
}

#[test]
fn the_input_of_a_window_is_not_closed() {
    let world = world();
    let attempt = world.launch(in_window("exec cat"));
    let refused = world.host().close_stdin(attempt.id()).unwrap_err();
    assert_eq!(refused.code(), Code::UnsupportedCapability);
    let said = world.program().run(["close-stdin", attempt.id().as_str()]);
    assert_eq!(said.code, 125, "{said:?}");
    assert!(!world.kinds(attempt.id()).contains(&"stdin.closed"));
}

#[test]
fn another_owner_neither_attaches_to_nor_stops_it() {
    let world = world();
    let attempt = world.launch(in_window("exec cat"));
    let root = world.root();
    for command in ["attach", "stop"] {
        let arguments =
            ["--root", root.as_str(), "--owner", "local:other", command, attempt.id().as_str()];
        let said = world.program().bare_command(arguments).output().unwrap();
        assert_eq!(said.status.code(), Some(125), "{command}");
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(text.starts_with("placement: NOT_FOUND: "), "{command}: {text}");
    }
    assert!(!world.kinds(attempt.id()).contains(&"stop.requested"));
}

#[test]
fn a_window_out_of_bounds_is_not_recorded() {
    let world = world();
    let launch = placement::Launch::program("true").key("k").window(1001, 24, "xterm");
    let refused = world.host().launch(launch.write(world.work())).unwrap_err();
    assert_eq!(refused.code(), Code::Invalid);
    assert!(world.host().attempts().all().unwrap().attempts.is_empty());
}
