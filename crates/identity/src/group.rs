//! Whether a process group still has members.

use crate::observer::{Observer, Place, place};
use crate::pid::Pid;
use crate::presence::UnknownWhy;
use crate::procfs_view::{ProcView, ProcessList, list_processes, proc_view};
use crate::stat::ProcessState;

/// Answers whether a process group has members.
#[derive(Debug)]
#[must_use]
pub enum GroupPresence {
    /// At least this many members run.
    Members(u32),
    /// Every member that was seen has ended and waits to be reaped: ask again.
    ZombiesOnly,
    /// There is no member, and this is why that is certain.
    Absent(GroupAbsence),
    /// It could not be told.
    Unknown(UnknownWhy),
}

/// Proves that one process group has no member.
///
/// Only this crate makes it. It says nothing about processes that left the group by `setsid`.
#[derive(Debug)]
#[must_use]
pub struct GroupAbsence {
    pgid: Pid,
    because: &'static str,
}

impl GroupAbsence {
    /// Returns the group that is gone.
    pub fn pgid(&self) -> Pid {
        self.pgid
    }

    /// Returns the fixed phrase that says what was seen.
    pub fn because(&self) -> &'static str {
        self.because
    }
}

/// Looks for members of a recorded group.
///
/// Absent needs all of: an unrestricted `/proc`, one complete scan without a member, and a group
/// probe (`kill(-pgid, 0)`) that answered `ESRCH`. Either alone can miss: a relay of forking members
/// escapes a scan, and the probe is what the kernel says at one moment.
pub fn observe_group(pgid: Pid, boot_id: &str, observer: &Observer) -> GroupPresence {
    if pgid <= Pid::GROUP_OUTSIDE {
        return GroupPresence::Unknown(UnknownWhy::NotAGroup);
    }
    match place(boot_id, observer) {
        Place::Here => observe_here(pgid),
        Place::EarlierBoot(proof) => {
            GroupPresence::Absent(GroupAbsence { pgid, because: proof.because() })
        }
        Place::Elsewhere(why) => GroupPresence::Unknown(why),
    }
}

fn observe_here(pgid: Pid) -> GroupPresence {
    let view = proc_view();
    let list = list_processes();
    // Last, because it is the kernel's own count: a member that was born behind the scan answers.
    let probe = rustix::process::test_kill_process_group(pgid.to_rustix());
    judge(pgid, view, &list, probe)
}

/// Decides from what was seen: a member that runs is there whatever else is in doubt, and each doubt
/// vetoes absence.
fn judge(
    pgid: Pid,
    view: ProcView,
    list: &ProcessList,
    probe: rustix::io::Result<()>,
) -> GroupPresence {
    let members = || list.seen().iter().filter(|stat| stat.pgid == Some(pgid));
    let running = members().filter(|stat| stat.state == ProcessState::Live).count();
    if running > 0 {
        return GroupPresence::Members(u32::try_from(running).unwrap_or(u32::MAX));
    }
    if view == ProcView::Restricted {
        return GroupPresence::Unknown(UnknownWhy::ProcRestricted);
    }
    if matches!(list, ProcessList::Partial(_)) {
        return GroupPresence::Unknown(UnknownWhy::ProcUnreadable);
    }
    if members().next().is_some() {
        return GroupPresence::ZombiesOnly;
    }
    match probe {
        Err(rustix::io::Errno::SRCH) => GroupPresence::Absent(GroupAbsence {
            pgid,
            because: "no process belongs to the group and the kernel does not know it",
        }),
        Ok(()) | Err(_) => GroupPresence::Unknown(UnknownWhy::GroupProbe),
    }
}

#[cfg(test)]
mod tests {
    use super::{GroupPresence, judge, observe_group};
    use crate::machine::boot_id;
    use crate::observer::Observer;
    use crate::pid::Pid;
    use crate::presence::UnknownWhy;
    use crate::procfs_view::{ProcView, ProcessList};
    use crate::stat::{ProcessState, Stat};
    use rustix::io::Errno;

    const GROUP: u32 = 700;

