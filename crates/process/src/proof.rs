//! The token that a whole tree is gone.

use placement_contract::Mechanism;

/// Proves that nothing of one tree runs any more, `setsid` escapees included.
///
/// Only this crate makes it. What another daemon started for the tree was never in it.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct TreeGone {
    mechanism: Mechanism,
    proof: &'static str,
}

impl TreeGone {
    /// Returns the mechanism that contained the tree.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// Returns the fixed phrase that says what was seen.
    pub fn proof(&self) -> &'static str {
        self.proof
    }

    pub(crate) fn new(mechanism: Mechanism, proof: &'static str) -> Self {
        Self { mechanism, proof }
    }
}
