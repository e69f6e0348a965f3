//! A measured program: its facts, its descriptor, and looking at it again.

use crate::facts::{Changed, Fact, Facts, Which};
use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::{Digest, ExecutableKind};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

/// The name of the form in which a measurement is written.
pub const MEASUREMENT_REVISION: &str = "bee.executable-measurement@1";

/// What was measured of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutableMeasurement {
    /// Always [`MEASUREMENT_REVISION`].
    pub revision: String,
    /// The path under which it was opened.
    pub path: Utf8PathBuf,
    /// What kind of program it is.
    pub kind: ExecutableKind,
    /// The interpreter of a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<Interpreter>,
    /// Its size in bytes.
    pub size: u64,
    /// The SHA-256 digest of its content.
    pub digest: Digest,
}

/// The measured interpreter of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interpreter {
    /// The line after `#!`, without surrounding blanks.
    pub line: String,
    /// The interpreter's path.
    pub path: Utf8PathBuf,
    /// The SHA-256 digest of its content.
    pub digest: Digest,
}

/// A program that was measured, held by the descriptor that was hashed.
#[derive(Debug)]
#[must_use]
pub struct Measured {
    pub(crate) program: Held,
    pub(crate) interpreter: Option<Held>,
    pub(crate) measurement: ExecutableMeasurement,
    pub(crate) was_known: bool,
}

/// One file, held open, with the facts that were true before and after it was hashed.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) which: Which,
    pub(crate) path: Utf8PathBuf,
    pub(crate) file: File,
    pub(crate) facts: Facts,
}

impl Measured {
    /// Returns what was measured.
    pub const fn measurement(&self) -> &ExecutableMeasurement {
        &self.measurement
    }

    /// Says whether the program's digest was known by its facts, and the program not hashed now.
    pub const fn digest_was_known(&self) -> bool {
        self.was_known
    }

    /// Returns the facts of the program.
    pub const fn facts(&self) -> Facts {
        self.program.facts
    }

    /// Returns the path under which the program was opened.
    pub fn path(&self) -> &Utf8Path {
        &self.program.path
    }

    /// Lends the descriptor of the very file that was hashed; it is closed on exec.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.program.file.as_fd()
    }

    /// Looks at the program and its interpreter again, by descriptor and by path.
    ///
    /// The same device, inode, size, modification and change time mean the same file under the
    /// path. Between this look and an exec by path another file can still take its place; an exec
    /// of the descriptor has no such gap.
    ///
    /// # Errors
    /// [`Changed`] names the file and the first fact that differs.
    pub fn seen_again(&self) -> Result<(), Changed> {
        self.program.seen_again()?;
        self.interpreter.as_ref().map_or(Ok(()), Held::seen_again)
    }
}

impl Held {
    pub(crate) fn seen_again(&self) -> Result<(), Changed> {
        let changed = |fact| Changed { which: self.which, fact };
        // The path first: it tells a replaced file, of which the descriptor only sees that it lost
        // a link.
        let by_path = std::fs::metadata(&self.path).map_err(|_| changed(Fact::Gone))?;
        self.facts.compare(&Facts::of(&by_path)).map_err(changed)?;
        let by_descriptor = self.file.metadata().map_err(|_| changed(Fact::Gone))?;
        self.facts.compare(&Facts::of(&by_descriptor)).map_err(changed)
    }
}
