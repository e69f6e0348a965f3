//! Row `exit_observation`: how soon an exit is seen while a descendant still holds the streams.

use super::row::{Line, Row, Unit};
use super::samples::{Contender, Series, alternate, milliseconds, timed};
use super::setting::{Setting, finish, launch, shell, tell};
use crate::command::{Failure, program};
use crate::proving_ground::{ProvingGround, told};
use placement::{ExecutionState, Leftovers};
use std::io::Write as _;
use std::process::Stdio;
use std::time::Instant;

/// Exits when it is told to, and leaves a process behind that holds both streams.
const SCRIPT: &str = "sleep 600 </dev/null & read line; exit 0";
const OBSERVED_MAX_MS: f64 = 20.0;

/// Measures from the word that ends the program to its exit being known.
pub(super) fn measure(setting: &Setting) -> Result<Row, Failure> {
    let ground = setting.ground()?;
    let contenders = vec![Contender::new("raw wait", raw), Contender::new("ours", || one(&ground))];
    let all = alternate(setting.rounds(), contenders)?;
    let [raw, ours] = <[Series; 2]>::try_from(all).expect("two were measured");
    let line = Line::new("word to the child → status says exited", Unit::Milliseconds, ours);
    Ok(Row { lines: vec![line.beside(raw).at_most(OBSERVED_MAX_MS)], skipped: Vec::new() })
}

fn one(ground: &ProvingGround) -> Result<f64, Failure> {
    let attempt = launch(ground, shell(SCRIPT).stdin_pipe().leftovers(Leftovers::Keep))?;
    let host = ground.host();
    let status = || host.status(attempt.id()).map_err(|error| told("ask", &error));
    status()?;
    let started = Instant::now();
    tell(&attempt)?;
    loop {
        let seen = status()?;
        let by_runner = seen.runner.is_some_and(|it| it.execution == ExecutionState::Exited);
        if by_runner || seen.attempt.execution_state == ExecutionState::Exited {
            break;
        }
    }
    let seen = milliseconds(started.elapsed());
    attempt.stop_forced().map_err(|error| told("stop", &error))?;
    finish(attempt)?;
    Ok(seen)
}

fn raw() -> Result<f64, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("the raw child failed: {error}"));
    let mut command = program("/bin/sh");
    // The descendant would outlive it, so there is none.
    command.args(["-c", "read line; exit 0"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    let mut stdin = child.stdin.take().expect("it is a pipe");
    timed(|| {
        stdin.write_all(b"go\n").map_err(failed)?;
        child.wait().map_err(failed).map(drop)
    })
}
