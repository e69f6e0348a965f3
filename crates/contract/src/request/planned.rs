//! What a plan says of the program, and for which turn it was configured.

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
    /// For which turn a launch was configured.
    ConfigurationContext {
        /// A window.
        Window = "window",
        /// The first turn of a conversation.
        FirstTurn = "first_turn",
        /// A later turn of it.
        Resume = "resume",
    }
    /// How a session of the program ends.
    SessionEnd {
        /// By the end of its input, once the owner asks for it.
        StdinClose = "stdin_close",
    }
    /// Which working tree a launch gets.
    Worktree {
        /// One of its own.
        Dedicated = "dedicated",
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

/// What workdir preparers are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PreparerOptions {
    /// The working tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
}

impl PreparerOptions {
    /// Says whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
