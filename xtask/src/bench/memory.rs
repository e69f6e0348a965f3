//! Row `memory`: what a runner takes while it waits, and while nobody reads a gigabyte.

use super::row::{Line, Row, Unit};
use super::samples::{Series, figure};
use super::setting::{Setting, finish, launch, tell};
use crate::command::{Failure, program};
use crate::proving_ground::{ProvingGround, told};
use crate::workspace::read;
use placement::{AttemptHandle, Launch};
use placement_testkit::wait_until;
use std::process::Stdio;
use std::time::Duration;

const ATTEMPTS: usize = 50;
const PSS_MAX_MB: f64 = 0.8;
const RSS_MAX_MB: f64 = 4.0;
/// What a stalled reader may add: the memory for chunks on their way, and a megabyte.
const ADDED_MAX_MB: f64 = 1.25;
const PATIENCE: Duration = Duration::from_mins(1);
/// How long runners are left alone before they are looked at.
const REST: Duration = Duration::from_secs(2);

/// Measures runners of sleeping programs, and one whose output nobody reads.
pub(super) fn measure(setting: &Setting) -> Result<Row, Failure> {
    let ground = setting.ground()?;
    let sleepers: Result<Vec<AttemptHandle>, Failure> =
        (0..ATTEMPTS).map(|_| launch(&ground, Launch::program("sleep").arg("600"))).collect();
    let sleepers = sleepers?;
    let mut plain = program("sleep");
    let mut plain = plain
        .arg("600")
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| Failure::new(format!("cannot run sleep: {error}")))?;
    std::thread::sleep(REST);
    let pids: Result<Vec<u32>, Failure> = sleepers.iter().map(runner_pid).collect();
    let pids = pids?;
    let mut row = Row::default();
    let of = |files: &str, name: &str| -> Result<Series, Failure> {
        let figures: Result<Vec<f64>, Failure> =
            pids.iter().map(|pid| megabytes(*pid, files, name)).collect();
        Ok(Series::new("ours", figures?))
    };
    let floor = |files: &str, name: &str| -> Result<Series, Failure> {
        Ok(Series::new("a sleeping process", vec![megabytes(plain.id(), files, name)?]))
    };
    match (of("smaps_rollup", "Pss:"), floor("smaps_rollup", "Pss:")) {
        (Ok(ours), Ok(floor)) => row.lines.push(
            Line::new("idle runner of 50, PSS", Unit::Megabytes, ours)
                .beside(floor)
                .at_most(PSS_MAX_MB),
        ),
        (Err(_), _) | (_, Err(_)) => {
            row.skipped.push("the PSS of a runner is shown to root alone".to_owned());
        }
    }
    row.lines.push(
        Line::new("idle runner of 50, RSS", Unit::Megabytes, of("status", "VmRSS:")?)
            .beside(floor("status", "VmRSS:")?)
            .at_most(RSS_MAX_MB),
    );
    row.skipped.push("tini (0.12 MB PSS), conmon (0.76 MB PSS) are not measured here".to_owned());
    // Ours, not yet reaped.
    plain.kill().and_then(|()| plain.wait()).ok();
    for sleeper in sleepers {
        sleeper.stop_forced().map_err(|error| told("stop", &error))?;
        finish(sleeper)?;
    }
    row.lines.push(stalled(setting, &ground)?);
    Ok(row)
}

/// Lets a child print a gigabyte that nobody reads until it is held up, then reads it all.
fn stalled(setting: &Setting, ground: &ProvingGround) -> Result<Line, Failure> {
    let megabytes_printed: u64 = setting.pick(1024, 256);
    let mut added = Vec::new();
    for _ in 0..setting.pick(3, 1) {
        let script = format!("read go; dd if=/dev/zero bs=64k count={}", megabytes_printed * 16);
        let pour = super::setting::shell(&format!("{script} status=none")).stdin_pipe();
        let attempt = launch(ground, pour)?;
        let pid = runner_pid(&attempt)?;
        let idle = megabytes(pid, "status", "VmHWM:")?;
        tell(&attempt)?;
        wait_until(PATIENCE, "a full spool", || {
            ground
                .host()
                .status(attempt.id())
                .is_ok_and(|seen| seen.runner.is_some_and(|runner| runner.output_full))
        });
        added.push(megabytes(pid, "status", "VmHWM:")? - idle);
        let mut bytes = 0_u64;
        for chunk in attempt.output() {
            let chunk = chunk.map_err(|error| told("read", &error))?;
            bytes += u64::try_from(chunk.bytes().len()).unwrap_or(u64::MAX);
        }
        if bytes != megabytes_printed * 1024 * 1024 {
            return Err(Failure::new(format!("{bytes} bytes came of {megabytes_printed} MiB")));
        }
        finish(attempt)?;
    }
    let what = format!("stalled reader, {megabytes_printed} MiB: added to the peak");
    Ok(Line::new(what, Unit::Megabytes, Series::new("ours", added)).at_most(ADDED_MAX_MB))
}

/// Reads the process id of an attempt's runner out of its name.
pub(super) fn runner_pid(attempt: &AttemptHandle) -> Result<u32, Failure> {
    let recorded = attempt.attempt().map_err(|error| told("look", &error))?;
    let runner = recorded.runner.as_ref().map(|runner| runner.as_str().to_owned());
    let pid = runner.as_deref().and_then(|name| name.split('-').nth(1)?.parse().ok());
    pid.ok_or_else(|| Failure::new("an attempt names no runner"))
}

/// Reads a figure in kB from a file of a process.
fn megabytes(pid: u32, file: &str, name: &str) -> Result<f64, Failure> {
    let text = read(format!("/proc/{pid}/{file}").as_str().into())?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    let kilobytes =
        kilobytes.ok_or_else(|| Failure::new(format!("/proc/{pid}/{file} has no {name}")))?;
    Ok(figure(kilobytes) / 1024.0)
}
