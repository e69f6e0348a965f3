//! Which program is started as a runner.

use std::path::{Path, PathBuf};

/// Names the program that is started for each attempt, with
/// [`placement_protocol::RUNNER_ARGUMENT`] alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerCommand {
    program: PathBuf,
}

impl RunnerCommand {
    /// Starts the host's own program again, through `/proc/self/exe`.
    ///
    /// The link is followed at each start, so the file that runs is the host's own even after the
    /// path was replaced. See `proc_pid_exe(5)`.
    pub fn this_executable() -> Self {
        Self { program: PathBuf::from("/proc/self/exe") }
    }

    /// Starts the program at a path, which should be absolute.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }

    /// Returns the program.
    pub fn program(&self) -> &Path {
        &self.program
    }
}
