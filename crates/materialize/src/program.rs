//! Finding and measuring the program.

use crate::failed::Failed;
use placement_contract::{Code, EvidenceKind};
use placement_executable::{ExecutableMeasurement, MeasureError, OpenError, SearchError};

/// Says what was measured: kind, digest and size, and the interpreter's digest.
pub(crate) fn describe(measurement: &ExecutableMeasurement) -> String {
    let ExecutableMeasurement { kind, digest, size, interpreter, .. } = measurement;
    match interpreter {
        None => format!("{kind} {digest} {size} bytes"),
        Some(it) => format!("{kind} {digest} {size} bytes, interpreter {}", it.digest),
    }
}

pub(crate) fn not_found(error: SearchError) -> Failed {
    let code = match error {
        SearchError::NotFound => Code::ExecutableNotFound,
        SearchError::NotExecutable => Code::ExecutableRefused,
        SearchError::Invalid | SearchError::SearchPath => Code::Invalid,
    };
    Failed::new(EvidenceKind::ExecutableRefused, code, error.to_string())
}

pub(crate) fn not_measured(error: &MeasureError) -> Failed {
    let (kind, code) = match error {
        MeasureError::Changed(_) | MeasureError::ShortRead { .. } => {
            (EvidenceKind::ExecutableChanged, Code::Unavailable)
        }
        MeasureError::Program(OpenError::Missing) => {
            (EvidenceKind::ExecutableRefused, Code::ExecutableNotFound)
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
    let detail = match error {
        MeasureError::Program(why) | MeasureError::Interpreter(why) => format!("{error}: {why}"),
        MeasureError::NotAbsolute
        | MeasureError::InterpreterMissing
        | MeasureError::InterpreterLine
        | MeasureError::CarriageReturn
        | MeasureError::TooLarge { .. }
        | MeasureError::ShortRead { .. }
        | MeasureError::Changed(_)
        | MeasureError::Read { .. } => error.to_string(),
    };
    Failed::new(kind, code, detail).because(error)
}
