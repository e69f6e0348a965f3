//! Making the new process and holding it behind its gate.

use std::ffi::{CStr, CString, c_char};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use placement_identity::{Errno, Pid};
use rustix::pipe::PipeFlags;

use crate::child::{ChildPlan, REPORT_BYTES, REPORT_FAILED, REPORT_LEADS, become_program};
use crate::gate::{Gated, Newborn};
use crate::init::NamespaceStep;
use crate::leaf::CgroupLeaf;
use crate::limits::SESSION_WAIT_MAX;
use crate::namespace;
use crate::poll::wait_readable;
use crate::sys::{self, Surroundings};

/// Says which program the new process becomes.
#[derive(Clone, Copy, Debug)]
pub enum Program<'a> {
    /// An open file, so that what was measured is what runs.
    ///
    /// A script cannot be run through a close-on-exec descriptor (its interpreter would find it
    /// closed, `ENOENT`), and some file formats cannot either (`ENOEXEC`). Then the path is tried,
    /// if there is one and it still names the same unchanged file.
    Descriptor {
        /// The open program.
        file: BorrowedFd<'a>,
        /// Where to fall back to.
        fallback: Option<&'a CStr>,
    },
    /// A path, resolved in the child's working directory when it is relative.
    Path(&'a CStr),
}

/// Describes one new process completely.
#[derive(Debug)]
pub struct Spawn<'a> {
    /// The program.
    pub program: Program<'a>,
    /// The arguments, the program's own name first.
    pub argv: Vec<CString>,
    /// The whole environment, as `NAME=value`.
    pub environment: Vec<CString>,
    /// Its working directory.
    pub working_directory: BorrowedFd<'a>,
    /// Its descriptor 0.
    pub stdin: BorrowedFd<'a>,
    /// Its descriptor 1.
    pub stdout: BorrowedFd<'a>,
    /// Its descriptor 2.
    pub stderr: BorrowedFd<'a>,
    /// What it is born into.
    pub birthplace: Birthplace<'a>,
    /// What becomes of it when the calling **thread** ends.
    pub on_parent_death: OnParentDeath,
    /// The session it is in.
    pub session: Session,
}

/// Says what a new process is born into.
#[derive(Clone, Copy, Debug)]
pub enum Birthplace<'a> {
    /// Where this process is.
    Here,
    /// A control group.
    Leaf(&'a CgroupLeaf),
    /// A PID namespace that is made for it, with an init that dies with the calling **thread**,
    /// whatever becomes of others at its end.
    PidNamespace,
}

/// Says what becomes of the new process when the thread that made it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnParentDeath {
    /// It is killed by the kernel; so is the program, but not what the program starts.
    Die,
    /// It goes on.
    Live,
}

/// Says which session the new process is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    /// That of whoever made it; it leads a group of its own there.
    Inherited,
    /// One of its own, which it leads; the terminal that is its stdin controls the session.
    OnTerminal,
}

/// Says why no new process was made. Nothing is left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpawnError {
    /// There is not even the program's own name.
    #[error("there are no arguments")]
    NoArguments,
    /// The gate or the error pipe could not be made.
    #[error("cannot make the pipes of the exec gate: {0}")]
    Pipe(Errno),
    /// A descriptor could not be moved out of the way of stdio.
    #[error("cannot duplicate a descriptor: {0}")]
    Duplicate(Errno),
    /// `clone3` failed: `EAGAIN` and `ENOMEM` for want of room, `EACCES`, `EBUSY` and `EOPNOTSUPP`
    /// when the leaf does not take it, `ENOSYS` before Linux 5.3.
    /// A PID namespace is refused with `EPERM` where neither privilege nor a user namespace is to be
    /// had, and with `ENOSPC` past the limit of either.
    #[error("cannot create the process: {0}")]
    Clone(Errno),
    /// The socket to the init of a PID namespace could not be made.
    #[error("cannot make the socket to the init of a PID namespace: {0}")]
    Socket(Errno),
    /// The new process could not lead a session on its terminal: `EPERM` for a terminal of another
    /// session, `ENOTTY` for none, `ESRCH` where the process has ended.
    #[error("the process does not lead a session on its terminal: {0}")]
    Session(Errno),
    /// The init of a PID namespace failed.
    #[error("the PID namespace failed at {}: {errno}", step.phrase())]
    Namespace {
        /// What the init was doing.
        step: NamespaceStep,
        /// What the kernel answered; `ETIMEDOUT` when it did not answer in time.
        errno: Errno,
    },
}

impl SpawnError {
    /// Returns what the kernel answered, if it was asked.
    pub fn errno(self) -> Option<Errno> {
        match self {
            Self::NoArguments => None,
            Self::Pipe(errno)
            | Self::Duplicate(errno)
            | Self::Clone(errno)
            | Self::Socket(errno)
            | Self::Session(errno)
            | Self::Namespace { errno, .. } => Some(errno),
        }
    }
}

