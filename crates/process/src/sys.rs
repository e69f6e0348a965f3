//! The system calls that no library offers safely.

use std::ffi::c_long;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use nix::sys::signal::{SigSet, SigmaskHow};
use placement_identity::{Errno, Pid};

const CLONE_PIDFD: u64 = 0x0000_1000;
const CLONE_NEWUSER: u64 = 0x1000_0000;
const CLONE_NEWPID: u64 = 0x2000_0000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
const PIDFD_SIGNAL_PROCESS_GROUP: libc::c_uint = 4;

/// Says what a child is born into.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Surroundings<'a> {
    /// What this process is in.
    Same,
    /// A cgroup.
    Cgroup(BorrowedFd<'a>),
    /// A PID namespace of which it is the init.
    PidNamespace,
    /// The same, owned by a user namespace of its own.
    UserAndPidNamespace,
}

impl Surroundings<'_> {
    fn flags(self) -> u64 {
        match self {
            Self::Same => 0,
            Self::Cgroup(_) => CLONE_INTO_CGROUP,
            Self::PidNamespace => CLONE_NEWPID,
            Self::UserAndPidNamespace => CLONE_NEWUSER | CLONE_NEWPID,
        }
    }
}

/// Creates a child by `clone3(2)`, at birth in the given surroundings, that runs `routine` on a copy
/// of this process's memory. Returns its number and its pidfd (close-on-exec).
///
/// Container engines answer `clone3` with `ENOSYS`, because their filters cannot look into its
/// arguments; `clone(2)` does the same but for a cgroup.
///
/// # Safety
/// Other threads of this process do not exist in the child, but their locks do: `routine` must make
/// async-signal-safe calls only, which excludes allocating, panicking and the standard library's
/// input and output.
pub(crate) unsafe fn clone_child<T>(
    surroundings: Surroundings<'_>,
    routine: unsafe fn(&T) -> !,
    data: &T,
) -> Result<(Pid, OwnedFd), Errno> {
    let mut pidfd: RawFd = -1;
    // A handler of this process must not run in the child before it is reset there.
    let mask = SigSet::all()
        .thread_swap_mask(SigmaskHow::SIG_SETMASK)
        .map_err(|error| Errno::from_raw(error as i32))?;
    // SAFETY: the child's answer is zero and leads to the routine alone, which the caller vouches
    // for.
    let mut answer = unsafe { clone3(surroundings, &mut pidfd) };
    let mut error = last_errno();
    let has_old_call = !matches!(surroundings, Surroundings::Cgroup(_));
    if answer < 0 && error.raw() == libc::ENOSYS && has_old_call {
        // SAFETY: as above.
        answer = unsafe { clone(surroundings.flags(), Some(&mut pidfd)) };
        error = last_errno();
    }
    if answer == 0 {
        // SAFETY: this is the child, and the caller vouches for the routine.
        unsafe { routine(data) }
    }
    mask.thread_set_mask().expect("a mask that was in force is a valid one");
    let pid = Pid::try_from(i32::try_from(answer).unwrap_or(-1)).map_err(|_| error)?;
    // SAFETY: the kernel stored a new descriptor there, which nobody else owns.
    Ok((pid, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

/// Creates a further child inside a child made by [`clone_child`]; zero is the new process, a
/// negative number a failure. Its pidfd (close-on-exec) is stored where one is asked for.
///
/// # Safety
/// As for [`clone_child`].
pub(crate) unsafe fn clone_again(pidfd: Option<&mut RawFd>) -> c_long {
    // SAFETY: the caller vouches for what the new process does.
    unsafe { clone(0, pidfd) }
}

/// # Safety
/// Zero is the answer in a new process, which may make async-signal-safe calls only.
unsafe fn clone3(surroundings: Surroundings<'_>, pidfd: &mut RawFd) -> c_long {
    let mut arguments = empty_arguments();
    arguments.exit_signal = raw_u64(libc::SIGCHLD);
    arguments.flags = CLONE_PIDFD | surroundings.flags();
    arguments.pidfd = std::ptr::from_mut(pidfd) as u64;
    if let Surroundings::Cgroup(directory) = surroundings {
        arguments.cgroup = raw_u64(directory.as_raw_fd());
    }
    // SAFETY: the arguments are initialized, live through the call, and have the size given; without
    // CLONE_VM the new process has its own copy of the stack.
    unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) }
}

/// # Safety
/// As for [`clone3`].
unsafe fn clone(flags: u64, pidfd: Option<&mut RawFd>) -> c_long {
    let flags = flags | if pidfd.is_some() { CLONE_PIDFD } else { 0 } | raw_u64(libc::SIGCHLD);
    let pidfd = pidfd.map_or(std::ptr::null_mut(), std::ptr::from_mut);
    // The order of flags, stack and pidfd is the same on every machine but s390 and cris; the two
    // arguments after them are not used.
    // SAFETY: without a stack and CLONE_VM the new process has its own copy of this one; the kernel
    // writes one descriptor where it was asked for one.
    unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags,
            std::ptr::null_mut::<libc::c_void>(),
            pidfd,
            std::ptr::null_mut::<libc::c_void>(),
            std::ptr::null_mut::<libc::c_void>(),
        )
    }
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

/// Lets all threads take their memory from one heap, where the C library has several, and keeps up to
/// so much of it that is free.
pub(crate) fn use_one_heap(keep_bytes: i32) {
    #[cfg(target_env = "gnu")]
    for (setting, value) in [(libc::M_ARENA_MAX, 1), (libc::M_TRIM_THRESHOLD, keep_bytes)] {
        // SAFETY: the call takes numbers only.
        unsafe { libc::mallopt(setting, value) };
    }
}

/// Gives free heap memory back to the kernel, where the C library can.
pub(crate) fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes no pointer and locks the heap by itself; memory in use stays.
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Drops the pages of a mapping by `madvise(2)` with `MADV_DONTNEED`; a failure leaves them.
///
/// Callers give only a mapping that cannot be written and whose pages are all as in its file, so that
/// each comes back from there unchanged.
pub(crate) fn forget_file_pages(range: std::ops::Range<usize>) {
    let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(range.start);
    // SAFETY: no value changes: the pages are read-only and equal to the file's.
    unsafe { libc::madvise(start, range.end - range.start, libc::MADV_DONTNEED) };
}

pub(crate) fn last_errno() -> Errno {
    Errno::from_raw(nix::errno::Errno::last_raw())
}
