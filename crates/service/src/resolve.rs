//! An operator's word on an attempt of which nothing can be proven.

use crate::Service;
use crate::reconcile::leader_seen;
use crate::refusal::conflict;
use crate::verdict::{LeaderSeen, RunnerSeen};
use placement_contract::limits::REASON_BYTES_MAX;
use placement_contract::{
    Attempt, AttemptId, Code, EvidenceKind, ExecutionState, OwnerId, Refusal,
};
use placement_store::{Draft, Durability, Fields, Row};

/// How often a settlement that was overtaken by somebody else's commit begins again.
const ROUNDS_MAX: usize = 8;

impl Service {
    /// Settles an uncertain attempt as exited, on an operator's word; durable.
    ///
    /// Looks once more first: what can be proven needs no word. The exit stays unknown and its source
    /// is the operator. The state is settled and not the tree: a cleanup still asks for its proof.
    /// The operator is whom the host's configuration names, else the user who owns the root; whether
    /// the caller is that one is the host's to know.
    ///
    /// # Errors
    /// DENIED for anybody else; INVALID for a reason that is blank, longer than 1024 bytes or has
    /// control characters; `NOT_FOUND`; CONFLICT for an attempt that is not uncertain (any more), and
    /// where its runner or its program is seen alive; STORAGE.
    pub fn resolve(
        &self,
        attempt_id: &AttemptId,
        operator: &OwnerId,
        reason: &str,
    ) -> Result<Attempt, Refusal> {
        self.check_operator(operator)?;
        check_reason(reason)?;
        for _ in 0..ROUNDS_MAX {
            let row = self.reconcile_row(self.row(attempt_id)?)?;
            self.check_uncertain(&row)?;
            let settled =
                [Draft::new(EvidenceKind::OperatorResolved, format!("by {operator}: {reason}"))];
            if let Some(row) =
                self.commit(&row, &settled, &Fields::default(), Durability::Durable)?
            {
                return Ok(row.attempt());
            }
        }
        Err(conflict("the attempt changes all the time"))
    }

    /// Returns the user who owns the root: the operator unless the host names others.
    pub fn root_owner(&self) -> OwnerId {
        // A root of another user is not opened.
        let user = rustix::process::geteuid().as_raw();
        OwnerId::parse(&format!("local:{user}")).expect("a short ASCII text is an id")
    }

    /// Returns as whom this service may be an operator: its owner where the host names operators, else
    /// the user who owns the root.
    pub fn own_operator(&self) -> OwnerId {
        if self.snapshot().operators().is_empty() {
            self.root_owner()
        } else {
            self.inner.owner.clone()
        }
    }

    fn check_operator(&self, operator: &OwnerId) -> Result<(), Refusal> {
        let named = self.snapshot();
        let named = named.operators();
        let is_one =
            named.contains(operator) || (named.is_empty() && *operator == self.root_owner());
        if is_one {
            return Ok(());
        }
        let hint = "ask whoever the host's configuration names as operator, else the root's owner";
        let message = format!("{operator} is no operator of this host");
        Err(Refusal::new(Code::Denied, message).with_hint(hint))
    }

    fn check_uncertain(&self, row: &Row) -> Result<(), Refusal> {
        if row.state.execution != ExecutionState::Uncertain {
            let message = format!("the attempt is {} and not uncertain", row.state.execution);
            return Err(conflict(message));
        }
        let alive = if self.runner_seen(row) == RunnerSeen::Alive {
            "the runner of the attempt lives"
        } else if leader_seen(row) == LeaderSeen::Present {
            "the program of the attempt runs"
        } else {
            return Ok(());
        };
        Err(conflict(alive).with_hint("`placement stop --force` ends it"))
    }
}

fn check_reason(reason: &str) -> Result<(), Refusal> {
    let rule = if reason.trim().is_empty() {
        "must not be empty".to_owned()
    } else if reason.len() > REASON_BYTES_MAX {
        format!("must be at most {REASON_BYTES_MAX} bytes")
    } else if reason.chars().any(char::is_control) {
        "must not contain control characters".to_owned()
    } else {
        return Ok(());
    };
    Err(Refusal::new(Code::Invalid, format!("the reason {rule}")))
}
