//! What a control group can be limited by, and what its limits have cost.

use std::os::fd::{AsFd as _, BorrowedFd};

use placement_contract::Controller;
use placement_contract::request::Limits;
use placement_identity::Errno;
use rustix::fs::{Access, AtFlags, Mode, OFlags};

use crate::leaf::{CgroupLeaf, LeafError, read_at};
use crate::site::CgroupSite;

/// Period of the processor limit, in microseconds: the kernel's default.
const CPU_PERIOD_US: u64 = 100_000;
/// Microseconds of a period that one thousandth of a processor is.
const CPU_US_PER_MILLI: u64 = CPU_PERIOD_US / 1_000;

/// Says why a limit could not be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// The leaf has no such controller and cannot be given it.
    #[error("the controller {0} is not to be had for a control group here")]
    Missing(Controller),
    /// The controller could not be given to the leaf: `EBUSY` where the group above has processes.
    #[error("cannot give a control group the controller {0}: {1}")]
    Enable(Controller, Errno),
    /// The limit could not be written.
    #[error("cannot limit {0}: {1}")]
    Write(Controller, Errno),
    /// What there is could not be read.
    #[error("cannot read the controllers of the control group")]
    Read(#[source] LeafError),
}

impl CgroupSite {
    /// Returns the controllers that a leaf made here would have: those that leaves are given already,
    /// and those that they can be given.
    ///
    /// Nothing is changed. A group that has processes cannot give its leaves more than it does: the
    /// kernel lets no process compete with the groups beside it, but in the root of the hierarchy.
    /// See "No Internal Process Constraint" in `cgroups(7)`.
    ///
    /// # Errors
    /// [`LeafError`] when the own group's files cannot be read.
    pub fn controllers(&self) -> Result<Vec<Controller>, LeafError> {
        let group = self.directory();
        let given = named(&read_file(group, "cgroup.subtree_control")?);
        if !can_give(group)? {
            return Ok(given);
        }
        let offered = named(&read_file(group, "cgroup.controllers")?);
        let either =
            |controller: &&Controller| given.contains(controller) || offered.contains(controller);
        Ok(Controller::ALL.iter().filter(either).copied().collect())
    }

    /// Gives leaves made here these controllers, by writing `cgroup.subtree_control`; what they have
    /// already is left as it is.
    ///
    /// # Errors
    /// [`LimitError`] names the first controller that they do not get.
    pub fn enable(
        &self,
        controllers: impl IntoIterator<Item = Controller>,
    ) -> Result<(), LimitError> {
        let group = self.directory();
        let given = named(&read_file(group, "cgroup.subtree_control").map_err(LimitError::Read)?);
        let offered = named(&read_file(group, "cgroup.controllers").map_err(LimitError::Read)?);
        for controller in controllers {
            if given.contains(&controller) {
                continue;
            }
            if !offered.contains(&controller) {
                return Err(LimitError::Missing(controller));
            }
            write_file(group, "cgroup.subtree_control", &format!("+{controller}"))
                .map_err(|errno| LimitError::Enable(controller, errno))?;
        }
        Ok(())
    }
}

impl CgroupLeaf {
    /// Limits what the processes of the leaf may use together. Memory is limited without swap, where
    /// swap is counted.
    ///
    /// # Errors
    /// [`LimitError`] names the controller.
    pub fn limit(&self, limits: &Limits) -> Result<(), LimitError> {
        limit(self.directory(), limits)
    }

    /// Returns how many processes of the leaf the kernel has killed so far because its memory was
    /// used up; `None` where its memory is not counted.
    ///
    /// # Errors
    /// [`LeafError`] when that cannot be read.
    pub fn oom_kills(&self) -> Result<Option<u64>, LeafError> {
        oom_kills(self.directory())
    }
}

fn limit(group: BorrowedFd<'_>, limits: &Limits) -> Result<(), LimitError> {
    let set =
        |controller: Controller, file: &str, value: String| match write_file(group, file, &value) {
            Ok(()) => Ok(()),
            Err(errno) if errno.raw() == libc::ENOENT => Err(LimitError::Missing(controller)),
            Err(errno) => Err(LimitError::Write(controller, errno)),
        };
    if let Some(bytes) = limits.memory_bytes {
        set(Controller::Memory, "memory.max", bytes.to_string())?;
        match set(Controller::Memory, "memory.swap.max", "0".to_owned()) {
            // A kernel that does not count swap.
            Ok(()) | Err(LimitError::Missing(_)) => {}
            Err(error) => return Err(error),
        }
    }
    if let Some(pids) = limits.pids {
        set(Controller::Pids, "pids.max", pids.to_string())?;
    }
    if let Some(cpu_millis) = limits.cpu_millis {
        let quota_us = cpu_millis.saturating_mul(CPU_US_PER_MILLI);
        set(Controller::Cpu, "cpu.max", format!("{quota_us} {CPU_PERIOD_US}"))?;
    }
    Ok(())
}

