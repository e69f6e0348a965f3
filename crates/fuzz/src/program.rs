//! A program's file: what it is, and which interpreter its first line names.

use camino::Utf8Path;
use placement_executable::{ExecutableMeasurement, Measuring, Progress, STEP_BYTES_MAX};
use placement_testkit::TempRoot;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

thread_local! {
    static ROOM: TempRoot = TempRoot::new();
}

pub(crate) fn run(bytes: &[u8]) {
    ROOM.with(|room| {
        let path = room.join("program");
        fs::write(&path, bytes).expect("a test can write");
        fs::set_permissions(&path, Permissions::from_mode(0o500)).expect("it is its own file");
        measure(&path, bytes);
        fs::remove_file(&path).expect("it is its own file");
    });
}

fn measure(path: &Utf8Path, bytes: &[u8]) {
    let Ok(mut measuring) = Measuring::open(path) else { return };
    // The file is smaller than one step, and its interpreter is at most 1 GiB.
    for _ in 0..2_048 {
        match measuring.step(STEP_BYTES_MAX) {
            Ok(Progress::More) => {}
            Ok(Progress::Done(measured)) => {
                let measurement = measured.measurement();
                assert_eq!(measurement.size, u64::try_from(bytes.len()).expect("it is short"));
                let written = serde_json::to_vec(measurement).expect("it can be written");
                let again: ExecutableMeasurement =
                    serde_json::from_slice(&written).expect("what was written is read");
                assert_eq!(&again, measurement);
                return;
            }
            Err(error) => return assert!(!error.with_reason().is_empty()),
        }
    }
    panic!("a measurement does not end");
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    vec![
        b"\x7fELF\x02\x01".to_vec(),
        b"#!/bin/sh -e\nexit 0\n".to_vec(),
        b"#!/bin/sh\r\n".to_vec(),
        b"#! relative\n".to_vec(),
        b"text".to_vec(),
    ]
}
