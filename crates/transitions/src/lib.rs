#![doc = include_str!("../README.md")]
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
