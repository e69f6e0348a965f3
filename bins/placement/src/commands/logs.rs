//! `logs`: the transcript.

use super::selection::attempt_id;
use super::sink::Sink;
use crate::args::Stream;
use crate::context::Context;
use crate::exit_code;
use crate::failure::{Failure, say};
use placement::{AttemptId, Chunk, Placement, Seen, StreamName};
use std::time::Instant;

pub(crate) fn run(
    text: &str,
    follow: bool,
    stream: Option<Stream>,
    context: &Context,
) -> Result<u8, Failure> {
    let id = attempt_id(text)?;
    let host = context.open()?;
    let mut sink = Sink::new(id.clone(), context.style());
    let wanted = stream.map(|stream| match stream {
        Stream::Stdout => StreamName::Stdout,
        Stream::Stderr => StreamName::Stderr,
    });
    let mut write = |chunk: &Chunk| {
        if wanted.is_none_or(|wanted| wanted == chunk.stream()) {
            sink.write(chunk)?;
        }
        Ok(())
    };
    if follow {
        follow_to_end(&host, &id, &mut write)?;
    } else {
        read(&host, &id, Some(Instant::now()), &mut write)?;
    }
    Ok(exit_code::SUCCESS)
}

/// Passes on everything that is kept and that comes, until the attempt has ended.
pub(crate) fn follow_to_end(
    host: &Placement,
    id: &AttemptId,
    write: &mut impl FnMut(&Chunk) -> Result<(), Failure>,
) -> Result<(), Failure> {
    read(host, id, None, write)
}

fn read(
    host: &Placement,
    id: &AttemptId,
    deadline: Option<Instant>,
    write: &mut impl FnMut(&Chunk) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut observer = host.observe(id)?;
    loop {
        match observer.next(deadline)? {
            Seen::Chunk(chunk) => write(&chunk)?,
            Seen::Gap { bytes } => say(&format!("{bytes} bytes of output are no longer kept")),
            Seen::Nothing if deadline.is_none() => {}
            Seen::Nothing | Seen::End => return Ok(()),
        }
    }
}
