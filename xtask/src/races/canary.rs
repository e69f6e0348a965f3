//! A tree that nobody may touch, and what it is to look like afterwards.

use crate::command::Failure;
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

/// Everything that is known of one entry; a read is not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    mode: u32,
    inode: u64,
    links: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    content: Vec<u8>,
}

/// A tree as it is at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Snapshot(BTreeMap<Utf8PathBuf, Entry>);

/// Makes a tree with the names of another one, and with other contents.
///
/// Whoever follows a link to it finds everything that it would find in the other.
pub(super) fn mirror(from: &Utf8Path, to: &Utf8Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::io("mirror", from, &error);
    fs::create_dir_all(to).map_err(failed)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    for entry in from.read_dir_utf8().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let copy = to.join(entry.file_name());
        if entry.file_type().map_err(failed)?.is_dir() {
            mirror(entry.path(), &copy)?;
        } else if !copy.exists() && !entry.file_name().starts_with("placement.") {
            let mut file = File::create(&copy).map_err(failed)?;
            writeln!(file, "canary {}", entry.file_name()).map_err(failed)?;
        }
    }
    Ok(())
}

impl Snapshot {
    /// Looks at everything below a directory, itself included.
    pub(super) fn of(top: &Utf8Path) -> Result<Self, Failure> {
        let mut snapshot = Self::default();
        let mut pending = vec![top.to_owned()];
        while let Some(path) = pending.pop() {
            let failed = |error: std::io::Error| Failure::io("look at", &path, &error);
            let metadata = fs::symlink_metadata(&path).map_err(failed)?;
            let mut content = Vec::new();
            if metadata.is_dir() {
                for entry in path.read_dir_utf8().map_err(failed)? {
                    pending.push(entry.map_err(failed)?.into_path());
                }
            } else if metadata.is_file() {
                content = fs::read(&path).map_err(failed)?;
            }
            snapshot.0.insert(path, Entry::of(&metadata, content));
        }
        Ok(snapshot)
    }

    /// Counts the entries.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Names what is not as it was.
    pub(super) fn differences(&self, now: &Self) -> Vec<String> {
        let gone = self.0.keys().filter(|path| !now.0.contains_key(*path));
        let gone = gone.map(|path| format!("{path} is gone"));
        let new = now.0.keys().filter(|path| !self.0.contains_key(*path));
        let new = new.map(|path| format!("{path} is new"));
        let other = self.0.iter().filter_map(|(path, before)| {
            let after = now.0.get(path)?;
            (before != after).then(|| format!("{path} was {before:?} and is {after:?}"))
        });
        gone.chain(new).chain(other).collect()
    }
}

impl Entry {
    fn of(metadata: &Metadata, content: Vec<u8>) -> Self {
        Self {
            mode: metadata.mode(),
            inode: metadata.ino(),
            links: metadata.nlink(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            content,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_testkit::TempRoot;

    fn tree() -> TempRoot {
        let root = TempRoot::new();
        fs::create_dir_all(root.join("from/a")).unwrap();
        fs::write(root.join("from/a/f"), "theirs").unwrap();
        fs::write(root.join("from/placement.db"), "theirs").unwrap();
        mirror(&root.join("from"), &root.join("to")).unwrap();
        root
    }

    #[test]
    fn a_mirror_has_the_names_and_not_the_store() {
        let root = tree();
        assert_eq!(fs::read_to_string(root.join("to/a/f")).unwrap(), "canary f\n");
        assert!(!root.join("to/placement.db").exists());
    }

    #[test]
    fn each_change_is_a_difference() {
        let changes: [fn(&Utf8Path); 5] = [
            |to| fs::write(to.join("a/f"), "canary g\n").unwrap(),
            |to| fs::remove_file(to.join("a/f")).unwrap(),
            |to| fs::write(to.join("new"), "").unwrap(),
            |to| fs::set_permissions(to.join("a"), fs::Permissions::from_mode(0o700)).unwrap(),
            |to| fs::hard_link(to.join("a/f"), to.with_file_name("link")).unwrap(),
        ];
        for change in changes {
            let root = tree();
            let before = Snapshot::of(&root.join("to")).unwrap();
            assert!(before.differences(&Snapshot::of(&root.join("to")).unwrap()).is_empty());
            change(&root.join("to"));
            assert!(!before.differences(&Snapshot::of(&root.join("to")).unwrap()).is_empty());
        }
    }
}
