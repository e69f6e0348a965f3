//! What several of these tests need: a scratch directory, held by descriptor.

use std::path::PathBuf;

use placement_paths::{Dir, RelativePath};

pub(crate) struct Scratch {
    guard: tempfile::TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { guard: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn dir(&self) -> Dir {
        Dir::open(self.guard.path(), "scratch").unwrap()
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.guard.path().join(below)
    }
}

pub(crate) fn relative(text: &str) -> RelativePath {
    RelativePath::parse(text).unwrap()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn names(dir: &Dir) -> Vec<String> {
    let mut names: Vec<_> =
        dir.entries().unwrap().map(|name| name.unwrap().into_string().unwrap()).collect();
    names.sort();
    names
}
