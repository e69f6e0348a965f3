//! A write that fails half-way. The process runs itself again under a file size limit, which
//! answers EFBIG where a full disk answers ENOSPC and needs no privilege.

use std::fs;

use placement_paths::{Dir, PublishError, PublishStep, RelativePath, Replacement, errno_in};

const INNER: &str = "a_failed_write_keeps_the_old_content";

/// Does its work only under the limit, which the other test sets.
#[test]
fn a_failed_write_keeps_the_old_content() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
    if limit.current.is_none() {
        println!("not limited: the other test runs this one under a limit");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("f"), b"old").unwrap();
    let big = vec![7_u8; 1 << 20];
    let error = Dir::open(scratch.path(), "scratch")
        .unwrap()
        .publish(&RelativePath::parse("f").unwrap(), &big, 0o600, Replacement::Replace)
        .expect_err("the limit must refuse the write");
    assert!(matches!(error, PublishError::Step { step: PublishStep::Write, .. }), "{error}");
    assert_eq!(errno_in(&error), Some("EFBIG"));
    assert_eq!(fs::read(scratch.path().join("f")).unwrap(), b"old");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    println!("refused under the limit");
}

#[test]
fn the_write_step_is_named_under_a_file_size_limit() {
    let program = std::env::current_exe().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a shell sets the limit for a second process")]
    let output = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" --exact \"$1\" --nocapture"])
        .arg(program)
        .arg(INNER)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("refused under the limit"), "{text}");
}
