//! The workspace as cargo sees it, and its files.

use crate::command::{Failure, capture, program};
use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;

/// What `cargo metadata` says of the workspace; unknown fields are cargo's own.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    /// The members.
    pub(crate) packages: Vec<Package>,
    /// Where the workspace lies.
    #[serde(rename = "workspace_root")]
    pub(crate) root: Utf8PathBuf,
    /// Where cargo builds.
    pub(crate) target_directory: Utf8PathBuf,
}

/// One member.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: Option<String>,
    pub(crate) license: Option<String>,
    pub(crate) readme: Option<String>,
    pub(crate) keywords: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) manifest_path: Utf8PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    /// The registries that may have it; absent for any, empty for none.
    pub(crate) publish: Option<Vec<String>>,
    pub(crate) targets: Vec<Target>,
}

/// One thing that a member builds.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Target {
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: Utf8PathBuf,
}

/// One dependency as the manifest declares it.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev` or `build`; absent for an ordinary one.
    pub(crate) kind: Option<String>,
}

impl Workspace {
    /// Asks cargo about the workspace around the current directory.
    pub(crate) fn load() -> Result<Self, Failure> {
        let mut cargo = program("cargo");
        cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
        let text = capture(&mut cargo)?;
        serde_json::from_str(&text)
            .map_err(|error| Failure::new(format!("cargo metadata is not as expected: {error}")))
    }
}

impl Package {
    /// Returns the first file of the library that strangers may have; `None` where there is none.
    pub(crate) fn published_library(&self) -> Option<&Utf8Path> {
        let library = |target: &&Target| target.kind.iter().any(|kind| kind == "lib");
        let published = self.publish.as_ref().is_none_or(|registries| !registries.is_empty());
        let found = self.targets.iter().find(library).filter(|_| published)?;
        Some(&found.src_path)
    }

    /// Returns the member's folder below the root: `crates/contract`, `bins/placement`, `xtask`.
    pub(crate) fn folder(&self, root: &Utf8Path) -> String {
        let directory = self.manifest_path.parent().unwrap_or(&self.manifest_path);
        directory.strip_prefix(root).unwrap_or(directory).as_str().to_owned()
    }
}

/// Lists the files and links below a root in a stable order, as paths relative to it.
///
/// Leaves out what is not the project's own: `.git`, and any `target` that holds cargo's tag.
pub(crate) fn files(root: &Utf8Path) -> Result<Vec<Utf8PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        let entries = directory.read_dir_utf8().map_err(|e| Failure::io("list", &directory, &e))?;
        for entry in entries {
            let entry = entry.map_err(|e| Failure::io("list", &directory, &e))?;
            let kind = entry.file_type().map_err(|e| Failure::io("look at", entry.path(), &e))?;
            if entry.file_name() == ".git" {
                continue;
            }
            if !kind.is_dir() {
                let inside = entry.path().strip_prefix(root).expect("it was found below the root");
                found.push(inside.to_owned());
            } else if !entry.path().join("CACHEDIR.TAG").exists() {
                pending.push(entry.path().to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Reads a text file.
pub(crate) fn read(path: &Utf8Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_testkit::TempRoot;

    #[test]
    fn build_output_and_history_are_left_out() {
        let root = TempRoot::new();
        for directory in [".git", "target/debug", "crates/target"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in [".git/HEAD", "target/CACHEDIR.TAG", "target/debug/x", "crates/target/y", "z"] {
            std::fs::write(root.join(file), "").unwrap();
        }
        assert_eq!(files(root.path()).unwrap(), ["crates/target/y", "z"]);
    }

    #[test]
    fn a_folder_is_named_from_the_root() {
        let package = |path: &str| Package { manifest_path: path.into(), ..Package::default() };
        let root = Utf8Path::new("/w");
        assert_eq!(package("/w/crates/store/Cargo.toml").folder(root), "crates/store");
        assert_eq!(package("/w/bins/placement/Cargo.toml").folder(root), "bins/placement");
        assert_eq!(package("/w/xtask/Cargo.toml").folder(root), "xtask");
    }

    #[test]
    fn only_a_library_that_may_be_published_is_for_strangers() {
        let package = |publish: Option<Vec<String>>, kind: &str| Package {
            publish,
            targets: vec![Target { kind: vec![kind.to_owned()], src_path: "/w/lib.rs".into() }],
            ..Package::default()
        };
        assert_eq!(package(None, "lib").published_library(), Some("/w/lib.rs".into()));
        assert_eq!(package(Some(Vec::new()), "lib").published_library(), None);
        assert_eq!(package(None, "bin").published_library(), None);
    }
}