fn oom_kills(group: BorrowedFd<'_>) -> Result<Option<u64>, LeafError> {
    match read_file(group, "memory.events") {
        Ok(text) => kills_in(&text).map(Some),
        Err(LeafError::Open(errno)) if errno.raw() == libc::ENOENT => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads the text of `memory.events`, a name and a count in each line: how many processes the kernel
/// has killed for want of memory.
///
/// # Errors
/// [`LeafError::Malformed`] where it does not say.
pub fn kills_in(text: &str) -> Result<u64, LeafError> {
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.parse().ok()).ok_or(LeafError::Malformed)
}

/// The known ones of a list of names.
fn named(text: &str) -> Vec<Controller> {
    let names: Vec<&str> = text.split_ascii_whitespace().collect();
    Controller::ALL.iter().filter(|it| names.contains(&it.label())).copied().collect()
}

/// Says whether this process may give the leaves of a group more than they have.
fn can_give(group: BorrowedFd<'_>) -> Result<bool, LeafError> {
    // Asked for the effective user; nothing is written.
    let writable =
        rustix::fs::accessat(group, "cgroup.subtree_control", Access::WRITE_OK, AtFlags::EACCESS);
    if writable.is_err() {
        return Ok(false);
    }
    // The root alone has no type, and may have processes beside its groups.
    match rustix::fs::statat(group, "cgroup.type", AtFlags::empty()) {
        Err(rustix::io::Errno::NOENT) => Ok(true),
        Ok(_) | Err(_) => Ok(read_file(group, "cgroup.procs")?.is_empty()),
    }
}

fn read_file(group: BorrowedFd<'_>, name: &str) -> Result<String, LeafError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(group, name, flags, Mode::empty())
        .map_err(|error| LeafError::Open(crate::errno(error)))?;
    read_at(file.as_fd())
}

fn write_file(group: BorrowedFd<'_>, name: &str, value: &str) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(group, name, flags, Mode::empty())
        .and_then(|file| rustix::io::write(&file, value.as_bytes()))
        .map(|_| ())
        .map_err(crate::errno)
}

#[cfg(test)]
mod tests {
    use super::{LimitError, can_give, kills_in, limit, named, oom_kills};
    use crate::leaf::LeafError;
    use placement_contract::Controller;
    use placement_contract::request::Limits;
    use std::fs::File;
    use std::os::fd::AsFd as _;

    const ALL: Limits =
        Limits { memory_bytes: Some(67_108_864), pids: Some(12), cpu_millis: Some(1_500) };

    /// Plain files that stand in for those of a group.
    fn group(files: &[(&str, &str)]) -> (tempfile::TempDir, File) {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        let opened = File::open(directory.path()).unwrap();
        (directory, opened)
    }

    #[test]
    fn each_limit_is_written_as_the_kernel_reads_it() {
        let names = ["memory.max", "memory.swap.max", "pids.max", "cpu.max"];
        let (directory, opened) = group(&names.map(|name| (name, "")));
        limit(opened.as_fd(), &ALL).unwrap();
        let written =
            names.map(|name| std::fs::read_to_string(directory.path().join(name)).unwrap());
        assert_eq!(written, ["67108864", "0", "12", "150000 100000"]);
    }

    #[test]
    fn what_is_not_limited_is_left_alone() {
        let (directory, opened) = group(&[("pids.max", "max"), ("memory.max", "max")]);
        limit(opened.as_fd(), &Limits { pids: Some(3), ..Limits::default() }).unwrap();
        let read = |name| std::fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!((read("memory.max").as_str(), &read("pids.max")[..1]), ("max", "3"));
    }

    #[test]
    fn a_limit_without_its_controller_names_it() {
        let without = |missing: &str| {
            let names = ["memory.max", "pids.max", "cpu.max"];
            let files: Vec<_> =
                names.iter().filter(|name| **name != missing).map(|name| (*name, "")).collect();
            let (_directory, opened) = group(&files);
            limit(opened.as_fd(), &ALL)
        };
        assert_eq!(without("memory.max"), Err(LimitError::Missing(Controller::Memory)));
        assert_eq!(without("pids.max"), Err(LimitError::Missing(Controller::Pids)));
        assert_eq!(without("cpu.max"), Err(LimitError::Missing(Controller::Cpu)));
        assert_eq!(without("swap is not counted here"), Ok(()));
    }

    #[test]
    fn kills_are_counted_from_the_events_of_the_memory() {
        let events = "low 0\nhigh 0\nmax 57\noom 3\noom_kill 2\noom_group_kill 0\n";
        assert_eq!(kills_in(events), Ok(2));
        let (_directory, opened) = group(&[("memory.events", events)]);
        assert_eq!(oom_kills(opened.as_fd()), Ok(Some(2)));
        let (_directory, opened) = group(&[]);
        assert_eq!(oom_kills(opened.as_fd()), Ok(None));
    }

    #[test]
    fn events_of_an_unknown_form_are_no_count() {
        for text in ["", "oom 3\n", "oom_kill\n", "oom_kill many\n", "oom_group_kill 1\n"] {
            assert_eq!(kills_in(text), Err(LeafError::Malformed), "{text:?}");
        }
    }

    #[test]
    fn known_controllers_are_found_among_others() {
        let text = "cpuset cpu io memory hugetlb pids rdma\n";
        assert_eq!(named(text), [Controller::Memory, Controller::Pids, Controller::Cpu]);
        assert_eq!(named("hugetlb\n"), []);
        assert_eq!(named("memory_recursiveprot cpus"), []);
    }

    #[test]
    fn a_group_with_processes_gives_no_more_unless_it_is_the_root() {
        let (_directory, inner) = group(&[
            ("cgroup.subtree_control", ""),
            ("cgroup.type", "domain\n"),
            ("cgroup.procs", "1\n"),
        ]);
        assert_eq!(can_give(inner.as_fd()), Ok(false));
        let (_directory, empty) = group(&[
            ("cgroup.subtree_control", ""),
            ("cgroup.type", "domain\n"),
            ("cgroup.procs", ""),
        ]);
        assert_eq!(can_give(empty.as_fd()), Ok(true));
        let (_directory, root) = group(&[("cgroup.subtree_control", ""), ("cgroup.procs", "1\n")]);
        assert_eq!(can_give(root.as_fd()), Ok(true));
        let (_directory, closed) = group(&[]);
        assert_eq!(can_give(closed.as_fd()), Ok(false));
    }
}
