//! Following one attempt to its end: streams through, cleanup, the exit code.

use super::room::{Passing, watch};
use super::sink::Sink;
use super::stdin::Source;
use crate::context::Style;
use crate::exit_code;
use crate::failure::{Failure, say};
use crate::progress::Awaiting;
use crate::render;
use crate::signals::Signals;
use placement::{AttemptHandle, End, EvidenceKind, ExecutionState, Placement, Seen, StreamName};
use serde_json::json;
use std::sync::mpsc;

/// Passes the streams through until the attempt has ended, cleans up, and returns how it ended.
pub(crate) fn to_end(
    host: &Placement,
    attempt: AttemptHandle,
    source: Source,
    signals: &Signals,
    style: Style,
) -> Result<End, Failure> {
    signals.stop(host, attempt.id());
    let mut sink = Sink::new(attempt.id().clone(), style);
    if attempt.is_ended_replay() {
        print_log(host, &attempt, &mut sink)?;
    } else {
        source.pump(&attempt.input());
        pass_through_watched(host, &attempt, &mut sink)?;
    }
    for stream in StreamName::ALL {
        if attempt.is_truncated(*stream) == Some(true) {
            say(&format!("the end of {stream} may be missing"));
        }
    }
    let awaited = Awaiting::start(format!("waiting for the end of attempt {}", attempt.id()));
    let end = attempt.finish()?;
    drop(awaited);
    Ok(end)
}

/// Tells what is left to tell of an end, and returns its exit code.
pub(crate) fn conclude(end: &End, replayed: bool, style: Style) -> Result<u8, Failure> {
    if let Some(lost) = end.first(EvidenceKind::OutputLost) {
        say(&format!("output is lost: {}", lost.detail));
    }
    if end.attempt().execution_state == ExecutionState::Intended {
        say("no runner could claim the attempt within its start budget; nothing of it ran");
    } else if let Some(refusal) = end.kept() {
        say(&format!("the home is kept: {}", refusal.message));
    }
    if style.json {
        render::json(&json!({"attempt": end.attempt(), "replayed": replayed}))?;
    } else if style.verbose {
        say(&format!("attempt {}: {end}", end.attempt().attempt_id));
    }
    Ok(exit_code::of_end(end))
}

/// Passes output on, and says so when the disk of the root keeps it from coming.
fn pass_through_watched(
    host: &Placement,
    attempt: &AttemptHandle,
    sink: &mut Sink,
) -> Result<(), Failure> {
    let passing = &Passing::default();
    let (over, is_over) = mpsc::channel();
    std::thread::scope(|scope| {
        let watched = move || watch(host, attempt.id(), passing, &is_over);
        // Where no thread can be had nothing is said.
        std::thread::Builder::new().spawn_scoped(scope, watched).ok();
        let passed = pass_through(attempt, sink, passing);
        drop(over);
        passed
    })
}

/// Passes output on as it comes. Without a reader here it is as if this host were lost: a child that
/// outlives its host is let go, any other is asked to stop, and what it still says is taken and
/// dropped so that it can.
fn pass_through(
    attempt: &AttemptHandle,
    sink: &mut Sink,
    passing: &Passing,
) -> Result<(), Failure> {
    let mut reader_gone = false;
    for chunk in attempt.output() {
        passing.turn();
        match chunk {
            Ok(chunk) if !reader_gone => {
                if let Err(error) = sink.write(&chunk) {
                    if attempt.outlives_host() {
                        return Err(error.into());
                    }
                    reader_gone = true;
                    if let Err(error) = attempt.stop() {
                        say(&format!("the stop was not taken: {error}"));
                    }
                }
            }
            Ok(_) => {}
            Err(error) => {
                say(&format!("the streams of attempt {} are lost: {error}", attempt.id()));
                return Ok(());
            }
        }
        passing.turn();
    }
    if attempt.is_taken() {
        let id = attempt.id();
        say(&format!("the streams of attempt {id} were taken over; waiting for its end"));
    }
    Ok(())
}

/// Prints everything that is kept of an ended attempt, acknowledged or not.
fn print_log(host: &Placement, attempt: &AttemptHandle, sink: &mut Sink) -> Result<(), Failure> {
    let recorded = attempt.attempt()?;
    if recorded.execution_state == ExecutionState::Intended || recorded.pruned {
        return Ok(());
    }
    let mut observer = match host.observe(attempt.id()) {
        Ok(observer) => observer,
        Err(error) => {
            say(&format!("the output of attempt {} is not kept: {error}", attempt.id()));
            return Ok(());
        }
    };
    loop {
        match observer.next(None)? {
            Seen::Chunk(chunk) => sink.write(&chunk)?,
            Seen::Gap { bytes } => say(&format!("{bytes} bytes of output are no longer kept")),
            Seen::Nothing => {}
            Seen::End => return Ok(()),
        }
    }
}
