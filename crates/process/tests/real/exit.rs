//! How an exit is observed, and signals that are none.

use std::os::fd::AsFd as _;

use crate::support::{Shell, all, exit_of, finish, line, until};
use placement_contract::Exit;
use placement_identity::{GroupPresence, ProcView, observe_group, proc_view};
use placement_process::{
    GroupSignalError, Signal, SignalError, WaitError, signal_group_through_pidfd,
};

#[test]
fn an_exit_code_is_told_as_a_code() {
    let (mut leader, _output) = Shell::new("exit 42").start();
    assert_eq!(exit_of(&leader), Exit::Code { code: 42 });
    assert_eq!(leader.reap().unwrap(), Exit::Code { code: 42 });
}

#[test]
fn a_signal_is_told_as_a_signal_and_not_as_a_code() {
    let (mut leader, _output) = Shell::new("kill -TERM $$").start();
    assert_eq!(exit_of(&leader), Exit::Signal { signal: 15, core: false });
    leader.reap().unwrap();
}

#[test]
fn a_code_that_looks_like_a_signal_is_a_code() {
    let (mut leader, _output) = Shell::new("exit 143").start();
    assert_eq!(exit_of(&leader), Exit::Code { code: 143 });
    leader.reap().unwrap();
}

#[test]
fn a_core_dump_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let piped = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let script =
        format!("cd {} && ulimit -c unlimited && kill -QUIT $$", directory.path().display());
    let (mut leader, _output) = Shell::new(&script).start();
    let exit = exit_of(&leader);
    leader.reap().unwrap();
    let Exit::Signal { signal: 3, core } = exit else { panic!("{exit:?}") };
    if !piped.starts_with('|') {
        let left = std::fs::read_dir(directory.path()).unwrap().next().is_some();
        assert!(core || !left, "a core was left behind and not told");
    }
}

#[test]
fn a_running_process_has_no_exit_and_cannot_be_reaped() {
    let (mut leader, _output) = Shell::new("exec sleep 300").start();
    assert_eq!(leader.observe_exit().unwrap(), None);
    assert_eq!(leader.reap(), Err(WaitError::Running));
    finish(leader);
}

#[test]
fn observing_does_not_reap() {
    let (mut leader, _output) = Shell::new("exit 3").start();
    exit_of(&leader);
    assert_eq!(leader.observe_exit().unwrap(), Some(Exit::Code { code: 3 }));
    assert!(leader.identity().is_ok());
    assert_eq!(leader.reap().unwrap(), Exit::Code { code: 3 });
    assert_eq!(leader.reap().unwrap(), Exit::Code { code: 3 });
    assert!(leader.identity().is_err());
}

#[test]
fn the_exit_is_observed_while_a_descendant_holds_the_output() {
    let (mut leader, output) = Shell::new("sleep 300 & echo $!; exit 5").start();
    let holder: u32 = line(&output).parse().unwrap();
    assert_eq!(exit_of(&leader), Exit::Code { code: 5 });
    let identity = placement_identity::ProcessIdentity::of(holder).unwrap();
    assert!(matches!(identity.observe(), placement_identity::Presence::Present(_)));
    leader.signal_group(Signal::Kill).unwrap();
    leader.reap().unwrap();
    assert_eq!(all(output), "");
}

#[test]
fn a_group_signal_reaches_every_member() {
    let (mut leader, output) = Shell::new("sleep 300 & echo up; wait").start();
    line(&output);
    leader.signal_group(Signal::Kill).unwrap();
    assert_eq!(exit_of(&leader), Exit::Signal { signal: 9, core: false });
    // The member held the output too.
    assert_eq!(all(output), "");
    leader.reap().unwrap();
}

#[test]
fn a_group_is_signalled_through_the_pidfd_after_its_leader_was_reaped() {
    let (mut leader, output) = Shell::new("sleep 300 & echo up; exit 0").start();
    line(&output);
    exit_of(&leader);
    leader.reap().unwrap();
    match signal_group_through_pidfd(leader.pidfd(), Signal::Kill) {
        Ok(()) => assert_eq!(all(output), ""),
        Err(GroupSignalError::Unsupported) => println!("not looked at: kernel before 6.9"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_group_without_members_is_gone() {
    let (mut leader, _output) = Shell::new("exit 0").start();
    let identity = leader.identity().unwrap();
    exit_of(&leader);
    leader.reap().unwrap();
    if proc_view() == ProcView::Restricted {
        println!("only the signal was looked at: /proc is restricted");
    } else {
        until("the absence of the group", || {
            let answer = observe_group(identity.pgid, &identity.boot_id, &identity.observer);
            matches!(answer, GroupPresence::Absent(_)).then_some(())
        });
    }
    let answer = signal_group_through_pidfd(leader.pidfd(), Signal::Kill);
    assert!(matches!(answer, Err(GroupSignalError::Gone | GroupSignalError::Unsupported)));
}

#[test]
fn a_reaped_process_is_signalled_no_more() {
    let (mut leader, _output) = Shell::new("exit 0").start();
    exit_of(&leader);
    leader.reap().unwrap();
    assert_eq!(leader.signal(Signal::Term), Err(SignalError::Gone));
}

#[test]
fn the_pidfd_is_close_on_exec() {
    let (leader, _output) = Shell::new("exec sleep 300").start();
    let flags = rustix::io::fcntl_getfd(leader.pidfd().as_fd()).unwrap();
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    finish(leader);
}
