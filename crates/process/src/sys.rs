//! The system calls that no library offers safely.

use std::ffi::c_long;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use nix::sys::signal::{SigSet, SigmaskHow};
use placement_identity::{Errno, Pid};

const CLONE_PIDFD: u64 = 0x0000_1000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
const PIDFD_SIGNAL_PROCESS_GROUP: libc::c_uint = 4;

/// Creates a child by `clone3(2)`, at birth in the given cgroup, that runs `routine` on a copy of
/// this process's memory. Returns its number and its pidfd (close-on-exec).
///
/// # Safety
/// Other threads of this process do not exist in the child, but their locks do: `routine` must make
/// async-signal-safe calls only, which excludes allocating, panicking and the standard library's
/// input and output.
pub(crate) unsafe fn clone_child<T>(
    cgroup: Option<BorrowedFd<'_>>,
    routine: unsafe fn(&T) -> !,
    data: &T,
) -> Result<(Pid, OwnedFd), Errno> {
    let mut pidfd: RawFd = -1;
    let into_cgroup = if cgroup.is_some() { CLONE_INTO_CGROUP } else { 0 };
    let mut arguments = empty_arguments();
    arguments.flags = CLONE_PIDFD | into_cgroup;
    arguments.pidfd = (&raw mut pidfd) as u64;
    arguments.exit_signal = raw_u64(libc::SIGCHLD);
    arguments.cgroup = cgroup.map_or(0, |directory| raw_u64(directory.as_raw_fd()));
    // A handler of this process must not run in the child before it is reset there.
    let mask = SigSet::all()
        .thread_swap_mask(SigmaskHow::SIG_SETMASK)
        .map_err(|error| Errno::from_raw(error as i32))?;
    // SAFETY: the arguments are initialized, live through the call, and have the size given; without
    // CLONE_VM the child has its own copy of the stack.
    let answer = unsafe {
        libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>())
    };
    if answer == 0 {
        // SAFETY: this is the child, and the caller vouches for the routine.
        unsafe { routine(data) }
    }
    let error = last_errno();
    mask.thread_set_mask().map_err(|error| Errno::from_raw(error as i32))?;
    let pid = Pid::try_from(i32::try_from(answer).unwrap_or(-1)).map_err(|_| error)?;
    // SAFETY: the kernel stored a new descriptor there, which nobody else owns.
    Ok((pid, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

/// Creates a further child inside a child made by [`clone_child`]; zero is the new process, a
/// negative number a failure.
///
/// # Safety
/// As for [`clone_child`].
pub(crate) unsafe fn clone_again() -> c_long {
    let mut arguments = empty_arguments();
    arguments.exit_signal = raw_u64(libc::SIGCHLD);
    // SAFETY: as in `clone_child`; no flag asks the kernel to write anything back.
    unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) }
}

fn empty_arguments() -> libc::clone_args {
    libc::clone_args {
        flags: 0,
        pidfd: 0,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: 0,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: 0,
    }
}

/// Widens a number of the kernel's that is never negative.
fn raw_u64(number: i32) -> u64 {
    u64::from(number.unsigned_abs())
}

/// Sends a signal to the process group that a pidfd's process leads or led, by
/// `pidfd_send_signal(2)` with `PIDFD_SIGNAL_PROCESS_GROUP` (Linux 6.9).
pub(crate) fn pidfd_signal_group(pidfd: BorrowedFd<'_>, number: i32) -> Result<(), Errno> {
    // SAFETY: the descriptor is open; a null siginfo asks for what kill(2) would send.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            number,
            std::ptr::null::<libc::siginfo_t>(),
            PIDFD_SIGNAL_PROCESS_GROUP,
        )
    };
    if answer == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Sends a signal to the process behind a pidfd, by `pidfd_send_signal(2)`.
pub(crate) fn pidfd_signal(pidfd: BorrowedFd<'_>, number: i32) -> Result<(), Errno> {
    // SAFETY: the descriptor is open; a null siginfo asks for what kill(2) would send.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            number,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    if answer == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Closes the descriptors from `first` to `last`, both included, by `close_range(2)`.
///
/// Callers make sure that nothing in this process owns one of them.
pub(crate) fn close_range(first: u32, last: u32) -> Result<(), Errno> {
    // SAFETY: the call takes numbers only.
    let answer = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if answer == 0 { Ok(()) } else { Err(last_errno()) }
}

pub(crate) fn last_errno() -> Errno {
    Errno::from_raw(nix::errno::Errno::last_raw())
}
