//! What a measurement says, and what cannot be measured.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::{Digest, ExecutableKind};
use placement_executable::{
    Changed, Fact, FileKind, MeasureError, Measured, Measuring, OpenError, Progress,
    STEP_BYTES_MAX, Which,
};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

fn scratch() -> (TempDir, Utf8PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let base = Utf8PathBuf::from_path_buf(scratch.path().canonicalize().unwrap()).unwrap();
    (scratch, base)
}

fn program(path: &Utf8Path, content: &[u8]) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn measure(path: &Utf8Path) -> Result<Measured, MeasureError> {
    let mut measuring = Measuring::open(path)?;
    loop {
        match measuring.step(STEP_BYTES_MAX)? {
            Progress::More => {}
            Progress::Done(measured) => return Ok(*measured),
        }
    }
}

fn elf(size: usize) -> Vec<u8> {
    let mut content = vec![7_u8; size];
    content[..4].copy_from_slice(b"\x7fELF");
    content
}

#[test]
fn an_elf_file_is_measured_whole() {
    let (_scratch, base) = scratch();
    let content = elf(3 * 1024 * 1024 + 17);
    program(&base.join("tool"), &content);
    let measured = measure(&base.join("tool")).unwrap();
    let measurement = measured.measurement();
    assert_eq!(measurement.kind, ExecutableKind::Elf);
    assert_eq!(measurement.size, content.len() as u64);
    assert_eq!(measurement.digest, Digest::of_bytes(&content));
    assert_eq!(measurement.path, base.join("tool"));
    assert_eq!(measurement.interpreter, None);
    assert_eq!(measurement.revision, "bee.executable-measurement@1");
}

#[test]
fn a_step_hashes_no_more_than_it_is_told() {
    let (_scratch, base) = scratch();
    program(&base.join("tool"), &elf(4 * STEP_BYTES_MAX));
    for (bytes, steps) in [(STEP_BYTES_MAX, 4), (usize::MAX, 4), (STEP_BYTES_MAX / 2, 8)] {
        let mut measuring = Measuring::open(&base.join("tool")).unwrap();
        let mut taken = 1;
        while matches!(measuring.step(bytes).unwrap(), Progress::More) {
            taken += 1;
        }
        assert_eq!(taken, steps, "{bytes}");
    }
}

#[test]
fn a_script_is_measured_with_its_interpreter() {
    let (_scratch, base) = scratch();
    let interpreter = base.join("interpreter");
    program(&interpreter, &elf(1_000));
    program(&base.join("tool"), format!("#! {interpreter} -x y\nhello\n").as_bytes());
    let measured = measure(&base.join("tool")).unwrap();
    assert_eq!(measured.measurement().kind, ExecutableKind::Script);
    let described = measured.measurement().interpreter.as_ref().unwrap();
    assert_eq!(described.line, format!("{interpreter} -x y"));
    assert_eq!(described.path, interpreter);
    assert_eq!(described.digest, Digest::of_bytes(&elf(1_000)));
}

#[test]
fn the_interpreter_of_an_env_line_is_env() {
    let (_scratch, base) = scratch();
    program(&base.join("tool"), b"#!/usr/bin/env no-such-runtime\n");
    let measured = measure(&base.join("tool")).unwrap();
    assert_eq!(measured.measurement().interpreter.as_ref().unwrap().path, "/usr/bin/env");
}

#[test]
fn a_file_of_no_known_kind_is_other() {
    let (_scratch, base) = scratch();
    program(&base.join("tool"), b"echo hi\n");
    program(&base.join("empty"), b"");
    assert_eq!(measure(&base.join("tool")).unwrap().measurement().kind, ExecutableKind::Other);
    let empty = measure(&base.join("empty")).unwrap();
    assert_eq!(empty.measurement().digest, Digest::of_bytes(b""));
}

#[test]
fn a_missing_interpreter_is_named_as_such() {
    let (_scratch, base) = scratch();
    program(&base.join("tool"), format!("#!{base}/no-interpreter\n").as_bytes());
    let refused = measure(&base.join("tool")).unwrap_err();
    assert!(matches!(refused, MeasureError::InterpreterMissing), "{refused:?}");
}

