//! Which attempts a command is about.

use crate::args::Selection;
use crate::context::Style;
use crate::exit_code;
use crate::failure::{Failure, say, say_refusal};
use placement::{Attempt, AttemptId, AttemptList, Code, Placement, Refusal};

/// Reads an attempt's id.
pub(crate) fn attempt_id(text: &str) -> Result<AttemptId, Failure> {
    AttemptId::parse(text).map_err(|rule| {
        Refusal::new(Code::Invalid, format!("the attempt id {rule}"))
            .with_hint("`placement ps --all` lists the attempts of this owner")
            .into()
    })
}

/// Returns the named attempt, or all that a filter lets through.
pub(crate) fn selected(
    host: &Placement,
    selection: &Selection,
    filter: impl Fn(&Attempt) -> bool,
) -> Result<Vec<AttemptId>, Failure> {
    if let Some(text) = &selection.attempt {
        return Ok(vec![attempt_id(text)?]);
    }
    let list = host.attempts().all()?;
    say_unreadable(&list);
    let chosen = list.attempts.into_iter().filter(filter);
    Ok(chosen.map(|attempt| attempt.attempt_id).collect())
}

/// Says which attempts cannot be read, and so are in no list.
pub(crate) fn say_unreadable(list: &AttemptList) {
    for row in &list.unreadable {
        say(&format!(
            "STORAGE: the row of attempt {} is malformed ({})",
            row.attempt_id, row.column
        ));
    }
}

/// Does something to each attempt; a refusal of one is said and does not hold back the others.
pub(crate) fn each(
    attempts: &[AttemptId],
    style: Style,
    mut act: impl FnMut(&AttemptId) -> Result<(), Failure>,
) -> Result<u8, Failure> {
    let mut code = exit_code::SUCCESS;
    for attempt in attempts {
        match act(attempt) {
            Ok(()) => {}
            Err(Failure::Refused(refusal)) if attempts.len() > 1 => {
                code = exit_code::of_refusal(refusal.code);
                let message = format!("attempt {attempt}: {}", refusal.message);
                say_refusal(&Refusal { message, ..refusal }, style);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(code)
}