    /// A member of a group.
    fn member(pgid: u32, state: ProcessState) -> Stat {
        Stat {
            pid: Pid::try_from(pgid + 1).unwrap(),
            state,
            parent: None,
            pgid: Some(Pid::try_from(pgid).unwrap()),
            start_ticks: 1,
            kernel_thread: false,
            environment_address: None,
        }
    }

    /// Judges in a few letters.
    fn judged(view: ProcView, list: &ProcessList, probe: Result<(), Errno>) -> String {
        match judge(Pid::try_from(GROUP).unwrap(), view, list, probe) {
            GroupPresence::Members(count) => format!("{count} members"),
            GroupPresence::ZombiesOnly => "zombies only".to_owned(),
            GroupPresence::Absent(proof) => format!("{} is absent", proof.pgid()),
            GroupPresence::Unknown(why) => format!("{why:?}"),
        }
    }

    #[test]
    fn only_a_full_view_a_complete_list_and_a_probe_that_finds_nobody_prove_absence() {
        use ProcView::{Full, Restricted};
        use ProcessList::{Complete, Partial};
        let others = || vec![member(GROUP + 7, ProcessState::Live)];
        let nobody = Err(Errno::SRCH);
        assert_eq!(judged(Full, &Complete(others()), nobody), "700 is absent");
        for (view, list, probe, vetoed) in [
            (Restricted, Complete(others()), nobody, "ProcRestricted"),
            (Full, Partial(others()), nobody, "ProcUnreadable"),
            (Full, Partial(Vec::new()), nobody, "ProcUnreadable"),
            (Full, Complete(others()), Ok(()), "GroupProbe"),
            (Full, Complete(others()), Err(Errno::PERM), "GroupProbe"),
            (Full, Complete(others()), Err(Errno::INVAL), "GroupProbe"),
        ] {
            assert_eq!(judged(view, &list, probe), vetoed, "{view:?} {list:?} {probe:?}");
        }
    }

    #[test]
    fn a_member_that_runs_is_there_whatever_else_is_in_doubt() {
        let seen = || {
            let (live, ended) = (ProcessState::Live, ProcessState::Ended);
            vec![member(GROUP, live), member(GROUP, ended), member(GROUP, live)]
        };
        for view in [ProcView::Full, ProcView::Restricted] {
            for list in [ProcessList::Complete(seen()), ProcessList::Partial(seen())] {
                for probe in [Ok(()), Err(Errno::SRCH), Err(Errno::PERM)] {
                    assert_eq!(judged(view, &list, probe), "2 members");
                }
            }
        }
    }

    #[test]
    fn zombies_are_all_of_a_group_only_where_everything_was_seen() {
        use ProcView::{Full, Restricted};
        use ProcessList::{Complete, Partial};
        let seen = || vec![member(GROUP, ProcessState::Ended)];
        for probe in [Ok(()), Err(Errno::SRCH)] {
            assert_eq!(judged(Full, &Complete(seen()), probe), "zombies only");
            assert_eq!(judged(Restricted, &Complete(seen()), probe), "ProcRestricted");
            assert_eq!(judged(Full, &Partial(seen()), probe), "ProcUnreadable");
        }
    }

    #[test]
    fn a_group_led_from_outside_the_namespace_is_never_answered_for() {
        let answer = observe_group(
            Pid::try_from(1).unwrap(),
            &boot_id().unwrap(),
            &Observer::here().unwrap(),
        );
        assert!(matches!(answer, GroupPresence::Unknown(UnknownWhy::NotAGroup)));
    }

    #[test]
    fn a_group_of_another_pid_namespace_is_unknown() {
        let elsewhere = Observer { pid_namespace: 7, ..Observer::here().unwrap() };
        let answer =
            observe_group(Pid::try_from(i32::MAX).unwrap(), &boot_id().unwrap(), &elsewhere);
        assert!(matches!(answer, GroupPresence::Unknown(UnknownWhy::OtherPidNamespace)));
    }

    #[test]
    fn a_group_number_that_nobody_has_is_absent() {
        let pgid = Pid::try_from(i32::MAX).unwrap();
        let answer = observe_group(pgid, &boot_id().unwrap(), &Observer::here().unwrap());
        let GroupPresence::Absent(proof) = answer else { panic!("{answer:?}") };
        assert_eq!(proof.pgid(), pgid);
    }
}
