//! How much is measured, and with which programs.

use crate::command::Failure;
use crate::proving_ground::{ProvingGround, told};
use camino::Utf8PathBuf;
use placement::{AttemptHandle, CleanupState, InputOutcome, Launch};

/// How much is measured, and with which programs.
#[derive(Debug)]
pub(super) struct Setting {
    /// Whether a rough figure is enough.
    pub(super) quick: bool,
    /// Where the release build lies.
    pub(super) built: Utf8PathBuf,
}

impl Setting {
    /// Chooses between the figures of a full and of a quick run.
    pub(super) fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Returns how often something is measured, of which the median counts.
    pub(super) fn rounds(&self) -> usize {
        self.pick(15, 5)
    }

    /// Opens a host on a root of its own, with the small runner program.
    pub(super) fn ground(&self) -> Result<ProvingGround, Failure> {
        ProvingGround::open(Some(&self.built.join("placement-runner")))
    }
}

/// Launches in the work directory.
pub(super) fn launch(ground: &ProvingGround, launch: Launch) -> Result<AttemptHandle, Failure> {
    ground.host().launch(launch.write(ground.work())).map_err(|error| told("launch", &error))
}

/// Describes the launch of a shell command.
pub(super) fn shell(script: &str) -> Launch {
    Launch::program("/bin/sh").args(["-c", script])
}

/// Waits for an attempt's end and cleans up after it.
pub(super) fn finish(attempt: AttemptHandle) -> Result<(), Failure> {
    let end = attempt.finish().map_err(|error| told("finish", &error))?;
    match end.attempt().cleanup_state {
        CleanupState::Complete => Ok(()),
        CleanupState::Pending | CleanupState::Uncertain => {
            Err(Failure::new(format!("an attempt could not be cleaned up: {end}")))
        }
    }
}

/// Writes a line to a program that waits for one.
pub(super) fn tell(attempt: &AttemptHandle) -> Result<(), Failure> {
    match attempt.write_input(b"go\n").map_err(|error| told("write", &error))? {
        InputOutcome::Accepted => Ok(()),
        InputOutcome::NotAccepted(_) | InputOutcome::Unanswered => {
            Err(Failure::new("a program took no input"))
        }
    }
}
