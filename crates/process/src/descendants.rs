//! Who descends from this process, by the kernel's children lists.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;

use nix::sys::wait::{WaitPidFlag, WaitStatus};
use placement_identity::{Errno, Pid, ProcessList, list_processes};

use crate::limits::{LIST_BYTES_MAX, TREE_MEMBERS_MAX};

/// Says why descendants could not be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescendantsError {
    /// The children lists could not be read.
    #[error("cannot read the list of children: {0}")]
    Read(Errno),
    /// A list has an unknown form.
    #[error("the list of children has an unknown form")]
    Malformed,
    /// The process table, which stands in where the kernel has no children lists, is not complete.
    #[error("the process table is not complete")]
    Partial,
    /// There are more than are looked at.
    #[error("there are too many descendants")]
    TooMany,
}

/// Lists this process's own children, zombies included.
pub(crate) fn own_children() -> Result<Vec<Pid>, DescendantsError> {
    let own = Pid::this_process();
    match children_of(own, own)? {
        Lists::Children(children) => Ok(children),
        Lists::NotProvided => Ok(from_table()?.children(own)),
        Lists::Gone => Err(DescendantsError::Read(Errno::from_raw(libc::ESRCH))),
    }
}

/// Lists every descendant of this process once, zombies included, as [`descendants_of`] does.
pub(crate) fn own_descendants() -> Result<Vec<Pid>, DescendantsError> {
    descendants_of(Pid::this_process())
}

/// Lists every descendant of a process once, zombies included.
///
/// It is no snapshot: what is born, or orphaned from one list to another, while the lists are read
/// may be missed. Repeat it; only the absence of children (`ECHILD`) proves anything.
pub(crate) fn descendants_of(ancestor: Pid) -> Result<Vec<Pid>, DescendantsError> {
    let mut table: Option<Table> = None;
    let mut seen = HashSet::from([ancestor]);
    let mut found = Vec::new();
    let mut pending = vec![ancestor];
    while let Some(pid) = pending.pop() {
        let children = match &table {
            Some(table) => table.children(pid),
            None => match children_of(pid, ancestor)? {
                Lists::Children(children) => children,
                Lists::Gone => Vec::new(),
                Lists::NotProvided => table.insert(from_table()?).children(pid),
            },
        };
        for child in children {
            if seen.insert(child) {
                found.push(child);
                pending.push(child);
            }
        }
        if found.len() > TREE_MEMBERS_MAX {
            return Err(DescendantsError::TooMany);
        }
    }
    Ok(found)
}

/// Reaps every child of this process that has ended, by its number from the children list, but the
/// one to keep. `P_ANY` would return a zombie leader for ever while others wait behind it.
pub(crate) fn reap_children_but(kept: Option<Pid>) -> Result<u32, DescendantsError> {
    let mut reaped = 0_u32;
    for child in own_children()?.into_iter().filter(|child| Some(*child) != kept) {
        let number = nix::unistd::Pid::from_raw(child.as_raw());
        match nix::sys::wait::waitpid(number, Some(WaitPidFlag::WNOHANG | WaitPidFlag::__WALL)) {
            Ok(status) if status != WaitStatus::StillAlive => reaped = reaped.saturating_add(1),
            // Alive, or reaped already.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(reaped)
}

/// Answers what the kernel knows of this process's children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Children {
    /// `ECHILD`: there is none, dead or alive.
    None,
    /// There is at least one.
    Some,
}

/// Asks the kernel whether this process has any child, by `waitid(2)` that changes nothing.
pub(crate) fn any_children() -> Result<Children, Errno> {
    use rustix::process::{WaitId, WaitIdOptions};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::All, options)) {
        Ok(_) => Ok(Children::Some),
        Err(rustix::io::Errno::CHILD) => Ok(Children::None),
        Err(error) => Err(crate::errno(error)),
    }
}

enum Lists {
    Children(Vec<Pid>),
    Gone,
    /// A kernel without `CONFIG_PROC_CHILDREN`.
    NotProvided,
}

/// Each thread of a process has its own list. That the first ancestor has none tells a kernel without
/// lists; what is below it may just have ended.
fn children_of(pid: Pid, ancestor: Pid) -> Result<Lists, DescendantsError> {
    let threads = match std::fs::read_dir(format!("/proc/{pid}/task")) {
        Ok(threads) => threads,
        Err(error) => return lists_missing(&error),
    };
    let mut children = Vec::new();
    let mut provided = false;
    for thread in threads {
        let path = match thread {
            Ok(thread) => thread.path().join("children"),
            Err(error) => return lists_missing(&error),
        };
        let mut text = String::new();
        match File::open(path).and_then(|file| file.take(LIST_BYTES_MAX).read_to_string(&mut text))
        {
            Ok(_) => provided = true,
            // The thread ended; its children go to another one.
            Err(error) if is_gone(&error) => continue,
            Err(error) => return lists_missing(&error),
        }
        for number in text.split_ascii_whitespace() {
            let number: u32 = number.parse().map_err(|_| DescendantsError::Malformed)?;
            children.push(Pid::try_from(number).map_err(|_| DescendantsError::Malformed)?);
        }
    }
    if !provided && pid == ancestor {
        return Ok(Lists::NotProvided);
    }
    Ok(Lists::Children(children))
}

/// The lists of a descendant that may not be seen (`hidepid`, another user) are left out: what it
/// leaves behind comes to this process in the end.
fn lists_missing(error: &std::io::Error) -> Result<Lists, DescendantsError> {
    let hidden = error.raw_os_error().is_some_and(|raw| raw == libc::EACCES || raw == libc::EPERM);
    if is_gone(error) || hidden {
        return Ok(Lists::Gone);
    }
    Err(DescendantsError::Read(Errno::from(error)))
}

fn is_gone(error: &std::io::Error) -> bool {
    error.raw_os_error().is_some_and(|raw| raw == libc::ENOENT || raw == libc::ESRCH)
}

/// Holds every process with its parent, from one scan.
struct Table(Vec<(Pid, Pid)>);

impl Table {
    fn children(&self, parent: Pid) -> Vec<Pid> {
        self.0.iter().filter(|(_, above)| *above == parent).map(|(pid, _)| *pid).collect()
    }
}

fn from_table() -> Result<Table, DescendantsError> {
    match list_processes() {
        ProcessList::Complete(stats) => {
            Ok(Table(stats.iter().filter_map(|stat| Some((stat.pid, stat.parent?))).collect()))
        }
        ProcessList::Partial(_) => Err(DescendantsError::Partial),
    }
}

#[cfg(test)]
mod tests {
    use super::{from_table, own_descendants};
    use placement_identity::Pid;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this test needs a child")]
    fn a_child_is_listed_by_both_ways() {
        let mut child = std::process::Command::new("sleep").arg("300").spawn().unwrap();
        let pid = Pid::try_from(child.id()).unwrap();
        let listed = own_descendants().unwrap();
        let in_table = from_table().unwrap().children(Pid::this_process());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(listed.contains(&pid));
        assert!(in_table.contains(&pid));
    }
}
