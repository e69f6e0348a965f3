//! Workers: processes of this program, each the parent of everything that its case leaves.

use super::bed::Programs;
use super::case::{self, Answer, Job};
use super::processes;
use crate::command::{Failure, program};
use camino::Utf8Path;
use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::ControlFlow;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};

/// Runs jobs on so many workers and hands each answer over as it comes, until `take` has had enough.
pub(super) fn run(
    host: &Utf8Path,
    workers: usize,
    jobs: &[Job],
    take: &mut dyn FnMut(&Job, Answer) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let enough = AtomicBool::new(false);
    let queue = Mutex::new(jobs.iter());
    let (sender, answers) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            let (queue, enough, sender) = (&queue, &enough, sender.clone());
            scope.spawn(move || {
                let mut worker = Worker::start(host);
                while !enough.load(Ordering::Relaxed) {
                    let job = queue.lock().expect("no thread fails while it holds it").next();
                    let Some(job) = job else { break };
                    let answer =
                        worker.as_mut().map_err(|why| why.clone()).and_then(|it| it.ask(job));
                    // Whoever hears it goes on to the last one.
                    sender.send((job, answer)).ok();
                }
            });
        }
        drop(sender);
        for (job, answer) in answers {
            let flow = match answer {
                Ok(answer) => take(job, answer),
                Err(why) => {
                    enough.store(true, Ordering::Relaxed);
                    return Err(Failure::new(format!("crash: {job:?}: {why}")));
                }
            };
            if flow.is_break() {
                enough.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    })
}

/// Serves jobs until standard input ends.
pub(super) fn serve(host: &Utf8Path) -> Result<(), String> {
    processes::adopt_orphans()?;
    let programs = Programs::copy(host)?;
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| format!("read a job: {error}"))?;
        let job: Job =
            serde_json::from_str(&line).map_err(|error| format!("read a job: {error}"))?;
        let answer = case::run(&job, &programs);
        let answer = serde_json::to_string(&answer).expect("an answer is plain data");
        // Whoever asked may have ended: then there is nothing more to do.
        writeln!(std::io::stdout(), "{answer}").map_err(|error| format!("answer: {error}"))?;
    }
    Ok(())
}

struct Worker {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Worker {
    fn start(host: &Utf8Path) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| format!("find this program: {error}"))?;
        let mut command = program(own);
        command.args(["crash-worker", host.as_str()]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("start a worker: {error}"))?;
        let answers = BufReader::new(child.stdout.take().expect("standard output is piped"));
        Ok(Self { child, answers })
    }

    fn ask(&mut self, job: &Job) -> Result<Answer, String> {
        let mut line = serde_json::to_string(job).expect("a job is plain data");
        line.push('\n');
        let stdin = self.child.stdin.as_mut().expect("standard input is piped");
        stdin.write_all(line.as_bytes()).map_err(|error| format!("ask a worker: {error}"))?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).map_err(|error| format!("hear a worker: {error}"))?;
        serde_json::from_str(&answer).map_err(|error| format!("hear a worker: {error}"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.child.stdin.take());
        self.child.wait().ok();
    }
}
