//! A PID namespace, held by its init.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Instant;

use placement_contract::{Exit, Mechanism};
use placement_identity::{
    Errno, IdentityError, Pid, Presence, ProcessIdentity, UnknownWhy, Verified, number_of_pidfd,
};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketFlags,
    SocketType,
};

use crate::gate::Newborn;
use crate::init::{
    ENDED, FAILED, InitPlan, LEADER, MESSAGE_BYTES, Maps, NamespaceStep, become_init,
};
use crate::leader::{self, WaitError};
use crate::limits::{NAMESPACE_WAIT_MAX, NEWBORN_END_MAX};
use crate::poll::{is_readable, wait_readable};
use crate::proof::TreeGone;
use crate::spawn::{Session, SpawnError};
use crate::sys::{self, Surroundings};

/// Holds the PID namespace that contains one tree, by its init, a child of this process.
///
/// The init dies with the thread that made it, and the kernel ends every member with it. Nothing of
/// the same user can leave the namespace. Dropping this leaves it as it is.
#[derive(Debug)]
#[must_use]
pub struct PidNamespace {
    init: Pid,
    pidfd: OwnedFd,
    reaped: Option<Exit>,
}

/// Answers whether the init of a recorded PID namespace is still there.
#[derive(Debug)]
#[must_use]
pub enum NamespacePresence {
    /// It runs, and with it may everything inside; this handle ends both.
    Present(Verified),
    /// It has ended, so nothing is inside any more.
    Gone(TreeGone),
    /// It could not be told.
    Unknown(UnknownWhy),
}

impl PidNamespace {
    /// Looks for the init of a namespace that another process made, as it was recorded.
    ///
    /// That it has ended proves the tree gone: the kernel kills every member of the namespace and
    /// waits for the last one before the end of its init can be seen.
    pub fn look_up(init: &ProcessIdentity) -> NamespacePresence {
        match init.observe() {
            Presence::Present(verified) => NamespacePresence::Present(verified),
            Presence::Absent(_) => {
                let proof = "the init of the PID namespace has ended";
                NamespacePresence::Gone(TreeGone::new(Mechanism::PidNamespace, proof))
            }
            Presence::Unknown(why) => NamespacePresence::Unknown(why),
        }
    }

    /// Reads the identity of the init, to be recorded beside the leader's.
    ///
    /// # Errors
    /// [`IdentityError::Gone`] after the reaping.
    pub fn identity(&self) -> Result<ProcessIdentity, IdentityError> {
        ProcessIdentity::of_pidfd(self.pidfd(), self.init)
    }

    /// Borrows the pidfd of the init: readable when nothing is left in the namespace. It ends by
    /// itself when its last member has.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.reaped.is_some() || is_readable(self.pidfd())
    }

    /// The number of the init while it is a child of this process.
    pub(crate) fn unreaped_init(&self) -> Option<Pid> {
        self.reaped.is_none().then_some(self.init)
    }

    /// Kills the init, and with it everything inside.
    pub(crate) fn kill(&self) -> Result<(), Errno> {
        match sys::pidfd_signal(self.pidfd(), libc::SIGKILL) {
            Err(errno) if errno.raw() != libc::ESRCH => Err(errno),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Reaps the init, which must have ended.
    pub(crate) fn reap(&mut self) -> Result<TreeGone, WaitError> {
        if self.reaped.is_none() {
            self.reaped = Some(leader::reap(self.pidfd())?);
        }
        Ok(TreeGone::new(Mechanism::PidNamespace, "init of the PID namespace reaped"))
    }

    /// Kills the namespace and waits for its end, at most five seconds.
    pub(crate) fn end(mut self) {
        // Refused only when it was reaped, which nobody else does.
        self.kill().ok();
        if wait_readable(self.pidfd(), NEWBORN_END_MAX) {
            self.reap().ok();
        }
    }
}

/// Creates a PID namespace with its init, by `clone3(2)`, in which a leader runs `routine`.
///
/// Where the kernel refuses it for want of privilege (`EPERM`), it is owned by a user namespace in
/// which the own user and group are themselves and nobody else is anybody. Waits until the leader is
/// there, which takes some milliseconds.
///
/// # Safety
/// As for [`sys::clone_child`]: the routine runs in a child of a child.
pub(crate) unsafe fn bear<T>(
    session: Session,
    working_directory: Option<BorrowedFd<'_>>,
    routine: unsafe fn(&T) -> !,
    data: &T,
) -> Result<Newborn, SpawnError> {
    let (ours, theirs) = socket_pair().map_err(SpawnError::Socket)?;
    let [user, group] = own_maps();
    let plan = |maps| InitPlan {
        runners_end: ours.as_raw_fd(),
        socket: theirs.as_fd(),
        working_directory,
        session,
        maps,
        routine,
        data,
    };
    // SAFETY: `become_init` is written for this call, and everything the plan points to lives until
    // the call returns; the caller vouches for the routine.
    let made =
        unsafe { sys::clone_child(Surroundings::PidNamespace, become_init::<T>, &plan(None)) };
    let made = match made {
        Err(errno) if errno.raw() == libc::EPERM => {
            let maps = Maps { user: user.as_bytes(), group: group.as_bytes() };
            let surroundings = Surroundings::UserAndPidNamespace;
            // SAFETY: as above.
            unsafe { sys::clone_child(surroundings, become_init::<T>, &plan(Some(maps))) }
        }
        made => made,
    };
    let (init, pidfd) = made.map_err(SpawnError::Clone)?;
    drop(theirs);
    let namespace = PidNamespace { init, pidfd, reaped: None };
    match await_leader(ours.as_fd()) {
        Ok((pid, pidfd)) => Ok(Newborn::in_namespace(pid, pidfd, namespace, ours)),
        Err(error) => {
            namespace.end();
            Err(error)
        }
    }
}

/// Waits for the leader's pidfd; the number is the one that it has here.
fn await_leader(socket: BorrowedFd<'_>) -> Result<(Pid, OwnedFd), SpawnError> {
    let failed = |step, errno| SpawnError::Namespace { step, errno };
    let handover = |errno| failed(NamespaceStep::Handover, errno);
    let deadline = Instant::now() + NAMESPACE_WAIT_MAX;
    if !wait_readable(socket, deadline.saturating_duration_since(Instant::now())) {
        return Err(handover(crate::errno(rustix::io::Errno::TIMEDOUT)));
    }
    let gone = || handover(Errno::from_raw(libc::ESRCH));
    let (message, descriptor) = receive(socket).map_err(handover)?.ok_or_else(gone)?;
    match (message, descriptor) {
        (Message::Leader, Some(pidfd)) => {
            let number = number_of_pidfd(pidfd.as_fd()).ok_or_else(gone)?;
            // From now on it may be reaped.
            rustix::net::send(socket, b"t", SendFlags::NOSIGNAL)
                .map_err(|error| handover(crate::errno(error)))?;
            Ok((number, pidfd))
        }
        (Message::Failed { step, errno }, _) => Err(failed(step, errno)),
        (Message::Leader | Message::Ended(_) | Message::Unknown, _) => Err(gone()),
    }
}

/// Looks whether the init has told the leader's exit, without taking it: it can be asked again.
///
/// # Errors
/// [`WaitError::Unreported`] where the init has ended and told nothing.
pub(crate) fn reported_exit(socket: BorrowedFd<'_>) -> Result<Option<Exit>, WaitError> {
    if !is_readable(socket) {
        return Ok(None);
    }
    let mut bytes = [0_u8; MESSAGE_BYTES];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let received =
        rustix::io::retry_on_intr(|| rustix::net::recv(socket, bytes.as_mut_slice(), flags));
    match received.map(|(_, length)| length) {
        Err(rustix::io::Errno::AGAIN) => Ok(None),
        // It was killed before it took what it was told last; the end comes after that.
        Err(rustix::io::Errno::CONNRESET) => Err(WaitError::Unreported),
        Err(error) => Err(WaitError::Wait(crate::errno(error))),
        Ok(length) if length == MESSAGE_BYTES => match Message::read(bytes) {
            Message::Ended(exit) => Ok(Some(exit)),
            Message::Leader | Message::Failed { .. } | Message::Unknown => {
                Err(WaitError::Unreported)
            }
        },
        Ok(_) => Err(WaitError::Unreported),
    }
}

/// What the init tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    Leader,
    Ended(Exit),
    Failed { step: NamespaceStep, errno: Errno },
    Unknown,
}

