//! What a plan says of the program.

use crate::canonical::Digest;
use crate::id::Id;
use crate::state::labels;
use serde::{Deserialize, Serialize};

labels! {
    /// What kind of program a file is.
    ExecutableKind {
        /// An ELF file.
        Elf = "elf",
        /// A script with an interpreter line.
        Script = "script",
        /// Anything else.
        Other = "other",
    }
    /// How a session of the program ends.
    SessionEnd {
        /// By the end of its input, once the owner asks for it.
        StdinClose = "stdin_close",
    }
}

/// The program as it was measured for the plan; another one is refused at the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedExecutable {
    /// The form of the measurement.
    pub revision: Id,
    /// What kind of program it is.
    pub kind: ExecutableKind,
    /// The digest of its content.
    pub digest: Digest,
}
