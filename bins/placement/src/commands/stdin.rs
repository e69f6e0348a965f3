//! Where a child's input comes from, and the thread that pumps it.

use crate::args::LaunchArgs;
use crate::failure::{Failure, say};
use camino::Utf8Path;
use placement::limits::WRITE_BYTES_MAX;
use placement::{Input, InputOutcome};
use std::fs::File;
use std::io::{ErrorKind, Read};

/// Where a child's input comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// There is none.
    None,
    /// This program's own.
    Own,
    /// A file, which is open so that a missing one is refused before anything runs.
    File(File),
}

impl Source {
    /// Reads the options.
    pub(crate) fn of(arguments: &LaunchArgs) -> Result<Self, Failure> {
        match arguments.stdin.as_deref() {
            None if arguments.interactive => Ok(Self::Own),
            None | Some("none") => Ok(Self::None),
            Some("pipe") => Ok(Self::Own),
            Some(path) => open(Utf8Path::new(path)),
        }
    }

    /// Starts the thread that pumps the input until it ends or the child takes no more.
    ///
    /// A descriptor is read here and never handed on to the child.
    pub(crate) fn pump(self, input: &Input) {
        let pumped = input.clone();
        let thread = std::thread::Builder::new();
        let pumping = match self {
            Self::None => return,
            Self::Own => thread.spawn(move || copy(std::io::stdin().lock(), &pumped)),
            Self::File(file) => thread.spawn(move || copy(file, &pumped)),
        };
        if pumping.is_err() {
            say("no thread can be had to pass the input on; the child gets its end");
            input.close().ok();
        }
    }
}

fn open(path: &Utf8Path) -> Result<Source, Failure> {
    let why = match File::open(path) {
        // It opens all the same, and would read like an empty file.
        Ok(file) if file.metadata().is_ok_and(|facts| facts.is_dir()) => "is a directory",
        Ok(file) => return Ok(Source::File(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => "does not exist",
        Err(_) => "cannot be opened",
    };
    Err(Failure::invalid(format!("the input file {path:?} {why}")))
}

/// What the child does not take is the child's affair: it ended, or reads no further.
fn copy(mut source: impl Read, input: &Input) {
    let mut piece = vec![0; WRITE_BYTES_MAX];
    loop {
        match source.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => match input.write(piece.get(..count).unwrap_or_default()) {
                Ok(InputOutcome::Accepted) => {}
                Ok(InputOutcome::NotAccepted(_) | InputOutcome::Unanswered) | Err(_) => return,
            },
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => {
                say("the input cannot be read any further; the child gets its end");
                break;
            }
        }
    }
    // A child that has ended needs no end of its input.
    input.close().ok();
}
