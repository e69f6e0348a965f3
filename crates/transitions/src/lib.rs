//! The execution and the cleanup state machine as pure functions, folding evidence into a state,
//! and the proof that a scope is gone.
//!
//! **Owns** which evidence may be recorded in which state and what the state is afterwards
//! ([`after`]), the same recomputed from a whole life ([`fold`]), and the one place where facts
//! become the right to remove a home ([`prove_scope`]) or all but a receipt ([`prove_settled`]). **Never** reads a clock, a file, a process
//! or the store: everything comes in as an argument. **Limits**: it says what a row of evidence
//! means, not whether it is true.
//!
//! A state follows from the state before and the kind of the row, and from nothing else, so a
//! writer never chooses a target: `child.started` makes a starting attempt running and leaves a
//! stopping one stopping.
//!
//! Reading order: `execution`, `cleanup`, `after`, `fold`, `scope`, `retention`.
//!
//! ```
//! use placement_contract::{AttemptState, EvidenceKind};
//! use placement_transitions::after;
//!
//! let starting = after(AttemptState::INTENDED, EvidenceKind::RunnerStarted)?;
//! let stopping = after(starting, EvidenceKind::StopRequested)?;
//! assert_eq!(after(stopping, EvidenceKind::ChildStarted)?, stopping);
//! assert!(after(stopping, EvidenceKind::ChildCreating).is_err());
//! # Ok::<(), placement_transitions::Refused>(())
//! ```

#![forbid(unsafe_code)]

mod after;
mod cleanup;
mod execution;
mod fold;
mod retention;
mod scope;

pub use after::{Refused, after};
pub use fold::{EXIT_NOT_KNOWN, FoldError, FoldWhy, Folded, fold};
pub use retention::{RunnerFacts, Settled, prove_settled};
pub use scope::{
    LeafFacts, LeafSeen, RecordedIdentity, ScopeFacts, ScopeGone, Unproven, prove_scope,
};
