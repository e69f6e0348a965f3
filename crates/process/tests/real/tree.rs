//! Trees that do not want to end, in each containment. Each test has a process of its own, because a
//! subreaper gets every orphan of its process.

use std::os::fd::AsFd as _;

use crate::support::{
    PATIENCE, Shell, all, end, end_with_proof, exit_of, in_own_process, leaf, line, until, wait_for,
};
use placement_contract::{Exit, Mechanism};
use placement_identity::{Pid, Presence, ProcessIdentity};
use placement_process::{
    Birthplace, Containment, NotGone, OnParentDeath, ProbeState, Signal, Tree, TreeEvent,
    TreeState, become_subreaper, spawn_probe,
};
use rustix::event::PollFlags;

/// One process stays in the group, one leaves the session, and the leader ends.
const ESCAPE: &str = "(setsid sh -c 'echo $$; exec sleep 300' &) ; sleep 300 & echo $!; exit 0";

/// Shells in sessions of their own that start others without end.
const STORM: &str = "for n in 1 2 3 4 5 6; do \
        setsid sh -c 'sleep 300 & (setsid sleep 300 &); \
            while :; do (setsid sleep 0.05 &); sleep 0.02; done' & \
    done; echo up; exit 0";

fn identities(output: &std::os::fd::OwnedFd) -> [ProcessIdentity; 2] {
    [(); 2].map(|()| {
        let number: u32 = line(output).parse().expect("a process number");
        ProcessIdentity::of(number).expect("it runs")
    })
}

fn all_absent(identities: &[ProcessIdentity]) -> bool {
    identities.iter().all(|it| matches!(it.observe(), Presence::Absent(_)))
}

fn birthplace(containment: &Containment) -> Birthplace<'_> {
    match containment {
        Containment::Cgroup(leaf) => Birthplace::Leaf(leaf),
        Containment::Subreaper | Containment::Group => Birthplace::Here,
        Containment::PidNamespace(_) => panic!("it is made with its leader"),
    }
}

fn start(script: &str, containment: Containment) -> (Tree, std::os::fd::OwnedFd) {
    let birthplace = birthplace(&containment);
    let (leader, output) = Shell { birthplace, ..Shell::new(script) }.start();
    (Tree::new(containment, leader), output)
}

#[test]
fn a_leaf_ends_an_escaped_process_and_proves_it() {
    in_own_process("tree::a_leaf_ends_an_escaped_process_and_proves_it", || {
        become_subreaper().unwrap();
        let Some(leaf) = leaf("escape") else { return };
        let (mut tree, output) = start(ESCAPE, Containment::Cgroup(leaf));
        let escaped = identities(&output);
        assert_eq!(exit_of(tree.leader()), Exit::Code { code: 0 });
        assert_eq!(tree.state(), TreeState::Populated { members: 2 });
        assert_eq!(tree.kill().unwrap().sent, 2);
        let Some(TreeEvent::Changed(events)) = tree.event() else { panic!("no event of a leaf") };
        wait_for("the last member's end", events, PollFlags::PRI);
        until("the empty leaf", || (tree.state() == TreeState::Empty).then_some(()));
        assert_eq!(tree.prove_gone().unwrap_err(), NotGone::LeaderNotReaped);
        tree.reap_leader().unwrap();
        let gone = tree.prove_gone().unwrap();
        assert_eq!(gone.mechanism(), Mechanism::Cgroup);
        assert_eq!(gone.proof(), "cgroup populated 0 and removed");
        assert!(all_absent(&escaped));
        assert_eq!(all(output), "");
    });
}

#[test]
fn a_process_is_born_in_its_leaf() {
    in_own_process("tree::a_process_is_born_in_its_leaf", || {
        let Some(leaf) = leaf("birth") else { return };
        let path = leaf.path().to_owned();
        let (mut tree, output) = start("grep '^0::' /proc/self/cgroup", Containment::Cgroup(leaf));
        assert_eq!(line(&output), format!("0::{path}"));
        end(&mut tree);
    });
}

