//! Measuring what can be said about a process group alone.

use placement_identity::{GroupPresence, Pid, observe_group};
use placement_process::{
    Birthplace, Containment, GroupSignalError, Signal, Tree, TreeState, spawn_probe,
};

use crate::containment::{wait_for_escape, wait_for_exit, within};
use crate::failure::Failure;

/// A group that was signalled must be proven absent after its leader was reaped; `/proc` mounted with
/// `hidepid` makes that impossible.
pub(crate) fn measure() -> Result<(), Failure> {
    let probe = spawn_probe(Birthplace::Here).map_err(Failure::spawn)?;
    let escaped = wait_for_escape(&probe);
    let (leader, lifeline, _) = probe.into_parts();
    let ended = wait_for_exit(&leader);
    let mut tree = Tree::new(Containment::Group, leader);
    let measured = escaped.and(ended).and_then(|()| signal_and_prove(&mut tree));
    // The descendant left the group on purpose; it ends with its lifeline and comes here to be
    // reaped.
    drop(lifeline);
    let mut sweep = Tree::new(Containment::Subreaper, tree.into_leader());
    within("ending the escaped descendant", || {
        sweep.reap_orphans().map_err(|error| Failure::tree("reaping the probe", error))?;
        sweep.reap_leader().ok();
        match sweep.state() {
            TreeState::Empty => Ok(Some(())),
            TreeState::Populated { .. } => Ok(None),
            TreeState::Unknown(error) => Err(Failure::tree("reaping the probe", error)),
        }
    })?;
    measured
}

fn signal_and_prove(tree: &mut Tree) -> Result<(), Failure> {
    const SIGNAL: &str = "signalling a process group";
    let identity = tree
        .leader()
        .identity()
        .map_err(|error| Failure { step: "reading the probe's identity", errno: error.errno() })?;
    // Before the signal: in a group of somebody else it would reach others.
    leads(tree.leader().pid(), identity.pgid)?;
    match tree.leader().signal_group(Signal::Kill) {
        Ok(()) | Err(GroupSignalError::Gone) => {}
        Err(GroupSignalError::Refused(errno)) => {
            return Err(Failure { step: SIGNAL, errno: Some(errno) });
        }
        Err(GroupSignalError::Unsupported) => return Err(Failure::at(SIGNAL)),
    }
    tree.reap_leader().map_err(|error| Failure::wait("reaping the probe", error))?;
    within("proving a group absent", || {
        match observe_group(identity.pgid, &identity.boot_id, &identity.observer) {
            GroupPresence::Absent(_) => Ok(Some(())),
            GroupPresence::Members(_) | GroupPresence::ZombiesOnly => Ok(None),
            GroupPresence::Unknown(_) => Err(Failure::at("proving a group absent")),
        }
    })
}

/// The group that was read back must be the probe's own, as it asked for.
fn leads(leader: Pid, pgid: Pid) -> Result<(), Failure> {
    if pgid == leader { Ok(()) } else { Err(Failure::at("leading a group of its own")) }
}

#[cfg(test)]
mod tests {
    use super::{leads, measure};
    use crate::failure::Failure;
    use placement_identity::{Pid, ProcView, proc_view};
    use placement_process::become_subreaper;
    use placement_testkit::in_own_process;

    #[test]
    fn a_group_is_measured_where_the_process_table_shows_everything_and_nothing_is_left() {
        let test = "group::tests::a_group_is_measured_where_the_process_table_shows_everything_and_nothing_is_left";
        in_own_process(test, || {
            become_subreaper().unwrap();
            let measured = match proc_view() {
                ProcView::Full => Ok(()),
                ProcView::Restricted => Err(Failure::at("proving a group absent")),
            };
            assert_eq!(measure(), measured);
            let children = std::fs::read_to_string("/proc/thread-self/children").unwrap();
            assert_eq!(children, "");
        });
    }

    #[test]
    fn a_probe_in_the_group_of_another_process_leads_none() {
        let [leader, other] = [700, 701].map(|number| Pid::try_from(number).unwrap());
        assert_eq!(leads(leader, leader), Ok(()));
        assert_eq!(leads(leader, other), Err(Failure::at("leading a group of its own")));
    }
}
