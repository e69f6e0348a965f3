//! PID namespaces: what the program finds there, how it ends, and what is left.

#![expect(clippy::print_stdout, reason = "a test says why it did not look")]

use std::os::fd::{AsFd as _, OwnedFd};

use crate::support::{
    PATIENCE, Shell, all, end_with_proof, exit_of, in_own_process, line, until, wait_for,
};
use placement_contract::{Exit, Mechanism};
use placement_identity::{Presence, ProcessIdentity};
use placement_process::{
    Birthplace, ChildStep, Containment, NamespacePresence, NamespaceStep, NotGone, OnParentDeath,
    Opened, PidNamespace, Pipe, ProbeState, Program, Session, Signal, Spawn, SpawnError, Tree,
    TreeEvent, TreeState, WaitError, become_subreaper, dev_null, set_non_dumpable, spawn,
    spawn_probe,
};
use rustix::event::PollFlags;

/// Says up when both are there: one in the group, one in a session of its own.
const ESCAPE: &str = "(setsid sleep 300 &) ; sleep 300 & echo up; exit 3";

fn shell(script: &str) -> Shell<'_> {
    Shell { birthplace: Birthplace::PidNamespace, ..Shell::new(script) }
}

/// Starts a shell in a namespace, or says why this machine lets nobody make one.
fn start(script: &str) -> Option<(Tree, OwnedFd)> {
    let (gated, output) = match shell(script).try_gated() {
        Ok(made) => made,
        Err(error @ (SpawnError::Clone(_) | SpawnError::Namespace { .. })) => {
            let errno = error.errno().expect("the kernel answered").name();
            assert!(["EPERM", "ENOSPC", "EACCES"].contains(&errno.as_str()), "{error}");
            println!("not looked at: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let Opened { leader, namespace, .. } = gated.open_gate().expect("the program starts");
    let namespace = namespace.expect("it was made in one");
    Some((Tree::new(Containment::PidNamespace(namespace), leader), output))
}

fn wait_until_ended(tree: &Tree) {
    if let Some(TreeEvent::Ended(init)) = tree.event() {
        wait_for("the end of the init", init, PollFlags::IN);
    }
}

#[test]
fn the_program_is_in_a_namespace_of_its_own_with_its_process_table() {
    in_own_process(
        "namespace::the_program_is_in_a_namespace_of_its_own_with_its_process_table",
        || {
            let script = "echo $$; readlink /proc/self/ns/pid; ls -d /proc/[0-9]* | wc -l; pwd -P; \
                      cut -d' ' -f5,6 /proc/$$/stat";
            let Some((mut tree, output)) = start(script) else { return };
            let text = all(output);
            let lines: Vec<&str> = text.lines().collect();
            let own = std::fs::read_link("/proc/self/ns/pid").unwrap();
            assert_eq!(lines[0], "2", "the init comes first");
            assert_ne!(lines[1], own.to_str().unwrap());
            // The init, the shell, `ls` and `wc`.
            assert!(lines[2].parse::<u32>().unwrap() <= 4, "{text}");
            assert_eq!(lines[3], "/");
            assert_eq!(lines[4], "2 1", "a group of its own in the session of the init");
            drop(end_with_proof(&mut tree));
        },
    );
}

#[test]
fn the_working_directory_is_seen_from_inside() {
    in_own_process("namespace::the_working_directory_is_seen_from_inside", || {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        let opened = std::fs::File::open(&path).unwrap();
        let (null, output) = (dev_null().unwrap(), Pipe::from_child().unwrap());
        let gated = spawn(&Spawn {
            program: Program::Path(c"/bin/sh"),
            argv: vec![c"sh".into(), c"-c".into(), c"/bin/pwd -P".into()],
            environment: vec![],
            working_directory: opened.as_fd(),
            stdin: null.as_fd(),
            stdout: output.theirs.as_fd(),
            stderr: null.as_fd(),
            birthplace: Birthplace::PidNamespace,
            on_parent_death: OnParentDeath::Die,
            session: Session::Inherited,
        });
        let Ok(gated) = gated else {
            println!("not looked at: {}", gated.unwrap_err());
            return;
        };
        drop(output.theirs);
        let opened = gated.open_gate().unwrap();
        assert_eq!(all(output.ours), format!("{}\n", path.display()));
        let namespace = opened.namespace.unwrap();
        let mut tree = Tree::new(Containment::PidNamespace(namespace), opened.leader);
        drop(end_with_proof(&mut tree));
    });
}

#[test]
fn neither_program_nor_init_keeps_a_descriptor_of_the_runner() {
    in_own_process("namespace::neither_program_nor_init_keeps_a_descriptor_of_the_runner", || {
        // One without close-on-exec.
        let plain = rustix::io::dup(std::io::stderr()).unwrap();
        let Ok((gated, output)) = shell("ls /proc/self/fd; exec sleep 300").try_gated() else {
            println!("not looked at: no namespace here");
            return;
        };
        let init = gated.namespace().unwrap().identity().unwrap();
        let opened = gated.open_gate().unwrap();
        let namespace = Containment::PidNamespace(opened.namespace.unwrap());
        let mut tree = Tree::new(namespace, opened.leader);
        // `ls` itself has the directory open.
        assert_eq!([(); 4].map(|()| line(&output)), ["0", "1", "2", "3"]);
        match std::fs::read_dir(format!("/proc/{}/fd", init.pid)) {
            Ok(kept) => assert_eq!(kept.count(), 1, "its socket alone"),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::EACCES), "{error}");
                println!("the init was not looked into: it is closed to its own user");
            }
        }
        drop((plain, end_with_proof(&mut tree)));
    });
}

