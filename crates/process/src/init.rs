//! What the init of a PID namespace does: sets the namespace up, starts the leader, reaps.
//!
//! It runs on a copy of the runner's memory in which other threads' locks may be held for ever:
//! nothing here allocates, panics, locks or touches the standard library's state. The calls of
//! `rustix` used here go to the kernel with what lies on the stack.
//!
//! As process 1 of its namespace it ignores every signal that is at its default, but SIGKILL and
//! SIGSTOP from outside, and forwards none. When it ends, the kernel ends every member before it
//! can be reaped.

use std::ffi::CStr;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};

use placement_identity::Errno;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::{DumpableBehavior, WaitOptions};
use rustix::thread::UnshareFlags;

use crate::child;
use crate::spawn::Session;
use crate::sys;

/// Size of one message to the runner: kind, step, two zeros, number (native order).
pub(crate) const MESSAGE_BYTES: usize = 8;
/// The leader waits behind its gate; its pidfd comes with the message.
pub(crate) const LEADER: u8 = 1;
/// The leader has ended; the number is its wait status.
pub(crate) const ENDED: u8 = 2;
/// There will be no leader; the number is the kernel's answer at the step.
pub(crate) const FAILED: u8 = 3;

/// Names what the init of a PID namespace was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NamespaceStep {
    /// Asking to die with the runner.
    ParentDeath = 1,
    /// Leading a session of its own.
    Session = 2,
    /// Mapping its user and group into the user namespace.
    UserMap = 3,
    /// Entering the working directory.
    WorkingDirectory = 4,
    /// Getting mounts of its own.
    Mounts = 5,
    /// Mounting the process table of the namespace.
    Proc = 6,
    /// Creating the leader.
    Leader = 7,
    /// Handing the leader over.
    Handover = 8,
}

impl NamespaceStep {
    /// Returns the step as a fixed phrase.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::ParentDeath => "tying the init to its runner",
            Self::Session => "starting a session in the namespace",
            Self::UserMap => "mapping the user into a namespace",
            Self::WorkingDirectory => "entering the working directory",
            Self::Mounts => "getting mounts of its own",
            Self::Proc => "mounting the process table of the namespace",
            Self::Leader => "creating a process in the namespace",
            Self::Handover => "handing over the process in the namespace",
        }
    }

    pub(crate) fn from_wire(byte: u8) -> Option<Self> {
        [
            Self::ParentDeath,
            Self::Session,
            Self::UserMap,
            Self::WorkingDirectory,
            Self::Mounts,
            Self::Proc,
            Self::Leader,
            Self::Handover,
        ]
        .into_iter()
        .find(|step| *step as u8 == byte)
    }
}

/// Holds numbers and pointers into memory that the runner keeps alive until the call returns there.
pub(crate) struct InitPlan<'a, T> {
    /// The runner's end of the socket pair.
    pub(crate) runners_end: RawFd,
    /// The init's end.
    pub(crate) socket: BorrowedFd<'a>,
    /// The leader's working directory, opened outside.
    pub(crate) working_directory: Option<BorrowedFd<'a>>,
    /// The session of the leader.
    pub(crate) session: Session,
    /// The maps of a user namespace, where there is one.
    pub(crate) maps: Option<Maps<'a>>,
    /// What the leader does.
    pub(crate) routine: unsafe fn(&T) -> !,
    /// What it does it with.
    pub(crate) data: &'a T,
}

/// The lines that map the own user and the own group to themselves.
#[derive(Clone, Copy)]
pub(crate) struct Maps<'a> {
    pub(crate) user: &'a [u8],
    pub(crate) group: &'a [u8],
}

struct Failure {
    step: NamespaceStep,
    errno: rustix::io::Errno,
}

/// Sets the namespace up, starts the leader, tells of it and of its exit, and reaps until nothing is
/// left. Then it ends.
///
/// # Safety
/// To be run by [`sys::clone_child`] only, in a new PID namespace, with a routine that may run there.
pub(crate) unsafe fn become_init<T>(plan: &InitPlan<'_, T>) -> ! {
    if let Err(failure) = set_up(plan) {
        give_up(plan.socket, &failure);
    }
    let mut pidfd: RawFd = -1;
    // SAFETY: this is a child of `clone_child`, and the caller vouches for the routine.
    let leader = unsafe { sys::clone_again(Some(&mut pidfd)) };
    if leader == 0 {
        // SAFETY: as above.
        unsafe { (plan.routine)(plan.data) }
    }
    let Some(leader) = rustix_pid(leader) else {
        let failure = Failure { step: NamespaceStep::Leader, errno: last_errno() };
        give_up(plan.socket, &failure)
    };
    // SAFETY: the kernel stored a new descriptor there, which is closed with all others below.
    let pidfd = unsafe { BorrowedFd::borrow_raw(pidfd) };
    if let Err(errno) = hand_over(plan.socket, leader, pidfd, plan.session) {
        give_up(plan.socket, &Failure { step: NamespaceStep::Handover, errno });
    }
    reap(plan.socket, leader)
}