/// Creates the new process, by `clone3(2)`, and leaves it waiting behind its gate.
///
/// It leads its own process group and is born where it was said; it has only its stdio, default
/// signal dispositions and an empty mask. The program does not run before [`Gated::open_gate`]. A PID
/// namespace and a session of its own are waited for, some milliseconds.
///
/// # Errors
/// [`SpawnError`] by variant. What the new process itself fails at is told when the gate is opened.
pub fn spawn(spawn: &Spawn<'_>) -> Result<Gated, SpawnError> {
    if spawn.argv.is_empty() {
        return Err(SpawnError::NoArguments);
    }
    let (gate_read, gate_write) = pipe()?;
    let (report_read, report_write) = pipe()?;
    let mut moved = Moved::default();
    let gate = moved.above_stdio(gate_read.as_fd())?;
    let report = moved.above_stdio(report_write.as_fd())?;
    let (program, path) = match spawn.program {
        Program::Descriptor { file, fallback } => {
            (moved.above_stdio(file)?, fallback.map_or(ptr::null(), CStr::as_ptr))
        }
        Program::Path(path) => (-1, path.as_ptr()),
    };
    let mut kept = [gate, report, if program < 0 { gate } else { program }];
    kept.sort_unstable();
    let argv = pointers(&spawn.argv);
    let environment = pointers(&spawn.environment);
    let plan = ChildPlan {
        stdio: [
            moved.above_stdio(spawn.stdin)?,
            moved.above_stdio(spawn.stdout)?,
            moved.above_stdio(spawn.stderr)?,
        ],
        working_directory: match spawn.birthplace {
            Birthplace::Here | Birthplace::Leaf(_) => moved.above_stdio(spawn.working_directory)?,
            // Its init enters it, since it has mounts of its own.
            Birthplace::PidNamespace => -1,
        },
        gate,
        report,
        program,
        path,
        argv: argv.as_ptr(),
        environment: environment.as_ptr(),
        kept,
        leads_session: spawn.session == Session::OnTerminal,
        parent: match (spawn.birthplace, spawn.on_parent_death) {
            (Birthplace::Here | Birthplace::Leaf(_), OnParentDeath::Die) => {
                Pid::this_process().as_raw()
            }
            // In a PID namespace the kernel ends it with its init.
            (Birthplace::PidNamespace, _) | (_, OnParentDeath::Live) => 0,
        },
    };
    let directory = Some(spawn.working_directory);
    // SAFETY: `become_program` is written for this call, and every pointer of the plan points into
    // `spawn`, `argv` or `environment`, which live until the call returns.
    let newborn =
        unsafe { bear(spawn.birthplace, spawn.session, directory, become_program, &plan) }?;
    // Held until here, so that what the new process says can be told from its end.
    drop((report_write, moved));
    if spawn.session == Session::OnTerminal {
        await_session(report_read.as_fd())?;
    }
    Ok(Gated::new(newborn, gate_write, report_read))
}

/// Creates a process that runs `routine`, the leader of its own group.
///
/// # Safety
/// As for [`sys::clone_child`].
pub(crate) unsafe fn bear<T>(
    birthplace: Birthplace<'_>,
    session: Session,
    working_directory: Option<BorrowedFd<'_>>,
    routine: unsafe fn(&T) -> !,
    data: &T,
) -> Result<Newborn, SpawnError> {
    let surroundings = match birthplace {
        Birthplace::Here => Surroundings::Same,
        Birthplace::Leaf(leaf) => Surroundings::Cgroup(leaf.directory()),
        Birthplace::PidNamespace => {
            // SAFETY: the caller vouches for the routine.
            return unsafe { namespace::bear(session, working_directory, routine, data) };
        }
    };
    // SAFETY: the caller vouches for the routine.
    let (pid, pidfd) =
        unsafe { sys::clone_child(surroundings, routine, data) }.map_err(SpawnError::Clone)?;
    if session == Session::Inherited {
        lead_own_group(pid);
    }
    Ok(Newborn::new(pid, pidfd))
}

/// Done on both sides: the child must lead its group before its identity is read here, and before
/// the program runs there. Where the child was faster and has already ended, nothing is lost.
fn lead_own_group(pid: Pid) {
    let number = crate::raw_pid(pid);
    rustix::process::setpgid(Some(number), Some(number)).ok();
}

/// Waits until the new process leads its session: only then does its identity name its own group.
///
/// It is not made a group's leader from this side, since `setsid(2)` refuses one that is.
fn await_session(report: BorrowedFd<'_>) -> Result<(), SpawnError> {
    let failed = |errno| SpawnError::Session(Errno::from_raw(errno));
    if !wait_readable(report, SESSION_WAIT_MAX) {
        return Err(failed(libc::ETIMEDOUT));
    }
    let mut message = [0_u8; REPORT_BYTES];
    let read = rustix::io::retry_on_intr(|| rustix::io::read(report, &mut message))
        .map_err(|error| SpawnError::Session(crate::errno(error)))?;
    let [kind, _, _, _, first, second, third, fourth] = message;
    match (read, kind) {
        (REPORT_BYTES, REPORT_LEADS) => Ok(()),
        (REPORT_BYTES, REPORT_FAILED) => {
            Err(failed(i32::from_ne_bytes([first, second, third, fourth])))
        }
        _ => Err(failed(libc::ESRCH)),
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), SpawnError> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
        .map_err(|error| SpawnError::Pipe(crate::errno(error)))
}

/// The pointers to the strings, and the null that ends them.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

/// Owns copies of descriptors that lay where stdio goes.
#[derive(Default)]
struct Moved(Vec<OwnedFd>);

impl Moved {
    fn above_stdio(&mut self, descriptor: BorrowedFd<'_>) -> Result<RawFd, SpawnError> {
        if descriptor.as_raw_fd() > 2 {
            return Ok(descriptor.as_raw_fd());
        }
        let copy = rustix::io::fcntl_dupfd_cloexec(descriptor, 3)
            .map_err(|error| SpawnError::Duplicate(crate::errno(error)))?;
        let number = copy.as_raw_fd();
        self.0.push(copy);
        Ok(number)
    }
}
