//! What needs a mount: other mounts are not entered, read-only ones are named. Without the right
//! to mount, the reason is printed and nothing is claimed.

use std::fs;
use std::path::PathBuf;

use crate::support::{Scratch, names};
use placement_paths::{
    CreateError, Dir, FsKind, LeftReason, PrivateDir, PrivateError, RemoveError, fs_kind,
};
use rustix::mount::{MountFlags, UnmountFlags};

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.0, UnmountFlags::DETACH).ok();
    }
}

fn bind(from: PathBuf, to: PathBuf) -> Option<Mounted> {
    match rustix::mount::mount_bind(from, &to) {
        Ok(()) => Some(Mounted(to)),
        Err(errno) => {
            println!("nothing shown: this user may not mount ({errno})");
            None
        }
    }
}

#[test]
fn a_bind_mount_of_the_same_file_system_is_not_entered() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("t/a/mounted")).unwrap();
    fs::create_dir(scratch.path("kept")).unwrap();
    fs::write(scratch.path("kept/f"), b"x").unwrap();
    fs::write(scratch.path("t/a/f"), b"x").unwrap();
    let Some(_mounted) = bind(scratch.path("kept"), scratch.path("t/a/mounted")) else { return };
    let outcome = scratch.dir().remove_tree("t");
    let Err(RemoveError::Incomplete { entries, left, reason, .. }) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((entries, left, reason), (1, 1, LeftReason::OtherMount));
    assert_eq!(fs::read(scratch.path("kept/f")).unwrap(), b"x");
    assert!(scratch.path("t/a/mounted").exists());
}

#[test]
fn a_tree_that_is_itself_a_mount_is_not_removed() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("t")).unwrap();
    fs::create_dir(scratch.path("kept")).unwrap();
    fs::write(scratch.path("kept/f"), b"x").unwrap();
    let Some(_mounted) = bind(scratch.path("kept"), scratch.path("t")) else { return };
    let outcome = scratch.dir().remove_tree("t");
    assert!(
        matches!(outcome, Err(RemoveError::Incomplete { reason: LeftReason::OtherMount, .. })),
        "{outcome:?}"
    );
    assert_eq!(names(&Dir::open(scratch.path("kept"), "test").unwrap()), ["f"]);
}

#[test]
fn a_read_only_mount_is_named() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("t")).unwrap();
    let Some(mounted) = bind(scratch.path("t"), scratch.path("t")) else { return };
    rustix::mount::mount_remount(&mounted.0, MountFlags::BIND | MountFlags::RDONLY, c"").unwrap();
    let dir = Dir::open(&mounted.0, "test").unwrap();
    assert_eq!(fs_kind(&dir).unwrap(), FsKind::ReadOnly);
    assert!(matches!(dir.create_dir("d", 0o700), Err(CreateError::ReadOnly { .. })));
    let outcome = PrivateDir::create_or_open(mounted.0.join("d"));
    assert!(matches!(outcome, Err(PrivateError::ReadOnly { .. })));
}
