//! What a runner does to itself, and how a host starts one.

use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::support::{in_own_process, wait_for};
use placement_contract::Exit;
use placement_process::{
    Arrived, StartError, close_all_but, new_session, set_non_dumpable, settle_signals, spawn_runner,
};
use rustix::event::PollFlags;

#[test]
fn a_termination_arrives_on_the_descriptor() {
    in_own_process("own::a_termination_arrives_on_the_descriptor", || {
        let signals = settle_signals().unwrap();
        assert_eq!(signals.take().unwrap(), Arrived::default());
        // To this thread: libtest's other thread does not block the signal.
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM).unwrap();
        wait_for("the signal", signals.descriptor(), PollFlags::IN);
        assert_eq!(signals.take().unwrap(), Arrived { termination: true, child: false });
    });
}

#[test]
fn the_end_of_a_child_arrives_on_the_descriptor() {
    in_own_process("own::the_end_of_a_child_arrives_on_the_descriptor", || {
        let signals = settle_signals().unwrap();
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGCHLD).unwrap();
        wait_for("the signal", signals.descriptor(), PollFlags::IN);
        assert_eq!(signals.take().unwrap(), Arrived { termination: false, child: true });
    });
}

#[test]
fn hangup_interrupt_broken_pipe_and_a_file_size_limit_do_not_end_a_runner() {
    let own = "own::hangup_interrupt_broken_pipe_and_a_file_size_limit_do_not_end_a_runner";
    in_own_process(own, || {
        use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGPIPE, SIGXFSZ};
        let _signals = settle_signals().unwrap();
        for signal in [SIGHUP, SIGINT, SIGPIPE, SIGXFSZ] {
            nix::sys::signal::raise(signal).unwrap();
        }
    });
}

#[test]
fn a_hidden_process_is_not_dumpable() {
    in_own_process("own::a_hidden_process_is_not_dumpable", || {
        set_non_dumpable().unwrap();
        assert_eq!(
            rustix::process::dumpable_behavior().unwrap(),
            rustix::process::DumpableBehavior::NotDumpable
        );
    });
}

#[test]
fn a_new_session_is_led_by_the_process() {
    in_own_process("own::a_new_session_is_led_by_the_process", || {
        new_session().unwrap();
        assert_eq!(rustix::process::getsid(None).unwrap(), rustix::process::getpid());
        assert_eq!(new_session().unwrap_err().errno.name(), "EPERM");
    });
}

#[test]
fn every_descriptor_but_those_named_is_closed() {
    in_own_process("own::every_descriptor_but_those_named_is_closed", || {
        let root = std::fs::File::open("/").unwrap();
        let low = rustix::io::fcntl_dupfd_cloexec(&root, 50).unwrap();
        let high = rustix::io::fcntl_dupfd_cloexec(&root, 700).unwrap();
        close_all_but(&[high.as_fd(), std::io::stderr().as_fd(), low.as_fd()]).unwrap();
        std::mem::forget(root);
        let mut open: Vec<u32> = std::fs::read_dir("/proc/self/fd")
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
            .collect();
        open.sort_unstable();
        // Number 3 is the listing itself.
        assert_eq!(open, [0, 1, 2, 3, 50, 700]);
    });
}

#[test]
fn a_runner_gets_its_order_an_empty_environment_and_the_root() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let script = "read order; exec 1>&0; echo \"$order\"; env; pwd";
    let mut runner =
        spawn_runner(Path::new("/bin/sh"), ["-c", script], OwnedFd::from(theirs)).unwrap();
    assert!(runner.identity().is_ok());
    ours.write_all(b"the order\n").unwrap();
    let mut text = String::new();
    ours.read_to_string(&mut text).unwrap();
    // The shell makes PWD.
    assert_eq!(text, "the order\nPWD=/\n/\n");
    wait_for("the end of the runner", runner.pidfd(), PollFlags::IN);
    assert_eq!(runner.try_wait().unwrap(), Some(Exit::Code { code: 0 }));
}

#[test]
fn a_runner_program_that_is_not_there_is_named() {
    let (_ours, theirs) = UnixStream::pair().unwrap();
    let refused =
        spawn_runner(Path::new("/nonexistent/runner"), ["--x"], OwnedFd::from(theirs)).unwrap_err();
    let StartError::Program(errno) = refused else { panic!("{refused}") };
    assert_eq!(errno.name(), "ENOENT");
}

#[test]
fn a_waited_runner_tells_its_exit() {
    let (_ours, theirs) = UnixStream::pair().unwrap();
    let mut runner =
        spawn_runner(Path::new("/bin/sh"), ["-c", "kill -KILL $$"], OwnedFd::from(theirs)).unwrap();
    assert_eq!(runner.wait().unwrap(), Exit::Signal { signal: 9, core: false });
}
