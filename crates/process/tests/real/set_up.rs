//! What the program finds when it starts: descriptors, signals, group, directory, environment.

use std::os::fd::AsFd as _;

use crate::support::{Shell, all, exit_of, finish, in_own_process};
use placement_process::{
    Birthplace, OnParentDeath, Pipe, Program, Session, Signal, Spawn, dev_null, spawn,
};

/// Runs `cat` on a file of the new process's own in `/proc`, with no shell in between.
fn own_file(path: &str) -> String {
    let output = Pipe::from_child().expect("a pipe");
    let null = dev_null().expect("a null device");
    let root = std::fs::File::open("/").expect("a root directory");
    let path = std::ffi::CString::new(path).expect("a path without NUL");
    let leader = spawn(&Spawn {
        program: Program::Path(c"/bin/cat"),
        argv: vec![c"cat".into(), path],
        environment: vec![],
        working_directory: root.as_fd(),
        stdin: null.as_fd(),
        stdout: output.theirs.as_fd(),
        stderr: null.as_fd(),
        birthplace: Birthplace::Here,
        on_parent_death: OnParentDeath::Die,
        session: Session::Inherited,
    })
    .expect("the process is created")
    .open_gate()
    .expect("the program starts")
    .leader;
    drop(output.theirs);
    let text = all(output.ours);
    finish(leader);
    text
}

fn signal_set(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the line is there");
    u64::from_str_radix(line.trim(), 16).expect("a set of signals")
}

#[test]
fn no_descriptor_but_stdio_is_inherited() {
    // One without close-on-exec, and one far up.
    let plain = rustix::io::dup(std::io::stderr()).unwrap();
    let far = rustix::io::fcntl_dupfd_cloexec(&plain, 900).unwrap();
    rustix::io::fcntl_setfd(&far, rustix::io::FdFlags::empty()).unwrap();
    let (leader, output) = Shell::new("ls /proc/self/fd").start();
    // `ls` itself has the directory open.
    assert_eq!(all(output), "0\n1\n2\n3\n");
    finish(leader);
}

#[test]
fn every_disposition_is_default_and_nothing_is_blocked() {
    in_own_process("set_up::every_disposition_is_default_and_nothing_is_blocked", || {
        let terminations = placement_process::settle_signals().unwrap();
        let own = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        assert_ne!(signal_set(&own, "SigIgn:"), 0);
        assert_ne!(signal_set(&own, "SigBlk:"), 0);
        let status = own_file("/proc/self/status");
        for name in ["SigBlk:", "SigIgn:", "SigCgt:"] {
            assert_eq!(signal_set(&status, name), 0, "{name}");
        }
        drop(terminations);
    });
}

#[test]
fn the_program_leads_its_own_group_in_the_runners_session() {
    let [pid, pgid, session] = ids(&own_file("/proc/self/stat"));
    assert_eq!(pgid, pid);
    let [.., own] = ids(&std::fs::read_to_string("/proc/self/stat").unwrap());
    assert_eq!(session, own);
}

/// The process, its group and its session.
fn ids(stat: &str) -> [String; 3] {
    let (pid, rest) = stat.split_once(" (").expect("a pid");
    let (_, rest) = rest.rsplit_once(") ").expect("a name");
    let fields: Vec<&str> = rest.split(' ').collect();
    [pid, fields[2], fields[3]].map(str::to_owned)
}

#[test]
fn directory_environment_and_arguments_are_those_given() {
    let (leader, output) = Shell::new("pwd; env | sort; echo \"$0 $#\"").start();
    assert_eq!(all(output), "/\nPATH=/usr/bin:/bin\nPWD=/\nsh 0\n");
    finish(leader);
}

#[test]
fn stdio_below_three_in_the_runner_does_not_get_mixed_up() {
    in_own_process("set_up::stdio_below_three_in_the_runner_does_not_get_mixed_up", || {
        // The child's output lies on descriptor 0 of this process.
        let pipe = Pipe::from_child().unwrap();
        rustix::stdio::dup2_stdin(&pipe.theirs).unwrap();
        drop(pipe.theirs);
        let root = std::fs::File::open("/").unwrap();
        let null = dev_null().unwrap();
        let leader = spawn(&Spawn {
            program: Program::Path(c"/bin/sh"),
            argv: vec![c"sh".into(), c"-c".into(), c"cat; echo out; echo err >&2".into()],
            environment: vec![c"PATH=/usr/bin:/bin".into()],
            working_directory: root.as_fd(),
            stdin: null.as_fd(),
            stdout: std::io::stdin().as_fd(),
            stderr: std::io::stdin().as_fd(),
            birthplace: Birthplace::Here,
            on_parent_death: OnParentDeath::Die,
            session: Session::Inherited,
        })
        .unwrap()
        .open_gate()
        .unwrap()
        .leader;
        rustix::stdio::dup2_stdin(&null).unwrap();
        assert_eq!(all(pipe.ours), "out\nerr\n");
        finish(leader);
    });
}

#[test]
fn a_program_that_must_not_outlive_its_runner_is_killed_with_it() {
    // The parent-death signal follows the thread that made the process.
    let (leader, output) =
        std::thread::spawn(|| Shell::new("echo up; exec sleep 300").start()).join().unwrap();
    let exit = exit_of(&leader);
    assert_eq!(exit, placement_contract::Exit::Signal { signal: 9, core: false });
    drop(output);
    finish(leader);
}

#[test]
fn a_program_that_may_outlive_its_runner_goes_on() {
    let (leader, output) = std::thread::spawn(|| {
        let shell = Shell { on_parent_death: OnParentDeath::Live, ..Shell::new("read x; echo up") };
        shell.start()
    })
    .join()
    .unwrap();
    assert_eq!(crate::support::line(&output), "up");
    leader.signal(Signal::Kill).ok();
    finish(leader);
}
