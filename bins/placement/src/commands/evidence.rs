//! `evidence`: what was seen, row by row.

use super::selection::attempt_id;
use crate::context::Context;
use crate::exit_code;
use crate::failure::Failure;
use crate::render;
use placement::{AttemptId, Evidence, Timestamp};
use serde::Serialize;

/// A row with the attempt that it belongs to.
#[derive(Debug, Serialize)]
struct JsonRow<'a> {
    attempt_id: &'a AttemptId,
    #[serde(flatten)]
    row: &'a Evidence,
}

pub(crate) fn run(
    text: &str,
    after: u64,
    limit: Option<u32>,
    timeline: bool,
    context: &Context,
) -> Result<u8, Failure> {
    let id = attempt_id(text)?;
    let rows = context.open()?.evidence(&id, after, limit)?;
    if context.style().json {
        for row in &rows {
            render::json(&JsonRow { attempt_id: &id, row })?;
        }
        return Ok(exit_code::SUCCESS);
    }
    let first = rows.first().map(|row| row.at.clone());
    let mut table = vec![["#", "AT", "KIND", "DETAIL"].map(str::to_owned).to_vec()];
    for row in &rows {
        let at = match &first {
            Some(first) if timeline => render::elapsed(first, &row.at),
            Some(_) | None => time_of_day(&row.at),
        };
        table.push(vec![row.sequence.to_string(), at, row.kind.to_string(), row.detail.clone()]);
    }
    render::table(&table, context.style())?;
    Ok(exit_code::SUCCESS)
}

/// The time without its date, which `--json` and `show` tell.
fn time_of_day(at: &Timestamp) -> String {
    at.as_str().get(11..23).unwrap_or(at.as_str()).to_owned()
}
