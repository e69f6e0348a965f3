//! `adopt-root`: the root was moved to this machine.

use crate::context::Context;
use crate::exit_code;
use crate::failure::Failure;
use crate::render;
use placement::{Adopted, Placement};
use serde_json::json;

pub(crate) fn run(context: &Context) -> Result<u8, Failure> {
    let root = context.root()?;
    let adopted = Placement::adopt_root(&root)?;
    if context.style().json {
        render::json(&json!({"root": root, "moved": adopted == Adopted::Moved}))?;
        return Ok(exit_code::SUCCESS);
    }
    render::line(&match adopted {
        Adopted::AlreadyHere => format!("{root} is of this machine already"),
        Adopted::Moved => format!(
            "{root} is now of this machine; `placement reconcile --all` looks at what is open in it"
        ),
    })?;
    Ok(exit_code::SUCCESS)
}
