//! `prune`: receipts in the place of old attempts.

use crate::context::Context;
use crate::exit_code;
use crate::failure::Failure;
use crate::progress::Awaiting;
use crate::render;
use placement::Pruning;
use serde_json::json;
use std::time::Duration;

pub(crate) fn run(older_than: Duration, context: &Context) -> Result<u8, Failure> {
    let host = context.open()?;
    let is_json = context.style().json;
    let mut count: usize = 0;
    let kept = loop {
        let awaited = Awaiting::start("removing old attempts");
        let Pruning { pruned, kept, more } = host.prune(older_than)?;
        drop(awaited);
        count += pruned.len();
        if is_json {
            for attempt_id in &pruned {
                render::json(&json!({"attempt_id": attempt_id, "pruned": true}))?;
            }
        }
        if !more {
            break kept;
        }
    };
    for one in &kept {
        if is_json {
            let (attempt_id, why) = (&one.attempt_id, &one.why);
            render::json(&json!({"attempt_id": attempt_id, "pruned": false, "reason": why}))?;
        } else {
            render::line(&format!("{}  kept: {}", one.attempt_id, one.why))?;
        }
    }
    if !is_json {
        let noun = if count == 1 { "attempt" } else { "attempts" };
        render::line(&format!("{count} {noun} pruned"))?;
    }
    Ok(exit_code::SUCCESS)
}
