//! A child on a terminal of its own.

use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Instant;

use placement_contract::{Exit, WindowSize};
use placement_process::{
    Birthplace, Gated, OnParentDeath, Program, PseudoTerminal, RawTerminal, Session, Spawn,
    SpawnError, dev_null, resize, spawn, terminal_size,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::termios::LocalModes;

use crate::support::{PATIENCE, forking};

fn size(columns: u16, rows: u16) -> WindowSize {
    WindowSize::new(columns, rows).expect("a size of a test is within the bounds")
}

/// Makes a shell behind its gate, on this end of a terminal.
fn on(terminal: &OwnedFd, script: &str, birthplace: Birthplace<'_>) -> Result<Gated, SpawnError> {
    let root = std::fs::File::open("/").expect("a root directory");
    let script = std::ffi::CString::new(script).expect("a script of a test has no NUL");
    let _forking = forking();
    spawn(&Spawn {
        program: Program::Path(c"/bin/sh"),
        argv: vec![c"sh".into(), c"-c".into(), script],
        environment: vec![c"PATH=/usr/bin:/bin".into()],
        working_directory: root.as_fd(),
        stdin: terminal.as_fd(),
        stdout: terminal.as_fd(),
        stderr: terminal.as_fd(),
        birthplace,
        on_parent_death: OnParentDeath::Die,
        session: Session::OnTerminal,
    })
}

/// Reads what the child says until nobody holds its end, or until the text is there.
fn read_until(ours: &OwnedFd, wanted: Option<&str>) -> String {
    let deadline = Instant::now() + PATIENCE;
    let mut said = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&said).into_owned();
        if wanted.is_some_and(|wanted| text.contains(wanted)) {
            return text;
        }
        assert!(Instant::now() < deadline, "{text:?} and no more");
        let mut polled = [PollFd::new(ours, PollFlags::IN)];
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        rustix::event::poll(&mut polled, Some(&second)).expect("a terminal can be polled");
        match rustix::io::read(ours, &mut buffer) {
            Ok(count) => said.extend_from_slice(&buffer[..count]),
            Err(rustix::io::Errno::AGAIN) => {}
            Err(rustix::io::Errno::IO) => return text,
            Err(error) => panic!("{error}"),
        }
    }
}

fn ends_well(gated: Gated) {
    let mut leader = gated.open_gate().expect("the shell runs").leader;
    let deadline = Instant::now() + PATIENCE;
    while leader.observe_exit().expect("it is a child of ours").is_none() {
        assert!(Instant::now() < deadline, "the shell goes on");
        std::thread::yield_now();
    }
    assert_eq!(leader.reap().expect("it has ended"), Exit::Code { code: 0 });
}

#[test]
fn a_child_leads_its_session_before_its_gate_opens() {
    let PseudoTerminal { ours, theirs } = PseudoTerminal::open(size(80, 24)).expect("a terminal");
    let gated = on(&theirs, "exit 0", Birthplace::Here).expect("a process");
    let identity = gated.identity().expect("it waits");
    assert_eq!(identity.pid, identity.pgid);
    let pid = rustix::process::Pid::from_raw(identity.pid.as_raw());
    assert_eq!(rustix::process::getsid(pid).ok(), pid);
    let controlled = rustix::termios::tcgetsid(&ours);
    assert_eq!(controlled.ok(), pid, "the terminal controls its session");
    drop(theirs);
    ends_well(gated);
    assert_eq!(read_until(&ours, None), "");
}

#[test]
fn a_child_finds_its_size_and_its_terminal() {
    let PseudoTerminal { ours, theirs } = PseudoTerminal::open(size(123, 45)).expect("a terminal");
    let script = "stty size; test -t 0 && test -t 1 && test -t 2 && : </dev/tty && echo there";
    let gated = on(&theirs, script, Birthplace::Here).expect("a process");
    drop(theirs);
    ends_well(gated);
    assert_eq!(read_until(&ours, None), "45 123\r\nthere\r\n");
}

