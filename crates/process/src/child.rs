//! What the new process does before it becomes the program.
//!
//! It runs on a copy of the runner's memory in which other threads' locks may be held for ever:
//! nothing here allocates, panics, locks or touches the standard library's state. Everything it
//! needs was prepared before it was born.

use std::ffi::{c_char, c_int};
use std::fmt;
use std::os::fd::RawFd;

use placement_identity::Errno;

use crate::sys;

/// Exit code of a new process that could not become the program.
const NOT_STARTED: c_int = 127;
/// Exit code of a new process whose gate was never opened.
const NOT_RELEASED: c_int = 126;
/// Highest signal number of Linux.
const SIGNAL_MAX: c_int = 64;

/// Holds numbers and pointers into memory that the runner keeps alive until the call returns there.
pub(crate) struct ChildPlan {
    /// Descriptors to become 0, 1 and 2; all above 2.
    pub(crate) stdio: [RawFd; 3],
    /// Descriptor of the working directory, or -1 when it is in it already.
    pub(crate) working_directory: RawFd,
    /// Read end of the gate.
    pub(crate) gate: RawFd,
    /// Write end of the error pipe.
    pub(crate) report: RawFd,
    /// Descriptor of the program, or -1 when it is given by path.
    pub(crate) program: RawFd,
    /// Path of the program, or where to fall back to, or null.
    pub(crate) path: *const c_char,
    /// Null-terminated.
    pub(crate) argv: *const *const c_char,
    /// Null-terminated.
    pub(crate) environment: *const *const c_char,
    /// The descriptors to keep, sorted; all above 2.
    pub(crate) kept: [RawFd; 3],
    /// Whether its stdin becomes the controlling terminal of a session of its own.
    pub(crate) leads_session: bool,
    /// The process that made this one, when it must not outlive it; else 0.
    pub(crate) parent: libc::pid_t,
}

/// Names what the new process was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChildStep {
    /// Becoming the leader of its own process group.
    Group = 1,
    /// Asking to die with its parent.
    ParentDeath = 2,
    /// Entering the working directory.
    WorkingDirectory = 3,
    /// Putting its stdio in place.
    Stdio = 4,
    /// Closing every other descriptor.
    Descriptors = 5,
    /// Becoming the program.
    Exec = 6,
    /// Seeing that the path still names the measured file.
    Changed = 7,
    /// Becoming the leader of a session with its terminal.
    Session = 8,
}

impl fmt::Display for ChildStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Group => "leading its own group",
            Self::ParentDeath => "tying itself to its runner",
            Self::WorkingDirectory => "entering the working directory",
            Self::Stdio => "putting its stdio in place",
            Self::Descriptors => "closing other descriptors",
            Self::Exec => "executing the program",
            Self::Changed => "comparing the program with what was measured",
            Self::Session => "leading a session on its terminal",
        })
    }
}

impl ChildStep {
    pub(crate) fn from_wire(byte: u8) -> Option<Self> {
        [
            Self::Group,
            Self::ParentDeath,
            Self::WorkingDirectory,
            Self::Stdio,
            Self::Descriptors,
            Self::Exec,
            Self::Changed,
            Self::Session,
        ]
        .into_iter()
        .find(|step| *step as u8 == byte)
    }
}

/// Size of one message on the error pipe: kind, step, two zeros, errno (native order).
pub(crate) const REPORT_BYTES: usize = 8;
/// The new process gives up.
pub(crate) const REPORT_FAILED: u8 = 1;
/// The descriptor could not be executed and the path is tried next.
pub(crate) const REPORT_FELL_BACK: u8 = 2;
/// The new process leads its session and waits behind its gate.
pub(crate) const REPORT_LEADS: u8 = 3;

struct Failure {
    step: ChildStep,
    errno: c_int,
}

/// Sets the new process up, waits for the gate and becomes the program.
///
/// # Safety
/// To be run by [`sys::clone_child`] only, with a plan whose pointers are valid.
pub(crate) unsafe fn become_program(plan: &ChildPlan) -> ! {
    if let Err(failure) = set_up(plan) {
        give_up(plan, &failure);
    }
    if plan.leads_session {
        report(plan.report, REPORT_LEADS, &Failure { step: ChildStep::Session, errno: 0 });
    }
    if !released(plan.gate) {
        exit(NOT_RELEASED);
    }
    let failure = execute(plan);
    give_up(plan, &failure);
}

fn set_up(plan: &ChildPlan) -> Result<(), Failure> {
    if plan.leads_session {
        // Nobody has made it the leader of a group before, which would refuse it.
        // SAFETY: takes nothing.
        check(unsafe { libc::setsid() }, ChildStep::Session)?;
    } else {
        // SAFETY: takes numbers only.
        check(unsafe { libc::setpgid(0, 0) }, ChildStep::Group)?;
    }
    default_signals();
    if plan.parent != 0 {
        die_with(plan.parent)?;
    }
    if plan.working_directory >= 0 {
        // SAFETY: takes a number only.
        check(unsafe { libc::fchdir(plan.working_directory) }, ChildStep::WorkingDirectory)?;
    }
    for (target, source) in (0..).zip(plan.stdio) {
        // SAFETY: takes numbers only. The sources lie above 2, so none is overwritten.
        check(unsafe { libc::dup2(source, target) }, ChildStep::Stdio)?;
    }
    if plan.leads_session {
        // SAFETY: takes numbers only; a terminal of another session is not taken from it.
        check(unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) }, ChildStep::Session)?;
    }
    close_from(3, plan.kept)
        .map_err(|errno| Failure { step: ChildStep::Descriptors, errno: errno.raw() })
}