#[test]
fn an_interpreter_that_may_not_be_executed_is_refused() {
    let (_scratch, base) = scratch();
    fs::write(base.join("data"), b"x").unwrap();
    program(&base.join("tool"), format!("#!{base}/data\n").as_bytes());
    let refused = measure(&base.join("tool")).unwrap_err();
    assert!(matches!(refused, MeasureError::Interpreter(OpenError::NotExecutable)), "{refused:?}");
}

#[test]
fn a_relative_interpreter_is_refused() {
    let (_scratch, base) = scratch();
    program(&base.join("tool"), b"#!bin/sh\n");
    assert!(matches!(measure(&base.join("tool")), Err(MeasureError::InterpreterLine)));
}

#[test]
fn a_carriage_return_after_the_interpreter_is_named() {
    let (_scratch, base) = scratch();
    program(&base.join("tool"), b"#!/bin/sh\r\necho\r\n");
    assert!(matches!(measure(&base.join("tool")), Err(MeasureError::CarriageReturn)));
}

#[test]
fn what_is_no_regular_file_is_refused_by_its_kind() {
    let (_scratch, base) = scratch();
    let fifo = base.join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        fifo.as_str(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o755),
        0,
    )
    .unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(base.join("socket")).unwrap();
    let cases = [
        (base.clone(), FileKind::Directory),
        (fifo, FileKind::Fifo),
        (base.join("socket"), FileKind::Socket),
        ("/dev/null".into(), FileKind::Device),
    ];
    for (path, expected) in cases {
        let refused = Measuring::open(&path).unwrap_err();
        let MeasureError::Program(OpenError::NotRegular(kind)) = refused else {
            panic!("{path}: {refused:?}");
        };
        assert_eq!(kind, expected, "{path}");
    }
}

#[test]
fn a_missing_file_and_a_relative_path_are_refused() {
    let (_scratch, base) = scratch();
    let missing = Measuring::open(&base.join("none")).unwrap_err();
    assert!(matches!(missing, MeasureError::Program(OpenError::Missing)), "{missing:?}");
    assert!(matches!(Measuring::open("bin/sh".into()), Err(MeasureError::NotAbsolute)));
}

#[test]
fn a_file_that_may_not_be_executed_is_refused() {
    let (_scratch, base) = scratch();
    fs::write(base.join("data"), b"x").unwrap();
    let refused = Measuring::open(&base.join("data")).unwrap_err();
    assert!(matches!(refused, MeasureError::Program(OpenError::NotExecutable)), "{refused:?}");
}

#[test]
fn a_file_that_may_not_be_read_is_refused() {
    let (_scratch, base) = scratch();
    program(&base.join("tool"), b"x");
    fs::set_permissions(base.join("tool"), fs::Permissions::from_mode(0o111)).unwrap();
    let opened = Measuring::open(&base.join("tool"));
    if fs::read(base.join("tool")).is_ok() {
        println!("this user reads everything, so nothing is refused");
        assert!(opened.is_ok());
    } else {
        let refused = opened.unwrap_err();
        assert!(matches!(refused, MeasureError::Program(OpenError::NotReadable)), "{refused:?}");
    }
}

#[test]
fn a_file_above_the_bound_is_refused_unread() {
    let (_scratch, base) = scratch();
    program(&base.join("tool"), b"x");
    let file = fs::OpenOptions::new().write(true).open(base.join("tool")).unwrap();
    file.set_len(placement_executable::EXECUTABLE_BYTES_MAX + 1).unwrap();
    let refused = Measuring::open(&base.join("tool")).unwrap_err();
    assert!(matches!(refused, MeasureError::TooLarge { which: Which::Program }), "{refused:?}");
}

#[test]
fn a_file_that_shrinks_while_it_is_measured_is_refused() {
    let (_scratch, base) = scratch();
    program(&base.join("tool"), &elf(2 * STEP_BYTES_MAX));
    let mut measuring = Measuring::open(&base.join("tool")).unwrap();
    assert!(matches!(measuring.step(STEP_BYTES_MAX).unwrap(), Progress::More));
    let file = fs::OpenOptions::new().write(true).open(base.join("tool")).unwrap();
    file.set_len(STEP_BYTES_MAX as u64 + 5).unwrap();
    let refused = measuring.step(STEP_BYTES_MAX).unwrap_err();
    assert!(matches!(refused, MeasureError::ShortRead { which: Which::Program }), "{refused:?}");
}