#[test]
fn the_identity_is_the_one_that_is_seen_from_outside() {
    in_own_process("namespace::the_identity_is_the_one_that_is_seen_from_outside", || {
        let Ok((gated, _output)) = shell("exec sleep 300").try_gated() else {
            println!("not looked at: no namespace here");
            return;
        };
        let identity = gated.identity().unwrap();
        assert_eq!(identity.pgid, gated.pid(), "it leads its group before it runs");
        assert!(matches!(identity.observe(), Presence::Present(_)));
        let init = gated.namespace().unwrap().identity().unwrap();
        assert_ne!(init.pid, identity.pid);
        assert!(matches!(PidNamespace::look_up(&init), NamespacePresence::Present(_)));
        let status = std::fs::read_to_string(format!("/proc/{}/status", identity.pid)).unwrap();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap();
        assert_eq!(numbers.split_whitespace().last(), Some("2"));
        // Dropped behind its gate, it ends with its namespace and has run nothing.
        drop(gated);
        assert!(matches!(identity.observe(), Presence::Absent(_)));
        assert!(matches!(PidNamespace::look_up(&init), NamespacePresence::Gone(_)));
    });
}

#[test]
fn the_exit_is_the_leaders_and_is_seen_while_a_descendant_lives() {
    in_own_process(
        "namespace::the_exit_is_the_leaders_and_is_seen_while_a_descendant_lives",
        || {
            for (script, exit) in [
                ("sleep 300 & exit 143", Exit::Code { code: 143 }),
                ("sleep 300 & kill -TERM $$", Exit::Signal { signal: 15, core: false }),
            ] {
                let Some((mut tree, _output)) = start(script) else { return };
                assert_eq!(exit_of(tree.leader()), exit);
                assert!(matches!(tree.state(), TreeState::Populated { .. }));
                assert_eq!(tree.reap_leader(), Ok(exit));
                assert_eq!(tree.prove_gone().unwrap_err(), NotGone::Populated);
                drop(end_with_proof(&mut tree));
                assert_eq!(tree.leader().reaped(), Some(exit));
            }
        },
    );
}

#[test]
fn the_init_ends_by_itself_when_nothing_is_left() {
    in_own_process("namespace::the_init_ends_by_itself_when_nothing_is_left", || {
        let script = "(setsid sleep 0.05 &) ; (sleep 0.05 &) ; exit 0";
        let Some((mut tree, output)) = start(script) else { return };
        assert_eq!(all(output), "");
        wait_until_ended(&tree);
        assert_eq!(tree.state(), TreeState::Empty);
        assert!(tree.event().is_none(), "nothing more is to be waited for");
        assert_eq!(tree.reap_leader(), Ok(Exit::Code { code: 0 }));
        let gone = tree.prove_gone().unwrap();
        assert_eq!(gone.mechanism(), Mechanism::PidNamespace);
        assert_eq!(gone.proof(), "init of the PID namespace reaped");
        assert!(tree.prove_gone().is_ok(), "the proof can be had again");
    });
}

#[test]
fn a_namespace_ends_an_escaped_process_and_proves_it() {
    in_own_process("namespace::a_namespace_ends_an_escaped_process_and_proves_it", || {
        become_subreaper().unwrap();
        let Some((mut tree, output)) = start(ESCAPE) else { return };
        assert_eq!(line(&output), "up");
        assert_eq!(exit_of(tree.leader()), Exit::Code { code: 3 });
        let members =
            until("the members", || tree.members().ok().filter(|members| members.len() == 2));
        let escaped: Vec<_> =
            members.into_iter().map(|pid| ProcessIdentity::of(pid).unwrap()).collect();
        assert_eq!(tree.kill().unwrap().sent, 2);
        wait_until_ended(&tree);
        drop(tree.prove_gone().unwrap());
        assert!(escaped.iter().all(|it| matches!(it.observe(), Presence::Absent(_))));
        assert_eq!(all(output), "");
    });
}