impl Message {
    fn read(bytes: [u8; MESSAGE_BYTES]) -> Self {
        let [kind, step, _, _, first, second, third, fourth] = bytes;
        let number = i32::from_ne_bytes([first, second, third, fourth]);
        match (kind, NamespaceStep::from_wire(step)) {
            (LEADER, _) => Self::Leader,
            (ENDED, _) => Self::Ended(exit_of(number)),
            (FAILED, Some(step)) => Self::Failed { step, errno: Errno::from_raw(number) },
            _ => Self::Unknown,
        }
    }
}

/// Reads a wait status, as `wait(2)` describes it.
fn exit_of(status: i32) -> Exit {
    if libc::WIFEXITED(status) {
        Exit::Code { code: libc::WEXITSTATUS(status) }
    } else {
        Exit::Signal { signal: libc::WTERMSIG(status), core: libc::WCOREDUMP(status) }
    }
}

/// `None` when the other end is closed.
fn receive(socket: BorrowedFd<'_>) -> Result<Option<(Message, Option<OwnedFd>)>, Errno> {
    let mut bytes = [0_u8; MESSAGE_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags)
    })
    .map_err(crate::errno)?;
    let descriptor = ancillary.drain().find_map(|message| {
        let RecvAncillaryMessage::ScmRights(mut descriptors) = message else { return None };
        descriptors.next()
    });
    Ok((received.bytes == MESSAGE_BYTES).then(|| (Message::read(bytes), descriptor)))
}

fn socket_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None).map_err(crate::errno)
}

/// One line each: inside, outside, how many.
fn own_maps() -> [String; 2] {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    [user, group].map(|id| format!("{id} {id} 1\n"))
}

#[cfg(test)]
mod tests {
    use super::{Message, NamespaceStep, exit_of};
    use placement_contract::Exit;

    #[test]
    fn a_wait_status_is_read_as_its_exit() {
        assert_eq!(exit_of(42 << 8), Exit::Code { code: 42 });
        assert_eq!(exit_of(9), Exit::Signal { signal: 9, core: false });
        assert_eq!(exit_of(3 | 0x80), Exit::Signal { signal: 3, core: true });
    }

    #[test]
    fn a_failure_names_its_step() {
        let message = Message::read([3, 6, 0, 0, 1, 0, 0, 0]);
        let Message::Failed { step, errno } = message else { panic!("{message:?}") };
        assert_eq!((step, errno.name().as_str()), (NamespaceStep::Proc, "EPERM"));
        assert_eq!(Message::read([3, 99, 0, 0, 1, 0, 0, 0]), Message::Unknown);
    }
}
