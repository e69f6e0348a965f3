//! `resolve`: an operator's word on an uncertain attempt.

use super::selection::attempt_id;
use crate::context::Context;
use crate::exit_code;
use crate::failure::Failure;
use crate::render;
use placement::{Code, Refusal};

pub(crate) fn run(
    text: &str,
    is_operator: bool,
    reason: &str,
    context: &Context,
) -> Result<u8, Failure> {
    let id = attempt_id(text)?;
    if !is_operator {
        let message = "only an operator settles an attempt without a proof";
        let hint = "say --operator if you are one: whom the configuration file names, else the user \
                    who owns the root";
        return Err(Refusal::new(Code::Denied, message).with_hint(hint).into());
    }
    let host = context.open()?;
    let settled = host.resolve(&id, &host.operator(), reason)?;
    if context.style().json {
        render::json(&settled)?;
    } else {
        let state = render::state(&settled);
        render::line(&format!("{id}  {state}  cleanup {}", settled.cleanup_state))?;
    }
    Ok(exit_code::SUCCESS)
}
