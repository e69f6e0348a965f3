//! Mounts that a test makes, in a namespace of its own.

use camino::{Utf8Path, Utf8PathBuf};
use placement_world::World;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change,
    mount_remount, unmount,
};
use std::fs::{self, File};
use std::io::Write as _;

/// Bytes of a small disk: a store with some attempts takes a tenth of it.
const SMALL_BYTES: u64 = 4 * 1024 * 1024;
const PAGE: usize = 4096;

/// A root on a small file system of its own.
#[derive(Debug)]
pub(crate) struct SmallDisk(Utf8PathBuf);

impl SmallDisk {
    /// Mounts it where a root will be.
    #[track_caller]
    pub(crate) fn below(root: &Utf8Path) -> Self {
        fs::create_dir(root).unwrap();
        mount("tmpfs", root.as_str(), "tmpfs", MountFlags::empty(), c"size=4m,mode=700").unwrap();
        Self(root.to_owned())
    }

    /// Makes a world whose root it is.
    #[track_caller]
    pub(crate) fn world() -> (World, Self) {
        let mut disk = None;
        let world = World::on(crate::PROGRAM, |root| disk = Some(Self::below(root)));
        (world, disk.expect("the world has a root"))
    }

    /// Takes all room that is left, to the last page.
    #[track_caller]
    pub(crate) fn fill(&self) {
        self.fill_but(0);
    }

    /// Takes all room but so many pages.
    #[track_caller]
    pub(crate) fn fill_but(&self, pages: u64) {
        let mut filler = File::options().create(true).append(true).open(self.filler()).unwrap();
        while filler.write_all(&[1; PAGE]).is_ok() {}
        let length = filler.metadata().unwrap().len();
        filler.set_len(length.saturating_sub(pages * PAGE as u64)).unwrap();
    }

    /// Gives the room back.
    #[track_caller]
    pub(crate) fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    /// Makes the disk larger, as an administrator would.
    #[track_caller]
    pub(crate) fn grow(&self) {
        let size = std::ffi::CString::new(format!("size={}", SMALL_BYTES * 16)).unwrap();
        mount_remount(self.0.as_str(), MountFlags::empty(), size.as_c_str()).unwrap();
    }

    fn filler(&self) -> Utf8PathBuf {
        self.0.join("filler")
    }
}

/// A file or a directory that is covered by another one, or by itself in another way, until this is
/// dropped.
#[derive(Debug)]
pub(crate) struct Covered(Utf8PathBuf);

impl Covered {
    /// Covers something by something else.
    #[track_caller]
    pub(crate) fn by(path: &Utf8Path, other: &Utf8Path) -> Self {
        mount_bind(other.as_str(), path.as_str()).unwrap();
        mount_change(path.as_str(), MountPropagationFlags::PRIVATE).unwrap();
        Self(path.to_owned())
    }

    /// Makes something read-only, also for root.
    #[track_caller]
    pub(crate) fn read_only(path: &Utf8Path) -> Self {
        let covered = Self::by(path, path);
        mount_remount(path.as_str(), MountFlags::BIND | MountFlags::RDONLY, c"").unwrap();
        covered
    }
}

impl Drop for Covered {
    fn drop(&mut self) {
        unmount(self.0.as_str(), UnmountFlags::DETACH).unwrap();
    }
}
