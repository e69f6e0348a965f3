//! Workers: processes of this program, each the parent of everything that its case leaves.

use super::bed::Programs;
use super::case::{self, Answer, Job};
use super::processes;
use crate::command::{Failure, program};
use camino::Utf8Path;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::ControlFlow;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};

/// What lets each worker have a PID namespace of its own: the numbers that it gives away are not those
/// of the machine, and what it signals by mistake is its own.
const APART: &[&str] = &["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// Says whether workers can be had apart: with privilege.
pub(super) fn can_be_apart() -> bool {
    let [name, options @ ..] = APART else { return false };
    let mut unshare = program(name);
    unshare.args(options).arg("true").stdout(Stdio::null()).stderr(Stdio::null());
    unshare.status().is_ok_and(|status| status.success())
}

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
        let apart = can_be_apart();
        for _ in 0..workers.max(1) {
            let (queue, enough, sender) = (&queue, &enough, sender.clone());
            scope.spawn(move || {
                let mut worker = Worker::start(host, apart);
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
    fn start(host: &Utf8Path, apart: bool) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| format!("find this program: {error}"))?;
        let own = own.into_os_string();
        let words = APART.iter().filter(|_| apart).map(OsString::from).chain([own]);
        let mut words = words.chain(["crash-worker".into(), OsString::from(host.as_str())]);
        let mut command = program(words.next().expect("this program is one of the words"));
        command.args(words);
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
