//! What kind of file system a directory lies on.

use std::fs;

use rustix::fs::StatVfsMountFlags;

use crate::Dir;
use crate::failure::IoFailure;

/// The kind of file system, as far as it matters for locks and shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsKind {
    /// Kept by this machine's kernel.
    Local,
    /// Shared between machines; its name.
    Network(&'static str),
    /// Mounted read-only.
    ReadOnly,
    /// It cannot be told (FUSE of an unlisted kind); its name.
    Unknown(&'static str),
}

/// Tells what kind of file system a directory lies on.
///
/// [fstatfs(2)](https://man7.org/linux/man-pages/man2/fstatfs.2.html) gives the type; FUSE hides
/// what is behind it, there the mount table names it. A network file system is named as one even
/// where it is mounted read-only.
///
/// # Errors
/// The system call failed.
pub fn fs_kind(directory: &Dir) -> Result<FsKind, IoFailure> {
    let failed = |errno| IoFailure::new("examine", directory.itself(), errno);
    let kind = rustix::fs::fstatfs(directory).map_err(failed)?;
    // The field is signed and of the machine's word size; every magic number has 32 bits.
    let magic = u32::try_from(i128::from(kind.f_type) & 0xffff_ffff)
        .expect("a value masked to 32 bits fits 32 bits");
    if let Some((_, name)) = NETWORK.iter().find(|(known, _)| *known == magic) {
        return Ok(FsKind::Network(name));
    }
    let fuse = if magic == FUSE { Some(fuse_kind(directory)?) } else { None };
    if let Some(FsKind::Network(name)) = fuse {
        return Ok(FsKind::Network(name));
    }
    let mount = rustix::fs::fstatvfs(directory).map_err(failed)?;
    if mount.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Ok(FsKind::ReadOnly);
    }
    Ok(fuse.unwrap_or(FsKind::Local))
}

const FUSE: u32 = 0x6573_5546;

/// Magic numbers of statfs(2) and of the kernel's headers.
const NETWORK: [(u32, &str); 16] = [
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "ceph"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "afs"),
    (0x7375_7245, "coda"),
    (0x0bd0_0bd0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x0116_1970, "gfs2"),
    (0x7461_636f, "ocfs2"),
    (0x2003_0528, "pvfs2"),
    (0x1983_0326, "beegfs"),
    (0x786f_4256, "vboxsf"),
];

const FUSE_NETWORK: [&str; 8] = [
    "fuse.sshfs",
    "fuse.glusterfs",
    "fuse.s3fs",
    "fuse.rclone",
    "fuse.ceph-fuse",
    "fuse.juicefs",
    "fuse.gcsfuse",
    "fuse.davfs",
];

fn fuse_kind(directory: &Dir) -> Result<FsKind, IoFailure> {
    let facts = directory.facts()?;
    let device = (rustix::fs::major(facts.device), rustix::fs::minor(facts.device));
    // Without the mount table the answer stays "unknown", which is what FUSE is.
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    Ok(fuse_kind_in(&mounts, device))
}

fn fuse_kind_in(mounts: &str, device: (u32, u32)) -> FsKind {
    let device = format!("{}:{}", device.0, device.1);
    mounts
        .lines()
        .filter(|line| line.split(' ').nth(2) == Some(device.as_str()))
        .filter_map(|line| line.split_once(" - ")?.1.split(' ').next())
        .find_map(|kind| FUSE_NETWORK.iter().find(|known| **known == kind))
        .map_or(FsKind::Unknown("fuse"), |known| FsKind::Network(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 0:50 / /mnt/far rw,nosuid shared:3 - fuse.sshfs user@host:/ rw,user_id=0
41 22 0:51 / /mnt/near rw - fuse.gocryptfs /cipher rw
";

    #[test]
    fn a_listed_fuse_mount_is_a_network_one() {
        assert_eq!(fuse_kind_in(MOUNTS, (0, 50)), FsKind::Network("fuse.sshfs"));
    }

    #[test]
    fn any_other_fuse_mount_is_unknown() {
        assert_eq!(fuse_kind_in(MOUNTS, (0, 51)), FsKind::Unknown("fuse"));
        assert_eq!(fuse_kind_in("", (0, 50)), FsKind::Unknown("fuse"));
    }

    #[test]
    fn a_temporary_directory_is_local() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = Dir::open(scratch.path(), "test").unwrap();
        assert_eq!(fs_kind(&dir).unwrap(), FsKind::Local);
    }

    #[test]
    fn the_process_file_system_is_not_called_a_network_one() {
        let dir = Dir::open("/proc", "test").unwrap();
        let kind = fs_kind(&dir).unwrap();
        assert!(matches!(kind, FsKind::Local | FsKind::ReadOnly), "{kind:?}");
    }
}
