//! `verify`: the chain and the state, recomputed.

use super::health::say_findings;
use super::selection::{each, selected};
use crate::args::Selection;
use crate::context::Context;
use crate::exit_code;
use crate::failure::Failure;
use crate::render;
use placement::Digest;

pub(crate) fn run(
    selection: &Selection,
    head: Option<&str>,
    context: &Context,
) -> Result<u8, Failure> {
    let head = match head {
        Some(text) => Some(Digest::parse(text).ok_or_else(|| {
            Failure::invalid("--head must be 64 lowercase hexadecimal characters")
        })?),
        None => None,
    };
    let host = context.open()?;
    let chosen = selected(&host, selection, |_| true, context.style())?;
    let mut all_are_sound = true;
    let code = each(&chosen.attempts, context.style(), |attempt| {
        let verified = host.verify(attempt, head.as_ref())?;
        all_are_sound &= verified.sound;
        if context.style().json {
            return render::json(&verified);
        }
        if verified.sound {
            let (count, head) = (verified.evidence_count, &verified.chain_head);
            return render::line(&format!("{attempt}  ok  {count} rows, head {head}"));
        }
        for fault in &verified.faults {
            let place = fault.sequence.map_or_else(String::new, |row| format!("row {row}: "));
            render::line(&format!("{attempt}  wrong  {place}{}", fault.why))?;
        }
        Ok(())
    })?;
    let of_store = if selection.all { say_findings(&host, context.style())? } else { 0 };
    Ok(if all_are_sound { chosen.code.max(code).max(of_store) } else { exit_code::FINDINGS })
}
