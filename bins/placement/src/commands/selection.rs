//! Which attempts a command is about.

use crate::args::Selection;
use crate::context::Style;
use crate::exit_code;
use crate::failure::{Failure, say_refusal};
use placement::{Attempt, AttemptId, Code, Placement, Refusal, Unreadable};

/// Reads an attempt's id.
pub(crate) fn attempt_id(text: &str) -> Result<AttemptId, Failure> {
    AttemptId::parse(text).map_err(|rule| {
        Refusal::new(Code::Invalid, format!("the attempt id {rule}"))
            .with_hint("`placement ps --all` lists the attempts of this owner")
            .into()
    })
}

/// What a command is about.
#[derive(Debug)]
pub(crate) struct Selected {
    /// The attempts.
    pub(crate) attempts: Vec<AttemptId>,
    /// The exit code so far: what is in no list because it cannot be read is no success.
    pub(crate) code: u8,
}

/// Returns the named attempt, or all that a filter lets through.
pub(crate) fn selected(
    host: &Placement,
    selection: &Selection,
    filter: impl Fn(&Attempt) -> bool,
    style: Style,
) -> Result<Selected, Failure> {
    if let Some(text) = &selection.attempt {
        return Ok(Selected { attempts: vec![attempt_id(text)?], code: exit_code::SUCCESS });
    }
    let list = host.attempts().all()?;
    let code = say_unreadable(&list.unreadable, style);
    let chosen = list.attempts.into_iter().filter(filter);
    Ok(Selected { attempts: chosen.map(|attempt| attempt.attempt_id).collect(), code })
}

/// Says which attempts cannot be read, and so are in no list; returns the exit code for that.
pub(crate) fn say_unreadable(unreadable: &[Unreadable], style: Style) -> u8 {
    for row in unreadable {
        let message =
            format!("the row of attempt {} is malformed ({})", row.attempt_id, row.column);
        say_refusal(&Refusal::new(Code::Storage, message), style);
    }
    if unreadable.is_empty() {
        return exit_code::SUCCESS;
    }
    exit_code::of_refusal(Code::Storage)
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
                code = say_of(attempt, &refusal, style);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(code)
}

/// Says what stands against one attempt of several; returns the exit code for that.
pub(crate) fn say_of(attempt: &AttemptId, refusal: &Refusal, style: Style) -> u8 {
    let message = format!("attempt {attempt}: {}", refusal.message);
    say_refusal(&Refusal { message, ..refusal.clone() }, style);
    exit_code::of_refusal(refusal.code)
}
