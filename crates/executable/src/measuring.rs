//! Measuring in slices, so that a caller can answer in between.

use crate::content::Content;
use crate::facts::{Changed, Which};
use crate::kind::{InterpreterLine, LineError, interpreter_line, kind_of};
use crate::known::KnownDigests;
use crate::limits::{EXECUTABLE_BYTES_MAX, READ_BYTES, STEP_BYTES_MAX};
use crate::measured::{ExecutableMeasurement, Held, Interpreter, MEASUREMENT_REVISION, Measured};
use crate::open::{OpenError, open_program};
use camino::Utf8Path;
use placement_contract::{Digest, ExecutableKind};
use std::io;
use std::os::unix::fs::FileExt;

/// A measurement under way.
#[derive(Debug)]
pub struct Measuring {
    stage: Stage,
    known: Option<KnownDigests>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Stage {
    Program(Hashing),
    Interpreter { script: Hashed, line: InterpreterLine, hashing: Hashing },
    Ended,
}

/// How far a measurement has come.
#[derive(Debug)]
pub enum Progress {
    /// There is more to hash.
    More,
    /// The measurement is complete.
    Done(Box<Measured>),
}

/// Why a program cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The path is not absolute.
    #[error("the program's path is not absolute")]
    NotAbsolute,
    /// The program cannot be opened.
    #[error("the program cannot be measured")]
    Program(#[source] OpenError),
    /// The interpreter of the script is missing.
    #[error("the script's interpreter is missing")]
    InterpreterMissing,
    /// The interpreter of the script cannot be opened.
    #[error("the script's interpreter cannot be measured")]
    Interpreter(#[source] OpenError),
    /// The interpreter line names no absolute path that the kernel could take.
    #[error("the script's interpreter line is not usable")]
    InterpreterLine,
    /// The interpreter line ends with a carriage return.
    #[error("the script's interpreter line ends with a carriage return")]
    CarriageReturn,
    /// The file is larger than [`EXECUTABLE_BYTES_MAX`].
    #[error("the {which} is larger than 1 GiB")]
    TooLarge {
        /// Which file.
        which: Which,
    },
    /// The file ended before its size.
    #[error("the {which} ended before its size")]
    ShortRead {
        /// Which file.
        which: Which,
    },
    /// The file changed while it was measured.
    #[error(transparent)]
    Changed(#[from] Changed),
    /// The file could not be read.
    #[error("the {which} could not be read")]
    Read {
        /// Which file.
        which: Which,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
}

impl MeasureError {
    /// Words the error with why a file could not be opened; never what the system said.
    pub fn with_reason(&self) -> String {
        match self {
            Self::Program(why) | Self::Interpreter(why) => format!("{self}: {why}"),
            Self::NotAbsolute
            | Self::InterpreterMissing
            | Self::InterpreterLine
            | Self::CarriageReturn
            | Self::TooLarge { .. }
            | Self::ShortRead { .. }
            | Self::Changed(_)
            | Self::Read { .. } => self.to_string(),
        }
    }
}

/// One file being hashed.
#[derive(Debug)]
struct Hashing {
    held: Held,
    content: Content,
    digest: Known,
}

/// What is known of a digest before its file is read.
#[derive(Debug)]
enum Known {
    /// It was measured before.
    Digest(Digest),
    /// Nothing, and it is kept once it is measured.
    ToKeep,
    /// Nothing, and it is not kept.
    Nothing,
}

/// One file that was hashed whole.
#[derive(Debug)]
struct Hashed {
    held: Held,
    digest: Digest,
    was_known: bool,
    head: Vec<u8>,
}

impl Measuring {
    /// Opens a program and starts to measure it; nothing is read yet.
    ///
    /// # Errors
    /// As [`MeasureError`]: a relative path, a file that cannot be opened, one out of bounds.
    pub fn open(path: &Utf8Path) -> Result<Self, MeasureError> {
        Self::open_knowing(path, None)
    }

    /// Starts as [`Measuring::open`] does, and does not hash what is known already.
    ///
    /// # Errors
    /// As there.
    pub fn open_knowing(
        path: &Utf8Path,
        known: Option<KnownDigests>,
    ) -> Result<Self, MeasureError> {
        if !path.is_absolute() {
            return Err(MeasureError::NotAbsolute);
        }
        let (file, facts) = open_program(path).map_err(MeasureError::Program)?;
        let held = Held { which: Which::Program, path: path.to_owned(), file, facts };
        let stage = Stage::Program(Hashing::start(held, known.as_ref())?);
        Ok(Self { stage, known, buffer: vec![0; READ_BYTES] })
    }

    /// Hashes at most so many bytes, and never more than [`STEP_BYTES_MAX`].
    ///
    /// After a script its interpreter follows.
    ///
    /// # Errors
    /// As [`MeasureError`]: a read that failed or fell short, a file that changed meanwhile, an
    /// interpreter that is missing or cannot be executed.
    ///
    /// # Panics
    /// If it is called again after [`Progress::Done`] or an error.
    pub fn step(&mut self, bytes: usize) -> Result<Progress, MeasureError> {
        let bytes = bytes.clamp(1, STEP_BYTES_MAX);
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Program(mut hashing) => {
                if !hashing.advance(&mut self.buffer, bytes)? {
                    self.stage = Stage::Program(hashing);
                    return Ok(Progress::More);
                }
                let program = hashing.finish(self.known.as_ref())?;
                if kind_of(&program.head) != ExecutableKind::Script {
                    return Ok(Progress::Done(Box::new(measured(program, None))));
                }
                let line = interpreter_line(&program.head)?;
                let hashing = open_interpreter(&line, self.known.as_ref())?;
                self.stage = Stage::Interpreter { script: program, line, hashing };
                Ok(Progress::More)
            }
            Stage::Interpreter { script, line, mut hashing } => {
                if !hashing.advance(&mut self.buffer, bytes)? {
                    self.stage = Stage::Interpreter { script, line, hashing };
                    return Ok(Progress::More);
                }
                let interpreter = hashing.finish(self.known.as_ref())?;
                let measured = measured(script, Some((line, interpreter)));
                Ok(Progress::Done(Box::new(measured)))
            }
            Stage::Ended => panic!("a measurement that ended is not stepped again"),
        }
    }
}

fn open_interpreter(
    line: &InterpreterLine,
    known: Option<&KnownDigests>,
) -> Result<Hashing, MeasureError> {
    let (file, facts) = open_program(&line.path).map_err(|error| match error {
        OpenError::Missing => MeasureError::InterpreterMissing,
        OpenError::Links
        | OpenError::NotRegular(_)
        | OpenError::NotExecutable
        | OpenError::NotReadable
        | OpenError::Io { .. } => MeasureError::Interpreter(error),
    })?;
    let held = Held { which: Which::Interpreter, path: line.path.clone(), file, facts };
    Hashing::start(held, known)
}

fn measured(program: Hashed, interpreter: Option<(InterpreterLine, Hashed)>) -> Measured {
    let (described, interpreter) = interpreter
        .map(|(line, hashed)| {
            let described = Interpreter { line: line.line, path: line.path, digest: hashed.digest };
            (described, hashed.held)
        })
        .unzip();
    let measurement = ExecutableMeasurement {
        revision: MEASUREMENT_REVISION.to_owned(),
        path: program.held.path.clone(),
        kind: kind_of(&program.head),
        interpreter: described,
        size: program.held.facts.size,
        digest: program.digest,
    };
    Measured { program: program.held, interpreter, measurement, was_known: program.was_known }
}

impl From<LineError> for MeasureError {
    fn from(error: LineError) -> Self {
        match error {
            LineError::Unusable => Self::InterpreterLine,
            LineError::CarriageReturn => Self::CarriageReturn,
        }
    }
}

impl Hashing {
    fn start(held: Held, known: Option<&KnownDigests>) -> Result<Self, MeasureError> {
        if held.facts.size > EXECUTABLE_BYTES_MAX {
            return Err(MeasureError::TooLarge { which: held.which });
        }
        let content = Content::new(held.which, held.facts.size);
        let (file, facts) = (&held.file, &held.facts);
        let digest = match known {
            None => Known::Nothing,
            Some(known) => match known.find(file, facts) {
                Some(digest) => Known::Digest(digest),
                None if known.may_keep(file, facts) => Known::ToKeep,
                None => Known::Nothing,
            },
        };
        Ok(Self { held, content, digest })
    }

    /// Hashes some more; says whether that was all.
    ///
    /// The descriptor's own offset is not moved, since whoever executes the file shares it.
    fn advance(&mut self, buffer: &mut [u8], bytes: usize) -> Result<bool, MeasureError> {
        let file = &self.held.file;
        let read = |part: &mut [u8], offset| file.read_at(part, offset);
        match self.digest {
            Known::Digest(_) => self.content.read_head(read, buffer).map(|()| true),
            Known::ToKeep | Known::Nothing => self.content.advance(read, buffer, bytes),
        }
    }

    /// Closes the race with a writer: the facts before the first and after the last byte agree.
    fn finish(self, known: Option<&KnownDigests>) -> Result<Hashed, MeasureError> {
        self.held.seen_again()?;
        let (measured, head) = self.content.finish();
        let (digest, was_known) = match (self.digest, known) {
            (Known::Digest(digest), _) => (digest, true),
            (Known::ToKeep, Some(known)) => {
                known.keep(&self.held.facts, &measured);
                (measured, false)
            }
            (Known::ToKeep | Known::Nothing, _) => (measured, false),
        };
        Ok(Hashed { held: self.held, digest, was_known, head })
    }
}