/// Asks for SIGKILL when the thread that made this process ends.
fn die_with(parent: libc::pid_t) -> Result<(), Failure> {
    // SAFETY: this option takes a number.
    let answer = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
    check(answer, ChildStep::ParentDeath)?;
    // A parent that died before the request sends nothing any more.
    // SAFETY: takes nothing.
    if unsafe { libc::getppid() } != parent {
        exit(NOT_RELEASED);
    }
    Ok(())
}

/// Gives every signal its default action, the two that the C library hides included, and unblocks
/// all. Some programs keep an inherited "ignored" for ever.
pub(crate) fn default_signals() {
    // A zeroed kernel sigaction, of whatever length this machine has: SIG_DFL, no flags, no mask.
    let default = [0_u64; 8];
    for signal in 1..=SIGNAL_MAX {
        // SAFETY: the action is larger than the kernel's structure; SIGKILL and SIGSTOP are refused,
        // and need nothing.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                std::ptr::null_mut::<u64>(),
                size_of::<u64>(),
            );
        }
    }
    let empty = 0_u64;
    // SAFETY: the mask has the size given.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const empty,
            std::ptr::null_mut::<u64>(),
            size_of::<u64>(),
        );
    }
}

/// Closes every descriptor from `first` on but those given, which are sorted.
///
/// Until exec the new process would hold the gate's own write end, the runner's lock and its
/// sockets: a runner that is killed now would never let it see the end of the gate.
pub(crate) fn close_from<const N: usize>(first: u32, kept: [RawFd; N]) -> Result<(), Errno> {
    let mut first = first;
    for descriptor in kept {
        let descriptor = descriptor.unsigned_abs();
        if descriptor > first {
            sys::close_range(first, descriptor.wrapping_sub(1))?;
        }
        first = descriptor.wrapping_add(1);
    }
    sys::close_range(first, u32::MAX)
}

/// Waits for one byte; end of file means that the runner is gone or does not want the program.
pub(crate) fn released(gate: RawFd) -> bool {
    let mut byte = 0_u8;
    loop {
        // SAFETY: reads at most one byte into one byte.
        let read = unsafe { libc::read(gate, (&raw mut byte).cast(), 1) };
        if read == 1 {
            return true;
        }
        if read == 0 || errno() != libc::EINTR {
            return false;
        }
    }
}

/// Returns only with a failure.
fn execute(plan: &ChildPlan) -> Failure {
    if plan.program < 0 {
        return execute_path(plan);
    }
    // SAFETY: the vectors are null-terminated and the empty path is a C string.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            plan.program,
            c"".as_ptr(),
            plan.argv,
            plan.environment,
            libc::AT_EMPTY_PATH,
        );
    }
    let failure = Failure { step: ChildStep::Exec, errno: errno() };
    let can_fall_back = matches!(failure.errno, libc::ENOENT | libc::ENOEXEC);
    if plan.path.is_null() || !can_fall_back {
        return failure;
    }
    if !names_same_file(plan) {
        return Failure { step: ChildStep::Changed, errno: failure.errno };
    }
    report(plan.report, REPORT_FELL_BACK, &failure);
    execute_path(plan)
}

fn execute_path(plan: &ChildPlan) -> Failure {
    // SAFETY: the path is a C string and the vectors are null-terminated.
    unsafe { libc::execve(plan.path, plan.argv, plan.environment) };
    Failure { step: ChildStep::Exec, errno: errno() }
}

/// Compares what tells a changed file: device, inode, size, and both stamps.
fn names_same_file(plan: &ChildPlan) -> bool {
    let mut opened = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel writes at most one such structure.
    if unsafe { libc::fstat(plan.program, opened.as_mut_ptr()) } != 0 {
        return false;
    }
    let mut named = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path is a C string; the kernel writes at most one such structure.
    if unsafe { libc::stat(plan.path, named.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call succeeded, so the structure was written.
    let opened = unsafe { opened.assume_init_ref() };
    // SAFETY: the call succeeded, so the structure was written.
    let named = unsafe { named.assume_init_ref() };
    let facts = |stat: &libc::stat| {
        (
            (stat.st_dev, stat.st_ino, stat.st_size),
            (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec),
        )
    };
    facts(opened) == facts(named)
}

fn give_up(plan: &ChildPlan, failure: &Failure) -> ! {
    report(plan.report, REPORT_FAILED, failure);
    exit(NOT_STARTED);
}

/// A message is shorter than a pipe's atomic write; when nobody reads, nobody wants to know.
fn report(pipe: RawFd, kind: u8, failure: &Failure) {
    let [first, second, third, fourth] = failure.errno.to_ne_bytes();
    let message: [u8; REPORT_BYTES] =
        [kind, failure.step as u8, 0, 0, first, second, third, fourth];
    // SAFETY: writes as many bytes as the message has.
    unsafe { libc::write(pipe, message.as_ptr().cast(), REPORT_BYTES) };
}

fn check(answer: c_int, step: ChildStep) -> Result<(), Failure> {
    if answer < 0 { Err(Failure { step, errno: errno() }) } else { Ok(()) }
}

pub(crate) fn errno() -> c_int {
    sys::last_errno().raw()
}

pub(crate) fn exit(code: c_int) -> ! {
    // SAFETY: ends this process without running anything that the runner registered.
    unsafe { libc::_exit(code) }
}
