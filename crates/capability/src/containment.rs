//! Measuring a mechanism that contains a whole tree.

use std::os::fd::OwnedFd;
use std::time::Instant;

use placement_contract::Exit;
use placement_identity::ProcessIdentity;
use placement_process::{
    Birthplace, CgroupSite, Containment, Leader, PidNamespace, Probe, ProbeState, Tree, TreeGone,
    TreeState, spawn_probe,
};

use crate::failure::Failure;
use crate::limits::{LOOK_AGAIN, PROBE_STEP_MAX};

/// Measures a leaf below the own control group.
pub(crate) fn measure_cgroup(site: &CgroupSite) -> Result<(), Failure> {
    let leaf = site.create(&leaf_name()?).map_err(|error| Failure::leaf("making a leaf", error))?;
    match spawn_probe(Birthplace::Leaf(&leaf)) {
        Ok(probe) => contain(probe, |_| Some(Containment::Cgroup(leaf))),
        Err(error) => {
            // The first failure is the one to tell.
            drop(leaf.remove());
            Err(Failure::spawn(error))
        }
    }
}

/// Measures the sweep of a subreaper, which this process is by now.
pub(crate) fn measure_subreaper() -> Result<(), Failure> {
    let probe = spawn_probe(Birthplace::Here).map_err(Failure::spawn)?;
    contain(probe, |_| Some(Containment::Subreaper))
}

/// Measures a PID namespace, with or without privilege.
pub(crate) fn measure_pid_namespace() -> Result<(), Failure> {
    let probe = spawn_probe(Birthplace::PidNamespace).map_err(Failure::namespace)?;
    contain(probe, |namespace| namespace.map(Containment::PidNamespace))
}

/// No process of this boot had or has both, where the kernel gives each a pidfd inode of its own; else
/// none of this PID namespace.
fn leaf_name() -> Result<String, Failure> {
    let own = ProcessIdentity::this_process().map_err(|error| Failure::identity(&error))?;
    let once = own.pidfd_inode.unwrap_or(own.start_ticks);
    Ok(format!("pl-probe-{}-{once}", own.pid))
}

/// The escaped descendant must be counted, killed and proven gone. Whatever fails, what the probe
/// left is ended as far as it can be.
fn contain(
    probe: Probe,
    within: impl FnOnce(Option<PidNamespace>) -> Option<Containment>,
) -> Result<(), Failure> {
    let escaped = wait_for_escape(&probe);
    let (leader, lifeline, namespace) = probe.into_parts();
    let containment = within(namespace).expect("a probe has the namespace that was asked for");
    let ended = wait_for_exit(&leader);
    let mut tree = Tree::new(containment, leader);
    let measured = escaped.and(ended).and_then(|()| kill_and_prove(&mut tree));
    let measured = match measured {
        Ok(gone) => {
            drop(gone);
            return Ok(());
        }
        Err(failure) => failure,
    };
    give_up(&mut tree, lifeline);
    Err(measured)
}

fn kill_and_prove(tree: &mut Tree) -> Result<TreeGone, Failure> {
    const COUNT: &str = "counting the escaped descendant";
    const KILL: &str = "killing the escaped descendant";
    within(COUNT, || {
        let members = tree.members().map_err(|error| Failure::tree(COUNT, error))?;
        Ok((members.len() == 1).then_some(()))
    })?;
    within(KILL, || {
        tree.kill().map_err(|error| Failure::tree(KILL, error))?;
        match tree.state() {
            TreeState::Empty => Ok(Some(())),
            TreeState::Populated { .. } => Ok(None),
            TreeState::Unknown(error) => Err(Failure::tree(KILL, error)),
        }
    })?;
    tree.reap_leader().map_err(|error| Failure::wait("reaping the probe", error))?;
    tree.prove_gone().map_err(Failure::not_gone)
}

/// The descendant ends by itself when its lifeline is closed; then everything can be reaped, and the
/// leaf removed. It is tried for one step's time only.
fn give_up(tree: &mut Tree, lifeline: OwnedFd) {
    drop(lifeline);
    let cleaned = within("giving up", || {
        // Killing is what may have failed; the descendant ends without it.
        tree.kill().ok();
        tree.reap_leader().ok();
        Ok(tree.prove_gone().ok())
    });
    drop(cleaned);
}

pub(crate) fn wait_for_escape(probe: &Probe) -> Result<(), Failure> {
    const STEP: &str = "starting an escaping descendant";
    match probe.wait(PROBE_STEP_MAX) {
        ProbeState::Escaped => Ok(()),
        ProbeState::Refused(errno) => Err(Failure { step: STEP, errno: Some(errno) }),
        ProbeState::Starting | ProbeState::Failed => Err(Failure::at(STEP)),
    }
}

/// The exit must be seen while the descendant lives.
pub(crate) fn wait_for_exit(leader: &Leader) -> Result<(), Failure> {
    const STEP: &str = "observing the exit of the probe";
    match leader.await_exit(PROBE_STEP_MAX).map_err(|error| Failure::wait(STEP, error))? {
        Exit::Code { code: 0 } => Ok(()),
        Exit::Code { .. } | Exit::Signal { .. } => Err(Failure::at(STEP)),
    }
}

/// Looks again and again until the answer is there or the step's time is over.
pub(crate) fn within<T>(
    step: &'static str,
    mut look: impl FnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let deadline = Instant::now() + PROBE_STEP_MAX;
    loop {
        if let Some(answer) = look()? {
            return Ok(answer);
        }
        if Instant::now() >= deadline {
            return Err(Failure::at(step));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::within;
    use crate::failure::Failure;

    #[test]
    fn a_failing_look_ends_the_step_at_once() {
        let failure = within::<()>("step", || Err(Failure::at("inner")));
        assert_eq!(failure, Err(Failure::at("inner")));
    }
}
