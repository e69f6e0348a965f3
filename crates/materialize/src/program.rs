//! Finding and measuring the program.

use crate::failed::Failed;
use placement_contract::{Code, EvidenceKind, PlannedExecutable, is_shortage};
use placement_executable::{ExecutableMeasurement, MeasureError, Measured, OpenError, SearchError};
use placement_paths::errno_in;

/// Says what was measured: kind, digest and size, and the interpreter's digest.
pub(crate) fn describe(measured: &Measured) -> String {
    let ExecutableMeasurement { kind, digest, size, interpreter, .. } = measured.measurement();
    let known = if measured.digest_was_known() { ", known by its facts" } else { "" };
    match interpreter {
        None => format!("{kind} {digest} {size} bytes{known}"),
        Some(it) => format!("{kind} {digest} {size} bytes{known}, interpreter {}", it.digest),
    }
}

/// Compares what was measured with what was planned.
pub(crate) fn check_planned(
    planned: &PlannedExecutable,
    seen: &ExecutableMeasurement,
) -> Result<(), Failed> {
    let changed =
        |detail| Err(Failed::new(EvidenceKind::ExecutableChanged, Code::ExecutableRefused, detail));
    if planned.revision.as_str() != seen.revision {
        return changed(format!("planned as {}, measured as {}", planned.revision, seen.revision));
    }
    let is_planned = planned.kind == seen.kind && planned.digest == seen.digest;
    if !is_planned {
        return changed(format!(
            "planned {} {}, found {} {}",
            planned.kind, planned.digest, seen.kind, seen.digest
        ));
    }
    Ok(())
}

pub(crate) fn not_found(error: SearchError) -> Failed {
    let (kind, code) = match error {
        SearchError::NotFound => (EvidenceKind::ExecutableNotFound, Code::ExecutableNotFound),
        SearchError::NotExecutable | SearchError::Links => {
            (EvidenceKind::ExecutableRefused, Code::ExecutableRefused)
        }
        SearchError::Invalid | SearchError::SearchPath => {
            (EvidenceKind::ExecutableRefused, Code::Invalid)
        }
    };
    Failed::new(kind, code, error.to_string())
}

pub(crate) fn not_measured(error: &MeasureError) -> Failed {
    let (kind, code) = match error {
        MeasureError::Changed(_) | MeasureError::ShortRead { .. } => {
            (EvidenceKind::ExecutableChanged, Code::Unavailable)
        }
        MeasureError::Program(OpenError::Missing) => {
            (EvidenceKind::ExecutableNotFound, Code::ExecutableNotFound)
        }
        // It says nothing of the program.
        MeasureError::Program(OpenError::Io { .. })
        | MeasureError::Interpreter(OpenError::Io { .. })
            if errno_in(error).is_some_and(is_shortage) =>
        {
            (EvidenceKind::EnvironmentFailed, Code::Unavailable)
        }
        MeasureError::NotAbsolute
        | MeasureError::Program(_)
        | MeasureError::InterpreterMissing
        | MeasureError::Interpreter(_)
        | MeasureError::InterpreterLine
        | MeasureError::CarriageReturn
        | MeasureError::TooLarge { .. } => {
            (EvidenceKind::ExecutableRefused, Code::ExecutableRefused)
        }
        MeasureError::Read { .. } => (EvidenceKind::ExecutableRefused, Code::Unavailable),
    };
    Failed::new(kind, code, error.with_reason()).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn failed(errno: i32) -> Failed {
        let source = io::Error::from_raw_os_error(errno);
        not_measured(&MeasureError::Program(OpenError::Io { operation: "open", source }))
    }

    #[test]
    fn what_had_run_out_is_not_held_against_the_program() {
        // ENOMEM, ENFILE, EMFILE
        for errno in [12, 23, 24] {
            let failed = failed(errno);
            assert_eq!(failed.kind, EvidenceKind::EnvironmentFailed, "{failed}");
            assert_eq!(failed.code, Code::Unavailable, "{failed}");
        }
        // EIO
        assert_eq!(failed(5).code, Code::ExecutableRefused);
    }
}