#[test]
fn a_subreaper_ends_an_escaped_process_and_proves_it() {
    in_own_process("tree::a_subreaper_ends_an_escaped_process_and_proves_it", || {
        become_subreaper().unwrap();
        let (mut tree, output) = start(ESCAPE, Containment::Subreaper);
        let escaped = identities(&output);
        assert_eq!(exit_of(tree.leader()), Exit::Code { code: 0 });
        assert_eq!(until_members(&tree, 2).len(), 2);
        assert_eq!(tree.kill().unwrap().sent, 2);
        let gone = end_with_proof(&mut tree);
        assert_eq!(gone.mechanism(), Mechanism::Subreaper);
        assert_eq!(gone.proof(), "subreaper has no child left");
        assert!(all_absent(&escaped));
        assert_eq!(tree.leader().reaped(), Some(Exit::Code { code: 0 }));
    });
}

/// The shell in between may still be there for a moment.
fn until_members(tree: &Tree, count: usize) -> Vec<Pid> {
    until("the members", || tree.members().ok().filter(|members| members.len() == count))
}

#[test]
fn a_subreaper_proves_nothing_while_an_escaped_process_lives() {
    in_own_process("tree::a_subreaper_proves_nothing_while_an_escaped_process_lives", || {
        become_subreaper().unwrap();
        let (mut tree, output) = start(ESCAPE, Containment::Subreaper);
        identities(&output);
        exit_of(tree.leader());
        tree.reap_leader().unwrap();
        assert_eq!(tree.prove_gone().unwrap_err(), NotGone::Populated);
        end(&mut tree);
    });
}

#[test]
fn a_hidden_runner_still_sees_its_tree() {
    in_own_process("tree::a_hidden_runner_still_sees_its_tree", || {
        become_subreaper().unwrap();
        placement_process::set_non_dumpable().unwrap();
        let (mut tree, output) = start(ESCAPE, Containment::Subreaper);
        assert_eq!(tree.leader().identity().unwrap().pgid, tree.leader().pid());
        let escaped = identities(&output);
        exit_of(tree.leader());
        until_members(&tree, 2);
        end(&mut tree);
        assert!(all_absent(&escaped));
    });
}

#[test]
fn orphans_are_reaped_while_the_ended_leader_is_kept() {
    in_own_process("tree::orphans_are_reaped_while_the_ended_leader_is_kept", || {
        become_subreaper().unwrap();
        let script = "(setsid sh -c 'exec sleep 0' &); (sleep 0 &); exit 9";
        let (mut tree, output) = start(script, Containment::Subreaper);
        exit_of(tree.leader());
        // The end of the output is the end of every process of the tree.
        assert_eq!(all(output), "");
        until("the reaping of every orphan", || {
            tree.reap_orphans().unwrap();
            (tree.state() == TreeState::Empty && own_children() == 1).then_some(())
        });
        assert_eq!(tree.reap_leader().unwrap(), Exit::Code { code: 9 });
        drop(tree.prove_gone().unwrap());
    });
}

fn own_children() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").expect("own threads");
    threads
        .map(|thread| {
            let path = thread.expect("a thread").path().join("children");
            std::fs::read_to_string(path).map_or(0, |text| text.split_whitespace().count())
        })
        .sum()
}

#[test]
fn a_group_holds_its_members_and_claims_nothing_about_the_tree() {
    in_own_process("tree::a_group_holds_its_members_and_claims_nothing_about_the_tree", || {
        become_subreaper().unwrap();
        let (mut tree, output) = start(ESCAPE, Containment::Group);
        let [first, second] = identities(&output);
        exit_of(tree.leader());
        let inside = if first.pgid == tree.leader().pid() { &first } else { &second };
        let outside = if first.pgid == tree.leader().pid() { &second } else { &first };
        assert_eq!(until_members(&tree, 1), [inside.pid]);
        assert_eq!(tree.escapees().unwrap(), [outside.pid]);
        tree.kill().unwrap();
        until("the end of the group", || (tree.state() == TreeState::Empty).then_some(()));
        assert!(matches!(inside.observe(), Presence::Absent(_)));
        let Presence::Present(escapee) = outside.observe() else { panic!("the escapee is gone") };
        tree.reap_leader().unwrap();
        assert_eq!(tree.prove_gone().unwrap_err(), NotGone::NoProof);
        escapee.signal(Signal::Kill).unwrap();
    });
}

#[test]
fn a_round_of_terminations_reaches_members_and_not_the_leader() {
    in_own_process("tree::a_round_of_terminations_reaches_members_and_not_the_leader", || {
        become_subreaper().unwrap();
        let script = "(setsid sh -c 'trap \"echo asked; exit\" TERM; echo up; while :; do sleep 0.02; done' &); \
                      trap 'echo leader' TERM; while :; do sleep 0.02; done";
        for containment in
            [leaf("terminate").map(Containment::Cgroup), Some(Containment::Subreaper)]
        {
            let Some(containment) = containment else { continue };
            let (mut tree, output) = start(script, containment);
            assert_eq!(line(&output), "up");
            assert!(tree.terminate().unwrap().sent >= 1);
            assert_eq!(line(&output), "asked");
            assert_eq!(tree.leader().observe_exit().unwrap(), None);
            end(&mut tree);
        }
    });
}

