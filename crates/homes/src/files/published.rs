//! Publishing configuration into a retained home.

use std::io;

use placement_contract::request::RelativePath;
use placement_paths::{PrivateError, PublishError, Replacement};

use crate::attempt::fixed_name;
use crate::files::{Content, Durability, FILE_MODE, HomeFiles, ParentError, Way, resolvable};

/// Why configuration was not published, or not surely.
#[derive(Debug, thiserror::Error)]
pub enum PublishConfigurationError {
    /// The root is not ours alone.
    #[error("the root directory is not private")]
    Root(#[source] PrivateError),
    /// It would touch the login, what comes with it, or the marker.
    #[error("the configuration overlaps the login, a file that comes with it, or its marker")]
    Overlaps,
    /// It is above its bound.
    #[error("the configuration is larger than {bytes_max} bytes")]
    TooLarge {
        /// The bound, in bytes.
        bytes_max: usize,
    },
    /// There is no directory for it.
    #[error("there is no directory for the configuration")]
    Parent(#[source] ParentError),
    /// What stands in its place is a directory, a link or a device.
    #[error("what stands in the place of the configuration is not a regular file")]
    TargetNotAFile,
    /// It was not published; what was there before stands.
    #[error("the configuration could not be published")]
    Publish(#[source] PublishError),
    /// It stands under its name, and nobody can tell whether it would after a power failure: to be
    /// recorded as `configuration.uncertain`.
    #[error("the configuration was published, but its directory could not be synced")]
    Uncertain(#[source] io::Error),
}

impl HomeFiles {
    /// Publishes configuration (0600), in the place of what an earlier start published.
    ///
    /// Readers see the old content or all of the new, which survives power loss. Directories on the
    /// way that are all there are used; where one is missing, only those that this start made. A file
    /// that was published before another one failed stays.
    ///
    /// # Errors
    /// [`PublishConfigurationError::Uncertain`] is the only one after which the new content stands.
    pub fn publish_configuration(
        &mut self,
        path: &RelativePath,
        bytes: &[u8],
        content: Content,
    ) -> Result<(), PublishConfigurationError> {
        self.check_root().map_err(PublishConfigurationError::Root)?;
        if self.is_reserved(path) {
            return Err(PublishConfigurationError::Overlaps);
        }
        let bytes_max = content.bytes_max();
        if bytes.len() > bytes_max {
            return Err(PublishConfigurationError::TooLarge { bytes_max });
        }
        let path = resolvable(path);
        let parent = self
            .parent(&path, Way::WholeOrMadeHere, Durability::PowerLoss)
            .map_err(PublishConfigurationError::Parent)?;
        let name = fixed_name(path.name());
        parent
            .publish(&name, bytes, FILE_MODE, Replacement::Replace)
            .map_err(PublishConfigurationError::of)
    }
}

impl PublishConfigurationError {
    fn of(error: PublishError) -> Self {
        match error {
            PublishError::PublishedNotSynced { source, .. } => Self::Uncertain(source),
            PublishError::TargetNotAFile { .. } => Self::TargetNotAFile,
            error @ (PublishError::Parent(_)
            | PublishError::CreateParent(_)
            | PublishError::AlreadyExists { .. }
            | PublishError::Step { .. }) => Self::Publish(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_paths::{Dir, OpenError};

    #[test]
    fn what_was_renamed_and_not_synced_is_kept_apart() {
        let scratch = placement_testkit::TempRoot::new();
        let dir = Dir::open(scratch.path(), "test").unwrap();
        let Err(OpenError::Missing { place }) = dir.open_dir(&fixed_name("none")) else {
            panic!("nothing of that name is there");
        };
        let source = || io::Error::from_raw_os_error(5);
        let uncertain = PublishError::PublishedNotSynced { place, source: source() };
        let uncertain = PublishConfigurationError::of(uncertain);
        assert!(matches!(uncertain, PublishConfigurationError::Uncertain(_)), "{uncertain:?}");
        let step = placement_paths::PublishStep::SyncFile;
        let failed = PublishError::Step { step, place, source: source() };
        let failed = PublishConfigurationError::of(failed);
        assert!(matches!(failed, PublishConfigurationError::Publish(_)), "{failed:?}");
    }
}
