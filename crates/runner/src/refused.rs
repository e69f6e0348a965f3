//! A start that ends without a child.

use placement_contract::{Code, EvidenceKind, Refusal};
use placement_store::Draft;

/// Why no child came to be, and what is recorded of it.
#[derive(Debug)]
pub(crate) struct NotStarted {
    rows: Vec<Draft>,
    code: Code,
    message: String,
}

impl NotStarted {
    /// A step failed; its own row comes before `child.not_started`.
    pub(crate) fn new(kind: EvidenceKind, code: Code, message: String) -> Self {
        let not_started = Draft::new(EvidenceKind::ChildNotStarted, "no child was created");
        Self { rows: vec![Draft::new(kind, message.clone()), not_started], code, message }
    }

    /// No child came to be for a reason that has no row of its own.
    pub(crate) fn plain(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        let rows = vec![Draft::new(EvidenceKind::ChildNotStarted, message.clone())];
        Self { rows, code, message }
    }

    /// The process behind the gate was made and never became the program.
    pub(crate) fn behind_gate(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        let rows = vec![Draft::new(EvidenceKind::ChildStartFailed, message.clone())];
        Self { rows, code, message }
    }

    /// A stop came first.
    pub(crate) fn stopped() -> Self {
        Self::plain(Code::Conflict, "a stop came before the child")
    }

    /// Returns the rows, the one that ends the execution last.
    pub(crate) fn rows(&self) -> Vec<Draft> {
        self.rows.clone()
    }

    /// Returns what the host is told.
    pub(crate) fn refusal(&self) -> Refusal {
        let refusal = Refusal::new(self.code, self.message.clone());
        if self.rows.iter().any(|row| row.kind == EvidenceKind::ExecutableChanged) {
            return refusal.with_hint("look at the program, and plan the launch again with it");
        }
        refusal
    }
}