#[test]
fn a_storm_of_forking_escapees_ends_in_a_leaf() {
    in_own_process("tree::a_storm_of_forking_escapees_ends_in_a_leaf", || {
        become_subreaper().unwrap();
        let Some(leaf) = leaf("storm") else { return };
        let (mut tree, output) = start(STORM, Containment::Cgroup(leaf));
        assert_eq!(line(&output), "up");
        until("a storm", || tree.members().ok().filter(|members| members.len() > 20));
        end(&mut tree);
        assert_eq!(all(output), "");
    });
}

#[test]
fn a_storm_of_forking_escapees_ends_under_a_subreaper() {
    in_own_process("tree::a_storm_of_forking_escapees_ends_under_a_subreaper", || {
        become_subreaper().unwrap();
        let (mut tree, output) = start(STORM, Containment::Subreaper);
        assert_eq!(line(&output), "up");
        until("a storm", || tree.members().ok().filter(|members| members.len() > 20));
        end(&mut tree);
        assert_eq!(all(output), "");
        assert_eq!(own_children(), 0);
    });
}

#[test]
fn the_probe_escapes_and_is_ended_in_each_containment() {
    in_own_process("tree::the_probe_escapes_and_is_ended_in_each_containment", || {
        become_subreaper().unwrap();
        for containment in [leaf("probe").map(Containment::Cgroup), Some(Containment::Subreaper)] {
            let Some(containment) = containment else { continue };
            let probe = spawn_probe(birthplace(&containment)).unwrap();
            assert_eq!(probe.wait(PATIENCE), ProbeState::Escaped);
            let (leader, lifeline, _) = probe.into_parts();
            assert_eq!(exit_of(&leader), Exit::Code { code: 0 });
            let mut tree = Tree::new(containment, leader);
            let members = until_members(&tree, 1);
            let stat = placement_identity::read_stat(members[0]).unwrap();
            assert_ne!(stat.pgid, Some(tree.leader().pid()));
            end(&mut tree);
            drop(lifeline);
        }
    });
}

#[test]
fn the_probe_ends_by_itself_when_its_measurer_goes() {
    in_own_process("tree::the_probe_ends_by_itself_when_its_measurer_goes", || {
        become_subreaper().unwrap();
        let probe = spawn_probe(Birthplace::Here).unwrap();
        assert_eq!(probe.wait(PATIENCE), ProbeState::Escaped);
        let (leader, lifeline, _) = probe.into_parts();
        exit_of(&leader);
        let mut tree = Tree::new(Containment::Subreaper, leader);
        let members = until_members(&tree, 1);
        let identity = ProcessIdentity::of(members[0]).unwrap();
        drop(lifeline);
        until("the end of the probe", || all_absent(std::slice::from_ref(&identity)).then_some(()));
        end(&mut tree);
    });
}

#[test]
fn an_attempt_that_must_not_outlive_its_runner_leaves_its_descendants_to_the_leaf() {
    in_own_process(
        "tree::an_attempt_that_must_not_outlive_its_runner_leaves_its_descendants_to_the_leaf",
        || {
            become_subreaper().unwrap();
            let Some(leaf) = leaf("orphaned") else { return };
            let (leaf, leader, output) = std::thread::spawn(move || {
                let shell = Shell {
                    birthplace: Birthplace::Leaf(&leaf),
                    on_parent_death: OnParentDeath::Die,
                    ..Shell::new("setsid sleep 300 & echo $!; wait")
                };
                let (leader, output) = shell.start();
                let member: u32 = line(&output).parse().unwrap();
                assert!(ProcessIdentity::of(member).is_ok());
                (leaf, leader, output)
            })
            .join()
            .unwrap();
            assert_eq!(exit_of(&leader), Exit::Signal { signal: 9, core: false });
            assert_eq!(leaf.members().unwrap().len(), 1);
            end(&mut Tree::new(Containment::Cgroup(leaf), leader));
            wait_for("the end of the output", output.as_fd(), PollFlags::IN);
        },
    );
}
