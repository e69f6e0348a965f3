//! Reaching the members of a tree, whose numbers may be given away while they are looked at.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use placement_identity::Pid;
use rustix::process::PidfdFlags;

use crate::limits::CONFIRMED_AT_ONCE;
use crate::poll::is_readable;
use crate::tree::TreeError;

/// Calls back for each listed process that runs, with a pidfd that reaches it, and counts them. A
/// pidfd is readable when the last thread of its process has ended.
///
/// A listed number may have been given away before its pidfd is opened; a number that is listed
/// again after the open was a member's at the open, or the pidfd reaches nobody.
pub(crate) fn each_confirmed(
    list: impl Fn() -> Result<Vec<Pid>, TreeError>,
    mut act: impl FnMut(Pid, BorrowedFd<'_>),
) -> Result<u32, TreeError> {
    let mut count = 0_u32;
    for listed in list()?.chunks(CONFIRMED_AT_ONCE) {
        let mut opened = Vec::with_capacity(listed.len());
        for pid in listed {
            if let Some(pidfd) = open(*pid)? {
                opened.push((*pid, pidfd));
            }
        }
        if opened.is_empty() {
            continue;
        }
        let mut again = list()?;
        again.sort_unstable();
        for (pid, pidfd) in opened {
            if again.binary_search(&pid).is_ok() && !is_readable(pidfd.as_fd()) {
                act(pid, pidfd.as_fd());
                count = count.saturating_add(1);
            }
        }
    }
    Ok(count)
}

/// `None` for a number that is nobody's, or a thread's, by now.
fn open(pid: Pid) -> Result<Option<OwnedFd>, TreeError> {
    match rustix::process::pidfd_open(crate::raw_pid(pid), PidfdFlags::empty()) {
        Ok(pidfd) => Ok(Some(pidfd)),
        Err(rustix::io::Errno::SRCH | rustix::io::Errno::NOENT | rustix::io::Errno::INVAL) => {
            Ok(None)
        }
        Err(error) => Err(TreeError::Descriptor(crate::errno(error))),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::each_confirmed;
    use placement_identity::Pid;

    #[test]
    fn a_number_that_is_not_listed_again_is_not_reached() {
        let own = Pid::this_process();
        let first = Cell::new(true);
        let list = || Ok(if first.replace(false) { vec![own] } else { vec![] });
        let mut reached = Vec::new();
        assert_eq!(each_confirmed(list, |pid, _| reached.push(pid)), Ok(0));
        assert_eq!(reached, []);
    }

    #[test]
    fn a_number_that_is_nobodys_is_not_reached() {
        let nobody = Pid::try_from(i32::MAX).unwrap();
        assert_eq!(each_confirmed(|| Ok(vec![nobody]), |_, _| {}), Ok(0));
    }
}