#[test]
fn a_request_to_end_reaches_the_leader_that_traps_it_and_its_members() {
    in_own_process(
        "namespace::a_request_to_end_reaches_the_leader_that_traps_it_and_its_members",
        || {
            let script = "trap 'echo leader; exit 9' TERM; \
                setsid sh -c 'trap \"echo member; exit\" TERM; echo up; while :; do sleep 0.02; done' & \
                while :; do sleep 0.02; done";
            let Some((mut tree, output)) = start(script) else { return };
            assert_eq!(line(&output), "up");
            tree.leader().signal_group(Signal::Term).unwrap();
            assert_eq!(line(&output), "leader");
            assert_eq!(exit_of(tree.leader()), Exit::Code { code: 9 });
            assert!(tree.terminate().unwrap().sent >= 1);
            assert_eq!(line(&output), "member");
            drop(end_with_proof(&mut tree));
        },
    );
}

#[test]
fn a_killed_leader_is_told_as_killed_and_not_as_unknown() {
    in_own_process("namespace::a_killed_leader_is_told_as_killed_and_not_as_unknown", || {
        let Some((mut tree, output)) = start("setsid sleep 300 & echo up; wait") else { return };
        assert_eq!(line(&output), "up");
        // The leader runs: its init must stay to tell of it.
        tree.kill().unwrap();
        assert_eq!(exit_of(tree.leader()), Exit::Signal { signal: 9, core: false });
        drop(end_with_proof(&mut tree));
    });
}

#[test]
fn nobody_inside_can_end_the_init() {
    in_own_process("namespace::nobody_inside_can_end_the_init", || {
        let script = "for s in TERM INT HUP USR1 KILL STOP; do kill -s $s 1; done; kill -KILL -1; \
                      echo here; exit 4";
        let Some((mut tree, output)) = start(script) else { return };
        assert_eq!(line(&output), "here");
        assert_eq!(exit_of(tree.leader()), Exit::Code { code: 4 });
        drop(end_with_proof(&mut tree));
    });
}

#[test]
fn the_end_of_a_killed_init_is_the_end_of_everything_and_no_invented_exit() {
    in_own_process(
        "namespace::the_end_of_a_killed_init_is_the_end_of_everything_and_no_invented_exit",
        || {
            let Ok((gated, output)) = shell("setsid sleep 300 & echo up; wait").try_gated() else {
                println!("not looked at: no namespace here");
                return;
            };
            let identity = gated.identity().unwrap();
            let opened = gated.open_gate().unwrap();
            let namespace = opened.namespace.unwrap();
            let init = namespace.identity().unwrap();
            let mut tree = Tree::new(Containment::PidNamespace(namespace), opened.leader);
            assert_eq!(line(&output), "up");
            let NamespacePresence::Present(it) = PidNamespace::look_up(&init) else {
                panic!("it runs")
            };
            it.signal(Signal::Kill).unwrap();
            wait_for("the end of the exit", tree.leader().exit_descriptor(), PollFlags::IN);
            assert_eq!(tree.leader().observe_exit(), Err(WaitError::Unreported));
            wait_until_ended(&tree);
            // A zombie is proof enough: the kernel has waited for every member before.
            let NamespacePresence::Gone(gone) = PidNamespace::look_up(&init) else {
                panic!("it has ended")
            };
            assert_eq!(gone.proof(), "the init of the PID namespace has ended");
            assert!(matches!(identity.observe(), Presence::Absent(_)));
            assert_eq!(all(output), "");
            drop(tree.prove_gone().unwrap());
        },
    );
}

#[test]
fn a_hidden_runner_makes_a_namespace_too() {
    in_own_process("namespace::a_hidden_runner_makes_a_namespace_too", || {
        become_subreaper().unwrap();
        set_non_dumpable().unwrap();
        let Some((mut tree, output)) = start(ESCAPE) else { return };
        assert_eq!(line(&output), "up");
        until("the members", || tree.members().ok().filter(|members| members.len() == 2));
        drop(end_with_proof(&mut tree));
    });
}