#[test]
fn a_file_that_grows_while_it_is_measured_is_refused() {
    let (_scratch, base) = scratch();
    program(&base.join("tool"), &elf(2 * STEP_BYTES_MAX));
    let mut measuring = Measuring::open(&base.join("tool")).unwrap();
    assert!(matches!(measuring.step(STEP_BYTES_MAX).unwrap(), Progress::More));
    program(&base.join("tool"), &elf(3 * STEP_BYTES_MAX));
    let refused = measuring.step(STEP_BYTES_MAX).unwrap_err();
    let MeasureError::Changed(changed) = refused else { panic!("{refused:?}") };
    assert_eq!(changed, Changed { which: Which::Program, fact: Fact::Size });
}

#[test]
fn an_unchanged_program_is_seen_again() {
    let (_scratch, base) = scratch();
    program(&base.join("interpreter"), &elf(100));
    program(&base.join("tool"), format!("#!{base}/interpreter\n").as_bytes());
    assert_eq!(measure(&base.join("tool")).unwrap().seen_again(), Ok(()));
}

#[test]
fn a_replaced_program_is_not_seen_again() {
    let (_scratch, base) = scratch();
    program(&base.join("tool"), &elf(100));
    program(&base.join("new"), &elf(100));
    let measured = measure(&base.join("tool")).unwrap();
    fs::rename(base.join("new"), base.join("tool")).unwrap();
    let changed = measured.seen_again().unwrap_err();
    assert_eq!(changed, Changed { which: Which::Program, fact: Fact::Identity });
}

#[test]
fn a_link_turned_elsewhere_is_not_seen_again() {
    let (_scratch, base) = scratch();
    program(&base.join("one"), &elf(100));
    program(&base.join("two"), &elf(100));
    symlink("one", base.join("tool")).unwrap();
    let measured = measure(&base.join("tool")).unwrap();
    fs::remove_file(base.join("tool")).unwrap();
    symlink("two", base.join("tool")).unwrap();
    let changed = measured.seen_again().unwrap_err();
    assert_eq!(changed, Changed { which: Which::Program, fact: Fact::Identity });
}

#[test]
fn a_path_that_leads_nowhere_is_not_seen_again() {
    let (_scratch, base) = scratch();
    program(&base.join("real"), &elf(100));
    symlink("real", base.join("tool")).unwrap();
    let measured = measure(&base.join("tool")).unwrap();
    fs::remove_file(base.join("tool")).unwrap();
    let changed = measured.seen_again().unwrap_err();
    assert_eq!(changed, Changed { which: Which::Program, fact: Fact::Gone });
}

#[test]
fn a_changed_interpreter_is_not_seen_again() {
    let (_scratch, base) = scratch();
    program(&base.join("interpreter"), &elf(100));
    program(&base.join("tool"), format!("#!{base}/interpreter\n").as_bytes());
    let measured = measure(&base.join("tool")).unwrap();
    program(&base.join("interpreter"), &elf(101));
    let changed = measured.seen_again().unwrap_err();
    assert_eq!(changed, Changed { which: Which::Interpreter, fact: Fact::Size });
}

#[test]
fn the_descriptor_is_that_of_the_hashed_file() {
    let (_scratch, base) = scratch();
    let content = elf(5_000);
    program(&base.join("tool"), &content);
    let measured = measure(&base.join("tool")).unwrap();
    fs::remove_file(base.join("tool")).unwrap();
    let mut file = fs::File::from(measured.descriptor().try_clone_to_owned().unwrap());
    let mut read = Vec::new();
    file.read_to_end(&mut read).unwrap();
    assert_eq!(read, content);
}

#[test]
fn measuring_leaves_no_descriptor_behind_when_it_is_refused() {
    let (_scratch, base) = scratch();
    program(&base.join("tool"), format!("#!{base}/none\n").as_bytes());
    let refused = measure(&base.join("tool"));
    assert!(refused.is_err());
    let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let still_open = open
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|target| target == base.join("tool").as_std_path());
    assert!(!still_open);
}

#[test]
fn a_measurement_survives_its_written_form() {
    let (_scratch, base) = scratch();
    program(&base.join("tool"), format!("#!{base}/interpreter\n").as_bytes());
    program(&base.join("interpreter"), &elf(100));
    let measurement = measure(&base.join("tool")).unwrap().measurement().clone();
    let written = serde_json::to_string(&measurement).unwrap();
    assert_eq!(
        serde_json::from_str::<placement_executable::ExecutableMeasurement>(&written).unwrap(),
        measurement
    );
}
