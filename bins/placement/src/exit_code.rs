//! Exit codes: one table.

use placement::{Code, End, Exit, Outcome};

/// All went well.
pub(crate) const SUCCESS: u8 = 0;
/// The answer is no: `verify` found something wrong, an input is not closed.
pub(crate) const FINDINGS: u8 = 1;
/// The arguments are wrong.
pub(crate) const USAGE: u8 = 2;
/// What became of the child is not known.
pub(crate) const UNCERTAIN: u8 = 120;
/// `--timeout` ended the child.
pub(crate) const TIMEOUT: u8 = 124;
/// Placement refused or failed before a child existed.
pub(crate) const REFUSED: u8 = 125;
/// The program cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The program was not found.
pub(crate) const NOT_FOUND: u8 = 127;
/// The terminal of a window has gone: 128 + SIGHUP, as a shell would say it.
pub(crate) const HUNG_UP: u8 = 129;
/// A signal ended this program before there was an attempt: 128 + SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;
/// Whoever read the answer has gone: 128 + SIGPIPE, as a shell would say it.
pub(crate) const STDOUT_CLOSED: u8 = 141;
/// What a shell adds to the number of a signal.
const SIGNAL_BASE: i32 = 128;

/// Returns the exit code for a refusal.
pub(crate) const fn of_refusal(code: Code) -> u8 {
    match code {
        Code::ExecutableNotFound => NOT_FOUND,
        Code::ExecutableRefused => NOT_EXECUTABLE,
        Code::Uncertain => UNCERTAIN,
        Code::Invalid
        | Code::Unauthenticated
        | Code::Forbidden
        | Code::Denied
        | Code::NotFound
        | Code::Conflict
        | Code::UnsupportedCapability
        | Code::Unavailable
        | Code::Storage
        | Code::Internal
        | Code::Unsupported => REFUSED,
    }
}

/// Returns the exit code for an attempt that ended.
pub(crate) fn of_end(end: &End) -> u8 {
    if end.is_uncertain() {
        return UNCERTAIN;
    }
    match (end.outcome(), end.exit()) {
        (Outcome::DeadlineElapsed, _) => TIMEOUT,
        (Outcome::Exited, Some(Exit::Code { code })) => whole(code),
        (Outcome::Exited, Some(Exit::Signal { signal, .. })) => whole(SIGNAL_BASE + signal),
        (Outcome::ExecutableNotFound, _) => NOT_FOUND,
        (Outcome::ExecutableRefused, _) => NOT_EXECUTABLE,
        (Outcome::NotStarted, _) => REFUSED,
        (Outcome::Unknown, _) | (Outcome::Exited, None) => UNCERTAIN,
    }
}

/// A code of the system fits a byte; anything else is not known.
fn whole(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(UNCERTAIN)
}