#[test]
fn a_storm_of_forking_escapees_ends_with_its_namespace() {
    in_own_process("namespace::a_storm_of_forking_escapees_ends_with_its_namespace", || {
        become_subreaper().unwrap();
        let storm = "for n in 1 2 3 4 5 6; do \
                setsid sh -c 'sleep 300 & (setsid sleep 300 &); \
                    while :; do (setsid sleep 0.05 &); sleep 0.02; done' & \
            done; echo up; exit 0";
        let Some((mut tree, output)) = start(storm) else { return };
        assert_eq!(line(&output), "up");
        until("a storm", || tree.members().ok().filter(|members| members.len() > 20));
        drop(end_with_proof(&mut tree));
        assert_eq!(all(output), "");
    });
}

#[test]
fn the_end_of_the_thread_that_made_it_ends_everything() {
    in_own_process("namespace::the_end_of_the_thread_that_made_it_ends_everything", || {
        let made = std::thread::spawn(|| {
            let (tree, output) = start("setsid sleep 300 & echo up; wait")?;
            assert_eq!(line(&output), "up");
            let members = tree.members().unwrap();
            let members: Vec<_> =
                members.into_iter().map(|pid| ProcessIdentity::of(pid).unwrap()).collect();
            Some((tree, members, output))
        });
        let Some((mut tree, members, output)) = made.join().unwrap() else { return };
        wait_until_ended(&tree);
        assert_eq!(all(output), "");
        assert!(!members.is_empty());
        assert!(members.iter().all(|it| matches!(it.observe(), Presence::Absent(_))));
        drop(tree.prove_gone().unwrap());
    });
}

#[test]
fn a_program_that_does_not_start_leaves_no_namespace() {
    in_own_process("namespace::a_program_that_does_not_start_leaves_no_namespace", || {
        let (null, root) = (dev_null().unwrap(), std::fs::File::open("/").unwrap());
        let gated = spawn(&Spawn {
            program: Program::Path(c"/nonexistent/program"),
            argv: vec![c"program".into()],
            environment: vec![],
            working_directory: root.as_fd(),
            stdin: null.as_fd(),
            stdout: null.as_fd(),
            stderr: null.as_fd(),
            birthplace: Birthplace::PidNamespace,
            on_parent_death: OnParentDeath::Die,
            session: Session::Inherited,
        });
        let Ok(gated) = gated else {
            println!("not looked at: {}", gated.unwrap_err());
            return;
        };
        let init = gated.namespace().unwrap().identity().unwrap();
        let failed = gated.open_gate().unwrap_err();
        assert_eq!((failed.step, failed.errno.name().as_str()), (ChildStep::Exec, "ENOENT"));
        assert_eq!(failed.exit, Some(Exit::Code { code: 127 }));
        assert!(matches!(PidNamespace::look_up(&init), NamespacePresence::Gone(_)));
        assert_eq!(std::fs::read_to_string("/proc/thread-self/children").unwrap(), "");
    });
}

#[test]
fn an_init_that_cannot_set_its_namespace_up_names_its_step_and_leaves_nothing() {
    in_own_process(
        "namespace::an_init_that_cannot_set_its_namespace_up_names_its_step_and_leaves_nothing",
        || {
            if start("exit 0").map(|(mut tree, _)| drop(end_with_proof(&mut tree))).is_none() {
                return;
            }
            let null = dev_null().unwrap();
            let refused = spawn(&Spawn {
                program: Program::Path(c"/bin/true"),
                argv: vec![c"true".into()],
                environment: vec![],
                working_directory: null.as_fd(),
                stdin: null.as_fd(),
                stdout: null.as_fd(),
                stderr: null.as_fd(),
                birthplace: Birthplace::PidNamespace,
                on_parent_death: OnParentDeath::Die,
                session: Session::Inherited,
            })
            .unwrap_err();
            let SpawnError::Namespace { step, errno } = refused else { panic!("{refused}") };
            assert_eq!((step, errno.name().as_str()), (NamespaceStep::WorkingDirectory, "ENOTDIR"));
            assert_eq!(std::fs::read_to_string("/proc/thread-self/children").unwrap(), "");
        },
    );
}

#[test]
fn the_probe_escapes_and_is_ended_in_a_namespace() {
    in_own_process("namespace::the_probe_escapes_and_is_ended_in_a_namespace", || {
        become_subreaper().unwrap();
        let probe = match spawn_probe(Birthplace::PidNamespace) {
            Ok(probe) => probe,
            Err(error) => {
                println!("not looked at: {error}");
                return;
            }
        };
        assert_eq!(probe.wait(PATIENCE), ProbeState::Escaped);
        let (leader, lifeline, namespace) = probe.into_parts();
        let mut tree = Tree::new(Containment::PidNamespace(namespace.unwrap()), leader);
        assert_eq!(exit_of(tree.leader()), Exit::Code { code: 0 });
        until("the member", || tree.members().ok().filter(|members| members.len() == 1));
        drop(end_with_proof(&mut tree));
        drop(lifeline);
    });
}
