//! Where an ordinary user can run what root has built.

use crate::command::{Failure, program};
use crate::scratch::Scratch;
use crate::workspace::{Workspace, files};
use camino::{Utf8Path, Utf8PathBuf};
use placement_testkit::ORDINARY_ID;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Command;

/// The search path of the second run: it must not depend on root's own tools.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Holds the directories of the second run and removes them when it is dropped.
///
/// Where the ordinary user cannot reach the checkout or its target directory, both runs work in a
/// copy that it can reach, so that nothing is compiled twice.
#[derive(Debug)]
pub(super) struct Place {
    scratch: Scratch,
    tree: Utf8PathBuf,
    copied: bool,
}

impl Place {
    /// Makes the ordinary user's home and temporary directory, and the copy if it is needed.
    pub(super) fn prepare(workspace: &Workspace) -> Result<Self, Failure> {
        if !program("setpriv").arg("--version").output().is_ok_and(|o| o.status.success()) {
            return Err(Failure::new(
                "ci: root also runs the tests as an ordinary user, for which setpriv (util-linux) is missing",
            ));
        }
        let scratch = Scratch::make(&format!("placement-ci-{}", std::process::id()))?;
        fill(scratch.path()).map_err(|error| Failure::io("fill", scratch.path(), &error))?;
        let copied = !reachable(workspace)?;
        let mut tree = workspace.root.clone();
        if copied {
            tree = scratch.path().join("tree");
            println!("ci: user {ORDINARY_ID} cannot reach {}: working in {tree}", workspace.root);
            copy(&workspace.root, &tree)?;
        }
        Ok(Self { scratch, tree, copied })
    }

    /// Returns the tree that is checked.
    pub(super) fn tree(&self) -> &Utf8Path {
        &self.tree
    }

    /// Returns the target directory of the copy, if there is one.
    pub(super) fn own_target(&self) -> Option<Utf8PathBuf> {
        self.copied.then(|| self.scratch.path().join("target"))
    }

    /// Lets a command run as the ordinary user with an environment of its own.
    pub(super) fn demote(&self, program: &Utf8Path, prefix: &[&str]) -> Command {
        let mut command = demoted(prefix);
        command
            .arg(program)
            .env_clear()
            .env("PATH", SEARCH_PATH)
            .env("HOME", self.scratch.path().join("home"))
            .env("TMPDIR", self.scratch.path().join("tmp"))
            .env("LANG", "C.UTF-8");
        command
    }
}

/// Makes `PREFIX… setpriv … --`, to which the program is to be added.
fn demoted(prefix: &[&str]) -> Command {
    let id = ORDINARY_ID;
    let mut words = prefix.iter().copied().chain(["setpriv"]);
    let mut command = program(words.next().expect("setpriv is there at the least"));
    command.args(words).args([&format!("--reuid={id}"), &format!("--regid={id}")]).args([
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
        "--",
    ]);
    command
}

/// Says whether the ordinary user can read the checkout and execute what lies in its target.
fn reachable(workspace: &Workspace) -> Result<bool, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot tell which program this is: {error}")))?;
    let can = |question: &str, path: &std::path::Path| {
        demoted(&[]).args(["test", question]).arg(path).status().is_ok_and(|s| s.success())
    };
    Ok(can("-r", workspace.root.join("Cargo.toml").as_std_path()) && can("-x", &own))
}

/// Copies the project's own files, readable for everyone.
fn copy(from: &Utf8Path, to: &Utf8Path) -> Result<(), Failure> {
    for file in files(from)? {
        let (source, target) = (from.join(&file), to.join(&file));
        copy_one(&source, &target).map_err(|error| Failure::io("copy", &source, &error))?;
    }
    open_directories(to).map_err(|error| Failure::io("open", to, &error))
}

fn copy_one(source: &Utf8Path, target: &Utf8Path) -> std::io::Result<()> {
    fs::create_dir_all(target.parent().expect("a file lies in a folder"))?;
    if source.is_symlink() {
        return symlink(source.read_link_utf8()?, target);
    }
    fs::copy(source, target)?;
    let executable = fs::metadata(source)?.permissions().mode() & 0o111 != 0;
    fs::set_permissions(target, Permissions::from_mode(if executable { 0o755 } else { 0o644 }))
}

fn open_directories(directory: &Utf8Path) -> std::io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o755))?;
    for entry in directory.read_dir_utf8()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_directories(entry.path())?;
        }
    }
    Ok(())
}

/// Makes the ordinary user's `home` and `tmp`.
fn fill(scratch: &Utf8Path) -> std::io::Result<()> {
    for name in ["home", "tmp"] {
        let directory = scratch.join(name);
        fs::create_dir(&directory)?;
        fs::set_permissions(&directory, Permissions::from_mode(0o700))?;
        chown(&directory, Some(ORDINARY_ID), Some(ORDINARY_ID))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_testkit::TempRoot;

    #[test]
    fn a_copy_is_readable_for_everyone() {
        let root = TempRoot::new();
        let from = root.join("from");
        fs::create_dir_all(from.join("inner")).unwrap();
        fs::write(from.join("inner/run"), "x").unwrap();
        fs::write(from.join("inner/text"), "x").unwrap();
        fs::set_permissions(from.join("inner/run"), Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(from.join("inner/text"), Permissions::from_mode(0o600)).unwrap();
        symlink("inner/text", from.join("link")).unwrap();
        let to = root.join("to");
        copy(&from, &to).unwrap();
        let mode = |name: &str| fs::metadata(to.join(name)).unwrap().permissions().mode() & 0o7777;
        assert_eq!([mode("inner"), mode("inner/run"), mode("inner/text")], [0o755, 0o755, 0o644]);
        assert_eq!(to.join("link").read_link_utf8().unwrap(), "inner/text");
    }

    #[test]
    fn the_prefix_comes_before_setpriv() {
        let command = demoted(&["sh", "-c", "x"]);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        assert_eq!(command.get_program(), "sh");
        assert_eq!(words[..4], ["-c", "x", "setpriv", "--reuid=1001"]);
        assert_eq!(words.last().map(AsRef::as_ref), Some("--"));
    }
}
