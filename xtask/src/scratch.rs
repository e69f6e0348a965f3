//! A directory outside the checkout that goes when it is dropped.

use crate::command::Failure;
use camino::{Utf8Path, Utf8PathBuf};
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;

/// A directory below the system's temporary one, removed with all that is in it when it is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: Utf8PathBuf,
}

impl Scratch {
    /// Makes it empty, readable for everyone; what a killed run left under the name goes first.
    pub(crate) fn make(name: &str) -> Result<Self, Failure> {
        let parent = Utf8PathBuf::from_path_buf(std::env::temp_dir())
            .map_err(|path| Failure::new(format!("{} is not UTF-8", path.display())))?;
        let path = parent.join(name);
        remove(&path).map_err(|error| Failure::io("remove", &path, &error))?;
        fs::create_dir(&path).map_err(|error| Failure::io("make", &path, &error))?;
        let scratch = Self { path };
        fs::set_permissions(&scratch.path, Permissions::from_mode(0o755))
            .map_err(|error| Failure::io("open", &scratch.path, &error))?;
        Ok(scratch)
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Utf8Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            eprintln!("xtask: cannot remove {}: {error}", self.path);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "checks remove their own scratch directory")]
fn remove(path: &Utf8Path) -> std::io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_empty_and_leaves_nothing() {
        let name = format!("placement-scratch-{}", std::process::id());
        let killed = Scratch::make(&name).unwrap();
        fs::write(killed.path().join("left"), "").unwrap();
        std::mem::forget(killed);
        let scratch = Scratch::make(&name).unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(path.read_dir_utf8().unwrap().count(), 0);
        drop(scratch);
        assert!(!path.exists());
    }
}
