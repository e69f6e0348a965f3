//! Row `launch`: a short program, from the request to its observed exit.

use super::rivals::rivals;
use super::row::{Line, Row, Unit};
use super::samples::{Contender, Series, alternate, milliseconds, timed};
use super::setting::{Setting, finish, launch};
use crate::command::{self, Failure, program};
use crate::proving_ground::{ProvingGround, told};
use placement::{ExecutionState, Launch};
use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Instant;

/// Times a raw start that a launch may take, its syncs apart.
const TIMES_RAW: f64 = 6.0;
/// Syncs of a launch until its exit is recorded; row `fsyncs` counts them.
const SYNCS: f64 = 3.0;

/// When each step of one launch was reached, in milliseconds since it began.
#[derive(Debug, Clone, Copy)]
struct Steps {
    runs: f64,
    exited: f64,
    ended: f64,
    cleaned: f64,
}

/// Measures launches of `/bin/true` by a warm host.
pub(super) fn measure(setting: &Setting) -> Result<Row, Failure> {
    let ground = setting.ground()?;
    let steps = RefCell::new(Vec::new());
    let mut log = sync_log(&ground)?;
    let (rivals, skipped) = rivals();
    let mut contenders = vec![
        Contender::new("raw spawn and wait", raw),
        Contender::new("raw sync", || timed(|| sync(&mut log))),
        Contender::new("ours", || {
            let reached = one(&ground)?;
            steps.borrow_mut().push(reached);
            Ok(reached.exited)
        }),
    ];
    contenders.extend(rivals.into_iter().map(|rival| {
        let name = rival.name;
        Contender::new(name, move || timed(|| quiet(rival.command())))
    }));
    let mut all = alternate(setting.rounds(), contenders)?;
    let beside = all.split_off(3);
    let [raw, synced, ours] = <[Series; 3]>::try_from(all).expect("three came before the rivals");
    let steps = steps.into_inner().split_off(1);
    let step = |of: fn(&Steps) -> f64| Series::new("ours", steps.iter().map(of).collect());

    let bound = TIMES_RAW * raw.median() + SYNCS * synced.median();
    let text = format!("≤ 6x raw + {SYNCS:.0} syncs = {}", Unit::Milliseconds.shown(bound));
    let met = ours.median() <= bound;
    let mut exited = Line::new("request → exit recorded", Unit::Milliseconds, ours)
        .beside(raw.clone())
        .beside(synced)
        .must(text, met);
    exited.beside.extend(beside);
    let line = |what: &str, series| Line::new(what, Unit::Milliseconds, series).beside(raw.clone());
    let lines = vec![
        exited,
        line("request → program runs", step(|steps| steps.runs)),
        line("request → runner gone", step(|steps| steps.ended)),
        line("request → cleaned up", step(|steps| steps.cleaned)),
    ];
    Ok(Row { lines, skipped })
}

fn one(ground: &ProvingGround) -> Result<Steps, Failure> {
    let started = Instant::now();
    let so_far = || milliseconds(started.elapsed());
    let attempt = launch(ground, Launch::program("/bin/true"))?;
    let runs = so_far();
    for chunk in attempt.output() {
        chunk.map_err(|error| told("read", &error))?;
    }
    // Both streams end with the program; its exit is recorded at about the same time.
    while attempt.attempt().map_err(|error| told("look", &error))?.execution_state
        != ExecutionState::Exited
    {
        std::thread::yield_now();
    }
    let exited = so_far();
    attempt.wait().map_err(|error| told("wait", &error))?;
    let ended = so_far();
    finish(attempt)?;
    Ok(Steps { runs, exited, ended, cleaned: so_far() })
}

/// Starts `/bin/true` and waits for it, in milliseconds.
pub(super) fn raw() -> Result<f64, Failure> {
    timed(|| quiet(program("/bin/true")))
}

fn quiet(mut command: std::process::Command) -> Result<(), Failure> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command::run(&mut command)
}

fn sync_log(ground: &ProvingGround) -> Result<File, Failure> {
    let path = ground.work().join("log");
    File::create(&path).map_err(|error| Failure::io("make", &path, &error))
}

/// Appends a page and syncs it, as a commit does.
fn sync(log: &mut File) -> Result<(), Failure> {
    let appended = log.write_all(&[0; 4096]).and_then(|()| log.sync_data());
    appended.map_err(|error| Failure::new(format!("cannot sync a file: {error}")))
}
