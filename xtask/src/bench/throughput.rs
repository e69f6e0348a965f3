//! Row `throughput`: output that is acknowledged and in order, beside a plain pipe.

use super::row::{Line, Row, Unit};
use super::samples::{Contender, Series, alternate, figure};
use super::setting::{Setting, finish, launch};
use crate::command::{Failure, program};
use crate::proving_ground::{ProvingGround, told};
use placement::Launch;
use std::io::Read;
use std::process::{Child, Stdio};
use std::time::Instant;

/// Parts of a plain pipe and of a `cat` hop that must be reached without a spool file.
const OF_PIPE_MIN: f64 = 0.35;
const OF_CAT_MIN: f64 = 0.7;

/// Measures how fast bytes of one child come out.
pub(super) fn measure(setting: &Setting) -> Result<Row, Failure> {
    let ground = setting.ground()?;
    let megabytes = setting.pick(1024, 128);
    let contenders = vec![
        Contender::new("plain pipe", || pipe(megabytes)),
        Contender::new("`cat` hop", || hop(megabytes)),
        Contender::new("ours", || ours(&ground, megabytes, |launch| launch.spool_bytes_max(0))),
        Contender::new("ours", || ours(&ground, megabytes, |launch| launch)),
    ];
    let all = alternate(setting.pick(7, 3), contenders)?;
    let [pipe, hop, memory, file] = <[Series; 4]>::try_from(all).expect("four were measured");
    let of = |part: &Series, whole: &Series| part.median() / whole.median();
    let (of_pipe, of_cat) = (of(&memory, &pipe), of(&memory, &hop));
    let met = of_pipe >= OF_PIPE_MIN && of_cat >= OF_CAT_MIN;
    let lines = vec![
        Line::new("spool file off", Unit::MegabytesPerSecond, memory)
            .beside(pipe.clone())
            .beside(hop.clone())
            .must(format!("≥ 0.35 of a pipe, ≥ 0.7 of a hop ({of_cat:.2})"), met),
        Line::new("spool file on", Unit::MegabytesPerSecond, file).beside(pipe),
    ];
    Ok(Row { lines, skipped: Vec::new() })
}

fn pour(megabytes: u64) -> Vec<String> {
    let count = format!("count={}", megabytes * 16);
    vec!["if=/dev/zero".into(), "bs=64k".into(), count, "status=none".into()]
}

fn ours(
    ground: &ProvingGround,
    megabytes: u64,
    change: impl FnOnce(Launch) -> Launch,
) -> Result<f64, Failure> {
    let started = Instant::now();
    let attempt = launch(ground, change(Launch::program("dd").args(pour(megabytes))))?;
    let mut bytes = 0;
    for chunk in attempt.output() {
        bytes += chunk.map_err(|error| told("read", &error))?.bytes().len();
    }
    let rate = rate(megabytes, bytes, started)?;
    finish(attempt)?;
    Ok(rate)
}

fn pipe(megabytes: u64) -> Result<f64, Failure> {
    let started = Instant::now();
    let mut child = piped(pour(megabytes), Stdio::null(), "dd")?;
    let bytes = read_all(child.stdout.take().expect("it is a pipe"))?;
    ended(child)?;
    rate(megabytes, bytes, started)
}

fn hop(megabytes: u64) -> Result<f64, Failure> {
    let started = Instant::now();
    let mut child = piped(pour(megabytes), Stdio::null(), "dd")?;
    let from = child.stdout.take().expect("it is a pipe");
    let mut cat = piped(Vec::new(), Stdio::from(from), "cat")?;
    let bytes = read_all(cat.stdout.take().expect("it is a pipe"))?;
    ended(child)?;
    ended(cat)?;
    rate(megabytes, bytes, started)
}

fn piped(arguments: Vec<String>, stdin: Stdio, name: &str) -> Result<Child, Failure> {
    let mut command = program(name);
    let started = command.args(arguments).stdin(stdin).stdout(Stdio::piped()).spawn();
    started.map_err(|error| Failure::new(format!("cannot run {name}: {error}")))
}

fn ended(mut child: Child) -> Result<(), Failure> {
    child.wait().map(drop).map_err(|error| Failure::new(format!("cannot wait: {error}")))
}

fn read_all(mut from: impl Read) -> Result<usize, Failure> {
    let mut buffer = vec![0; 64 * 1024];
    let mut bytes = 0;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes += count,
            Err(error) => return Err(Failure::new(format!("cannot read a pipe: {error}"))),
        }
    }
}

fn rate(megabytes: u64, bytes: usize, started: Instant) -> Result<f64, Failure> {
    if u64::try_from(bytes) != Ok(megabytes * 1024 * 1024) {
        return Err(Failure::new(format!("{bytes} bytes came of {megabytes} MiB")));
    }
    Ok(figure(megabytes) / started.elapsed().as_secs_f64())
}
