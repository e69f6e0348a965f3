//! Modes do not depend on the umask. One test only: the umask belongs to the whole process.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use placement_paths::{Dir, PrivateDir, RelativePath, Replacement};
use rustix::fs::Mode;

#[test]
fn modes_are_exact_under_every_umask() {
    for umask in [0o000, 0o022, 0o077, 0o277, 0o777] {
        let scratch = tempfile::tempdir().unwrap();
        let dir = Dir::open(scratch.path(), "scratch").unwrap();
        rustix::process::umask(Mode::from_raw_mode(umask));
        let opened = dir.create_dir("open", 0o755).unwrap();
        let closed = dir.create_dir("closed", 0o700).unwrap();
        let file = dir.create_file("file", 0o640).unwrap();
        dir.publish(&RelativePath::parse("published").unwrap(), b"x", 0o644, Replacement::New)
            .unwrap();
        let private = PrivateDir::create_or_open(scratch.path().join("a/b")).unwrap();
        private.publish("c/d", b"x").unwrap();
        rustix::process::umask(Mode::from_raw_mode(0o022));

        assert_eq!(opened.facts().unwrap().mode, 0o755, "umask {umask:03o}");
        assert_eq!(closed.facts().unwrap().mode, 0o700, "umask {umask:03o}");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o7777, 0o640);
        for (name, mode) in [
            ("published", 0o644),
            ("a", 0o700),
            ("a/b", 0o700),
            ("a/b/c", 0o700),
            ("a/b/c/d", 0o600),
        ] {
            let seen =
                fs::symlink_metadata(scratch.path().join(name)).unwrap().permissions().mode();
            assert_eq!(seen & 0o7777, mode, "umask {umask:03o}, {name}");
        }
    }
}
