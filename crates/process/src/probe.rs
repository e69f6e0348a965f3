//! A built-in program for measuring containment: it escapes as thoroughly as a daemon does.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::time::Duration;

use rustix::pipe::PipeFlags;

use crate::Errno;
use crate::child;
use crate::leader::Leader;
use crate::namespace::PidNamespace;
use crate::poll::wait_readable;
use crate::spawn::{Birthplace, Session, SpawnError, bear};
use crate::sys;

/// Holds a probe: a leader that ends at once and leaves a double-forked descendant in a session of
/// its own, which stays until it is killed or this value, or this process, goes.
#[derive(Debug)]
#[must_use]
pub struct Probe {
    /// The leader. It ends with code 0 when the descendant is there, else with another one.
    pub leader: Leader,
    /// The PID namespace in which it was made, if it was.
    pub namespace: Option<PidNamespace>,
    /// The descendant ends when this is closed: a crash while measuring leaves nothing behind.
    lifeline: OwnedFd,
    ready: OwnedFd,
}

/// Says how far a probe is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeState {
    /// The descendant has not reported.
    Starting,
    /// The descendant is in its own session. It reports once.
    Escaped,
    /// There will be no descendant: the kernel refused a process.
    Refused(Errno),
    /// There will be no descendant, for another reason.
    Failed,
}

/// What the descendant reports; no error number of a refused process is the same.
const READY: u8 = b'r';

impl Probe {
    /// Waits for the descendant's report, at most so long.
    pub fn wait(&self, within: Duration) -> ProbeState {
        if !wait_readable(self.ready.as_fd(), within) {
            return ProbeState::Starting;
        }
        let mut byte = [0_u8; 1];
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.ready, &mut byte)) {
            Ok(1) if byte == [READY] => ProbeState::Escaped,
            Ok(1) => ProbeState::Refused(Errno::from_raw(i32::from(byte[0]))),
            Ok(_) | Err(_) => ProbeState::Failed,
        }
    }

    /// Takes the leader, the end of the pipe that keeps the descendant waiting, and the PID namespace
    /// if there is one.
    pub fn into_parts(self) -> (Leader, OwnedFd, Option<PidNamespace>) {
        (self.leader, self.lifeline, self.namespace)
    }
}

/// Creates the probe, by `clone3(2)`, where it is said.
///
/// # Errors
/// [`SpawnError`] as for a program.
pub fn spawn_probe(birthplace: Birthplace<'_>) -> Result<Probe, SpawnError> {
    let (lifeline_read, lifeline) = pipe()?;
    let (ready, ready_write) = pipe()?;
    let (held, told) = (lifeline_read.as_raw_fd(), ready_write.as_raw_fd());
    let kept = [held.min(told), held.max(told)];
    let plan = ProbePlan { lifeline: held, ready: told, kept };
    // SAFETY: `escape` is written for this call and the plan holds numbers only.
    let (leader, namespace) =
        unsafe { bear(birthplace, Session::Inherited, None, escape, &plan) }?.into_parts();
    Ok(Probe { leader, namespace, lifeline, ready })
}

fn pipe() -> Result<(OwnedFd, OwnedFd), SpawnError> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
        .map_err(|error| SpawnError::Pipe(crate::errno(error)))
}

struct ProbePlan {
    lifeline: RawFd,
    ready: RawFd,
    /// Both, sorted.
    kept: [RawFd; 2],
}

/// Forks twice and leaves the session in between, as a daemon does.
///
/// # Safety
/// To be run by [`sys::clone_child`] only: it makes async-signal-safe calls only.
unsafe fn escape(plan: &ProbePlan) -> ! {
    // SAFETY: takes numbers only.
    if unsafe { libc::setpgid(0, 0) } != 0 {
        child::exit(1);
    }
    child::default_signals();
    if child::close_from(0, plan.kept).is_err() {
        child::exit(2);
    }
    // SAFETY: this is a child of `clone_child`.
    match unsafe { sys::clone_again(None) } {
        0 => daemonize(plan),
        intermediate if intermediate > 0 => child::exit(wait_code(intermediate)),
        _ => refused(plan, 3),
    }
}

fn daemonize(plan: &ProbePlan) -> ! {
    // SAFETY: takes nothing.
    if unsafe { libc::setsid() } < 0 {
        child::exit(4);
    }
    // SAFETY: this is a child of a child of `clone_child`.
    match unsafe { sys::clone_again(None) } {
        0 => linger(plan),
        descendant if descendant > 0 => child::exit(0),
        _ => refused(plan, 5),
    }
}

/// Says that it is there and stays until the pipe ends.
fn linger(plan: &ProbePlan) -> ! {
    // SAFETY: takes nothing.
    if unsafe { libc::setsid() } < 0 {
        child::exit(6);
    }
    report(plan, READY);
    child::exit(i32::from(child::released(plan.lifeline)))
}

/// Says why the kernel gave no process, and ends.
fn refused(plan: &ProbePlan, code: i32) -> ! {
    report(plan, u8::try_from(child::errno()).unwrap_or_default());
    child::exit(code)
}

fn report(plan: &ProbePlan, byte: u8) {
    // SAFETY: writes one byte of one byte.
    unsafe { libc::write(plan.ready, (&raw const byte).cast(), 1) };
}

/// Waits for the intermediate process, so that the descendant is an orphan when the leader ends.
fn wait_code(intermediate: std::ffi::c_long) -> i32 {
    let mut status = 0;
    let pid = libc::pid_t::try_from(intermediate).unwrap_or(-1);
    // SAFETY: the kernel writes one number.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    if waited == pid && libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 7 }
}
