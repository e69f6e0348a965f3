//! Row `executable`: measuring a program of 200 MB, the first time and again.

use super::row::{Line, Row, Unit};
use super::samples::{Series, timed};
use super::setting::Setting;
use crate::command::Failure;
use crate::proving_ground::told;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

const BYTES: usize = 200 * 1024 * 1024;
const FIRST_MAX_MS: f64 = 300.0;
const AGAIN_MAX_MS: f64 = 1.0;
/// What the file must have been left alone for, before its digest is kept.
const QUIET: Duration = Duration::from_millis(2_500);

/// Measures a file that its user cannot write; a host of its own each time is a first time.
pub(super) fn measure(setting: &Setting) -> Result<Row, Failure> {
    let ground = setting.ground()?;
    let path = ground.work().join("large");
    write_large(&path).map_err(|error| Failure::io("write", &path, &error))?;
    let (mut floor, mut first, mut again) = (Vec::new(), Vec::new(), Vec::new());
    std::thread::sleep(QUIET);
    for _ in 0..setting.pick(7, 3) {
        floor.push(timed(|| hash(&path))?);
        let fresh = setting.ground()?;
        let measured =
            || fresh.host().measure(&path).map(drop).map_err(|error| told("measure", &error));
        first.push(timed(measured)?);
        again.push(timed(measured)?);
    }
    let lines = vec![
        Line::new("200 MB, the first time", Unit::Milliseconds, Series::new("ours", first))
            .beside(Series::new("sha2 over the file", floor))
            .at_most(FIRST_MAX_MS),
        Line::new("200 MB, its facts unchanged", Unit::Milliseconds, Series::new("ours", again))
            .at_most(AGAIN_MAX_MS),
    ];
    Ok(Row { lines, skipped: Vec::new() })
}

/// A program's first bytes, and then no two blocks alike.
fn write_large(path: &camino::Utf8Path) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    let mut random = placement_testkit::Random::seeded(1);
    let mut block = random.bytes(1024 * 1024);
    block[..4].copy_from_slice(b"\x7fELF");
    for number in 0..BYTES / block.len() {
        file.write_all(&block)?;
        block[8] = u8::try_from(number % 256).unwrap_or(0);
    }
    fs::set_permissions(path, Permissions::from_mode(0o555))
}

fn hash(path: &camino::Utf8Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::io("hash", path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let mut hasher = Sha256::new();
    let mut block = vec![0; 1024 * 1024];
    loop {
        let count = file.read(&mut block).map_err(failed)?;
        if count == 0 {
            break;
        }
        hasher.update(&block[..count]);
    }
    std::hint::black_box(hasher.finalize());
    Ok(())
}
