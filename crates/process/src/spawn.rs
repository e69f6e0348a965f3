//! Making the new process and holding it behind its gate.

use std::ffi::{CStr, CString, c_char};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use placement_identity::{Errno, Pid};
use rustix::pipe::PipeFlags;

use crate::child::{ChildPlan, become_program};
use crate::gate::{Gated, Newborn};
use crate::leaf::CgroupLeaf;
use crate::sys;

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
    /// The leaf in which it is born, if it is contained by one.
    pub leaf: Option<&'a CgroupLeaf>,
    /// What becomes of it when the calling **thread** ends.
    pub on_parent_death: OnParentDeath,
}

/// Says what becomes of the new process when the thread that made it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnParentDeath {
    /// It is killed by the kernel; so is the program, but not what the program starts.
    Die,
    /// It goes on.
    Live,
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
    #[error("cannot create the process: {0}")]
    Clone(Errno),
}

impl SpawnError {
    /// Returns what the kernel answered, if it was asked.
    pub fn errno(self) -> Option<Errno> {
        match self {
            Self::NoArguments => None,
            Self::Pipe(errno) | Self::Duplicate(errno) | Self::Clone(errno) => Some(errno),
        }
    }
}

/// Creates the new process, by `clone3(2)`, and leaves it waiting behind its gate.
///
/// It leads its own process group and is born in the leaf; it has only its stdio, default signal
/// dispositions and an empty mask. The program does not run before [`Gated::open_gate`].
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
        working_directory: moved.above_stdio(spawn.working_directory)?,
        gate,
        report,
        program,
        path,
        argv: argv.as_ptr(),
        environment: environment.as_ptr(),
        kept,
        parent: match spawn.on_parent_death {
            OnParentDeath::Die => Pid::this_process().as_raw(),
            OnParentDeath::Live => 0,
        },
    };
    let leaf = spawn.leaf.map(CgroupLeaf::directory);
    // SAFETY: `become_program` is written for this call, and every pointer of the plan points into
    // `spawn`, `argv` or `environment`, which live until the call returns.
    let (pid, pidfd) =
        unsafe { sys::clone_child(leaf, become_program, &plan) }.map_err(SpawnError::Clone)?;
    lead_own_group(pid);
    Ok(Gated::new(Newborn::new(pid, pidfd), gate_write, report_read))
}

/// Done on both sides: the child must lead its group before its identity is read here, and before
/// the program runs there. Where the child was faster and has already ended, nothing is lost.
pub(crate) fn lead_own_group(pid: Pid) {
    let number = crate::raw_pid(pid);
    rustix::process::setpgid(Some(number), Some(number)).ok();
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