#[test]
fn a_resize_reaches_the_child_as_a_signal() {
    let PseudoTerminal { ours, theirs } = PseudoTerminal::open(size(80, 24)).expect("a terminal");
    let script = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.01; done";
    let gated = on(&theirs, script, Birthplace::Here).expect("a process");
    drop(theirs);
    let opened = gated.open_gate().expect("the shell runs");
    read_until(&ours, Some("ready\r\n"));
    resize(ours.as_fd(), size(100, 30)).expect("a terminal has a size");
    assert_eq!(read_until(&ours, None), "30 100\r\n");
    drop(opened);
}

#[test]
fn a_key_is_a_signal_to_the_foreground() {
    let PseudoTerminal { ours, theirs } = PseudoTerminal::open(size(80, 24)).expect("a terminal");
    let script = "trap 'echo interrupted; exit 0' INT; echo ready; while :; do sleep 0.01; done";
    let gated = on(&theirs, script, Birthplace::Here).expect("a process");
    drop(theirs);
    let opened = gated.open_gate().expect("the shell runs");
    read_until(&ours, Some("ready\r\n"));
    rustix::io::write(&ours, b"\x03").expect("a terminal takes a key");
    assert!(read_until(&ours, None).ends_with("interrupted\r\n"));
    drop(opened);
}

#[test]
fn a_child_in_a_pid_namespace_leads_its_session_too() {
    let PseudoTerminal { ours, theirs } = PseudoTerminal::open(size(80, 24)).expect("a terminal");
    let gated = on(&theirs, "stty size; : </dev/tty", Birthplace::PidNamespace);
    let gated = match gated {
        Ok(gated) => gated,
        Err(error @ (SpawnError::Clone(_) | SpawnError::Namespace { .. })) => {
            println!("not looked at: no namespace here ({error})");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let identity = gated.identity().expect("it waits");
    assert_eq!(identity.pid, identity.pgid);
    drop(theirs);
    ends_well(gated);
    assert_eq!(read_until(&ours, None), "24 80\r\n");
}

#[test]
fn what_is_no_terminal_controls_no_session() {
    let null = dev_null().expect("a null device");
    let refused = on(&null, "exit 0", Birthplace::Here);
    let Err(SpawnError::Session(errno)) = refused else { panic!("{refused:?}") };
    assert_eq!(errno.name(), "ENOTTY");
}

#[test]
fn a_raw_terminal_is_given_back_as_it_was() {
    let PseudoTerminal { ours, theirs } = PseudoTerminal::open(size(80, 24)).expect("a terminal");
    let modes = || rustix::termios::tcgetattr(&theirs).expect("it is a terminal").local_modes;
    let before = modes();
    assert!(before.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG));
    let raw = RawTerminal::enter(theirs.as_fd()).expect("it is a terminal");
    assert!(!modes().intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG));
    let saved = raw.saved();
    saved.restore();
    assert_eq!(modes(), before);
    drop(raw);
    assert_eq!(modes(), before);
    let mut writer = std::fs::File::from(ours);
    writer.write_all(b"x").expect("a terminal takes a key");
}

#[test]
fn a_size_is_cut_to_that_of_a_window() {
    let PseudoTerminal { ours, .. } = PseudoTerminal::open(size(80, 24)).expect("a terminal");
    assert_eq!(terminal_size(ours.as_fd()), Some(size(80, 24)));
    let set = |columns, rows| {
        let size =
            rustix::termios::Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&ours, size).expect("a terminal has a size");
    };
    set(60_000, 60_000);
    assert_eq!(terminal_size(ours.as_fd()), Some(size(1000, 500)));
    set(0, 0);
    assert_eq!(terminal_size(ours.as_fd()), None);
    assert_eq!(terminal_size(dev_null().expect("a null device").as_fd()), None);
}
