//! A temporary directory with a physical path.

use camino::{Utf8Path, Utf8PathBuf};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// Owns a private directory (0700) and removes it on drop, with whatever modes a test left inside.
///
/// Its path has no symlink in it, so that it can be compared with what the system reports.
#[derive(Debug)]
pub struct TempRoot {
    path: Utf8PathBuf,
    // The directory is removed when this field drops, after `drop` opened what is inside.
    directory: TempDir,
}

impl TempRoot {
    /// Makes an empty directory below the system's temporary directory.
    ///
    /// # Panics
    ///
    /// When it cannot be made: no test can go on without it.
    pub fn new() -> Self {
        let parent = std::env::temp_dir().canonicalize().expect("the temporary directory exists");
        let directory = tempfile::Builder::new()
            .prefix("pl-test-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)
            .expect("the temporary directory is writable");
        let path = Utf8PathBuf::from_path_buf(directory.path().to_owned())
            .expect("the temporary directory has a UTF-8 path");
        Self { path, directory }
    }

    /// Returns its path.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Returns the path of something inside.
    pub fn join(&self, name: impl AsRef<Utf8Path>) -> Utf8PathBuf {
        self.path.join(name)
    }
}

impl Default for TempRoot {
    fn default() -> Self {
        Self::new()
    }
}

impl AsRef<Path> for TempRoot {
    fn as_ref(&self) -> &Path {
        self.path.as_std_path()
    }
}

impl Drop for TempRoot {
    fn drop(&mut self) {
        open_directories(self.directory.path());
    }
}

/// Gives the owner access to every directory from here down, without following links.
///
/// Best effort: what cannot be opened is left for the removal, which reports nothing either.
fn open_directories(directory: &Path) {
    if fs::set_permissions(directory, Permissions::from_mode(0o700)).is_err() {
        return;
    }
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_directories(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_private_and_physical() {
        let root = TempRoot::new();
        let mode = fs::metadata(root.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700);
        assert_eq!(root.path().canonicalize_utf8().unwrap(), root.path());
    }

    #[test]
    fn it_goes_with_a_directory_that_nobody_may_enter() {
        let root = TempRoot::new();
        let path = root.path().to_owned();
        let closed = root.join("a/closed");
        fs::create_dir_all(closed.join("inner")).unwrap();
        fs::write(closed.join("inner/file"), "x").unwrap();
        fs::set_permissions(closed.join("inner"), Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
        drop(root);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_link_points_to_stays() {
        let outside = TempRoot::new();
        fs::set_permissions(outside.path(), Permissions::from_mode(0o755)).unwrap();
        let root = TempRoot::new();
        std::os::unix::fs::symlink(outside.path(), root.join("link")).unwrap();
        drop(root);
        let mode = fs::metadata(outside.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
    }
}
