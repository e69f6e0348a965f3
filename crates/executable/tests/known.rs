//! A digest that was measured before costs nothing, and never stands for another content.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::{Clock, Digest, Timestamp};
use placement_executable::{KnownDigests, Measured, Measuring, Progress, STEP_BYTES_MAX};
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use tempfile::TempDir;

const MIB: u64 = 1024 * 1024;

/// A clock in a year in which every file of today has been left alone for long.
#[derive(Debug)]
struct Later;

impl Clock for Later {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(4_000_000_000_000)
    }
}

struct World {
    _scratch: TempDir,
    base: Utf8PathBuf,
    known: KnownDigests,
}

impl World {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let base = Utf8PathBuf::from_path_buf(scratch.path().canonicalize().unwrap()).unwrap();
        let known = KnownDigests::new(tempfile::tempfile().unwrap(), Arc::new(Later));
        Self { _scratch: scratch, base, known }
    }

    /// Makes a program of many bytes that nobody may write.
    fn program(&self, name: &str, bytes: u64) -> Utf8PathBuf {
        let path = self.base.join(name);
        let mut file = File::create(&path).unwrap();
        file.write_all(b"\x7fELF").unwrap();
        file.set_len(bytes).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o555)).unwrap();
        path
    }

    /// Measures a program and counts the steps that it took.
    fn measure(&self, path: &Utf8Path) -> (Measured, u32) {
        let mut measuring = Measuring::open_knowing(path, Some(self.known.clone())).unwrap();
        for steps in 1.. {
            if let Progress::Done(measured) = measuring.step(STEP_BYTES_MAX).unwrap() {
                return (*measured, steps);
            }
        }
        unreachable!("a measurement ends")
    }
}

/// Does something to a program that its mode does not allow, and sets the mode again.
fn by_force(path: &Utf8Path, act: impl FnOnce(&Utf8Path)) {
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    act(path);
    fs::set_permissions(path, Permissions::from_mode(0o555)).unwrap();
}

#[test]
fn a_large_program_is_hashed_once() {
    let world = World::new();
    let path = world.program("tool", 20 * MIB);
    let (first, steps) = world.measure(&path);
    assert!(steps >= 20 && !first.digest_was_known(), "{steps}");
    let (second, steps) = world.measure(&path);
    assert_eq!((steps, second.digest_was_known()), (1, true));
    assert_eq!(second.measurement(), first.measurement());
    second.seen_again().unwrap();
}

#[test]
fn a_program_that_changed_is_hashed_again() {
    let world = World::new();
    let path = world.program("tool", MIB);
    let (first, _) = world.measure(&path);
    by_force(&path, |path| {
        let mut content = fs::read(path).unwrap();
        content[1_000] = 7;
        fs::write(path, content).unwrap();
    });
    let (second, _) = world.measure(&path);
    assert!(!second.digest_was_known());
    assert_ne!(second.measurement().digest, first.measurement().digest);
    assert_eq!(second.measurement().digest, Digest::of_bytes(&fs::read(&path).unwrap()));
}

#[test]
fn another_file_in_its_place_is_hashed() {
    let world = World::new();
    let path = world.program("tool", MIB);
    world.measure(&path).0.seen_again().unwrap();
    fs::rename(world.program("other", 2 * MIB), &path).unwrap();
    let (second, _) = world.measure(&path);
    assert!(!second.digest_was_known());
    assert_eq!(second.measurement().size, 2 * MIB);
}

#[test]
fn a_program_that_its_user_may_write_is_hashed_every_time() {
    let world = World::new();
    let path = world.program("tool", MIB);
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    for _ in 0..2 {
        assert!(!world.measure(&path).0.digest_was_known());
    }
}

#[test]
fn a_known_program_that_became_writable_is_hashed_again() {
    let world = World::new();
    let path = world.program("tool", MIB);
    assert!(!world.measure(&path).0.digest_was_known());
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    assert!(!world.measure(&path).0.digest_was_known());
}

#[test]
fn a_known_script_has_its_line_and_its_interpreter() {
    let world = World::new();
    let interpreter = world.program("interpreter", 5 * MIB);
    let script = world.base.join("script");
    fs::write(&script, format!("#!{interpreter} -x\nexit 0\n")).unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o555)).unwrap();
    let (first, steps) = world.measure(&script);
    assert!(steps > 5, "{steps}");
    let (second, steps) = world.measure(&script);
    assert_eq!((steps, second.digest_was_known()), (2, true));
    assert_eq!(second.measurement(), first.measurement());
    assert_eq!(
        second.measurement().interpreter.as_ref().unwrap().line,
        format!("{interpreter} -x")
    );
}
