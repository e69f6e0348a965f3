//! How an attempt ended.

use crate::error::Error;
use crate::host::Placement;
use placement_contract::{
    Attempt, CleanupScope, CleanupState, Code, Evidence, EvidenceKind, ExecutionState, Exit,
    ExitSource, Refusal,
};
use std::fmt;

/// Details of `executable.refused` that say that there is no program.
const NOT_FOUND_PHRASES: [&str; 2] =
    ["the program was not found", "the program cannot be measured: there is no such file"];
/// Error numbers of an exec that found no program.
const NOT_FOUND_ERRNOS: [&str; 2] = ["ENOENT", "ENOTDIR"];

/// How an attempt ended, and what is proven of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    attempt: Attempt,
    evidence: Vec<Evidence>,
    kept: Option<Refusal>,
}

impl End {
    /// Reads the evidence to an ended attempt.
    pub(crate) fn read(
        host: &Placement,
        attempt: Attempt,
        kept: Option<Refusal>,
    ) -> Result<Self, Error> {
        let evidence = host.evidence(&attempt.attempt_id, 0, None)?;
        Ok(Self { attempt, evidence, kept })
    }

    /// Returns what is recorded of the attempt.
    pub const fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// Returns the exit, where it was observed.
    pub const fn exit(&self) -> Option<Exit> {
        self.attempt.exit
    }

    /// Says whether what became of the child is not known.
    pub fn is_uncertain(&self) -> bool {
        self.attempt.execution_state == ExecutionState::Uncertain
    }

    /// Says whether the child exited with code 0 and what had to go is proven gone.
    pub fn is_success(&self) -> bool {
        self.exit() == Some(Exit::Code { code: 0 })
            && self.attempt.cleanup_state == CleanupState::Complete
    }

    /// Returns the evidence.
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// Finds the first row of a kind.
    pub fn first(&self, kind: EvidenceKind) -> Option<&Evidence> {
        self.evidence.iter().find(|row| row.kind == kind)
    }

    /// Returns the code of what kept the program from running, where that was the program itself.
    pub fn refusal_code(&self) -> Option<Code> {
        if let Some(row) = self.first(EvidenceKind::ExecutableRefused) {
            return Some(if NOT_FOUND_PHRASES.contains(&row.detail.as_str()) {
                Code::ExecutableNotFound
            } else {
                Code::ExecutableRefused
            });
        }
        let row = self.first(EvidenceKind::ChildStartFailed)?;
        let names = |errno: &&str| row.detail.contains(*errno);
        if NOT_FOUND_ERRNOS.iter().any(names) {
            return Some(Code::ExecutableNotFound);
        }
        // Without an error number it is not the program's fault.
        row.detail.contains(": E").then_some(Code::ExecutableRefused)
    }

    /// Returns why the cleanup was refused and the home kept.
    pub const fn kept(&self) -> Option<&Refusal> {
        self.kept.as_ref()
    }

    fn phrase_of_exit(&self) -> String {
        match (self.attempt.execution_state, self.attempt.exit, self.attempt.exit_source) {
            (ExecutionState::Uncertain, _, _) => "uncertain".to_owned(),
            (ExecutionState::Exited, Some(Exit::Code { code }), _) => format!("exited {code}"),
            (ExecutionState::Exited, Some(exit @ Exit::Signal { .. }), _) => exit.to_string(),
            (ExecutionState::Exited, None, Some(ExitSource::Runner) | None) => {
                "never started".to_owned()
            }
            (
                ExecutionState::Exited,
                None,
                Some(ExitSource::Reconcile | ExitSource::Terminal | ExitSource::Operator),
            ) => "exited, code unknown".to_owned(),
            (
                state @ (ExecutionState::Intended
                | ExecutionState::Starting
                | ExecutionState::Running
                | ExecutionState::Stopping),
                _,
                _,
            ) => state.to_string(),
        }
    }

    fn phrase_of_proof(&self) -> String {
        if self.attempt.cleanup_state != CleanupState::Complete {
            return "kept".to_owned();
        }
        match (self.attempt.mechanism, &self.attempt.tree_gone_by) {
            (Some(mechanism), Some(_)) => format!("tree gone ({mechanism})"),
            (Some(_) | None, _) => match self.attempt.required_cleanup {
                CleanupScope::ContainedTree => "tree gone".to_owned(),
                CleanupScope::ProcessGroup => "group gone".to_owned(),
                CleanupScope::DirectProcess => "process gone".to_owned(),
            },
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; {}", self.phrase_of_exit(), self.phrase_of_proof())?;
        if self.is_uncertain() {
            return Ok(());
        }
        write!(formatter, "; {} evidence rows", self.attempt.evidence_count)
    }
}