fn set_up<T>(plan: &InitPlan<'_, T>) -> Result<(), Failure> {
    let at = |step| move |errno| Failure { step, errno };
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(at(NamespaceStep::ParentDeath))?;
    // Closed after the request: a runner that died before it has left no end of the socket open, and
    // the handover fails. The parent's number is 0 here and tells nothing.
    sys::close_range(plan.runners_end.unsigned_abs(), plan.runners_end.unsigned_abs())
        .map_err(|errno| Failure { step: NamespaceStep::ParentDeath, errno: raw(errno) })?;
    child::default_signals();
    // A name for those who look at the process table; nothing depends on it.
    rustix::thread::set_name(c"placement-init").ok();
    rustix::process::setsid().map_err(at(NamespaceStep::Session))?;
    if let Some(maps) = plan.maps {
        map_users(maps).map_err(at(NamespaceStep::UserMap))?;
    }
    if let Some(directory) = plan.working_directory {
        // Before the mounts are copied: the kernel then moves this process into the copy, while a
        // directory entered later would lie in mounts that the leader cannot see.
        rustix::process::fchdir(directory).map_err(at(NamespaceStep::WorkingDirectory))?;
    }
    // SAFETY: this process has one thread and no memory or descriptors in common with another one.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }
        .map_err(at(NamespaceStep::Mounts))?;
    let onward_only = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    rustix::mount::mount_change(c"/", onward_only).map_err(at(NamespaceStep::Mounts))?;
    let plain = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount(c"proc", c"/proc", c"proc", plain, None).map_err(at(NamespaceStep::Proc))
}

/// Maps the own user and group to themselves; everything else shows as nobody's.
///
/// The files belong to root while this copy of the runner's memory is closed to others, so it is
/// open for as long as they are written. What it holds of the attempt's token, its owner's other
/// processes can read in the store as well.
fn map_users(maps: Maps<'_>) -> Result<(), rustix::io::Errno> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let written = write_file(c"/proc/self/setgroups", b"deny")
        .and_then(|()| write_file(c"/proc/self/uid_map", maps.user))
        .and_then(|()| write_file(c"/proc/self/gid_map", maps.group));
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    written
}

fn write_file(path: &CStr, text: &[u8]) -> Result<(), rustix::io::Errno> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text).map(|_| ())
}

/// Gives the runner the leader's pidfd and waits until it was taken; lets go of everything else that
/// was the runner's: its lock, its sockets, the gate's own end.
fn hand_over(
    socket: BorrowedFd<'_>,
    leader: rustix::process::Pid,
    pidfd: BorrowedFd<'_>,
    session: Session,
) -> Result<(), rustix::io::Errno> {
    // The leader of a group cannot lead a session any more, and says itself when it does.
    if session == Session::Inherited {
        // Done on both sides: it must lead its group before the runner reads its identity. Where it
        // was faster and has already ended, nothing is lost.
        rustix::process::setpgid(Some(leader), Some(leader)).ok();
    }
    rustix::process::chdir(c"/")?;
    let mut kept = [socket.as_raw_fd(), pidfd.as_raw_fd()];
    kept.sort_unstable();
    child::close_from(0, kept).map_err(raw)?;
    send(socket, LEADER, 0, 0, Some(pidfd))?;
    child::close_from(0, [socket.as_raw_fd()]).map_err(raw)?;
    // A leader that has ended already keeps its number until the runner has read it.
    let mut answer = [0_u8; 1];
    match rustix::io::read(socket, &mut answer)? {
        0 => Err(rustix::io::Errno::PIPE),
        _ => Ok(()),
    }
}

/// Reaps whatever ends, tells the leader's exit, and ends when no child is left: every member
/// descends from this process.
fn reap(socket: BorrowedFd<'_>, leader: rustix::process::Pid) -> ! {
    let mut leader = Some(leader);
    loop {
        // Whatever signal a member asked for at its end.
        match rustix::process::wait(WaitOptions::from_bits_retain(WAIT_ALL)) {
            // Once only: its number may be another's from now on.
            Ok(Some((ended, status))) if leader == Some(ended) => {
                leader = None;
                // Without a runner nobody wants to know.
                send(socket, ENDED, 0, status.as_raw(), None).ok();
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => child::exit(0),
        }
    }
}

const WAIT_ALL: u32 = libc::__WALL.unsigned_abs();

fn give_up(socket: BorrowedFd<'_>, failure: &Failure) -> ! {
    send(socket, FAILED, failure.step as u8, failure.errno.raw_os_error(), None).ok();
    child::exit(1);
}

fn send(
    socket: BorrowedFd<'_>,
    kind: u8,
    step: u8,
    number: i32,
    descriptor: Option<BorrowedFd<'_>>,
) -> Result<(), rustix::io::Errno> {
    let [first, second, third, fourth] = number.to_ne_bytes();
    let message: [u8; MESSAGE_BYTES] = [kind, step, 0, 0, first, second, third, fourth];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = descriptor.as_slice();
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let parts = [IoSlice::new(&message)];
    rustix::net::sendmsg(socket, &parts, &mut ancillary, SendFlags::NOSIGNAL).map(|_| ())
}

fn rustix_pid(number: std::ffi::c_long) -> Option<rustix::process::Pid> {
    if number < 0 {
        return None;
    }
    rustix::process::Pid::from_raw(i32::try_from(number).ok()?)
}

fn last_errno() -> rustix::io::Errno {
    raw(sys::last_errno())
}

fn raw(errno: Errno) -> rustix::io::Errno {
    rustix::io::Errno::from_raw_os_error(errno.raw())
}
