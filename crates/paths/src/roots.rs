//! Write roots: the directories below which something may be written.

use std::path::Path;

use crate::limits::WRITE_ROOTS_MAX;
use crate::physical::{PhysicalDir, ResolveError, resolve_directory};

/// A set of physical directories; what lies in none of them is not admitted.
///
/// An empty set admits nothing. Roots are deduplicated and sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRoots {
    roots: Vec<PhysicalDir>,
}

/// Why a set of roots was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum WriteRootsError {
    /// One of them is no directory that can be resolved.
    #[error("write root {position} was not resolved")]
    Resolve {
        /// Which one, from 0.
        position: usize,
        /// Why not.
        #[source]
        source: ResolveError,
    },
    /// There are more than 256.
    #[error("there are more than {WRITE_ROOTS_MAX} write roots")]
    TooMany,
}

/// Why a candidate was not admitted.
#[derive(Debug, thiserror::Error)]
pub enum NotAdmitted {
    /// It is no directory that can be resolved.
    #[error("the directory was not resolved")]
    Resolve(#[source] ResolveError),
    /// It lies, physically, in none of the roots.
    #[error("the directory lies outside every write root")]
    Outside,
}

impl WriteRoots {
    /// Resolves the roots.
    ///
    /// # Errors
    /// One of them cannot be resolved, or there are too many.
    pub fn new<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Self, WriteRootsError> {
        let mut roots = Vec::new();
        for (position, path) in paths.into_iter().enumerate() {
            if position >= WRITE_ROOTS_MAX {
                return Err(WriteRootsError::TooMany);
            }
            let root = resolve_directory(path)
                .map_err(|source| WriteRootsError::Resolve { position, source })?;
            roots.push(root);
        }
        roots.sort();
        roots.dedup();
        Ok(Self { roots })
    }

    /// Admits a directory that lies, physically, in one of the roots or is one.
    ///
    /// # Errors
    /// [`NotAdmitted::Outside`], or it cannot be resolved.
    pub fn admit(&self, candidate: impl AsRef<Path>) -> Result<PhysicalDir, NotAdmitted> {
        let candidate = resolve_directory(candidate).map_err(NotAdmitted::Resolve)?;
        if self.roots.iter().any(|root| root.contains(&candidate)) {
            Ok(candidate)
        } else {
            Err(NotAdmitted::Outside)
        }
    }

    /// Returns the physical roots, sorted.
    pub fn as_slice(&self) -> &[PhysicalDir] {
        &self.roots
    }
}
