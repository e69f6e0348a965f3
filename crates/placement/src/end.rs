//! How an attempt ended.

use crate::error::Error;
use crate::host::Placement;
use placement_contract::{
    Attempt, CleanupScope, CleanupState, Code, Evidence, EvidenceKind, ExecutionState, Exit,
    Outcome, Refusal,
};
use placement_service::outcome;
use std::fmt;

/// How an attempt ended, and what is proven of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    attempt: Attempt,
    evidence: Vec<Evidence>,
    outcome: Outcome,
    kept: Option<Refusal>,
}

impl End {
    /// Reads the evidence to an ended attempt; of a pruned one, its receipt.
    pub(crate) fn read(
        host: &Placement,
        attempt: Attempt,
        kept: Option<Refusal>,
    ) -> Result<Self, Error> {
        if attempt.pruned
            && let Some(pruned) = host.service().pruned(&attempt.attempt_id)?
        {
            return Ok(Self { attempt, evidence: Vec::new(), outcome: pruned.outcome, kept });
        }
        let evidence = host.evidence(&attempt.attempt_id, 0, None)?;
        let outcome = outcome(&attempt, &evidence);
        Ok(Self { attempt, evidence, outcome, kept })
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

    /// Returns how it ended, as an exit code tells it.
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Returns the evidence; none of a pruned attempt.
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// Finds the first row of a kind.
    pub fn first(&self, kind: EvidenceKind) -> Option<&Evidence> {
        self.evidence.iter().find(|row| row.kind == kind)
    }

    /// Returns the code of what kept the program from running, where that was the program itself.
    pub fn refusal_code(&self) -> Option<Code> {
        match self.outcome {
            Outcome::ExecutableNotFound => Some(Code::ExecutableNotFound),
            Outcome::ExecutableRefused => Some(Code::ExecutableRefused),
            Outcome::Exited | Outcome::DeadlineElapsed | Outcome::NotStarted | Outcome::Unknown => {
                None
            }
        }
    }

    /// Returns why the cleanup was refused and the home kept.
    pub const fn kept(&self) -> Option<&Refusal> {
        self.kept.as_ref()
    }

    fn phrase_of_exit(&self) -> String {
        match (self.attempt.execution_state, self.attempt.exit, self.outcome) {
            (ExecutionState::Uncertain, _, _) => "uncertain".to_owned(),
            (ExecutionState::Exited, Some(Exit::Code { code }), _) => format!("exited {code}"),
            (ExecutionState::Exited, Some(exit @ Exit::Signal { .. }), _) => exit.to_string(),
            (ExecutionState::Exited, None, Outcome::Unknown) => "exited, code unknown".to_owned(),
            (ExecutionState::Exited, None, _) => "never started".to_owned(),
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
        let (exit, proof) = (self.phrase_of_exit(), self.phrase_of_proof());
        let oom = self.first(EvidenceKind::ChildOomKilled).map_or("", |_| ", out of memory");
        write!(formatter, "{exit}{oom}; {proof}")?;
        if self.is_uncertain() {
            return Ok(());
        }
        if self.attempt.pruned {
            return formatter.write_str("; pruned since");
        }
        write!(formatter, "; {} evidence rows", self.attempt.evidence_count)
    }
}
