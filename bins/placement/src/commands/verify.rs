//! `verify`: the chain and the state, recomputed.

use super::selection::{each, selected};
use crate::args::Selection;
use crate::context::Context;
use crate::exit_code;
use crate::failure::Failure;
use crate::render;
use placement::{Digest, Verified};
use serde::Serialize;

/// The answer in JSON.
#[derive(Debug, Serialize)]
struct JsonVerified<'a> {
    #[serde(flatten)]
    verified: &'a Verified,
    ok: bool,
}

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
    let attempts = selected(&host, selection, |_| true)?;
    let mut all_are_right = true;
    let code = each(&attempts, context.style(), |attempt| {
        let verified = host.verify(attempt, head.as_ref())?;
        let ok = verified.findings.is_empty();
        all_are_right &= ok;
        if context.style().json {
            return render::json(&JsonVerified { verified: &verified, ok });
        }
        if ok {
            let (count, head) = (verified.evidence_count, &verified.chain_head);
            return render::line(&format!("{attempt}  ok  {count} rows, head {head}"));
        }
        for finding in &verified.findings {
            render::line(&format!("{attempt}  wrong  {finding}"))?;
        }
        Ok(())
    })?;
    Ok(if all_are_right { code } else { exit_code::FINDINGS })
}
