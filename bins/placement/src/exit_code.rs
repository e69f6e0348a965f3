//! Exit codes: one table.

use placement::{Code, End, EvidenceKind, Exit, ExitSource};

/// All went well.
pub(crate) const SUCCESS: u8 = 0;
/// `verify` found something wrong.
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
    let Some(exit) = end.exit() else { return of_no_exit(end) };
    if end.first(EvidenceKind::DeadlineElapsed).is_some() {
        return TIMEOUT;
    }
    match exit {
        Exit::Code { code } => whole(code),
        Exit::Signal { signal, .. } => whole(SIGNAL_BASE + signal),
    }
}

fn of_no_exit(end: &End) -> u8 {
    match end.refusal_code() {
        Some(code) => of_refusal(code),
        None => match end.attempt().exit_source {
            Some(ExitSource::Runner) | None => REFUSED,
            Some(ExitSource::Reconcile | ExitSource::Terminal | ExitSource::Operator) => UNCERTAIN,
        },
    }
}

/// A code of the system fits a byte; anything else is not known.
fn whole(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(UNCERTAIN)
}
