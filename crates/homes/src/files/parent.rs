//! The directories on the way to a file.

use placement_paths::{CreateError, Dir, IoFailure, OpenError, RelativePath};

use crate::attempt::fixed_name;
use crate::files::HomeFiles;

const DIRECTORY_MODE: u32 = 0o700;

/// Which directories on the way to a file may be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Only those that this start made.
    MadeHere,
    /// All of them; where one is missing, only those that this start made.
    WholeOrMadeHere,
}

/// Whether a new directory survives power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It does: the directory that holds it is synced.
    PowerLoss,
    /// It survives the death of the process.
    ProcessDeath,
}

/// Why there is no directory for a file.
#[derive(Debug, thiserror::Error)]
pub enum ParentError {
    /// A directory on the way was there before this start, and others on it are missing.
    #[error("a directory on the way was not made by this start")]
    NotMadeHere,
    /// A directory that this start made is another one by now.
    #[error("a directory that this start made was replaced")]
    Replaced,
    /// Something on the way cannot be opened, or is a link or no directory.
    #[error("a directory on the way cannot be opened")]
    Open(#[source] OpenError),
    /// A missing one could not be created.
    #[error("a directory on the way could not be created")]
    Create(#[source] CreateError),
    /// It could not be examined or synced.
    #[error("a directory on the way could not be examined or synced")]
    Io(#[source] IoFailure),
}

impl HomeFiles {
    /// Opens the directory in which a file is to be, creating it one by one.
    pub(crate) fn parent(
        &mut self,
        path: &RelativePath,
        way: Way,
        durability: Durability,
    ) -> Result<Dir, ParentError> {
        let Some(parent) = path.parent() else {
            return self.home.try_clone().map_err(ParentError::Io);
        };
        if way == Way::WholeOrMadeHere {
            match self.home.open_dir(&parent) {
                Err(OpenError::Missing { .. }) => {}
                whole => return whole.map_err(ParentError::Open),
            }
        }
        let mut current = self.home.try_clone().map_err(ParentError::Io)?;
        let mut walked = String::new();
        for name in parent.segments() {
            if !walked.is_empty() {
                walked.push('/');
            }
            walked.push_str(name);
            current = self.step(&current, name, &walked, durability)?;
        }
        Ok(current)
    }

    /// Opens what this start made under a name, or makes it.
    fn step(
        &mut self,
        current: &Dir,
        name: &str,
        walked: &str,
        durability: Durability,
    ) -> Result<Dir, ParentError> {
        if let Some(id) = self.created.get(walked) {
            let made = current.open_dir(&fixed_name(name)).map_err(ParentError::Open)?;
            // Whoever shares the user may have put another directory into its place since.
            let facts = made.facts().map_err(ParentError::Io)?;
            return if facts.id() == *id { Ok(made) } else { Err(ParentError::Replaced) };
        }
        let made = match current.create_dir(name, DIRECTORY_MODE) {
            Ok(made) => made,
            Err(CreateError::AlreadyExists { .. }) => return Err(ParentError::NotMadeHere),
            Err(error) => return Err(ParentError::Create(error)),
        };
        let facts = made.facts().map_err(ParentError::Io)?;
        self.created.insert(walked.to_owned(), facts.id());
        match durability {
            Durability::PowerLoss => current.sync().map_err(ParentError::Io)?,
            Durability::ProcessDeath => {}
        }
        Ok(made)
    }
}
