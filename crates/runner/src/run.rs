//! One attempt, from its order to its end.

use crate::claim::{ClaimFailed, open_root};
use crate::finish::{answer, leave_record};
use crate::refused::NotStarted;
use crate::runner::Runner;
use crate::scribe::Entry;
use placement_contract::EvidenceKind;
use placement_crash::point;
use placement_homes::HomeKey;
use placement_process::Signals;
use placement_protocol::{LaunchOrder, OrderReply};
use placement_store::Draft;
use placement_transport::Link;

/// Runs one attempt.
pub(crate) fn run(order: LaunchOrder, port: Link, signals: Signals) {
    point("runner.order.taken");
    match Runner::claim(order, port, signals) {
        Ok(mut runner) => {
            let outcome = runner.live();
            if let Err(not_started) = &outcome {
                runner.refuse(not_started);
            }
            runner.finish(outcome.as_ref().err());
        }
        Err(failed) => end_unclaimed(*failed),
    }
}

impl Runner {
    /// The path of one launch.
    fn live(&mut self) -> Result<(), NotStarted> {
        let ready = self.materialize()?;
        let created = self.create_child(&ready)?;
        self.open_gate(created)?;
        self.supervise();
        Ok(())
    }
}

/// Ends a runner that has no attempt, or one whose claim is all it has.
fn end_unclaimed(failed: ClaimFailed) {
    let ClaimFailed { port, refusal, claimed, order } = failed;
    if let Some((mut scribe, not_started)) = claimed {
        let mut rows = not_started.rows();
        rows.push(Draft::new(EvidenceKind::RunnerFinished, "without a child"));
        scribe.push(Entry::rows(rows).durable());
        let record = scribe.close();
        let key = HomeKey::parse(order.home_key.as_str()).ok();
        let root = open_root(&order).ok();
        let attempt_dir = root.zip(key).and_then(|(root, key)| root.attempt(&key).ok().flatten());
        if let Some(attempt_dir) = attempt_dir {
            leave_record(record, &attempt_dir);
        }
    }
    answer(port, &OrderReply::Refused(refusal));
}
